// Keys for authentication mode. The browser stores one signing key, so that a person is the same user in every game.
// The private key can't be extracted. Session keys are kept until the browser's storage is cleared.

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

/** Returns this browser's key pair, which is created on first use. */
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

/** Signs a text and the current time. Returns null if the browser can't sign. */
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

/** Stores an invite's session key. */
export function remember(invite, key) {
    localStorage.setItem(`seat ${invite}`, key);
}

/** Returns an invite's session key; null if this browser hasn't joined with the invite. */
export function keyOf(invite) {
    return localStorage.getItem(`seat ${invite}`);
}
