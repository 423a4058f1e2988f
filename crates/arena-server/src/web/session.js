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

/** What is said of a session that is listened to. */
const STANDS = { open: "Waiting for players.", active: "Live.", ended: "This session has ended." };

/** Most messages in a list; older ones stay on the server. */
const MOST = 400;

const said = new Said(board);

/** Takes messages, which may have been there before. */
function take(messages, channel) {
    const list = document.getElementById(channel);
    const isAtEnd = list.scrollTop + list.clientHeight > list.scrollHeight - 40;
    for (const message of messages) {
        if (channel === "operator") learn(message);
        put(message, channel, list);
    }
    if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/** Learns what the operator tells of the game and of who plays it. */
function learn(message) {
    const isNew = (party) => party?.startsWith("inv_") && !board.ids.includes(party);
    if (session.status === "open" && (isNew(message.from) || isNew(message.to))) renewSoon();
    const told = stateOf(message);
    if (told) showClock(board.add(told));
}

/** Adds a message to its list, or puts it in the place of the same one that couldn't be read before. */
function put(message, channel, list) {
    const before = document.getElementById(`${channel}-${message.index}`);
    if (!message.redacted && before?.querySelector(".withheld")) before.replaceWith(said.item(message, channel));
    const isLatest = list.dataset.last === list.dataset.len;
    if (message.index <= Number(list.dataset.last) || !isLatest) return;
    list.dataset.last = list.dataset.len = message.index;
    document.querySelector(`[data-empty=${channel}]`)?.remove();
    list.append(said.item(message, channel));
    if (list.children.length > MOST) list.firstElementChild.remove();
}

/** What the server words: who sits where, what can be done, and how it ended. */
const WORDED = ["session", "seat", "result", "acts", "chat-to", "deal"];

/** How the server has worded it. What is done to it here, such as opening details, isn't its word. */
const worded = new Map(WORDED.map((id) => [id, document.getElementById(id)?.innerHTML]));

/** How long to wait for others who take seats at the same time. Those who only watch are many, and ask one after the other. */
const soon = () => 300 + (seat ? 0 : 1000 * Math.random());

/** How long to wait after so many failures. Not all wait for the same time, or they would meet again. */
const pause = (failures) => Math.min(2000 * 2 ** failures, 60_000) * (0.5 + Math.random());

let [asked, isRenewing, failures] = [null, false, 0];

function renewSoon(ms = soon()) {
    clearTimeout(asked);
    asked = setTimeout(renew, ms);
}

/** The page as the server words it now, or whether it may come later. */
async function readPage() {
    try {
        const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
        return { text: answer.ok ? await answer.text() : null, mayCome: answer.status === 429 || answer.status >= 500 };
    } catch {
        return { text: null, mayCome: true };
    }
}

/** Brings what the server words up to date. All else stays: what somebody writes, has chosen, or is about to click. */
async function renew() {
    if (isRenewing) return renewSoon();
    isRenewing = true;
    const { text, mayCome } = await readPage();
    isRenewing = false;
    if (text !== null) {
        failures = 0;
        renewFrom(new DOMParser().parseFromString(text, "text/html"));
    } else if (mayCome) renewSoon(pause(failures++));
}

function renewFrom(fresh) {
    if (fresh.getElementById("seat")?.dataset.seated !== seat?.seated) {
        // Whoever has taken this seat elsewhere sees another page; who is just taking it here will.
        if (!seat.joining) location.reload();
        return;
    }
    const before = session.status;
    for (const id of WORDED) {
        const [here, there] = [document, fresh].map((page) => page.getElementById(id));
        const words = there?.innerHTML;
        if (!here || words === worded.get(id)) continue;
        worded.set(id, words);
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
    const isListening = sources.length && sources.every((source) => source.readyState === EventSource.OPEN);
    if (session.status !== before && isListening) connection.textContent = STANDS[session.status];
    if (session.status === "ended" && before !== "ended") {
        // What was private may be told now.
        disconnect();
        connect();
    }
    document.dispatchEvent(new Event("renewed"));
}

let deadline = Number(document.getElementById("clock").dataset.deadline) || null;

function showClock(at) {
    deadline = at ?? deadline;
    const clock = document.getElementById("clock");
    // It comes with the board: what comes later pushes the board away from whoever is about to click on it.
    clock.hidden = !deadline || session.status === "ended";
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

/** How often they were refused since the last message, and what connects again then. */
let [refusals, again] = [0, null];

function listen(channel, name) {
    const source = new EventSource(`/api/chat/ws/${name}${viewer()}`);
    source.addEventListener("message", (event) => {
        const told = JSON.parse(event.data);
        refusals = 0;
        connection.textContent = STANDS[session.status];
        if (told.type === "initial") {
            if (channel === "operator") board.reset();
            take(told.messages, channel);
        }
        if (told.type === "new_message") take([told.message], channel);
        if (told.type === "game_ended" && session.status !== "ended") renewSoon();
        if (channel === "operator") board.draw();
    });
    source.addEventListener("error", () => {
        connection.textContent = "Not connected; trying again …";
        // The browser connects again by itself, and goes on behind the last event, unless the server has answered with a refusal.
        if (source.readyState !== EventSource.CLOSED) return;
        disconnect();
        again = setTimeout(connect, pause(refusals++));
    });
    sources.push(source);
}

/** Listens while somebody looks: a browser has few connections for all pages of a server, and each stream is one. */
function connect() {
    if (sources.length || document.hidden) return;
    listen("operator", `challenge_${session.session}`);
    listen("chat", session.session);
}

function disconnect() {
    clearTimeout(again);
    for (const source of sources.splice(0)) source.close();
}

for (const list of document.querySelectorAll("ol.messages")) list.scrollTop = list.scrollHeight;
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
setInterval(showClock, 1000);
showClock();
