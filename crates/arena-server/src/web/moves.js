// Chess moves by clicking: transparent buttons over the squares of the board. As buttons, they work with the keyboard
// and screen readers.

import { squares } from "./boards/chess.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Returns a function that puts buttons for the player's legal moves over a board. `move` is called with the chosen move
 * in UCI notation.
 */
export function offer(move) {
    /** The square of the selected piece. */
    let from = null;
    /** The moves for which the buttons were made, and the drawing below the buttons. */
    let [offered, drawing] = [null, null];

    return function show(picture, state, options) {
        // Screen readers skip buttons inside `role="img"`.
        picture.setAttribute("role", "group");
        const isMine = options.sides[options.seat] === (state.turn ? "WHITE" : "BLACK");
        const legal = isMine && Array.isArray(state.legal_moves) ? state.legal_moves : [];
        if (!legal.some((each) => each.startsWith(from ?? "-"))) from = null;
        // Unchanged buttons stay: replacing one between mouse down and mouse up would lose the click.
        const wanted = JSON.stringify([legal, from]);
        if (wanted === offered && drawing === picture.firstElementChild) return;
        [offered, drawing] = [wanted, picture.firstElementChild];
        for (const old of picture.querySelectorAll(".square")) old.remove();
        for (const { column, row, name, holds } of squares(state, options)) {
            const isEnd = from !== null && legal.some((each) => each.startsWith(from + name));
            if (!isEnd && !legal.some((each) => each.startsWith(name))) continue;
            const button = document.createElementNS(SVG, "g");
            button.setAttribute("class", `square${name === from ? " from" : ""}`);
            button.setAttribute("data-square", name);
            button.setAttribute("tabindex", "0");
            button.setAttribute("role", "button");
            button.setAttribute("aria-label", `${name}, ${holds}${isEnd ? ", legal target" : ""}`);
            if (!isEnd) button.setAttribute("aria-pressed", name === from);
            button.append(shape("rect", { x: column, y: row, width: 1, height: 1 }));
            if (isEnd) button.append(shape("circle", { cx: column + 0.5, cy: row + 0.5, r: 0.16 }));
            const choose = () => {
                if (isEnd) {
                    move(moveTo(legal, from + name));
                    from = null;
                } else {
                    from = name === from ? null : name;
                }
                show(picture, state, options);
                picture.querySelector(`[data-square="${name}"]`)?.focus();
            };
            button.addEventListener("click", choose);
            button.addEventListener("keydown", (event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                choose();
            });
            picture.append(button);
        }
    };
}

/** Returns the move between two squares, with the promotion piece that is selected beside the board. */
function moveTo(legal, squares) {
    const moves = legal.filter((each) => each.startsWith(squares));
    const wanted = document.getElementById("promotion")?.value ?? "q";
    return moves.find((each) => each.length === 5 && each.endsWith(wanted)) ?? moves[0];
}

function shape(tag, attributes) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
}
