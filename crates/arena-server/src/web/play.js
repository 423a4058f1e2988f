// The page of a seat: forms without page loads, moves on the board, and session keys in authentication mode.

import { board, key, session } from "./session.js";
import { remember, sign } from "./keys.js";
import { offer } from "./moves.js";

const seat = document.getElementById("seat").dataset;
const refusal = document.getElementById("refusal");

/** Posts a request and shows its error. Returns the response, or null after an error. */
async function ask(path, body) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    else if (seat.mode === "standalone") body.from = seat.invite;
    refusal.hidden = true;
    try {
        const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
        const result = await answer.json();
        if (answer.ok) return result;
        refusal.textContent = result.error;
    } catch {
        refusal.textContent = "Cannot reach the server. Check your connection and try again.";
    }
    refusal.hidden = false;
    return null;
}

/** Calls a method of the challenge. */
function act(method, content) {
    return ask("/api/arena/message", { challengeId: session.session, messageType: method, content });
}

/** Takes the seat with a signature. */
async function join() {
    const proof = await sign(`arena:v1:join:${seat.invite}`);
    if (!proof) {
        refusal.textContent = "Cannot sign: the page needs HTTPS and a browser that supports Ed25519.";
        refusal.hidden = false;
        return;
    }
    seat.joining = true;
    const joined = await ask("/api/arena/join", { invite: seat.invite, ...proof });
    delete seat.joining;
    if (!joined) return;
    remember(seat.invite, joined.sessionKey);
    location.reload();
}

/** Forms with a pending request. */
const busy = new WeakSet();

document.addEventListener("submit", async (event) => {
    const form = event.target;
    const wanted = form.dataset.do;
    // In standalone mode the browser submits the join form, and the redirect loads the seat's page.
    if (!wanted || (wanted === "join" && seat.mode === "standalone")) return;
    event.preventDefault();
    // Without a selected recipient, the message would go to everyone.
    if (busy.has(form) || form.querySelector("select")?.selectedIndex < 0) return;
    busy.add(form);
    const fields = new FormData(form, event.submitter);
    let done;
    if (wanted === "join") await join();
    else if (wanted === "act") done = await act(form.dataset.method, fields.get("content"));
    else {
        const message = { channel: session.session, content: fields.get("content") };
        if (fields.get("to")) message.to = fields.get("to");
        done = await ask("/api/chat/send", message);
    }
    busy.delete(form);
    const written = form.querySelector("textarea");
    if (done && written) written.value = "";
});

const isKeyless = seat.mode === "authentication" && seat.seated === "true" && !key;

/** Hides the forms if this browser has no session key for the seat. */
function hideForms() {
    if (isKeyless) for (const form of document.querySelectorAll("form[data-do]")) form.hidden = true;
}

document.addEventListener("renewed", hideForms);
hideForms();

if (isKeyless) {
    refusal.textContent = "This browser has no key to this seat, so only public data is shown.";
    refusal.hidden = false;
} else if (seat.seated === "true") {
    if (session.challenge === "chess") board.onDrawn = offer((move) => act("move", move));
    board.draw();
}

const STEPS = { ArrowUp: "UP", ArrowRight: "RIGHT", ArrowDown: "DOWN", ArrowLeft: "LEFT" };

if (session.challenge === "snake" && seat.seated === "true") {
    document.addEventListener("keydown", (event) => {
        const step = STEPS[event.key];
        if (!step || session.status !== "active" || event.target.closest?.("input, textarea, select")) return;
        event.preventDefault();
        act("move", step);
    });
}
