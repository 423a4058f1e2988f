// A seat: forms without loading the page again, moves on the board, and a key where players prove who they are.

import { board, key, session } from "./session.js";
import { remember, sign } from "./keys.js";
import { offer } from "./moves.js";

const seat = document.getElementById("seat").dataset;
const refusal = document.getElementById("refusal");

/** Asks the arena for something; its refusal is shown. Says whether it was done. */
async function ask(path, body) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    else if (seat.mode === "standalone") body.from = seat.invite;
    refusal.hidden = true;
    try {
        const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
        const told = await answer.json();
        if (answer.ok) return told;
        refusal.textContent = told.error;
    } catch {
        refusal.textContent = "The arena can't be reached.";
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
        refusal.textContent = "This browser can't sign, or the page didn't come over HTTPS.";
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

/** The forms that wait for an answer. */
const busy = new WeakSet();

document.addEventListener("submit", async (event) => {
    const form = event.target;
    const wanted = form.dataset.do;
    // Without keys, the form itself is enough, and the page that comes of it is needed.
    if (!wanted || (wanted === "join" && seat.mode === "standalone")) return;
    event.preventDefault();
    // Nobody chosen isn't all.
    if (busy.has(form) || form.querySelector("select")?.selectedIndex < 0) return;
    busy.add(form);
    const fields = new FormData(form, event.submitter);
    let done;
    if (wanted === "join") await join();
    else if (wanted === "act") done = await act(form.dataset.method, fields.get("content"));
    else {
        const said = { channel: session.session, content: fields.get("content") };
        if (fields.get("to")) said.to = fields.get("to");
        done = await ask("/api/chat/send", said);
    }
    busy.delete(form);
    const written = form.querySelector("textarea");
    if (done && written) written.value = "";
});

const isKeyless = seat.mode === "authentication" && seat.seated === "true" && !key;

/** Nobody is offered what takes a key that isn't here. */
function hideForms() {
    if (isKeyless) for (const form of document.querySelectorAll("form[data-do]")) form.hidden = true;
}

document.addEventListener("renewed", hideForms);
hideForms();

if (isKeyless) {
    refusal.textContent = "The key to this seat isn't in this browser: you see what everybody sees.";
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
