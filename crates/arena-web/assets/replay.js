// A replay, read frame by frame. A frame is a line after the header: an epoch, or the result. The index has eight bytes
// per frame: six bytes of offset, a zero byte, and a byte of marks. The summary has the number of frames, and the marks
// and scores of each stretch of frames. With index and summary, every operation reads few bytes.
import { RangedFile } from "./file.js";

/** The supported version of index and summary. */
const VERSION = 1;
const ENTRY = 8;
/** Index entries per request, and the maximum number of cached blocks. */
const BLOCK = 1024;
const MOST_BLOCKS = 512;
/** Size in bytes of the first read, which is usually enough for header and first frame. */
const FIRST = 32 << 10;
const MOST_FIRST = 64 << 20;
/** Maximum bytes of a group of frames that one request reads: small for a jump, large for consecutive frames. */
const GLANCE = 16 << 10;
const GROUP = 256 << 10;
/** Maximum bytes of cached frames. */
const KEPT = 32 << 20;

/** The bits of marks, in index and summary. */
export const FAULT = 1;
export const REJECTION = 2;
export const DISQUALIFICATION = 4;

export class Replay {
  /** The first line: game, config, agents. Set by `begin`. */
  header;
  /** The summary. Set by `prepare`. */
  summary;
  #file;
  #index;
  #summaryUrl;
  #blocks = new Map();
  /** Cached frames as bytes, the least recently used first. */
  #kept = new Map();
  #size = 0;
  #underway = [];

  /** `places` holds the addresses of `replay`, `index` and `summary`. */
  constructor(places) {
    this.#file = new RangedFile(places.replay);
    this.#index = new RangedFile(places.index);
    this.#summaryUrl = places.summary;
  }

  /** Reads the header. Returns the first frame, which needs no index; undefined if there is none. */
  async begin() {
    let bytes = await this.#file.read(0, FIRST);
    for (let size = FIRST; lines(bytes).length < 2 && bytes.length >= size && size < MOST_FIRST; ) {
      size *= 4;
      bytes = await this.#file.read(0, size);
    }
    const [header, first] = lines(bytes);
    this.header = parse(header);
    if (!Array.isArray(this.header?.agents)) throw new Error("the file is not a replay");
    return first && parse(first);
  }

  /** Reads the summary. */
  async prepare() {
    const answer = await fetch(this.#summaryUrl);
    // The body of an error response names the fault.
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 500) || `the host returned status ${answer.status}`);
    const summary = await answer.json();
    if (summary.arena_replay_index !== VERSION) throw new Error(`the index has version ${summary.arena_replay_index}, but the viewer reads version ${VERSION}`);
    this.summary = summary;
  }

  /** Reads the whole index, unless it is long. Reading a frame then takes one request rather than two. */
  async warm() {
    const size = (this.frames + 1) * ENTRY;
    if (size > MOST_BLOCKS * BLOCK * ENTRY) return;
    const bytes = await this.#index.read(0, size);
    // The read of a missing entry reports the error.
    if (bytes.length < size) return;
    for (let number = 0; number * BLOCK < this.frames; number++) {
      const begin = number * BLOCK * ENTRY;
      const length = Math.min((BLOCK + 1) * ENTRY, size - begin);
      this.#blocks.set(number, Promise.resolve(new DataView(bytes.buffer, bytes.byteOffset + begin, length)));
    }
  }

  /** The number of frames. */
  get frames() {
    return this.summary?.frames ?? 1;
  }

  /** Returns the number of an epoch's frame. */
  frameOf(epoch) {
    return Math.min(Math.max(epoch - (this.summary?.first_epoch ?? 1), 0), this.frames - 1);
  }

  /** Returns the name of a frame for an error message. The frame after the last epoch is the result. */
  nameOf(frame) {
    const isResult = Boolean(this.summary?.result) && frame === this.frames - 1;
    return isResult ? "the result" : `epoch ${frame + (this.summary?.first_epoch ?? 1)}`;
  }

  /** Returns a parsed frame. The request also reads the following frames, or earlier ones if `direction` is -1. */
  async frame(frame, direction = 1) {
    let bytes = this.#kept.get(frame);
    if (!bytes) {
      const underway = this.#underway.find(({ from, to }) => from <= frame && frame < to);
      const group = underway?.group ?? this.#load(frame, direction);
      bytes = (await group).get(frame);
    }
    this.#keep(frame, bytes);
    return parse(bytes);
  }

  /** Prefetches a frame. */
  async expect(frame) {
    if (frame >= this.frames || this.#kept.has(frame)) return;
    if (this.#underway.some(({ from, to }) => from <= frame && frame < to)) return;
    // A later call of `frame` reports the failure.
    await this.#load(frame, 1).catch(() => {});
  }

  /** Finds the next frame in a direction with any of these marks; undefined if there is none. */
  async find(frame, direction, marks) {
    const { stretch, marks: stretches } = this.summary;
    let at = frame + direction;
    while (at >= 0 && at < this.frames) {
      const number = Math.floor(at / stretch);
      if (stretches[number] & marks) {
        const [low, high] = [number * stretch, Math.min((number + 1) * stretch, this.frames)];
        for (; at >= low && at < high; at += direction) {
          const block = await this.#block(Math.floor(at / BLOCK));
          if (block.getUint8((at % BLOCK) * ENTRY + ENTRY - 1) & marks) return at;
        }
      } else {
        at = direction > 0 ? (number + 1) * stretch : number * stretch - 1;
      }
    }
    return undefined;
  }

  #load(frame, direction) {
    const load = { from: frame, to: frame + 1 };
    load.group = this.#read(frame, direction, load).finally(() => {
      this.#underway = this.#underway.filter((other) => other !== load);
    });
    this.#underway.push(load);
    return load.group;
  }

  async #read(frame, direction, load) {
    // A group of frames doesn't cross a block of the index.
    const number = Math.floor(frame / BLOCK);
    const block = await this.#block(number);
    const offset = (frame) => {
      const at = (frame - number * BLOCK) * ENTRY;
      return block.getUint32(at, true) + block.getUint16(at + 4, true) * 2 ** 32;
    };
    const [low, high] = [number * BLOCK, Math.min((number + 1) * BLOCK, this.frames)];
    let [from, to] = [frame, frame + 1];
    const isNew = (frame) => !this.#kept.has(frame);
    const most = isNew(frame - direction) ? GLANCE : GROUP;
    if (direction < 0) {
      while (from > low && isNew(from - 1) && offset(to) - offset(from - 1) <= most) from--;
    } else {
      while (to < high && isNew(to) && offset(to + 1) - offset(from) <= most) to++;
    }
    [load.from, load.to] = [from, to];
    const begin = offset(from);
    const bytes = await this.#file.read(begin, offset(to));
    if (bytes.length !== offset(to) - begin) throw new Error("the replay is shorter than its index says");
    const group = new Map();
    for (let each = from; each < to; each++) {
      // A copy, so that a cached frame doesn't retain its group's buffer.
      const line = bytes.slice(offset(each) - begin, offset(each + 1) - begin);
      group.set(each, line);
      this.#keep(each, line);
    }
    return group;
  }

  #keep(frame, bytes) {
    if (this.#kept.delete(frame)) this.#size -= bytes.length;
    this.#kept.set(frame, bytes);
    this.#size += bytes.length;
    for (const [oldest, line] of this.#kept) {
      if (this.#size <= KEPT || oldest === frame) break;
      this.#kept.delete(oldest);
      this.#size -= line.length;
    }
  }

  /** Returns a block of the index, with the entry that follows the block. */
  #block(number) {
    let block = this.#blocks.get(number);
    if (!block) {
      const begin = number * BLOCK * ENTRY;
      block = this.#index.read(begin, begin + (BLOCK + 1) * ENTRY).then((bytes) => {
        const entries = Math.min(BLOCK, this.frames - number * BLOCK) + 1;
        if (bytes.length < entries * ENTRY) throw new Error("the index is shorter than the summary says");
        return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      });
      block.catch(() => this.#blocks.delete(number));
      this.#blocks.set(number, block);
      if (this.#blocks.size > MOST_BLOCKS) this.#blocks.delete(this.#blocks.keys().next().value);
    }
    return block;
  }
}

const parse = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

/** Returns at most the first two lines, without incomplete ones. */
function lines(bytes) {
  const found = [];
  for (let begin = 0; found.length < 2; ) {
    const end = bytes.indexOf(10, begin);
    if (end < 0) break;
    found.push(bytes.subarray(begin, end));
    begin = end + 1;
  }
  return found;
}
