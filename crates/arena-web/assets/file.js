// A file on a web host, of which parts are read. Replays may be larger than the memory, so the whole is never asked for.

/** Where a host answers with the whole file whatever it is asked for, larger ones than this aren't taken in. */
const MOST_WHOLE = 64 << 20;

export class RangedFile {
  #url;
  #whole;

  constructor(url) {
    this.#url = url;
  }

  /** The bytes from `from` up to `to`, which is no longer among them; fewer at the end of the file. */
  async read(from, to) {
    if (this.#whole) return this.#whole.subarray(from, to);
    if (to <= from) return new Uint8Array();
    const answer = await fetch(this.#url, { headers: { Range: `bytes=${from}-${to - 1}` } });
    if (answer.status === 206) {
      const begin = /^bytes (\d+)-/.exec(answer.headers.get("Content-Range") ?? "")?.[1];
      if (begin !== String(from)) throw new Error(`${this.#name()} came from byte ${begin ?? "nowhere"} on, not ${from}`);
      return new Uint8Array(await answer.arrayBuffer());
    }
    if (!answer.ok) throw new Error(`${this.#name()} can't be read: the host answers ${answer.status}`);
    // A host that knows no ranges. Small files are as well taken in as a whole.
    const length = Number(answer.headers.get("Content-Length") ?? NaN);
    if (!(length <= MOST_WHOLE)) {
      await answer.body?.cancel();
      throw new Error(`${this.#name()} is too large for this host: it answers no requests for ranges of bytes`);
    }
    this.#whole = new Uint8Array(await answer.arrayBuffer());
    return this.#whole.subarray(from, to);
  }

  #name() {
    return decodeURIComponent(new URL(this.#url).pathname.split("/").pop());
  }
}
