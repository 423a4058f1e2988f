// An embedded session: draws the board live in a frame of another page.

import { LiveBoard, stateOf } from "./live.js";

/** The time until the next attempt after a refused connection, in milliseconds, before jitter. */
const RETRY = 10_000;

const { dataset: session } = document.getElementById("game");
const board = new LiveBoard(document.getElementById("board"), session);
let [source, timer] = [undefined, undefined];

function take(messages) {
    for (const message of messages) {
        const state = stateOf(message);
        if (state) board.add(state);
    }
    board.draw();
}

function connect() {
    if (source || document.hidden) return;
    source = new EventSource(`/api/chat/ws/challenge_${session.session}`);
    source.addEventListener("message", (event) => {
        const update = JSON.parse(event.data);
        if (update.type === "initial") board.reset();
        if (update.type === "initial") take(update.messages);
        if (update.type === "new_message") take([update.message]);
        if (update.type === "game_ended") {
            disconnect();
            // The page of an ended session has the result as its title.
            if (session.status !== "ended") setTimeout(() => location.reload(), 1000 + 2000 * Math.random());
        }
    });
    source.addEventListener("error", ({ target }) => {
        // The browser reconnects by itself, unless the server refused the connection.
        if (target !== source || target.readyState !== EventSource.CLOSED) return;
        disconnect();
        timer = setTimeout(connect, RETRY * (0.5 + Math.random()));
    });
}

function disconnect() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
