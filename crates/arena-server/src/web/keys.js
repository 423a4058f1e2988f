// Keys of a person, where players prove who they are. The one that signs can't be read by any script; it stays in the browser, so
// that the same person is the same user in every game. The keys to seats are kept until somebody clears the browser's storage.

const STORE = "keys";

function opened() {
    return new Promise((resolve, reject) => {
        const request = indexedDB.open("arena", 1);
        request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
        request.addEventListener("success", () => resolve(request.result));
        request.addEventListener("error", () => reject(request.error));
    });
}

function settled(request) {
    return new Promise((resolve, reject) => {
        request.addEventListener("success", () => resolve(request.result));
        request.addEventListener("error", () => reject(request.error));
    });
}

/** The pair of keys of this browser, made when it is first needed. */
async function pair() {
    const database = await opened();
    const known = await settled(database.transaction(STORE).objectStore(STORE).get("player"));
    if (known) return known;
    const made = await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"]);
    await settled(database.transaction(STORE, "readwrite").objectStore(STORE).put(made, "player"));
    return made;
}

function hex(bytes) {
    return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A proof of who signs, over a text and the time; nothing where the browser can't. */
export async function sign(text) {
    try {
        const { publicKey, privateKey } = await pair();
        const timestamp = Date.now();
        const signature = await crypto.subtle.sign("Ed25519", privateKey, new TextEncoder().encode(`${text}:${timestamp}`));
        return { publicKey: hex(await crypto.subtle.exportKey("spki", publicKey)), signature: hex(signature), timestamp };
    } catch {
        return null;
    }
}

/** Keeps the key to the seat of an invite. */
export function remember(invite, key) {
    localStorage.setItem(`seat ${invite}`, key);
}

/** The key to the seat of an invite, if this browser took it. */
export function keyOf(invite) {
    return localStorage.getItem(`seat ${invite}`);
}
