// A session as it goes on: messages come by Server-Sent Events, boards are drawn from the states that the operator tells.

import { LiveBoard, stateOf } from "./live.js";
import { keyOf } from "./keys.js";
import { localise } from "./page.js";
import { Said } from "./said.js";

export const session = document.getElementById("session").dataset;

/** The seat of whoever plays on this page. */
const seat = document.getElementById("seat")?.dataset;

/** The key to it, where players prove who they are. */
export const key = seat?.mode === "authentication" ? keyOf(seat.invite) : null;

export const board = new LiveBoard(document.getElementById("board"), session);
if (seat?.seated === "true") board.own = seat.invite;

const connection = document.getElementById("connection");

/** Most messages in a list; older ones stay on the server. */
const MOST = 400;

const said = new Said(board);

/** Takes a message that may have been there before. */
function take(message, channel) {
    if (channel === "operator") {
        const isNew = (party) => party?.startsWith("inv_") && !board.ids.includes(party);
        if (session.status === "open" && (isNew(message.from) || isNew(message.to))) renewSoon();
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

/** What the server words: who sits where, what can be done, and how it ended. */
const WORDED = ["session", "seat", "result", "acts", "chat-to", "deal"];

/** How long others have who take their seats at the same time, and until the page is asked for again if it didn't come. */
const [SOON_MS, AGAIN_MS] = [300, 2000];

let [asked, isRenewing] = [null, false];

function renewSoon(ms = SOON_MS) {
    clearTimeout(asked);
    asked = setTimeout(renew, ms);
}

/** Brings what the server words up to date. All else stays: what somebody writes, has chosen, or is about to click. */
async function renew() {
    if (isRenewing) return renewSoon();
    isRenewing = true;
    const asking = fetch(location.href, { cache: "no-store" }).then((answer) => (answer.ok ? answer.text() : null));
    const text = await asking.catch(() => null);
    isRenewing = false;
    if (text === null) renewSoon(AGAIN_MS);
    else renewFrom(new DOMParser().parseFromString(text, "text/html"));
}

function renewFrom(fresh) {
    // Whoever has taken this seat elsewhere sees another page.
    if (fresh.getElementById("seat")?.dataset.seated !== seat?.seated) return location.reload();
    const before = session.status;
    for (const id of WORDED) {
        const [here, there] = [document, fresh].map((page) => page.getElementById(id));
        if (!here || !there || here.isEqualNode(there)) continue;
        const chosen = here.value;
        here.replaceChildren(...there.childNodes);
        if (chosen !== undefined) here.value = chosen;
        Object.assign(here.dataset, there.dataset);
        for (const time of here.querySelectorAll("time[datetime]")) localise(time);
    }
    board.seatPlayers(session.players);
    said.renew(document.querySelectorAll(".messages .who"));
    board.draw();
    showClock();
    // What was private may be told at the end.
    if (session.status === "ended" && before !== "ended") listenAnew();
    document.dispatchEvent(new Event("renewed"));
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
        if (told.type === "game_ended" && session.status !== "ended") renewSoon();
        if (channel === "operator") board.draw();
    });
    // The browser connects again by itself, and goes on behind the last event.
    source.addEventListener("error", () => { connection.textContent = "Not connected; trying again …"; });
    sources.push(source);
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

/** Listens from the beginning, to be told all that may be seen now. Who looks back on earlier messages goes on with that. */
function listenAnew() {
    disconnect();
    for (const list of document.querySelectorAll("ol.messages")) {
        if (list.dataset.last !== list.dataset.len) continue;
        list.replaceChildren();
        list.dataset.last = list.dataset.len = 0;
    }
    connect();
}

for (const list of document.querySelectorAll("ol.messages")) list.scrollTop = list.scrollHeight;
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
// The server has shown what everybody sees. Whoever has the key sees more.
if (key) listenAnew();
else connect();
setInterval(showClock, 1000);
showClock();
