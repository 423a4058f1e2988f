// The files of the log: checkpoint and tiles from the server, the root hashes that follow from them, and the comparison
// with a record's proof.

import { isSame, nodeHash, parseCheckpoint, rootOf } from "./record-check.js";

/** The number of hashes or entries in a full tile. */
export const TILE = 256;

/** The time after which caches have no older checkpoint, in milliseconds. */
const FRESH = 2000;

/** A contradiction in the log. */
export class FalseLog extends Error {}

async function load(path) {
    const answer = await fetch(`/log/${path}`, { cache: "no-store", signal: AbortSignal.timeout(30_000) });
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
}

/** Returns a tile's path. `kind` is a level or `entries`, and `width` the number of hashes or entries in it. */
function tilePath(kind, number, width) {
    let [rest, path] = [number, String(number % 1000).padStart(3, "0")];
    while (rest >= 1000) {
        rest = Math.floor(rest / 1000);
        path = `x${String(rest % 1000).padStart(3, "0")}/${path}`;
    }
    return `tile/${kind}/${path}${width < TILE ? `.p/${width}` : ""}`;
}

/** Returns the origin, size and root hash of the newest checkpoint, or null if the arena keeps no log. */
export async function loadCheckpoint() {
    const data = await load("checkpoint");
    if (!data) return null;
    const checkpoint = parseCheckpoint(new TextDecoder().decode(data));
    if (!checkpoint) throw new FalseLog("The checkpoint is malformed.");
    return checkpoint;
}

/** Returns the newest tile of a level; partial tiles may have been replaced by full ones. */
export async function loadTile(kind, number, width) {
    const data = await load(tilePath(kind, number, width)) ?? await load(tilePath(kind, number, TILE));
    if (!data) throw new Error("a tile is missing");
    return data;
}

/** Returns the first `width` hashes of a tile. */
export async function hashesOf(level, number, width) {
    const data = await loadTile(level, number, width);
    if (data.length < 32 * width) throw new FalseLog("A tile is too short.");
    return Array.from({ length: width }, (_, at) => data.slice(32 * at, 32 * at + 32));
}

/** Returns the entries of a tile: each has its length in two bytes before it. */
export function entriesOf(data) {
    const entries = [];
    for (let at = 0; at < data.length;) {
        const length = data[at] * 256 + data[at + 1];
        entries.push(data.subarray(at + 2, at + 2 + length));
        at += 2 + length;
    }
    return entries;
}

/**
 * Returns the root hashes of the first `size` leaves and of the first `old` of them, at least one. Both follow from the
 * same hashes, so the longer tree begins with the shorter one.
 */
export async function rootsOf(size, old) {
    const tiles = new Map();
    /** Returns the root of a complete subtree: `level` 0 has the leaves. */
    const subtree = async (level, index) => {
        const [row, width] = [Math.floor(level / 8), 2 ** (level % 8)];
        const number = Math.floor(index * width / TILE);
        const key = `${row}/${number}`;
        if (!tiles.has(key)) {
            const count = Math.floor(size / TILE ** row);
            tiles.set(key, await hashesOf(row, number, Math.min(TILE, count - TILE * number)));
        }
        const start = index * width % TILE;
        return rootOf(tiles.get(key).slice(start, start + width));
    };
    const range = async (start, end) => {
        const level = Math.log2(end - start);
        if (Number.isInteger(level) && (old <= start || old >= end)) {
            const root = await subtree(level, start / (end - start));
            return [root, old >= end ? root : null];
        }
        const middle = start + 2 ** Math.ceil(level - 1);
        const [[left, oldLeft], [right, oldRight]] = [await range(start, middle), await range(middle, end)];
        return [await nodeHash(left, right), oldRight ? await nodeHash(oldLeft, oldRight) : oldLeft];
    };
    return range(0, size);
}

/**
 * Compares the log with the proof in a record. Returns false if the proof is of another log. Throws `FalseLog` if the log
 * lacks leaves of the proof, or has others.
 */
export async function compareWithLog({ origin, leaf, data, size, root }) {
    let checkpoint = await loadCheckpoint();
    if (checkpoint && checkpoint.size < size) {
        // A cache may keep a checkpoint for a second.
        await new Promise((done) => setTimeout(done, FRESH));
        checkpoint = await loadCheckpoint();
    }
    if (checkpoint?.origin !== origin) return false;
    if (leaf < checkpoint.size) {
        const number = Math.floor(leaf / TILE);
        const entries = entriesOf(await loadTile("entries", number, Math.min(TILE, checkpoint.size - TILE * number)));
        if (leaf % TILE >= entries.length) throw new FalseLog("A tile is too short.");
        const logged = new TextDecoder().decode(entries[leaf % TILE]);
        if (logged !== data) throw new FalseLog(`It forked: its leaf ${leaf} is ${logged}, but by the record's proof it is the end of this game: ${data}.`);
    }
    if (checkpoint.size < size) throw new FalseLog(`It went back from ${size} leaves, which the record's proof has, to ${checkpoint.size}.`);
    const [whole, first] = await rootsOf(checkpoint.size, size);
    if (!isSame(whole, checkpoint.root)) throw new FalseLog("The leaves don't have the root hash of the checkpoint.");
    if (!isSame(first, root)) throw new FalseLog(`It forked: its first ${size} leaves have another root hash than the record's proof.`);
    return true;
}
