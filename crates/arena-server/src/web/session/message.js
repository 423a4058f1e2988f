// Messages as items of the timeline, in the same form as `timeline.rs` renders them.

import { timeElement } from "./page.js";
import { boardOf } from "./boards.js";
import { stateOf } from "./live.js";
import { make, seatClass } from "./boards/seats.js";

/** Number of characters after which a message is cut. */
const LONGEST = 1500;

/** A player's invite in a text. */
const INVITE = /inv_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const INVITES = new RegExp(`(Player )?${INVITE.source}`, "g");

/** The scores of a player in a text of the operator. */
const SCORES = /\{"security":([^,}]*),"utility":([^,}]*)\}$/gm;

/**
 * Returns the sentence of an operator's notice about actions without effect, or about a player who is out; null for
 * other texts.
 */
function noticeOf(content) {
    if (!content.startsWith('{"epoch"') && !content.startsWith('{"detail"')) return null;
    try {
        const { disqualified, detail, rejected, epoch } = JSON.parse(content);
        if (typeof disqualified === "string" && typeof detail === "string") return `${disqualified} is out of the game: ${detail}.`;
        const reasons = rejected.map(({ reason }) => reason).filter((reason, at, all) => reason !== all[at - 1]);
        return `${rejected.length === 1 ? "One action" : "Some actions"} in turn ${epoch} had no effect: ${reasons.join("; ")}.`;
    } catch {
        return null;
    }
}

/** Returns a move's content without the method, which the line shows beside it: `(guess) 131` becomes `131`. */
function withoutMethod({ type, content }) {
    const method = `(${type}) `;
    return type && content.startsWith(method) ? content.slice(method.length) : content;
}

/** Returns actions in words, such as `move to 34.2, 15.8; take food`; null for contents that are not a JSON list of actions. */
function actionsInWords(content) {
    try {
        const words = JSON.parse(content).map(({ action, target }) => {
            const name = action.replaceAll("_", " ");
            const isPlace = Array.isArray(target) && target.length === 2;
            return isPlace ? `${name} to ${target.map((each) => each.toFixed(1)).join(", ")}` : name;
        });
        return words.join("; ") || "no action";
    } catch {
        return null;
    }
}

/** Returns a player's text; a move without its method, and actions in words. */
function moveOf(message) {
    const content = withoutMethod(message);
    return (message.type === "actions" && actionsInWords(content)) || content;
}

/** Makes an element with children. */
export function wrap(tag, classes, ...children) {
    const made = make(tag, classes);
    made.append(...children);
    return made;
}

/** Minimum number of consecutive quiet lines that are folded. */
const RUN = 4;

/**
 * Returns an item's place in the timeline: the timestamp, the channel's rank at equal times, and the index. A folded run
 * has the place of its last line.
 */
const placeOf = (item) => {
    const { id, dataset } = item.querySelector(":scope > details > ol > :last-child") ?? item;
    const [channel, index] = id.split("-");
    return [Number(dataset.at), channel === "operator" ? 0 : 1, Number(index)];
};

/** Folds the latest lines if they say little: states and moves of a game, and withheld messages. */
export function fold(list) {
    const tail = [];
    let last = list.lastElementChild;
    for (; last?.dataset.quiet; last = last.previousElementSibling) tail.unshift(last);
    let run = last?.classList.contains("run") ? last : null;
    if (!tail.length || (!run && tail.length < RUN)) return;
    if (!run) {
        run = wrap("li", "run", wrap("details", "", make("summary"), make("ol")));
        tail[0].before(run);
    }
    const lines = run.querySelector("ol");
    lines.append(...tail);
    const count = (kind) => lines.querySelectorAll(`:scope > [data-quiet="${kind}"]`).length;
    const [moves, states] = [count("move"), count("state")];
    const [number, noun] = moves ? [moves, "move"] : states ? [states, "state"] : [lines.children.length, "private message"];
    run.querySelector("summary").textContent = `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Returns the kind of a line that says little by itself: an operator's state, a move in a game with a board, or a
 * withheld message.
 */
function quietOf(message, channel, hasBoard) {
    if (channel !== "operator" || message.remark || message.contentSha256) return null;
    if (message.from !== "operator") return hasBoard ? "move" : null;
    if (message.redacted) return "private";
    const update = stateOf(message);
    return update && !update.result ? "state" : null;
}

/** Encloses a name with letters of a right-to-left script in isolates, so that it doesn't reorder the words around it. */
const isolate = (name) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]/.test(name) ? `\u2068${name}\u2069` : name);

const isBefore = (one, other) => {
    const at = one.findIndex((value, index) => value !== other[index]);
    return at >= 0 && one[at] < other[at];
};

/** Inserts an item at its place in the timeline; searched from the end, since most items are the latest. */
export function insert(list, item) {
    const place = placeOf(item);
    let next = null;
    for (let other = list.lastElementChild; other && isBefore(place, placeOf(other)); other = other.previousElementSibling) next = other;
    list.insertBefore(item, next);
}

/**
 * Renders the messages of a session, from its id (`session`), the players' `ids` and `names` by seat, and the id of this
 * page's player (`own`), if any.
 */
export class MessageRenderer {
    /** `board` is a `LiveBoard`, whose players and own seat may change. `hasEnded` returns true after the game's end. */
    constructor(board, hasEnded = () => true) {
        this.board = board;
        this.session = board.session;
        this.hasEnded = hasEnded;
    }

    get ids() {
        return this.board.ids;
    }

    /** Makes a party's label. */
    who(party) {
        const seat = this.ids.indexOf(party);
        if (party === "operator") return make("b", "who operator", "Operator");
        if (seat < 0) {
            const unknown = wrap("b", "who", make("bdi", "", party.replace(INVITES, "A player")));
            unknown.dataset.party = party;
            return unknown;
        }
        const made = wrap("b", `who ${seatClass(seat)}`, make("bdi", "", this.board.names[seat]));
        made.title = party;
        return made;
    }

    /** Replaces the players' invites in a text by their names. */
    withNames(text) {
        return this.ids.reduce((all, id, seat) => {
            // As a function, since `replaceAll` gives signs such as `$&` in a text a meaning.
            const name = () => isolate(this.board.names[seat]);
            return all.replaceAll(`Player ${id}`, name).replaceAll(id, name);
        }, text);
    }

    /** Replaces all invites in a text of the operator by names, and scores in JSON by words. */
    inWords(text) {
        return this.withNames(text).replace(INVITES, "a player").replace(SCORES, "security $1, utility $2");
    }

    /** Replaces invites in the operator's texts that were rendered before their players were known. */
    renewTexts(list) {
        for (const text of list.querySelectorAll(".text bdi[data-content]")) text.textContent = this.inWords(text.dataset.content);
    }

    /** Updates the labels and colors of players whose seat was unknown when they were rendered. */
    renew(words) {
        for (const word of words) {
            const party = word.dataset.party ?? word.textContent;
            if (word.title || !this.ids.includes(party)) continue;
            const bubble = word.parentElement.firstElementChild === word && word.closest(".bubble");
            if (bubble) this.#color(bubble, this.ids.indexOf(party), party);
            word.replaceWith(this.who(party));
        }
    }

    #color(bubble, seat, party) {
        bubble.classList.add(seatClass(seat));
        bubble.classList.toggle("own", this.board.own ? party === this.board.own : seat % 2 === 1);
    }

    /** Makes an item of the timeline from a message. */
    item(message, channel) {
        const link = wrap("a", "at", timeElement(message.timestamp));
        const item = this.#body(message, channel, link);
        item.classList.add("message");
        item.classList.toggle("private", Boolean(message.to));
        item.id = `${channel}-${message.index}`;
        item.dataset.at = message.timestamp;
        const quiet = quietOf(message, channel, boardOf(this.board.game) !== undefined);
        if (quiet) item.dataset.quiet = quiet;
        link.href = `#${item.id}`;
        if (message.remark) {
            item.classList.add("leak");
            item.append(make("p", "flag", message.remark));
        }
        return item;
    }

    #body(message, channel, link) {
        const text = this.#text(message);
        if (channel === "chat") {
            const head = wrap("small", "head", this.who(message.from));
            if (message.to) head.append(" → ", this.who(message.to));
            head.append(link);
            const bubble = wrap("li", "bubble", head, text);
            const seat = this.ids.indexOf(message.from);
            if (seat >= 0) this.#color(bubble, seat, message.from);
            return bubble;
        }
        if (message.to && message.from === "operator") {
            if (message.redacted) return wrap("li", "note", wrap("div", "", "To ", this.who(message.to), ": ", text), link);
            const note = wrap("details", "", wrap("summary", "", "Private to ", this.who(message.to)), text);
            // States are long, and boards show them.
            note.open = (this.hasEnded() || Boolean(this.board.own)) && !/^\{"(world_state|config|set_agent_id)"/.test(message.content);
            return wrap("li", "note", note, link);
        }
        const line = make("li", "event");
        if (message.from !== "operator") line.append(this.who(message.from), " ");
        if (message.type) line.append(make("code", "", message.type), " ");
        line.append(text, link);
        return line;
    }

    #text(message) {
        if (message.redacted) {
            const text = message.contentSha256
                ? `Hidden by the administrator. SHA-256 of the text: ${message.contentSha256}`
                : "Private message";
            return make("p", "withheld", text);
        }
        const isOperator = message.from === "operator";
        const begins = isOperator && /^\{"(config|set_agent_id)"/.test(message.content);
        const update = begins ? { asked: [] } : stateOf(message);
        if (update) {
            const text = make("p", "text", begins ? "Game started." : "Game state.");
            const ending = update.result?.termination;
            if (["GAME_ENDED", "TAINTED"].includes(ending)) text.replaceChildren("Game ended.");
            else if (update.result) text.replaceChildren("Game ended: ", make("bdi", "", ending), ".");
            if (update.asked.length) {
                text.append(" To move: ");
                update.asked.forEach((player, at) => text.append(at ? ", " : "", this.who(player)));
                text.append(".");
            }
            const data = make("a", "", "JSON");
            data.href = `/api/arena/sync?channel=${this.session}&limit=1&index=${message.index}`;
            text.append(" ", data);
            return text;
        }
        const content = isOperator ? noticeOf(message.content) ?? message.content : moveOf(message);
        const shown = isOperator ? this.inWords(content) : this.withNames(content);
        const chars = [...shown];
        const text = wrap("p", "text", make("bdi", "", chars.slice(0, LONGEST).join("")));
        // A later name replaces the invite of a player that this page doesn't know yet.
        if (isOperator && INVITE.test(content)) text.firstElementChild.dataset.content = content.slice(0, LONGEST);
        if (chars.length > LONGEST) text.append(make("span", "soft", ` … ${chars.length - LONGEST} more characters`));
        return text;
    }
}
