// The live board of a session: draws one of the states that the operator has sent, with a slider through all of them.

import { boardOf, gameOf } from "./boards.js";
import { letter, make, number, seatClass } from "./boards/seats.js";

/** Parses an operator's message with a game state; null for all other messages, including players' texts. */
export function stateOf({ from, redacted, content }) {
    if (from !== "operator" || redacted) return null;
    if (!content.startsWith('{"world_state"') && !content.startsWith('{"public_state"') && !content.startsWith('{"result"')) return null;
    try {
        const update = JSON.parse(content);
        return { state: update.world_state ?? update.public_state ?? null, isPublic: "public_state" in update, asked: update.asked ?? [], deadline: update.deadline, result: update.result };
    } catch {
        return null;
    }
}

/** A board that grows with the session. */
export class LiveBoard {
    /** `place` is an element, hidden until the first state; `session` holds the page's data attributes. */
    constructor(place, session) {
        this.place = place;
        this.session = session.session;
        this.game = gameOf(session.challenge);
        this.ids = [];
        this.names = [];
        this.seatPlayers(session.players, session.names);
        this.config = JSON.parse(session.options);
        /**
         * In a game with sides: the `id` of the last player to move, and `sides`, which holds the player's side and
         * then the opponent's.
         */
        this.mover = null;
        /** The id of this page's player; undefined for spectators. */
        this.own = undefined;
        this.states = [];
        /** The index of the state chosen with the slider; null follows the latest. */
        this.chosen = null;
        /** Called after each drawing of the latest state, with the picture, the state and the drawing options. */
        this.onDrawn = null;
    }

    /** Updates the players by seat from the page's lists: the ids and, as JSON, the names, if the page has them. */
    seatPlayers(players, names) {
        const ids = players.split(" ").filter(Boolean);
        const known = names ? JSON.parse(names) : [];
        this.ids.splice(0, Infinity, ...ids);
        this.names.splice(0, Infinity, ...ids.map((_, seat) => known[seat] ?? `Player ${seat + 1}`));
    }

    /** The seat of this page's player. */
    get seat() {
        const seat = this.ids.indexOf(this.own);
        return seat < 0 ? undefined : seat;
    }

    /** The sides by seat; empty for games without sides. */
    get sides() {
        const { mover } = this;
        return mover ? this.ids.map((id) => mover.sides[id === mover.id ? 0 : 1]) : [];
    }

    /** Drops all states before the stream sends them again. */
    reset() {
        this.states = [];
        this.until = undefined;
    }

    /** Adds a state. Returns the deadline for the next move. */
    add(update) {
        if (!update.state) return update.deadline;
        // The players to move get private states before the public state, with the same deadline. They are merged.
        const last = this.states.length - 1;
        if (update.deadline && update.deadline === this.until) this.states[last] = { ...this.states[last], ...update.state };
        else this.states.push(update.state);
        this.until = update.isPublic ? undefined : update.deadline;
        this.#learnMover(update);
        return update.deadline;
    }

    /** Determines the sides from the player to move. */
    #learnMover({ state, asked }) {
        const sides = asked.length === 1 ? boardOf(this.game)?.sidesOfMover?.(state) : undefined;
        if (sides) this.mover = { id: asked[0], sides };
    }

    /** Draws the last of these states, for replays. */
    show(updates) {
        this.reset();
        for (const update of updates) this.add(update);
        this.draw();
    }

    get latest() {
        return this.states.at(-1);
    }

    draw() {
        const board = this.states.length ? boardOf(this.game) : undefined;
        if (!board) return;
        if (!this.picture) this.#build();
        const last = this.states.length - 1;
        const at = this.chosen ?? last;
        this.slider.max = last;
        this.slider.value = at;
        this.slider.parentElement.hidden = last === 0;
        this.label.textContent = `${at + 1} of ${last + 1}`;
        const { ids, names, sides, config } = this;
        // A chess board is turned to the viewer's side.
        const seat = board.isTurned ? this.seat : undefined;
        const options = { ids, names, sides, config, seat, history: this.states.slice(0, at) };
        // Restores the keyboard focus on a square after drawing.
        const focused = document.activeElement?.getAttribute?.("data-square");
        board.draw(this.picture, this.states[at], options);
        this.caption.replaceChildren(...ids.map((_, seat) => this.#note(board.note(this.states[at], seat, options), seat)));
        if (at === last) this.onDrawn?.(this.picture.firstElementChild, this.states[at], options);
        if (focused) this.picture.querySelector(`[data-square="${focused}"]`)?.focus();
    }

    /** Makes a seat's line in the caption: letter, name, score and state. */
    #note({ score, words }, seat) {
        const row = make("li", seatClass(seat));
        const name = this.seat === seat ? "You" : this.names[seat];
        row.append(make("span", "letter", letter(seat)), " ", make("b", "who", name));
        const details = [score === undefined ? "" : number(score), words].filter(Boolean).join(", ");
        if (details) row.append(": ", details);
        return row;
    }

    #build() {
        this.place.hidden = false;
        this.picture = make("div", "picture-of-game");
        this.caption = make("ul", "standing");
        this.label = make("span", "soft");
        this.slider = make("input");
        Object.assign(this.slider, { type: "range", min: 0 });
        this.slider.setAttribute("aria-label", "State of the game");
        this.slider.addEventListener("input", () => {
            const at = Number(this.slider.value);
            this.chosen = at === this.states.length - 1 ? null : at;
            this.draw();
        });
        const row = make("p", "slider");
        row.append(this.slider, this.label);
        this.place.replaceChildren(this.picture, this.caption, row);
        // Canvases are drawn again when their size or the color scheme changes.
        new ResizeObserver(() => this.draw()).observe(this.place);
        // A canvas's largest height follows the window's height, which the place's size doesn't show.
        addEventListener("resize", () => this.draw());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }
}
