// The front page: draws an active game live. When the game ends, or no game is active, the script fetches the page again
// to find another game.

import { localize } from "./page.js";
import { LiveBoard, stateOf } from "./live.js";

/** Time for which a game's end stays visible, and intervals between checks for new games without and with a live board, in
 * milliseconds. */
const END = 3000;
const LOOK = 5000;
const REFRESH = 20000;

let source;
let timer;

/** Draws the game of an element until the game ends. */
function watch(element) {
    const board = new LiveBoard(element.querySelector(".live"), element.dataset);
    source = new EventSource(`/api/chat/ws/challenge_${element.dataset.session}`);
    source.addEventListener("message", (event) => {
        const update = JSON.parse(event.data);
        if (update.type === "initial") board.reset();
        const messages = update.type === "initial" ? update.messages : update.type === "new_message" ? [update.message] : [];
        for (const message of messages) {
            const state = stateOf(message);
            if (state) board.add(state);
        }
        if (update.type === "game_ended") {
            disconnect();
            soon(END);
        }
        board.draw();
    });
    source.addEventListener("error", () => {
        // The browser reconnects by itself, unless the server refused the connection.
        if (source?.readyState !== EventSource.CLOSED) return;
        disconnect();
        soon(LOOK);
    });
}

/** Schedules a check for other games. */
function soon(ms) {
    clearTimeout(timer);
    timer = setTimeout(look, ms);
}

/** Updates the games and the tables from a fresh copy of the page. The game at the top stays until its end. */
async function look() {
    if (document.hidden) return;
    try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["numbers", "featured", "now", "latest", "leaders"]) {
            const [old, next] = [document.getElementById(id), page.getElementById(id)];
            if (!old || !next || (source && id === "featured") || old.contains(document.activeElement)) continue;
            old.replaceWith(document.adoptNode(next));
            for (const element of next.querySelectorAll("time[datetime]")) localize(element);
        }
        if (source) return soon(REFRESH);
    } catch {
        // The server may be restarting; the next check retries.
    }
    connect();
}

/** Opens the stream while the page is visible: it uses one of the browser's few connections per server. */
function connect() {
    disconnect();
    if (document.hidden) return;
    const game = document.querySelector("#featured [data-session]");
    if (game) watch(game);
    soon(game ? REFRESH : LOOK);
}

function disconnect() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : look()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
