// The front page: games that are being played are drawn live. When one ends, or there is none yet, the page is asked for the next.

import { localise } from "./page.js";
import { LiveBoard, stateOf } from "./live.js";

/** Milliseconds for which one can see how a game has ended, and between two looks for games where there are none. */
const END = 3000;
const LOOK = 5000;

const sources = [];
let timer;

/** Draws the game of an element, and goes on when it is over. */
function watch(element) {
    const board = new LiveBoard(element.querySelector(".live"), element.dataset);
    const source = new EventSource(`/api/chat/ws/challenge_${element.dataset.session}`);
    source.addEventListener("message", (event) => {
        const told = JSON.parse(event.data);
        if (told.type === "initial") board.reset();
        const messages = told.type === "initial" ? told.messages : told.type === "new_message" ? [told.message] : [];
        for (const message of messages) {
            const state = stateOf(message);
            if (state) board.add(state);
        }
        if (told.type === "game_ended") {
            source.close();
            soon(END);
        }
        board.draw();
    });
    sources.push(source);
}

/** Looks for other games after a while. */
function soon(ms) {
    clearTimeout(timer);
    timer = setTimeout(look, ms);
}

/** Puts in place what has changed: the games that are played now, and the tables that grow with them. */
async function look() {
    if (document.hidden) return;
    try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["numbers", "now", "leaders", "latest"]) {
            const [old, next] = [document.getElementById(id), page.getElementById(id)];
            if (!old || !next || old.contains(document.activeElement)) continue;
            old.replaceWith(document.adoptNode(next));
            for (const element of next.querySelectorAll("time[datetime]")) localise(element);
        }
    } catch {
        // The server may be starting again; the next look will tell.
    }
    connect();
}

/** Listens while somebody looks: a browser has few connections for all pages of a server, and each stream is one. */
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
