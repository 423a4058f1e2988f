// A remote file, read by byte ranges, since replays may be larger than the memory.

/** Maximum size in bytes of a file from a host that ignores range requests. */
const MOST_WHOLE = 64 << 20;

export class RangedFile {
  #url;
  #whole;

  constructor(url) {
    this.#url = url;
  }

  /** Reads the bytes from `from` up to but excluding `to`. Returns fewer bytes at the end of the file. */
  async read(from, to) {
    if (this.#whole) return this.#whole.subarray(from, to);
    if (to <= from) return new Uint8Array();
    const answer = await fetch(this.#url, { headers: { Range: `bytes=${from}-${to - 1}` } });
    if (answer.status === 206) {
      const begin = /^bytes (\d+)-/.exec(answer.headers.get("Content-Range") ?? "")?.[1];
      if (begin !== String(from)) throw new Error(`${this.#name()}: requested byte ${from}, but the host sent byte ${begin ?? "(unknown)"}`);
      return new Uint8Array(await answer.arrayBuffer());
    }
    if (!answer.ok) throw new Error(`cannot read ${this.#name()}: the host returned status ${answer.status}`);
    // The host ignores range requests. A small file is kept whole.
    const length = Number(answer.headers.get("Content-Length") ?? NaN);
    if (!(length <= MOST_WHOLE)) {
      await answer.body?.cancel();
      throw new Error(`${this.#name()} is too large for a host without range requests; use a host that supports them`);
    }
    this.#whole = new Uint8Array(await answer.arrayBuffer());
    return this.#whole.subarray(from, to);
  }

  #name() {
    return decodeURIComponent(new URL(this.#url).pathname.split("/").pop());
  }
}
