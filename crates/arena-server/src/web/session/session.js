// A live session: messages arrive as Server-Sent Events, and boards are drawn from the operator's states.

import { LiveBoard, stateOf } from "./live.js";
import { keyOf } from "./keys.js";
import { localize } from "./page.js";
import { make } from "./boards/seats.js";
import { MessageRenderer, fold, insert } from "./message.js";

export const session = document.getElementById("session").dataset;

/** The seat to which the page belongs, if any. */
const seat = document.getElementById("seat")?.dataset;

/** The seat's session key, in authentication mode. */
export const key = seat?.mode === "authentication" ? keyOf(seat.invite) : null;

export const board = new LiveBoard(document.getElementById("board"), session);
if (seat?.seated === "true") board.own = seat.invite;

const connection = document.getElementById("connection");

/** The connection's status text by session status. */
const STATUS_TEXTS = { open: "Waiting for players", active: "Live", ended: "This session has ended" };

/** The troubles of the connection, each with the next step. */
const LOST = "The connection is lost. This page reconnects by itself.";
const SLOW = "The server hasn't answered yet. Please wait; a reload shows what has arrived.";
const BACK = "Live again. You have missed nothing.";
const GONE = "This game no longer exists: it was removed, or its seats stayed free for too long. Please start a new one.";

/** The time after which an answer is late, in milliseconds. */
const LATE_MS = 4000;

/** The time after which a reconnected page shows the session's status again, in milliseconds. */
const BACK_MS = 6000;

/** The silence after which a page asks whether the server is still there, in milliseconds. */
const SILENCE_MS = 30_000;

/** True if the stream has sent something, if it is lost, and if it was lost a moment ago. */
let [isHeard, isLost, isBack] = [false, false, false];

/** The number of requests with a late answer. */
let late = 0;

/** True if the server has removed the session. */
let isGone = false;

function showConnection() {
    const usual = isBack && session.status !== "ended" ? BACK : isHeard ? STATUS_TEXTS[session.status] : "";
    const trouble = isGone ? GONE : isLost ? LOST : late ? SLOW : "";
    const text = trouble || usual;
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", trouble !== "");
    // The page's heading shows the status already.
    connection.classList.toggle("hidden", text === STATUS_TEXTS[session.status]);
}

/** Awaits a request. While the answer is late, the page says so. */
export async function awaited(request) {
    let isLate = false;
    const timer = setTimeout(() => {
        isLate = true;
        late++;
        showConnection();
    }, LATE_MS);
    try {
        return await request;
    } finally {
        clearTimeout(timer);
        if (isLate) late--;
        showConnection();
    }
}

/** Maximum number of messages in a list; older ones stay on the server. */
const MOST = 400;

const renderer = new MessageRenderer(board, () => session.status === "ended");

/** Adds messages to the timeline, without those that it already contains. */
function take(messages, channel) {
    const list = document.getElementById("timeline");
    const isAtEnd = list.scrollTop + list.clientHeight > list.scrollHeight - 40;
    for (const message of messages) {
        if (channel === "operator") learn(message);
        put(message, channel, list);
    }
    fold(list);
    document.dispatchEvent(new CustomEvent("messages", { detail: { messages, channel } }));
    if (isAtEnd) list.scrollTop = list.scrollHeight;
    // The board of a page for spectators is there. A seat waits for its controls as well.
    if (channel === "operator") document.querySelector(".session[data-loading]")?.removeAttribute("data-loading");
}

/** Updates players, board and clock from an operator's message. */
function learn(message) {
    const isNew = (party) => party?.startsWith("inv_") && !board.ids.includes(party);
    if (session.status === "open" && (isNew(message.from) || isNew(message.to))) renewSoon();
    const update = stateOf(message);
    if (!update) return learnTurn(message);
    if (update.asked.length) toMove = update.asked;
    showClock(board.add(update));
    showTurn();
}

/** Learns whose turn it is from a text of the operator to all players, such as "Player 2's turn. (Round 1/10)". */
function learnTurn({ from, to, redacted, content, index }) {
    const turn = from === "operator" && !to && !redacted && /^Player (\d+)'s turn/m.exec(content);
    if (!turn) return;
    toMove = [board.ids[Number(turn[1]) - 1]].filter(Boolean);
    showTurn();
    // The server draws the picture of a game without a board.
    const isNew = index > Number(document.getElementById("timeline").dataset.lastOperator);
    if (isNew && document.getElementById("picture")) renewSoon();
}

/** Inserts a message, or replaces its redacted version. */
function put(message, channel, list) {
    const before = document.getElementById(`${channel}-${message.index}`);
    if (!message.redacted && before?.querySelector(".withheld")) before.replaceWith(renderer.item(message, channel));
    const last = channel === "operator" ? "lastOperator" : "lastChat";
    if (message.index <= Number(list.dataset[last]) || list.dataset.latest !== "true") return;
    list.dataset[last] = message.index;
    document.querySelector("[data-empty]")?.remove();
    insert(list, renderer.item(message, channel));
    if (list.children.length > MOST) list.firstElementChild.remove();
}

/**
 * Ids of the elements that are updated from the server's page: heading, seat, result, forms, recipients, seed,
 * options, picture, secrets and the check of the record.
 */
const UPDATED = ["session", "seat", "result", "acts", "chat-to", "chat-notice", "deal", "picture", "knowledge", "check", "same-deal"];

/** The server's last HTML of each element. The elements change on this page, such as by opened details. */
const lastHtml = new Map(UPDATED.map((id) => [id, document.getElementById(id)?.outerHTML]));

/**
 * The delay before a refresh, in milliseconds. Joins within the delay share one refresh. Spectators' requests are
 * spread over a second.
 */
const soon = () => 300 + (seat ? 0 : 1000 * Math.random());

/** The backoff after a number of failures, in milliseconds, with jitter. */
const pause = (failures) => Math.min(2000 * 2 ** failures, 60_000) * (0.5 + Math.random());

let [asked, isRenewing, failures] = [null, false, 0];

function renewSoon(ms = soon()) {
    clearTimeout(asked);
    asked = setTimeout(renew, ms);
}

/** The time between looks for new players or a rematch, in milliseconds. The streams say nothing about them. */
const LOOK = 2000;

/** The number of looks for a rematch that are left: those of five minutes. */
let rematches = 150;

setInterval(() => {
    const isAwaited = session.status === "open" || (document.querySelector("[data-rematch]") && !document.hidden && rematches-- > 0);
    if (isAwaited && !document.hidden && !isGone) renewSoon();
}, LOOK);

/** Fetches the page; `canRetry` is true if a retry may succeed, `isMissing` if the session doesn't exist. */
async function readPage() {
    try {
        const answer = await awaited(fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10_000) }));
        return { text: answer.ok ? await answer.text() : null, canRetry: answer.status === 429 || answer.status >= 500, isMissing: answer.status === 404 };
    } catch {
        return { text: null, canRetry: true, isMissing: false };
    }
}

/** Updates the elements of `UPDATED` from the server's page. All other elements keep their state, such as typed text. */
async function renew() {
    if (isRenewing) return renewSoon();
    isRenewing = true;
    const { text, canRetry, isMissing } = await readPage();
    isRenewing = false;
    if (isMissing) {
        isGone = true;
        disconnect();
        for (const id of ["turn", "clock", "controls"]) document.getElementById(id)?.setAttribute("hidden", "");
        showConnection();
    } else if (text !== null) {
        failures = 0;
        renewFrom(new DOMParser().parseFromString(text, "text/html"));
    } else if (canRetry) renewSoon(pause(failures++));
}

function renewFrom(fresh) {
    if (fresh.getElementById("seat")?.dataset.seated !== seat?.seated) {
        // The seat was taken from another page or program, so the page differs. A join on this page reloads the page
        // itself.
        if (!seat.joining) location.reload();
        return;
    }
    const before = session.status;
    for (const id of UPDATED) {
        const [here, there] = [document, fresh].map((page) => page.getElementById(id));
        const words = there?.outerHTML;
        if (!here || words === lastHtml.get(id)) continue;
        lastHtml.set(id, words);
        const chosen = here.value;
        here.replaceChildren(...there.childNodes);
        if (chosen !== undefined) here.value = chosen;
        Object.assign(here.dataset, there.dataset);
        for (const time of here.querySelectorAll("time[datetime]")) localize(time);
    }
    board.seatPlayers(session.players, session.names);
    renderer.renew(document.querySelectorAll(".messages .who"));
    renderer.renewTexts(document.getElementById("timeline"));
    board.draw();
    showClock();
    showTurn();
    if (session.status !== before) showConnection();
    if (session.status === "ended" && before !== "ended") {
        renewTranscript(fresh);
        // A new stream includes the messages that were private.
        heard = { operator: 0, chat: 0 };
        reconnect();
    }
    document.dispatchEvent(new Event("renewed"));
}

/** Takes over the server's transcript, in which private notes are open and leaks are flagged. */
function renewTranscript(fresh) {
    const [here, there] = [document, fresh].map((page) => page.getElementById("transcript"));
    if (!there || document.getElementById("timeline").dataset.latest !== "true") return;
    here.replaceChildren(...there.childNodes);
    for (const time of here.querySelectorAll("time[datetime]")) localize(time);
    const list = document.getElementById("timeline");
    list.scrollTop = list.scrollHeight;
    document.dispatchEvent(new Event("transcript"));
}

let deadline = Number(document.getElementById("clock").dataset.deadline) || null;

/** The players to move. */
export let toMove = [];

/** Updates the spectators' banner. A seat's page has a banner of its own. */
function showTurn() {
    const banner = document.getElementById("turn");
    if (!banner || seat) return;
    const names = toMove.map((id) => board.names[board.ids.indexOf(id)]).filter(Boolean);
    banner.hidden = session.status !== "active" || !names.length;
    const text = `${names.join(", ")} to move`;
    if (!banner.hidden && banner.textContent !== text) banner.replaceChildren(make("b", "", text));
}

function showClock(at) {
    deadline = at ?? deadline;
    const clock = document.getElementById("clock");
    // The clock appears together with the board: a later insertion would move the board under the pointer.
    clock.hidden = !deadline || session.status === "ended" || isGone;
    if (clock.hidden) return;
    const seconds = Math.max(0, Math.round((deadline - Date.now()) / 1000));
    const whose = toMove.includes(board.own) ? "Your move" : "Next move";
    const left = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    // The banner of a seat says whose move it is.
    clock.textContent = "short" in clock.dataset ? left : `${whose} — ${left} left`;
    clock.classList.toggle("late", seconds < 10);
}

/** Returns the address of the stream: it identifies the viewer, and names the messages that the page has. */
function address() {
    const query = new URLSearchParams(heard);
    if (key) query.set("key", key);
    else if (seat?.mode === "standalone" && seat.seated === "true") query.set("from", seat.invite);
    return `/api/sessions/${session.session}/stream?${query}`;
}

/** The open stream; the indexes of the last messages that it has sent, by channel. */
let [source, heard] = [null, { operator: 0, chat: 0 }];

/** Refused connections since the last open stream, and the timer of the next attempt. */
let [refusals, again] = [0, null];

/** Takes the messages of an event over, by channel. */
function hearAll(messages) {
    for (const channel of ["operator", "chat"]) {
        const ours = messages.filter((message) => message.channel.startsWith("challenge_") === (channel === "operator"));
        if (!ours.length) continue;
        if (channel === "operator" && ours[0].index === 1) board.reset();
        heard[channel] = Math.max(heard[channel], ours.at(-1).index);
        take(ours, channel);
        if (channel === "operator") board.draw();
    }
}

/** Opens the stream while the page is visible: it uses one of the browser's few connections per server. */
function connect() {
    if (source || document.hidden || isGone) return;
    source = new EventSource(address());
    source.addEventListener("message", (event) => {
        const update = JSON.parse(event.data);
        hear();
        hearAll(update.messages ?? (update.message ? [update.message] : []));
        if (update.type === "game_ended" && session.status !== "ended") renewSoon();
    });
    source.addEventListener("open", () => {
        // A stream that resumes sends nothing until the next message.
        refusals = 0;
        if (isLost) hear();
    });
    source.addEventListener("error", () => {
        lose();
        disconnect();
        again = setTimeout(connect, pause(refusals++));
        // The session may have been removed.
        if (refusals === 1) renewSoon();
    });
}

/** The time of the last event, in milliseconds since 1970. */
let heardAt = Date.now();

function hear() {
    heardAt = Date.now();
    if (isLost && isHeard) {
        isBack = true;
        setTimeout(() => {
            isBack = false;
            showConnection();
        }, BACK_MS);
    }
    [isHeard, isLost] = [true, false];
    showConnection();
}

function lose() {
    isLost = true;
    showConnection();
}

/** Opens the stream again, such as after a change of the network, which can leave it open without events. */
function reconnect() {
    disconnect();
    connect();
}

/** Asks whether the server is still there. A server on this machine is, even without a network. */
async function probe() {
    if (!source) return;
    heardAt = Date.now();
    try {
        await awaited(fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(10_000) }));
    } catch {
        lose();
        reconnect();
    }
}

function breakSilence() {
    if (Date.now() - heardAt >= SILENCE_MS) probe();
}

function disconnect() {
    clearTimeout(again);
    source?.close();
    source = null;
}

for (const list of document.querySelectorAll("ol.messages")) list.scrollTop = list.scrollHeight;
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
addEventListener("offline", probe);
addEventListener("online", reconnect);
connect();
setInterval(showClock, 1000);
setInterval(breakSilence, 5000);
showClock();
