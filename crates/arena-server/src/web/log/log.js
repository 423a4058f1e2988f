// The page of the log: fetches the checkpoint and the newest leaves, and compares them with the root hash.

import { hexOf, isSame, leafHash, nodeHash, parseCheckpoint, rootOf } from "./record-check.js";
import { make } from "./boards/seats.js";
import { timeElement } from "./page.js";

/** The number of hashes or entries in a full tile. */
const TILE = 256;

/** The maximum number of shown leaves. */
const SHOWN = 100;

/** The item in which the browser keeps the last checkpoint that it saw. */
const REMEMBERED = "arena-checkpoint";

/** A contradiction in the log. */
class FalseLog extends Error {}

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

/** Returns the newest tile of a level; partial tiles may have been replaced by full ones. */
async function loadTile(kind, number, width) {
    const data = await load(tilePath(kind, number, width)) ?? await load(tilePath(kind, number, TILE));
    if (!data) throw new Error("a tile is missing");
    return data;
}

/** Returns the first `width` hashes of a tile. */
async function hashesOf(level, number, width) {
    const data = await loadTile(level, number, width);
    if (data.length < 32 * width) throw new FalseLog("A tile is too short.");
    return Array.from({ length: width }, (_, at) => data.slice(32 * at, 32 * at + 32));
}

/** Returns the root hash of the first `size` leaves, at least one, from the tiles on the right edge of the tree. */
async function rootFromTiles(size) {
    // The roots of complete subtrees, from right to left.
    const subtrees = [];
    for (let [level, count] = [0, size]; count > 0; level += 1, count = Math.floor(count / TILE)) {
        const width = count % TILE;
        if (!width) continue;
        let hashes = await hashesOf(level, Math.floor(count / TILE), width);
        for (let power = 1; hashes.length; power *= 2) {
            if (!(width & power)) continue;
            subtrees.push(await rootOf(hashes.slice(-power)));
            hashes = hashes.slice(0, -power);
        }
    }
    let root = subtrees[0];
    for (const subtree of subtrees.slice(1)) root = await nodeHash(subtree, root);
    return root;
}

/** Returns the entries of a tile: each has its length in two bytes before it. */
function entriesOf(data) {
    const entries = [];
    for (let at = 0; at < data.length;) {
        const length = data[at] * 256 + data[at + 1];
        entries.push(data.subarray(at + 2, at + 2 + length));
        at += 2 + length;
    }
    return entries;
}

/** Returns the numbers and contents of the leaves in the last tile, which agree with the tile's hashes. */
async function newest(size) {
    const start = Math.floor((size - 1) / TILE) * TILE;
    const width = size - start;
    const entries = entriesOf(await loadTile("entries", start / TILE, width)).slice(0, width);
    const hashes = await hashesOf(0, start / TILE, width);
    const own = await Promise.all(entries.map(leafHash));
    if (own.length !== width || !own.every((hash, at) => isSame(hash, hashes[at]))) throw new FalseLog("The newest leaves don't have the hashes of the log.");
    return entries.map((entry, at) => ({ number: start + at, leaf: JSON.parse(new TextDecoder().decode(entry)) }));
}

const KINDS = { created: "game created", ended: "game ended", removed: "game removed", excluded: "game excluded", key: "new key for records", deal: "deal of a day" };

function row({ number, leaf }) {
    const line = make("tr");
    const about = make("td");
    if (leaf.session && leaf.leaf !== "removed") {
        const link = make("a", "", leaf.session);
        link.href = `/sessions/${encodeURIComponent(leaf.session)}`;
        about.append(link);
    } else if (leaf.leaf === "deal") {
        const link = make("a", "", String(leaf.day));
        link.href = `/daily/${encodeURIComponent(leaf.day)}`;
        about.append(link);
    } else about.append(make("code", "", leaf.session ?? leaf.recordKey ?? ""));
    if (leaf.reason) about.append(` ${leaf.reason}`);
    const time = make("td");
    if (Number.isFinite(leaf.at)) time.append(timeElement(leaf.at));
    line.append(make("td", "number", String(number)), make("td", "", KINDS[leaf.leaf] ?? String(leaf.leaf)), about, time);
    return line;
}

/** Compares a checkpoint with the one of the last visit, and remembers it. */
function compare(checkpoint) {
    const { origin, size } = checkpoint;
    const root = hexOf(checkpoint.root);
    let before = null;
    try {
        before = JSON.parse(localStorage.getItem(REMEMBERED));
    } catch {
        // Without storage, or with damaged storage, there is nothing to compare.
    }
    if (before?.origin === origin && before.size > size) throw new FalseLog(`The log has lost leaves: at your last visit it had ${before.size}.`);
    if (before?.origin === origin && before.size === size && before.root !== root) throw new FalseLog("The log has other leaves than at your last visit.");
    try {
        localStorage.setItem(REMEMBERED, JSON.stringify({ origin, size, root }));
    } catch {
        // The next visit has nothing to compare then.
    }
}

async function show() {
    const verdict = document.getElementById("log-verdict");
    const facts = document.getElementById("log-facts");
    try {
        const data = await load("checkpoint");
        if (!data) {
            verdict.textContent = "This arena keeps no log.";
            return;
        }
        const checkpoint = parseCheckpoint(new TextDecoder().decode(data));
        if (!checkpoint) throw new FalseLog("The checkpoint is malformed.");
        for (const [name, value] of [["Name", checkpoint.origin], ["Leaves", checkpoint.size], ["Root hash", hexOf(checkpoint.root)]]) {
            const description = make("dd");
            description.append(make("code", "", String(value)));
            facts.append(make("dt", "", name), description);
        }
        compare(checkpoint);
        if (!globalThis.crypto?.subtle) {
            verdict.textContent = "This browser checks hashes on encrypted pages (https) only.";
            return;
        }
        if (checkpoint.size) {
            if (!isSame(await rootFromTiles(checkpoint.size), checkpoint.root)) throw new FalseLog("The leaves don't have the root hash of the checkpoint.");
            const leaves = await newest(checkpoint.size);
            document.getElementById("log-leaves").append(...leaves.slice(-SHOWN).reverse().map(row));
            document.getElementById("log-table").hidden = false;
        }
        verdict.textContent = "The newest leaves agree with the checkpoint.";
    } catch (error) {
        verdict.textContent = error instanceof FalseLog ? `The log is false. ${error.message}` : "The server didn't send the log. Please reload the page.";
    }
}

show();
