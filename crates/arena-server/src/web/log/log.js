// The page of the log: fetches the checkpoint and the newest leaves, and compares them with the root hash.

import { FalseLog, TILE, entriesOf, hashesOf, loadCheckpoint, loadTile, rootsOf } from "./log-files.js";
import { hexOf, isSame, leafHash } from "./record-check.js";
import { make } from "./boards/seats.js";
import { timeElement } from "./page.js";

/** The maximum number of shown leaves. */
const SHOWN = 100;

/** The item in which the browser keeps the last checkpoint that it saw. */
const REMEMBERED = "arena-checkpoint";

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

/** Compares the log with its checkpoint and with the one of the last visit, and remembers the checkpoint. */
async function compare(checkpoint) {
    const { origin, size } = checkpoint;
    const root = hexOf(checkpoint.root);
    let before = null;
    try {
        before = JSON.parse(localStorage.getItem(REMEMBERED));
    } catch {
        // Without storage, or with damaged storage, there is nothing to compare.
    }
    if (before?.origin !== origin || !before.size) before = { size, root };
    if (before.size > size) throw new FalseLog(`The log has lost leaves: at your last visit it had ${before.size}.`);
    if (size && globalThis.crypto?.subtle) {
        const [whole, first] = await rootsOf(size, before.size);
        if (!isSame(whole, checkpoint.root)) throw new FalseLog("The leaves don't have the root hash of the checkpoint.");
        if (hexOf(first) !== before.root) throw new FalseLog("The log has other leaves than at your last visit.");
    }
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
        const checkpoint = await loadCheckpoint();
        if (!checkpoint) {
            verdict.textContent = "This arena keeps no log.";
            return;
        }
        for (const [name, value] of [["Name", checkpoint.origin], ["Leaves", checkpoint.size], ["Root hash", hexOf(checkpoint.root)]]) {
            const description = make("dd");
            description.append(make("code", "", String(value)));
            facts.append(make("dt", "", name), description);
        }
        await compare(checkpoint);
        if (!globalThis.crypto?.subtle) {
            verdict.textContent = "This browser checks hashes on encrypted pages (https) only.";
            return;
        }
        if (checkpoint.size) {
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
