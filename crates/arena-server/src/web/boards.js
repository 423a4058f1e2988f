// Boards of games, drawn as SVG from the states that operators tell. A game that isn't known here has no board.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

/** The board of a session, and a slider through all that was. */
export class Board {
    constructor(place, session) {
        this.place = place;
        this.players = session.players.split(" ").filter(Boolean);
        this.draws = { chess: drawChess, snake: drawSnake, "food-catcher": drawMap, "cherry-picker": drawMap }[session.challenge];
        this.states = [];
        /** Which state is shown; the latest, while nobody has chosen another. */
        this.chosen = null;
        /** Called with a move in UCI, where somebody plays. */
        this.onMove = null;
        this.side = null;
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
        return told.deadline;
    }

    get latest() {
        return this.states.at(-1);
    }

    draw() {
        if (!this.draws || !this.states.length) return;
        if (!this.frame) this.build();
        const last = this.states.length - 1;
        const at = this.chosen ?? last;
        this.slider.max = last;
        this.slider.value = at;
        this.slider.parentElement.hidden = last === 0;
        this.label.textContent = `${at + 1} of ${last + 1}`;
        const { picture, caption } = this.draws(this.states[at], this, at === last);
        // Only what has changed: whoever has the focus on a square keeps it.
        const focused = document.activeElement?.getAttribute?.("data-square");
        this.frame.replaceChildren(picture);
        this.caption.replaceChildren(...caption);
        if (focused) this.frame.querySelector(`[data-square="${focused}"]`)?.focus();
    }

    build() {
        this.place.hidden = false;
        this.frame = document.createElement("div");
        this.frame.className = "frame";
        this.caption = document.createElement("p");
        this.caption.className = "caption";
        this.label = document.createElement("span");
        this.label.className = "soft";
        this.slider = document.createElement("input");
        this.slider.type = "range";
        this.slider.min = 0;
        this.slider.setAttribute("aria-label", "State of the game");
        this.slider.addEventListener("input", () => {
            const at = Number(this.slider.value);
            this.chosen = at === this.states.length - 1 ? null : at;
            this.draw();
        });
        const row = document.createElement("p");
        row.className = "slider";
        row.append(this.slider, this.label);
        this.place.append(this.frame, this.caption, row);
    }

    /** The seat of an id, from 0; -1 for nobody's. */
    seatOf(id) {
        return this.players.indexOf(id);
    }

    nameOf(id) {
        const seat = this.seatOf(id);
        return seat < 0 ? id : `Player ${seat + 1}`;
    }
}

/** The points of each player, as a caption. */
function points(board, score) {
    return Object.entries(score ?? {}).map(([id, value]) => {
        const text = document.createElement("span");
        text.className = `who seat-${Math.max(0, board.seatOf(id)) % 6}`;
        text.textContent = `${board.nameOf(id)}: ${value} `;
        return text;
    });
}

const PIECES = { k: "♚", q: "♛", r: "♜", b: "♝", n: "♞", p: "♟" };
const NAMES = { k: "king", q: "queen", r: "rook", b: "bishop", n: "knight", p: "pawn" };

function drawChess(state, board, isLatest) {
    const [placement, turn] = state.fen.split(" ");
    const flipped = (state.color ?? board.side) === "BLACK";
    const pieces = new Map();
    placement.split("/").forEach((row, down) => {
        let file = 0;
        for (const char of row) {
            if (/[1-8]/.test(char)) file += Number(char);
            else pieces.set(`${"abcdefgh"[file++]}${8 - down}`, char);
        }
    });
    const isMine = (state.turn ? "WHITE" : "BLACK") === (state.color ?? board.side);
    const legal = isLatest && isMine && board.onMove ? state.legal_moves ?? [] : [];
    if (!legal.some((move) => move.startsWith(board.from ?? "-"))) board.from = null;
    const picture = svg("svg", { viewBox: "0 0 8 8", class: "chess", role: "group", "aria-label": `Chess position ${state.fen}` });
    for (let rank = 8; rank >= 1; rank--) {
        for (let file = 0; file < 8; file++) {
            const square = `${"abcdefgh"[file]}${rank}`;
            const [x, y] = flipped ? [7 - file, rank - 1] : [file, 8 - rank];
            const piece = pieces.get(square);
            const starts = legal.some((move) => move.startsWith(square));
            const ends = board.from && legal.some((move) => move.startsWith(board.from + square));
            const classes = ["square", (file + rank) % 2 ? "pale" : "deep"];
            if (state.last_move && [state.last_move.slice(0, 2), state.last_move.slice(2, 4)].includes(square)) classes.push("last");
            if (board.from === square) classes.push("from");
            const what = piece ? `${piece === piece.toUpperCase() ? "white" : "black"} ${NAMES[piece.toLowerCase()]}` : "empty";
            const group = svg("g", { "data-square": square }, svg("rect", { x, y, width: 1, height: 1, class: classes.join(" ") }));
            if (x === 0) group.append(svg("text", { x: x + 0.05, y: y + 0.2, class: "edge" }, String(rank)));
            if (y === 7) group.append(svg("text", { x: x + 0.83, y: y + 0.95, class: "edge" }, "abcdefgh"[file]));
            if (piece) {
                const colour = piece === piece.toUpperCase() ? "white" : "black";
                group.append(svg("text", { x: x + 0.5, y: y + 0.8, class: `piece ${colour}` }, PIECES[piece.toLowerCase()] + "\ufe0e"));
            }
            if (ends) group.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.16, class: "target" }));
            if (starts || ends) {
                group.setAttribute("tabindex", "0");
                group.setAttribute("role", "button");
                group.setAttribute("aria-label", `${square}, ${what}${ends ? ", can be moved to" : ""}`);
                const choose = () => chooseSquare(board, legal, square, ends);
                group.addEventListener("click", choose);
                group.addEventListener("keydown", (event) => {
                    if (event.key !== "Enter" && event.key !== " ") return;
                    event.preventDefault();
                    choose();
                });
            }
            picture.append(group);
        }
    }
    const text = `${turn === "w" ? "White" : "Black"} to move${state.last_move ? `; the last move was ${state.last_move}` : ""}. `;
    return { picture, caption: [text] };
}

/** A click on a square: choose a piece, or where it goes. A pawn becomes what is chosen beside the board. */
function chooseSquare(board, legal, square, ends) {
    if (!ends) {
        board.from = square;
        board.draw();
        return;
    }
    const moves = legal.filter((move) => move.startsWith(board.from + square));
    board.from = null;
    const select = document.getElementById("promotion");
    const wanted = select?.value ?? "q";
    board.onMove(moves.find((move) => move.endsWith(wanted) && move.length === 5) ?? moves[0]);
}

function drawSnake(state, board) {
    const { width, height } = state.grid;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "snake", role: "img", "aria-label": "The grid" });
    picture.append(svg("rect", { x: 0, y: 0, width, height, class: "ground" }));
    for (const [x, y] of state.foods ?? []) picture.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.32, class: "food" }));
    for (const [id, snake] of Object.entries(state.snakes ?? {})) {
        if (!snake.alive) continue;
        const seat = Math.max(0, board.seatOf(id)) % 6;
        const line = snake.positions.map(([x, y]) => `${x + 0.5},${y + 0.5}`).join(" ");
        picture.append(svg("polyline", { points: line, class: `body seat-${seat}` }));
        const [x, y] = snake.head_position;
        picture.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.44, class: `snake-head seat-${seat}` }));
        picture.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.14, class: "eye" }));
    }
    return { picture, caption: points(board, state.score) };
}

function drawMap(state, board) {
    const all = [...(state.foods ?? []), ...(state.actors ?? []), ...(state.bases ?? [])];
    // How large the map is isn't told. What is on it is mirrored, so there is as much room on one side as on the other; and the map
    // never gets smaller while it is watched.
    const reach = (axis) => {
        const places = all.map(({ position }) => position[axis]);
        return Math.max(10, Math.min(...places) + Math.max(...places), 1 + Math.max(...places));
    };
    board.extent = [0, 1].map((axis) => Math.max(board.extent?.[axis] ?? 0, Math.ceil(reach(axis))));
    const [width, height] = board.extent;
    const unit = Math.max(width, height) / 60;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "map", role: "img", "aria-label": "The map" });
    picture.append(svg("rect", { x: 0, y: 0, width, height, class: "ground" }));
    const seat = (id) => `seat-${Math.max(0, board.seatOf(id)) % 6}`;
    for (const { position: [x, y], quantity } of state.foods ?? []) {
        picture.append(svg("circle", { cx: x, cy: y, r: unit * (0.4 + Math.sqrt(quantity ?? 1) / 6), class: "food" }));
    }
    const stock = {};
    for (const { position: [x, y], owner_id: owner, food } of state.bases ?? []) {
        stock[owner] = (stock[owner] ?? 0) + food;
        picture.append(svg("rect", { x: x - unit * 1.3, y: y - unit * 1.3, width: unit * 2.6, height: unit * 2.6, rx: unit * 0.5, class: `base ${seat(owner)}` }));
    }
    for (const { position: [x, y], owner_id: owner } of state.actors ?? []) {
        picture.append(svg("circle", { cx: x, cy: y, r: unit * 0.8, class: `actor ${seat(owner)}` }));
    }
    const rounded = Object.fromEntries(Object.entries(stock).map(([id, food]) => [id, Math.round(food * 10) / 10]));
    return { picture, caption: points(board, rounded) };
}
