// The board of a session while it is played: the states that its operator has told, one of them drawn, and a slider through all of them.

import { boardOf, gameOf } from "./boards.js";
import { letter, make, number, seatClass } from "./boards/seats.js";

/** What a game's operator tells of the state, if the message is that. What others write that looks like it is their text. */
export function stateOf({ from, redacted, content }) {
    if (from !== "operator" || redacted) return null;
    if (!content.startsWith('{"world_state"') && !content.startsWith('{"public_state"') && !content.startsWith('{"result"')) return null;
    try {
        const told = JSON.parse(content);
        return { state: told.world_state ?? told.public_state ?? null, asked: told.asked ?? [], deadline: told.deadline, result: told.result };
    } catch {
        return null;
    }
}

/** A board that grows with the session. */
export class LiveBoard {
    /** In an element that is hidden until there is something to see. `session` is what the page tells of it. */
    constructor(place, session) {
        this.place = place;
        this.session = session.session;
        this.game = gameOf(session.challenge);
        this.ids = [];
        this.names = [];
        this.seatPlayers(session.players);
        this.config = JSON.parse(session.options);
        /** Who was asked last in a game with sides, and which of them that is. */
        this.mover = null;
        /** Whose page it is: a player, or nothing. */
        this.own = undefined;
        this.states = [];
        /** Which state is shown; the latest, while nobody has chosen another. */
        this.chosen = null;
        /** Called with the picture, its state and the options it was drawn with, after each drawing of the latest state. */
        this.onDrawn = null;
    }

    /** Who sits where, as the page tells it: more than before, while seats are being taken. */
    seatPlayers(players) {
        const ids = players.split(" ").filter(Boolean);
        this.ids.splice(0, Infinity, ...ids);
        this.names.splice(0, Infinity, ...ids.map((_, seat) => `Player ${seat + 1}`));
    }

    /** The seat of whose page it is. */
    get seat() {
        const seat = this.ids.indexOf(this.own);
        return seat < 0 ? undefined : seat;
    }

    /** What each seat plays as, where the game has such. */
    get sides() {
        const { mover } = this;
        return mover ? this.ids.map((id) => mover.sides[id === mover.id ? 0 : 1]) : [];
    }

    /** Forgets all states: they are told again. */
    reset() {
        this.states = [];
        this.until = undefined;
    }

    /** Takes what the operator tells of the game; says until when it waits. */
    add(told) {
        if (!told.state) return told.deadline;
        // Whoever is asked is told more than all others: both are one state.
        const last = this.states.length - 1;
        if (told.deadline && told.deadline === this.until) this.states[last] = { ...this.states[last], ...told.state };
        else this.states.push(told.state);
        this.until = told.deadline;
        this.#learnMover(told);
        return told.deadline;
    }

    /** Whose turn it is tells who has which side. */
    #learnMover({ state, asked }) {
        const sides = asked.length === 1 ? boardOf(this.game, state)?.sidesOfMover?.(state) : undefined;
        if (sides) this.mover = { id: asked[0], sides };
    }

    /** Draws this state alone, of a game that is looked back on. */
    show(told) {
        this.reset();
        this.add(told);
        this.draw();
    }

    get latest() {
        return this.states.at(-1);
    }

    draw() {
        const board = this.states.length ? boardOf(this.game, this.latest) : undefined;
        if (!board) return;
        if (!this.picture) this.#build();
        const last = this.states.length - 1;
        const at = this.chosen ?? last;
        this.slider.max = last;
        this.slider.value = at;
        this.slider.parentElement.hidden = last === 0;
        this.label.textContent = `${at + 1} of ${last + 1}`;
        const { ids, names, sides, config } = this;
        // A map is everybody's; a chess board is turned to who looks.
        const seat = board.isTurned ? this.seat : undefined;
        const options = { ids, names, sides, config, seat };
        // Whoever has the focus on a square keeps it.
        const focused = document.activeElement?.getAttribute?.("data-square");
        board.draw(this.picture, this.states[at], options);
        this.caption.replaceChildren(...ids.map((_, seat) => this.#note(board.note(this.states[at], seat, options), seat)));
        if (at === last) this.onDrawn?.(this.picture.firstElementChild, this.states[at], options);
        if (focused) this.picture.querySelector(`[data-square="${focused}"]`)?.focus();
    }

    /** How a seat stands: its letter on the board, and its score and state. */
    #note({ score, words }, seat) {
        const row = make("li", seatClass(seat));
        const name = this.seat === seat ? "You" : this.names[seat];
        row.append(make("span", "letter", letter(seat)), " ", make("b", "who", name));
        const told = [score === undefined ? "" : number(score), words].filter(Boolean).join(", ");
        if (told) row.append(": ", told);
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
        this.place.append(this.picture, this.caption, row);
        // Canvases are as large as there is room, and have no colours but those that they were drawn in.
        new ResizeObserver(() => this.draw()).observe(this.place);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }
}
