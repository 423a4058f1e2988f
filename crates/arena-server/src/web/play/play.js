// The page of a seat: the controls of its challenge, forms without page loads, the banner with the seat's turn, and
// session keys in authentication mode.

import { awaited, board, key, session, toMove } from "./session.js";
import { CONTROLS } from "./seat/controls.js";
import { joined } from "./seat/parts.js";
import { remember, sign } from "./keys.js";
import { stateOf } from "./live.js";

const seat = document.getElementById("seat").dataset;
const refusal = document.getElementById("refusal");

/** Posts a request and shows its error. Returns the response, or null after an error. */
async function ask(path, body) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    else if (seat.mode === "standalone") body.from = seat.invite;
    refusal.hidden = true;
    try {
        const answer = await awaited(fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
        const result = await answer.json();
        if (answer.ok) return result;
        refusal.textContent = result.error;
    } catch {
        refusal.textContent = "Cannot reach the server. Check your connection, then send it again.";
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

/** Returns the content of a method call: the form's text, or a text made from its declared fields. */
function contentOf(form, fields) {
    if (!form.dataset.parts) return fields.get("content");
    const value = (name) => (fields.get(`field-${name}`) ?? "").trim();
    const isFilled = (part) => typeof part === "string" || Boolean(value(part.field));
    const fill = (parts) => parts.map((part) => {
        if (Array.isArray(part)) return part.every(isFilled) ? fill(part) : "";
        return typeof part === "string" ? part : value(part.field);
    }).join("");
    return fill(JSON.parse(form.dataset.parts));
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
    if (busy.has(form) || (wanted === "chat" && form.querySelector("select").selectedIndex < 0)) return;
    busy.add(form);
    const fields = new FormData(form, event.submitter);
    let done;
    if (wanted === "join") await join();
    else if (wanted === "act") done = await game.act(form.dataset.method, contentOf(form, fields));
    else {
        const message = { channel: session.session, content: fields.get("content") };
        if (fields.get("to")) message.to = fields.get("to");
        done = await ask("/api/chat/send", message);
    }
    busy.delete(form);
    const written = form.querySelector("textarea");
    if (done && form.dataset.parts) form.reset();
    else if (done && written) written.value = "";
});

// Enter sends a chat message, and Shift+Enter breaks the line.
document.addEventListener("keydown", (event) => {
    if (event.target.id !== "chat-content" || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
});

const isSeated = seat.seated === "true";

// The queue has matched this visitor, so the seat is taken at once.
if (location.hash === "#join" && seat.mode === "authentication" && !isSeated) join();
const isKeyless = seat.mode === "authentication" && isSeated && !key;

/** Hides the forms if this browser has no session key for the seat. */
function hideForms() {
    if (isKeyless) for (const form of document.querySelectorAll("form[data-do]")) form.hidden = true;
}

if (isKeyless) {
    refusal.textContent = "This browser has no key to this seat, so only public data is shown. Open the page in the browser that took the seat.";
    refusal.hidden = false;
}

/** The operator's messages by index. A message of which the text becomes readable replaces its redacted version. */
const messages = new Map();

/** The operator's last request for moves: its index and the asked players. */
let request = { index: 0, asked: [] };

/** The indexes of the last messages by sender. */
const lastBy = new Map();

/** The indexes of the last request that this page has answered, and of the request with an answer on its way. */
let [answered, sending] = [0, null];

/** The game as the controls see it; `seat/parts.js` describes it. */
const game = {
    board,
    config: { ...board.config },
    messages: [],
    get ids() {
        return board.ids;
    },
    get names() {
        return board.ids.map((_, at) => (at === board.seat ? "You" : `Player ${at + 1}`));
    },
    get seat() {
        return board.seat;
    },
    get states() {
        return board.states;
    },
    get state() {
        return board.latest;
    },
    get isAsked() {
        return session.status === "active" && request.asked.includes(board.own) && !hasAnswered(board.own);
    },
    /** Sends a move, unless another answer to the same request is on its way. */
    async act(method, content) {
        const { index } = request;
        if (sending === index) return false;
        sending = index;
        const done = await act(method, content);
        if (sending === index) sending = null;
        if (done) answered = Math.max(answered, index);
        show();
        return Boolean(done);
    },
};

/** Returns true if a player has answered the operator's last request. */
function hasAnswered(id) {
    return (lastBy.get(id) ?? 0) > request.index || (id === board.own && answered >= request.index && request.index > 0);
}

/** The parts of the seat that aren't there yet: the controls and the first messages. The page shows it when all are. */
const missing = new Set(["controls", "messages"]);

function arrived(part) {
    missing.delete(part);
    if (!missing.size) requestAnimationFrame(() => document.querySelector(".playing-seat")?.removeAttribute("data-loading"));
}

document.addEventListener("messages", ({ detail }) => {
    if (detail.channel !== "operator") return;
    for (const message of detail.messages) learn(message);
    game.messages = [...messages.values()].sort((one, other) => one.index - other.index);
    show();
    arrived("messages");
});

function learn(message) {
    const before = messages.get(message.index);
    if (!before || before.redacted) messages.set(message.index, message);
    if (message.from !== "operator") lastBy.set(message.from, Math.max(lastBy.get(message.from) ?? 0, message.index));
    const update = stateOf(message);
    if (update?.asked.length && message.index > request.index) request = { index: message.index, asked: update.asked };
    if (message.from === "operator" && !message.redacted && /^\{"(config|set_agent_id)"/.test(message.content)) readNotice(message.content);
}

/** Reads the game's constants from the operator's notice at the start. */
function readNotice(text) {
    try {
        Object.assign(game.config, JSON.parse(text).config);
        Object.assign(board.config, game.config);
    } catch {
        // The message has another form, so the session's options stay.
    }
}

// The turn.

const banner = document.getElementById("turn");
const icon = document.querySelector("link[rel=icon]");
const usual = { title: document.title, icon: icon?.getAttribute("href") };

/** Returns the seat's turn by the operator's last request. */
function turnByRequest() {
    if (game.isAsked) return { isMine: true, text: "" };
    const awaited = game.names.filter((_, at) => request.asked.includes(game.ids[at]) && !hasAnswered(game.ids[at]));
    return { isMine: false, text: awaited.length ? `Waiting for ${joined(awaited)}.` : "Waiting for the others." };
}

/** Returns the seat's turn by a text of the operator, such as "Player 2's turn". */
function turnByText() {
    const names = game.names.filter((_, at) => toMove.includes(game.ids[at]));
    const text = names.length ? `Waiting for ${joined(names)}.` : "";
    return toMove.includes(board.own) ? { isMine: true, text: "" } : { isMine: false, text };
}

function turnNow() {
    if (session.status === "open") {
        const missing = Array.from({ length: Math.max(0, Number(session.seats) - game.ids.length) }, (_, at) => `Player ${game.ids.length + at + 1}`);
        return { title: `Waiting for ${joined(missing) || "the other players"} to join`, text: "The game begins when all seats are taken." };
    }
    const { isMine, text } = controls?.turn?.(game) ?? (request.index ? turnByRequest() : turnByText());
    if (isMine) return { isMine, title: "Your move", text };
    const [title, ...rest] = text.split(". ");
    return { title: title.replace(/\.$/, "") || "The game is on", text: rest.join(". ") };
}

function showTurn() {
    const isOver = session.status === "ended";
    banner.hidden = isOver || !isSeated || isKeyless;
    const turn = banner.hidden ? {} : turnNow();
    banner.classList.toggle("wait", !turn.isMine);
    for (const [id, text] of [["turn-title", turn.title ?? ""], ["turn-text", turn.text ?? ""]]) {
        const place = document.getElementById(id);
        if (place.textContent !== text) place.textContent = text;
    }
    document.title = turn.isMine ? `● Your move · ${usual.title}` : usual.title;
    icon?.setAttribute("href", turn.isMine ? new URL("icon-turn.svg", import.meta.url).href : usual.icon);
}

// The controls.

const panel = document.getElementById("controls");
/** The module with the controls of the challenge, and the function that updates the panel. */
let [controls, update] = [null, null];

function show() {
    panel.hidden = !update || session.status !== "active";
    if (!panel.hidden) update();
    showTurn();
}

async function loadControls() {
    const load = CONTROLS.get(session.challenge);
    if (!load || !isSeated || isKeyless) return;
    try {
        controls = await load();
    } catch {
        // Without its controls, the challenge is played by the forms.
        const forms = document.getElementById("as-text");
        if (forms) forms.open = true;
        return;
    }
    // The panel is filled when all seats are taken, because it names the players.
    if (session.status === "open") await new Promise((resolve) => document.addEventListener("renewed", () => session.status !== "open" && resolve()));
    update = controls.start(panel, game);
    show();
    board.draw();
}

let wasOver = session.status === "ended";

document.addEventListener("renewed", () => {
    hideForms();
    show();
    if (session.status === "ended" && !wasOver) {
        document.getElementById("result").scrollIntoView({ block: "nearest" });
        wasOver = true;
    }
});
hideForms();
board.onDrawn = (...drawn) => game.onDrawn?.(...drawn);
show();
board.draw();
loadControls().finally(() => arrived("controls"));
