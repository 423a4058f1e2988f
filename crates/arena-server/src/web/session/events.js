// The replay of an ended session, by positions of its board, or by events without a board: the messages of both channels in
// the order of their timestamps, and the board at the time of the message. Events are read in blocks, so that memory stays bounded for a session of any
// length.

import { LiveBoard, stateOf } from "./live.js";
import { MessageRenderer } from "./message.js";
import { boardOf } from "./boards.js";
import { pictureOf } from "./boards/pictures.js";
import { controls } from "./controls.js";
import { make, shape } from "./boards/seats.js";

/** Events per request, and the maximum number of cached blocks. */
const BLOCK = 64;
const MOST_BLOCKS = 64;
/** Number of earlier events shown with the current one, and of those from which a challenge's picture is drawn. */
const [BEFORE, PICTURED] = [30, 1000];
/** Number of blocks searched back for the latest game state. */
const LOOK_BACK = 4;
/** Initial speed in events per second; slower for chat, which takes longer to read. */
const SPEED = { talk: 1, game: 5 };

const main = document.getElementById("events");
const { dataset: session } = main;
const total = Number(session.total);
const blocks = new Map();
/** The events with a message that gave away a secret. */
const leaks = JSON.parse(session.leaks ?? "[]");

/** Reads a block of events, numbered from 0. */
function block(number) {
    let found = blocks.get(number);
    if (!found) {
        found = fetch(`/sessions/${session.session}/events?offset=${number * BLOCK}&limit=${BLOCK}`).then(async (answer) => {
            const page = await answer.json();
            if (!answer.ok) throw new Error(page.error);
            return page.events.map(({ channel, message, remark }) => ({ ...message, channel, remark }));
        });
        found.catch(() => blocks.delete(number));
    }
    // A Map keeps insertion order, so the first block is the least recently used.
    blocks.delete(number);
    blocks.set(number, found);
    if (blocks.size > MOST_BLOCKS) blocks.delete(blocks.keys().next().value);
    return found;
}

/** Reads the events from `from` up to but excluding `to`. */
async function events(from, to) {
    const [first, last] = [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)];
    const numbers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const read = (await Promise.all(numbers.map(block))).flat();
    return read.slice(from - first * BLOCK, to - first * BLOCK);
}

const stateIn = (event) => {
    const state = event.channel === "operator" ? stateOf(event) : null;
    return state && { ...state, to: event.to };
};

/** Finds the latest states at or before an event, with the players to move: as many as the board remembers, at least one. */
async function statesAt(event) {
    const here = Math.floor(event / BLOCK);
    const { memory } = boardOf(board.game);
    let found = [];
    for (let number = here; number >= (memory ? 0 : Math.max(0, here - LOOK_BACK)) && found.length <= (memory ?? 0); number--) {
        const read = await block(number);
        const upTo = number === here ? read.slice(0, event - number * BLOCK + 1) : read;
        found = [...upTo.map(stateIn).filter((update) => update?.state), ...found];
    }
    return found;
}

/** Returns true if an event begins a position of the board. A player's own view of a position has the same deadline. */
async function isPosition(event) {
    const state = stateIn((await block(Math.floor(event / BLOCK)))[event % BLOCK]);
    const before = (event > 0 ? await statesAt(event - 1) : []).at(-1);
    // In games with a world for each player, each view is a position.
    const isOther = !state?.isPublic && state?.to !== before?.to;
    return Boolean(state?.state) && (state.deadline !== before?.deadline || isOther);
}

/** Moves by `count` positions, back if it is negative; without a board, over events. */
async function step(count) {
    const direction = Math.sign(count);
    let event = direction > 0 && hasBoard ? Math.max(wanted, first) : wanted;
    // Going back, the start of the shown position doesn't count.
    const more = direction < 0 && hasBoard && !(await isPosition(event)) ? 1 : 0;
    for (let left = Math.abs(count) + more; left > 0; left--) {
        do event += direction;
        while (hasBoard && event > 0 && event < total - 1 && !(await isPosition(event)));
    }
    return want(event);
}

const place = make("section", "live");
place.hidden = true;
place.setAttribute("aria-label", "Board");
const list = make("ol", "timeline messages");
list.setAttribute("aria-label", "Messages up to this event");
list.tabIndex = 0;
const status = make("p", "problem");
status.hidden = true;

const board = new LiveBoard(place, session);
const renderer = new MessageRenderer(board);
const hasBoard = boardOf(board.game) !== undefined;
const hasPicture = pictureOf(session.challenge, [], board.ids, board.names) !== null;

let [shown, wanted, isMoving] = [-1, 0, false];
/** The first position of the board or, in a challenge, the first event after the secrets; and the steps, which wait for each other. */
let [first, steps] = [0, Promise.resolve()];

const panel = controls({
    seats: [],
    unit: "Event",
    speed: hasBoard ? SPEED.game : SPEED.talk,
    show: (event) => want(event),
    shown: () => Math.max(shown, 0),
    wanted: () => wanted,
    last: () => total - 1,
    find: (direction) => {
        const found = direction > 0 ? leaks.find((event) => event > wanted) : leaks.findLast((event) => event < wanted);
        if (found !== undefined) want(found);
    },
    look: () => {},
    step: (count) => (steps = steps.then(() => step(count)).catch(() => want(wanted + Math.sign(count)))),
    rest: remember,
});

/** Requests an event. While an event is loading, only the latest request is kept. */
async function want(event) {
    wanted = Math.min(Math.max(event, 0), total - 1);
    if (isMoving) return;
    isMoving = true;
    try {
        while (wanted !== shown) await show(wanted);
        status.hidden = true;
    } catch (error) {
        panel.pause();
        status.textContent = `Cannot show event ${wanted + 1}: ${error.message}`;
        status.hidden = false;
    } finally {
        isMoving = false;
    }
}

async function show(event) {
    const from = Math.max(0, event - (hasPicture ? PICTURED : BEFORE));
    // The events before the first position have its board.
    const [read, states] = await Promise.all([events(from, event + 1), hasBoard ? statesAt(Math.max(event, first)) : []]);
    list.replaceChildren(...read.slice(-BEFORE - 1).map((each) => renderer.item(each, each.channel)));
    list.lastElementChild?.classList.add("now");
    list.scrollTop = list.scrollHeight;
    if (states.length) board.show(states);
    // A picture contains the secrets, which the operator tells at the start.
    const told = hasPicture ? (await block(0)).slice(0, first) : [];
    if (hasPicture) place.replaceChildren(pictureOf(session.challenge, [...told, ...read], board.ids, board.names));
    shown = event;
    panel.moved(event, { epoch: event + 1 });
    performance.mark("arena:frame", { detail: event });
    // Prefetches the next block, so that playback doesn't stop between blocks.
    if (panel.isPlaying() && event + panel.ahead() < total) block(Math.floor((event + panel.ahead()) / BLOCK)).catch(() => {});
    else remember();
}

/** Makes the strip below the slider with a mark for each leak. */
function leakStrip() {
    const label = leaks.length === 1 ? "1 message with a leak" : `${leaks.length} messages with leaks`;
    const strip = shape("svg", { class: "leaks", viewBox: "0 0 1000 8", preserveAspectRatio: "none", role: "img", "aria-label": label });
    for (const event of leaks) strip.append(shape("rect", { x: (1000 * event) / Math.max(total - 1, 1) - 3, y: 0, width: 6, height: 8 }));
    return strip;
}

let addressTimer;

/** Puts the event into the address when playback is paused. */
function remember() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
        if (!panel.isPlaying()) history.replaceState(null, "", `#event=${shown + 1}`);
    }, 400);
}

function fromAddress() {
    const event = /^#event=(\d+)$/.exec(location.hash)?.[1];
    return event ? Number(event) - 1 : hasBoard ? first : Math.max(first - 1, 0);
}

if (total > 0) {
    place.hidden = !hasPicture;
    const isFirst = (event) => (hasBoard ? stateIn(event)?.state : hasPicture && (event.from !== "operator" || !event.to));
    first = Math.max((await block(0).catch(() => [])).findIndex(isFirst), 0);
    const beside = make("section", "beside");
    beside.setAttribute("aria-label", "Messages");
    beside.append(list);
    const stage = make("section", "stage");
    stage.append(place);
    const isDrawn = hasBoard || hasPicture;
    const playing = make("div", isDrawn ? "playing" : "playing without-board");
    playing.append(...(isDrawn ? [stage] : []), panel.element, beside);
    if (leaks.length) panel.element.firstElementChild.after(leakStrip());
    main.replaceChildren(status, playing);
    panel.ready({ first_epoch: 1, frames: total, result: null, marks: leaks.map(() => 1) });
    addEventListener("hashchange", () => want(fromAddress()));
    want(fromAddress()).finally(() => delete main.dataset.loading);
}
