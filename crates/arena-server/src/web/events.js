// A session that is over, event by event: the messages of both its channels in the order in which they were written, and the board as it
// was. They are read in blocks, so that a session may be as long as it likes.

import { LiveBoard, stateOf } from "./live.js";
import { Said } from "./said.js";
import { boardOf } from "./boards.js";
import { controls } from "./controls.js";
import { make } from "./boards/seats.js";

/** Events that are read at once, and how many such blocks are kept. */
const BLOCK = 64;
const MOST_BLOCKS = 64;
/** Events before the one that is looked at which are shown with it. */
const BEFORE = 30;
/** Blocks that are looked through for the state that an event found. */
const LOOK_BACK = 4;
/** Events in a second at first: talk is read, games are watched. */
const SPEED = { talk: 1, game: 5 };

const main = document.getElementById("events");
const { dataset: session } = main;
const total = Number(session.total);
const blocks = new Map();

/** A block of events, from 0. */
function block(number) {
    let found = blocks.get(number);
    if (!found) {
        found = fetch(`/sessions/${session.session}/events?offset=${number * BLOCK}&limit=${BLOCK}`).then(async (answer) => {
            const told = await answer.json();
            if (!answer.ok) throw new Error(told.error);
            return told.events.map(({ channel, message }) => ({ ...message, channel }));
        });
        found.catch(() => blocks.delete(number));
    }
    // Those used last are at the end.
    blocks.delete(number);
    blocks.set(number, found);
    if (blocks.size > MOST_BLOCKS) blocks.delete(blocks.keys().next().value);
    return found;
}

/** The events from one to another, which isn't among them. */
async function events(from, to) {
    const [first, last] = [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)];
    const numbers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const read = (await Promise.all(numbers.map(block))).flat();
    return read.slice(from - first * BLOCK, to - first * BLOCK);
}

const told = (event) => (event.channel === "operator" ? stateOf(event) : null);

/** What the operator had told of the game last when an event came: a state, and who was asked. */
async function stateAt(event) {
    const here = Math.floor(event / BLOCK);
    for (let number = here; number >= Math.max(0, here - LOOK_BACK); number--) {
        const read = await block(number);
        const upTo = number === here ? read.slice(0, event - number * BLOCK + 1) : read;
        const found = upTo.map(told).findLast((state) => state?.state);
        if (found) return found;
    }
    return null;
}

const place = make("section", "live");
place.hidden = true;
place.setAttribute("aria-label", "Board");
const list = make("ol", "messages");
list.setAttribute("aria-label", "What was said up to here");
list.tabIndex = 0;
const status = make("p", "problem");
status.hidden = true;

const board = new LiveBoard(place, session);
const said = new Said(board);
const hasBoard = boardOf(board.game, {}) !== undefined;

let [shown, wanted, isMoving] = [-1, 0, false];

const panel = controls({
    seats: [],
    unit: "Event",
    speed: hasBoard ? SPEED.game : SPEED.talk,
    show: (event) => want(event),
    shown: () => Math.max(shown, 0),
    wanted: () => wanted,
    last: () => total - 1,
    find: () => {},
    look: () => {},
    rest: remember,
});

/** Asks for an event. Where many are asked for while one is on its way, only the last of them is gone to. */
async function want(event) {
    wanted = Math.min(Math.max(event, 0), total - 1);
    if (isMoving) return;
    isMoving = true;
    try {
        while (wanted !== shown) await show(wanted);
        status.hidden = true;
    } catch (error) {
        panel.pause();
        status.textContent = `Event ${wanted + 1} can't be shown: ${error.message}`;
        status.hidden = false;
    } finally {
        isMoving = false;
    }
}

async function show(event) {
    const from = Math.max(0, event - BEFORE);
    const [read, state] = await Promise.all([events(from, event + 1), hasBoard ? stateAt(event) : null]);
    list.replaceChildren(...read.map((each) => said.item(each, each.channel)));
    list.lastElementChild?.classList.add("now");
    list.scrollTop = list.scrollHeight;
    if (state) board.show(state);
    shown = event;
    panel.moved(event, { epoch: event + 1 });
    performance.mark("arena:frame", { detail: event });
    // Playing shouldn't wait at the end of a block.
    if (panel.isPlaying() && event + panel.ahead() < total) block(Math.floor((event + panel.ahead()) / BLOCK)).catch(() => {});
    else remember();
}

let addressTimer;

/** At rest, the address leads to the event. */
function remember() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
        if (!panel.isPlaying()) history.replaceState(null, "", `#event=${shown + 1}`);
    }, 400);
}

function fromAddress() {
    const event = /^#event=(\d+)$/.exec(location.hash)?.[1];
    return event ? Number(event) - 1 : 0;
}

if (total > 0) {
    const beside = make("section", "beside");
    beside.setAttribute("aria-label", "Messages");
    beside.append(list);
    const stage = make("section", "stage");
    stage.append(place);
    const playing = make("div", hasBoard ? "playing" : "playing without-board");
    playing.append(...(hasBoard ? [stage] : []), panel.element, beside);
    main.replaceChildren(status, playing);
    panel.ready({ first_epoch: 1, frames: total, result: null, marks: [] });
    addEventListener("hashchange", () => want(fromAddress()));
    want(fromAddress());
}
