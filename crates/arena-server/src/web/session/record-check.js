// The check of a session's record: its chain of hashes, its contents, the seed, the signature and the place in the log.
// It needs nothing but the browser's own SHA-256 and Ed25519, and trusts no answer of the server.

/** A contradiction in a record. The message has the line, from 1. */
export class FalseRecord extends Error {}

/** A record that this browser can't check. */
export class Uncheckable extends Error {}

const VERSION = 1;

const encoder = new TextEncoder();

/** Returns the lower-case hexadecimal digits of bytes. */
export const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the bytes of hexadecimal digits, or null if the text isn't `length` bytes. */
function bytesOf(text, length) {
    if (typeof text !== "string" || text.length !== 2 * length || !/^[0-9a-f]*$/.test(text)) return null;
    return Uint8Array.from(text.match(/../g), (digits) => Number.parseInt(digits, 16));
}

/** Returns the SHA-256 of all parts together. A part is a text or bytes. */
export async function sha256(...parts) {
    const all = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
    const joined = new Uint8Array(all.reduce((length, part) => length + part.length, 0));
    let at = 0;
    for (const part of all) {
        joined.set(part, at);
        at += part.length;
    }
    return new Uint8Array(await crypto.subtle.digest("SHA-256", joined));
}

/** Returns the hash of a leaf of the log (RFC 6962). */
export const leafHash = (data) => sha256(Uint8Array.of(0), data);

/** Returns the hash of a node above two nodes of the log (RFC 6962). */
export const nodeHash = (left, right) => sha256(Uint8Array.of(1), left, right);

/** Returns the root hash of a tree with these leaf hashes, of which there is at least one. */
export async function rootOf(hashes) {
    if (hashes.length === 1) return hashes[0];
    const middle = 2 ** Math.ceil(Math.log2(hashes.length) - 1);
    return nodeHash(await rootOf(hashes.slice(0, middle)), await rootOf(hashes.slice(middle)));
}

/** Returns true if both byte strings are equal. */
export const isSame = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

/** Returns the origin, size and root hash of a checkpoint, or null. */
export function parseCheckpoint(text) {
    const [origin, size, root, ...rest] = String(text).split("\n");
    if (!origin || !/^(0|[1-9][0-9]{0,14})$/.test(size) || !/^[A-Za-z0-9+/]{43}=$/.test(root) || !rest.includes("")) return null;
    return { origin, size: Number(size), root: Uint8Array.from(atob(root), (letter) => letter.charCodeAt(0)) };
}

/** Returns true if the leaf with this hash and number is in a tree, by an inclusion proof (RFC 9162, 2.1.3.2). */
export async function isIncluded(leaf, number, size, path, root) {
    if (!Number.isInteger(number) || number < 0 || number >= size) return false;
    let [node, first, last] = [leaf, number, size - 1];
    const isOdd = (value) => value % 2 === 1;
    const half = (value) => Math.floor(value / 2);
    for (const sibling of path) {
        if (last === 0) return false;
        if (isOdd(first) || first === last) {
            node = await nodeHash(sibling, node);
            while (first && !isOdd(first)) [first, last] = [half(first), half(last)];
        } else node = await nodeHash(node, sibling);
        [first, last] = [half(first), half(last)];
    }
    return last === 0 && isSame(node, root);
}

/** Returns true if the signature is valid, false if it isn't, and null if this browser has no Ed25519. */
async function isSigned(key, signature, text) {
    let known;
    try {
        known = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    } catch (error) {
        return error.name === "NotSupportedError" ? null : false;
    }
    return crypto.subtle.verify({ name: "Ed25519" }, known, signature, encoder.encode(text));
}

/** The order of a record's parts, by the first field of their lines. */
const PARTS = ["arenaRecord", "event", "end", "open", "seal", "leaf"];

/**
 * Checks a record. Returns the session's id, the numbers of events, messages and opened messages, the hash of the end,
 * and the results of the optional checks: `seed` and `signature` are true or null, `proof` has the place of the end in the
 * log, or is null.
 * Throws `FalseRecord` at the first contradiction.
 *
 * @param {Uint8Array} data the file
 */
export async function checkRecord(data) {
    if (!globalThis.crypto?.subtle) throw new Uncheckable("This browser checks hashes on encrypted pages (https) only.");
    let text;
    try {
        // A byte order mark stays in the text, since it is a part of the first line's hash.
        text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    } catch {
        throw new FalseRecord("The record isn't UTF-8.");
    }
    const lines = text.split("\n");
    if (lines.pop() !== "") throw new FalseRecord("The record is truncated: its last line has no end.");
    const result = {
        session: "", events: 0, messages: 0, opened: 0, end: null, hash: "", seed: null, signature: null, proof: null,
    };
    const commitments = new Map();
    const indexes = { chat: 0, operator: 0 };
    let [header, end, part] = [null, null, 0];
    // The times of the latest message and of the latest transition.
    let [lastActivity, lastTransition] = [0, null];
    for (const [at, line] of lines.entries()) {
        const require = (condition, reason) => {
            if (!condition) throw new FalseRecord(`Line ${at + 1}: ${reason}.`);
        };
        let value;
        try {
            value = JSON.parse(line);
        } catch {
            require(false, "it isn't JSON");
        }
        require(value !== null && typeof value === "object", "it isn't an object");
        const kind = Object.keys(value)[0];
        const place = PARTS.indexOf(kind);
        require(at === 0 ? place === 0 : place > 0 && place >= part, "it isn't in its place");
        require(place !== part || at === 0 || kind === "event" || kind === "open", "the part is repeated");
        part = place;
        if (kind === "arenaRecord") {
            header = value;
            if (value.arenaRecord !== VERSION) throw new Uncheckable("The record has a newer format than this page.");
            result.session = value.session;
            lastActivity = value.createdAt;
        } else if (kind === "event" || kind === "end") {
            require(value.previous === result.hash, "its hash of the line before is wrong");
        }
        if (place <= 2) result.hash = hexOf(await sha256(line));
        if (kind === "event") {
            result.events += 1;
            require(value.event === result.events, "its number is wrong");
            // Old and imported games may have wrong times.
            const isInTime = header.inputs === "missing" || value.at >= lastActivity;
            require(isInTime, "its time is before the creation or an earlier message");
            if (value.version !== null) lastTransition = value.at;
            if (value.user) commitments.set(`user/${value.seat}`, value.user);
            require(Array.isArray(value.messages), "it has no list of messages");
            for (const message of value.messages) {
                require(message !== null && typeof message === "object", "a message isn't an object");
                const { channel, index, content } = message;
                if (channel in indexes) {
                    // Imported games may lack messages.
                    const follows = header.inputs === "missing" ? index > indexes[channel] : index === indexes[channel] + 1;
                    require(follows, "the index of a message is wrong");
                    indexes[channel] = index;
                    result.messages += 1;
                    lastActivity = Math.max(lastActivity, value.at);
                }
                // A message that was hidden before the arena kept commitments can't be opened.
                if (content !== null) commitments.set(`${channel}/${index}`, content);
            }
        } else if (kind === "end") {
            end = value;
            result.end = value.end;
            require(header.inputs !== "withheld", "a record with withheld inputs has no end");
            const isInTime = header.inputs === "missing" || value.at === lastTransition;
            require(isInTime, "the time of the end isn't that of the last transition");
            require((header.seedCommitment === null) === (value.seed === null), "the seed is missing");
            if (value.seed !== null) {
                const seed = bytesOf(value.seed, 32);
                require(seed && hexOf(await sha256(seed)) === header.seedCommitment, "the seed isn't the one that was fixed at the start");
                result.seed = true;
            }
        } else if (kind === "open") {
            const salt = bytesOf(value.salt, 32);
            require(salt && typeof value.content === "string" && commitments.has(value.open), "the content belongs to no event");
            const digest = hexOf(await sha256(salt, value.content));
            require(digest === commitments.get(value.open), `the content ${value.open} was changed`);
            if (value.open.split("/")[0] in indexes) result.opened += 1;
            commitments.delete(value.open);
        } else if (kind === "seal") {
            require(value.seal === result.hash && value.session === header.session, "the signature is of another record");
            require(value.key === header.recordKey, "the signature has another key");
            const [key, signature] = [bytesOf(value.key, 32), bytesOf(value.signature, 64)];
            require(key && signature, "the signature is malformed");
            result.signature = await isSigned(key, signature, `arena record seal\n${value.session}\n${value.seal}\n`);
            require(result.signature !== false, "the signature is wrong");
        } else if (kind === "leaf") {
            require(end, "only an ended session is in the log");
            const checkpoint = parseCheckpoint(value.checkpoint);
            const path = Array.isArray(value.path) ? value.path.map((node) => bytesOf(node, 32)) : [null];
            require(checkpoint && checkpoint.size === value.size && path.every(Boolean), "the proof is malformed");
            const leaf = { leaf: "ended", session: header.session, ending: end.end, record: result.hash, at: end.at };
            const data = JSON.stringify(leaf);
            require(await isIncluded(await leafHash(data), value.leaf, value.size, path, checkpoint.root), "the log doesn't have this record");
            result.proof = { ...checkpoint, leaf: value.leaf, data };
        }
    }
    if (!header) throw new FalseRecord("The record is empty.");
    if (header.recordKey !== null && result.signature === null && result.proof === null && part < PARTS.indexOf("seal")) {
        throw new FalseRecord("The signature is missing: the record is truncated.");
    }
    return result;
}
