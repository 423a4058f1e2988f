// A session as it goes on: messages come by Server-Sent Events, boards are drawn from the states that the operator tells.

import { LiveBoard, stateOf } from "./live.js";
import { keyOf } from "./keys.js";
import { Said } from "./said.js";

export const session = document.getElementById("session").dataset;

/** The seat of whoever plays on this page. */
const seat = document.getElementById("seat")?.dataset;

/** The key to it, where players prove who they are. */
export const key = seat?.mode === "authentication" ? keyOf(seat.invite) : null;

export const board = new LiveBoard(document.getElementById("board"), session);
if (seat?.seated === "true") board.seat = board.ids.indexOf(seat.invite);

const connection = document.getElementById("connection");

/** Most messages in a list; older ones stay on the server. */
const MOST = 400;

const said = new Said(board);

/** Takes a message that may have been there before. */
function take(message, channel) {
    if (channel === "operator") {
        const isNew = (party) => party?.startsWith("inv_") && !board.ids.includes(party);
        if (session.status === "open" && (isNew(message.from) || isNew(message.to))) seatsChanged();
        const told = stateOf(message);
        if (told) showClock(board.add(told));
    }
    const list = document.getElementById(channel);
    const isLatest = list.dataset.last === list.dataset.len;
    if (message.index <= Number(list.dataset.last) || !isLatest) return;
    list.dataset.last = list.dataset.len = message.index;
    document.querySelector(`[data-empty=${channel}]`)?.remove();
    const isAtEnd = list.scrollTop + list.clientHeight > list.scrollHeight - 40;
    list.append(said.item(message, channel));
    if (list.children.length > MOST) list.firstElementChild.remove();
    if (isAtEnd) list.scrollTop = list.scrollHeight;
}

let reloading = false;

/** Where texts that aren't sent yet are kept while the page is loaded again. */
const DRAFTS = `drafts ${location.pathname}`;

/** The server words what changes seldom: who sits where, and how it ended. */
function reload() {
    if (reloading) return;
    reloading = true;
    const fields = [...document.querySelectorAll("textarea, input[id]:not([type=hidden]), select")];
    const drafts = fields.map((field) => [field.id, field.value]);
    sessionStorage.setItem(DRAFTS, JSON.stringify({ drafts, focus: document.activeElement?.id }));
    location.reload();
}

/** Puts back what somebody was writing. */
function restore() {
    const { drafts, focus } = JSON.parse(sessionStorage.getItem(DRAFTS) ?? "{}");
    sessionStorage.removeItem(DRAFTS);
    for (const [id, text] of drafts ?? []) {
        const field = id && document.getElementById(id);
        if (field) field.value = text;
    }
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

let asked;

/** Somebody has taken a seat. Several may at once. */
function seatsChanged() {
    clearTimeout(asked);
    asked = setTimeout(reload, 300);
}

let deadline = Number(document.getElementById("clock").dataset.deadline) || null;

function showClock(at) {
    deadline = at ?? deadline;
    const clock = document.getElementById("clock");
    clock.hidden = !deadline || session.status !== "active";
    if (clock.hidden) return;
    const seconds = Math.max(0, Math.round((deadline - Date.now()) / 1000));
    clock.textContent = `An answer is due in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    clock.classList.toggle("late", seconds < 10);
}

/** Who looks, as the query of a stream says it. */
function viewer() {
    if (key) return `?key=${encodeURIComponent(key)}`;
    return seat?.mode === "standalone" && seat.seated === "true" ? `?from=${seat.invite}` : "";
}

/** The open streams. */
const sources = [];

function listen(channel, name) {
    const source = new EventSource(`/api/chat/ws/${name}${viewer()}`);
    source.addEventListener("message", (event) => {
        const told = JSON.parse(event.data);
        connection.textContent = session.status === "ended" ? "" : "Live.";
        if (told.type === "initial") {
            if (channel === "operator") board.reset();
            told.messages.forEach((message) => take(message, channel));
        }
        if (told.type === "new_message") take(told.message, channel);
        if (told.type === "game_ended" && session.status !== "ended") setTimeout(reload, 200);
        board.draw();
    });
    // The browser connects again by itself, and goes on behind the last event.
    source.addEventListener("error", () => { connection.textContent = "Not connected; trying again …"; });
    sources.push(source);
}

for (const list of document.querySelectorAll("ol.messages")) {
    if (key) {
        // The server has shown what everybody sees. Whoever has the key sees more.
        list.replaceChildren();
        list.dataset.last = list.dataset.len = 0;
    }
    list.scrollTop = list.scrollHeight;
}

/** Listens while somebody looks: a browser has few connections for all pages of a server, and each stream is one. */
function connect() {
    if (sources.length || document.hidden) return;
    listen("operator", `challenge_${session.session}`);
    listen("chat", session.session);
}

function disconnect() {
    for (const source of sources.splice(0)) source.close();
}

restore();
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
setInterval(showClock, 1000);
showClock();
