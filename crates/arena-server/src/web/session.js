// A session as it goes on: messages come by Server-Sent Events, boards are drawn from the states that the operator tells.

import { timeElement } from "./page.js";
import { LiveBoard } from "./live.js";
import { keyOf } from "./keys.js";
import { make as element, seatClass } from "./boards/seats.js";

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

/** An element with others and texts in it. */
function wrap(tag, classes, ...children) {
    const made = element(tag, classes);
    made.append(...children);
    return made;
}

/** Who somebody is in this session. */
function who(party) {
    const seat = board.ids.indexOf(party);
    if (party === "operator") return element("b", "who operator", "Operator");
    if (seat < 0) return wrap("b", "who", element("bdi", "", party));
    const made = element("b", `who ${seatClass(seat)}`, board.names[seat]);
    made.title = party;
    return made;
}

/** What a game's operator tells of the state, if the message is that. What others write that looks like it is their text. */
function stateOf({ from, redacted, content }) {
    if (from !== "operator" || redacted) return null;
    if (!content.startsWith('{"world_state"') && !content.startsWith('{"public_state"') && !content.startsWith('{"result"')) return null;
    try {
        const told = JSON.parse(content);
        return { state: told.world_state ?? told.public_state ?? null, asked: told.asked ?? [], deadline: told.deadline, result: told.result };
    } catch {
        return null;
    }
}

function textOf(message) {
    if (message.redacted) {
        const text = message.contentSha256
            ? `Hidden by the administrator. SHA-256 of the text: ${message.contentSha256}`
            : "Private: not to be read here.";
        return element("p", "withheld", text);
    }
    const told = stateOf(message);
    if (told?.state && !told.result) {
        const text = element("p", "text", "The state of the game.");
        if (told.asked.length) {
            text.append(" Asked: ");
            told.asked.forEach((player, at) => text.append(at ? ", " : "", who(player)));
            text.append(".");
        }
        const data = element("a", "", "as data");
        data.href = `/api/arena/sync?channel=${session.session}&limit=1&index=${message.index}`;
        text.append(" ", data);
        return text;
    }
    const most = 1500;
    const chars = [...message.content];
    const text = wrap("p", "text", element("bdi", "", chars.slice(0, most).join("")));
    if (chars.length > most) text.append(element("span", "soft", ` … and ${chars.length - most} characters more`));
    return text;
}

/** A message as an item of its channel, as the server writes it. */
function itemOf(message, channel) {
    const head = wrap("p", "head", who(message.from));
    if (message.to) head.append(" → ", who(message.to));
    if (message.type) head.append(" ", element("code", "", message.type));
    const link = wrap("a", "at", timeElement(message.timestamp));
    const item = wrap("li", message.to ? "message private" : "message", head, textOf(message));
    item.id = `${channel}-${message.index}`;
    link.href = `#${item.id}`;
    head.append(link);
    return item;
}

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
    list.append(itemOf(message, channel));
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
