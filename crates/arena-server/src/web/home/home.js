// The front page: draws active games live. When a game ends, or no game is active, the script fetches the page again to
// find other games.

import { localize } from "./page.js";
import { LiveBoard, stateOf } from "./live.js";

/** Time for which a game's end stays visible, and interval between checks for new games, in milliseconds. */
const END = 3000;
const LOOK = 5000;

const sources = [];
let timer;

/** Draws the game of an element until the game ends. */
function watch(element) {
    const board = new LiveBoard(element.querySelector(".live"), element.dataset);
    const source = new EventSource(`/api/chat/ws/challenge_${element.dataset.session}`);
    source.addEventListener("message", (event) => {
        const update = JSON.parse(event.data);
        if (update.type === "initial") board.reset();
        const messages = update.type === "initial" ? update.messages : update.type === "new_message" ? [update.message] : [];
        for (const message of messages) {
            const state = stateOf(message);
            if (state) board.add(state);
        }
        if (update.type === "game_ended") {
            source.close();
            soon(END);
        }
        board.draw();
    });
    source.addEventListener("error", () => {
        // The browser reconnects by itself, unless the server refused the connection.
        if (source.readyState === EventSource.CLOSED) soon(LOOK);
    });
    sources.push(source);
}

/** Schedules a check for other games. */
function soon(ms) {
    clearTimeout(timer);
    timer = setTimeout(look, ms);
}

/** Updates the live games and the tables from a fresh copy of the page. */
async function look() {
    if (document.hidden) return;
    try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["actions", "numbers", "featured", "now", "leaders", "latest"]) {
            const [old, next] = [document.getElementById(id), page.getElementById(id)];
            if (!old || !next || old.contains(document.activeElement)) continue;
            old.replaceWith(document.adoptNode(next));
            for (const element of next.querySelectorAll("time[datetime]")) localize(element);
        }
    } catch {
        // The server may be restarting; the next check retries.
    }
    connect();
}

/** Opens the streams while the page is visible: each uses one of the browser's few connections per server. */
function connect() {
    disconnect();
    if (document.hidden) return;
    const games = document.querySelectorAll("#now [data-session]");
    games.forEach(watch);
    if (!games.length) soon(LOOK);
}

function disconnect() {
    clearTimeout(timer);
    for (const source of sources.splice(0)) source.close();
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : look()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
