// The board of chess, from the side of White or of the selected seat. Both sides use the filled chess symbols of Unicode and
// differ in fill and outline, so that the board doesn't depend on the font's other symbols.

const SVG = "http://www.w3.org/2000/svg";
const SIGNS = { k: "♚", q: "♛", r: "♜", b: "♝", n: "♞", p: "♟" };
const NAMES = { k: "king", q: "queen", r: "rook", b: "bishop", n: "knight", p: "pawn" };
/** Requests text style, because some systems show pawns as emoji. */
const AS_TEXT = "\uFE0E";
/** The epochs per second of a replay: slow, because viewers think about moves. */
export const speed = 2;
/** True if the board is turned to the selected seat. */
export const isTurned = true;
/** The picture on each board. */
const drawn = new WeakMap();

/** Draws a state into `element`. The board is turned to Black if Black's seat is selected by `options.seat` and `options.sides`. */
export function draw(element, state, options) {
  const pieces = readFen(state?.fen);
  let board = element.querySelector(":scope > svg");
  if (!board) {
    board = document.createElementNS(SVG, "svg");
    board.setAttribute("viewBox", "0 0 8 8");
    board.setAttribute("class", "board chess");
    board.setAttribute("role", "img");
    element.replaceChildren(board);
  }
  // An unchanged picture isn't redrawn, because the browser reports a click only if the same element is pressed and released.
  const picture = JSON.stringify([state?.fen, state?.last_move, squareAt(0, 0, options)]);
  if (drawn.get(board) === picture) return;
  drawn.set(board, picture);
  board.setAttribute("aria-label", describe(state, pieces));
  const last = typeof state?.last_move === "string" ? [state.last_move.slice(0, 2), state.last_move.slice(2, 4)] : [];
  const parts = [];
  for (let row = 0; row < 8; row++) {
    for (let column = 0; column < 8; column++) {
      const [file, rank] = squareAt(column, row, options);
      const name = square(file, rank);
      const cell = part("rect", { x: column, y: row, width: 1, height: 1 });
      cell.setAttribute("class", `${(file + rank) % 2 ? "light" : "dark"}${last.includes(name) ? " fresh" : ""}`);
      parts.push(cell);
      if (column === 0) parts.push(part("text", { x: 0.05, y: row + 0.22, class: "coordinate" }, String(rank + 1)));
      if (row === 7) parts.push(part("text", { x: column + 0.82, y: 7.94, class: "coordinate" }, name[0]));
      const piece = pieces.get(name);
      if (piece) {
        const side = piece === piece.toUpperCase() ? "white" : "black";
        const sign = SIGNS[piece.toLowerCase()] + AS_TEXT;
        parts.push(part("text", { x: column + 0.5, y: row + 0.8, class: `piece ${side}` }, sign));
      }
    }
  }
  board.replaceChildren(...parts);
}

/** Returns the squares of the board that `draw` makes with these options: column and row from the upper left corner, and the piece. */
export function squares(state, options) {
  const pieces = readFen(state?.fen);
  return Array.from({ length: 64 }, (_, place) => {
    const [column, row] = [place % 8, Math.floor(place / 8)];
    const name = square(...squareAt(column, row, options));
    const piece = pieces.get(name);
    const side = piece === piece?.toUpperCase() ? "white" : "black";
    return { column, row, name, holds: piece ? `${side} ${NAMES[piece.toLowerCase()]}` : "empty" };
  });
}

/** Returns the side to move and the other side, or undefined if the state has no turn. */
export function sidesOfMover(state) {
  if (typeof state?.turn !== "boolean") return undefined;
  return state.turn ? ["WHITE", "BLACK"] : ["BLACK", "WHITE"];
}

/** Returns the note on a seat. Chess has no score before its end. */
export function note(state, seat, options) {
  const side = options.sides?.[seat];
  if (!side) return { score: undefined, words: "" };
  const isOver = Array.isArray(state?.legal_moves) && state.legal_moves.length === 0;
  const isToMove = (state?.turn === true) === (side === "WHITE");
  const words = [side === "WHITE" ? "White" : "Black"];
  if (typeof state?.turn === "boolean" && isToMove && !isOver) words.push("to move");
  if (typeof state?.turn === "boolean" && !isToMove && state.last_move) words.push(`played ${state.last_move}`);
  return { score: undefined, words: words.join(", ") };
}

function part(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Returns file and rank, from 0, of a place on the screen. */
function squareAt(column, row, options) {
  return options.sides?.[options.seat] === "BLACK" ? [7 - column, row] : [column, 7 - row];
}

function square(file, rank) {
  return "abcdefgh"[file] + (rank + 1);
}

/** Returns the pieces of a position by square, as FEN letters. */
export function readFen(fen) {
  const pieces = new Map();
  const ranks = typeof fen === "string" ? fen.split(" ")[0].split("/").slice(0, 8) : [];
  ranks.forEach((rank, row) => {
    let file = 0;
    for (const sign of rank) {
      if (/[1-8]/.test(sign)) file += Number(sign);
      else if (file < 8 && sign.toLowerCase() in SIGNS) pieces.set(square(file++, 7 - row), sign);
    }
  });
  return pieces;
}

function describe(state, pieces) {
  const of = (isWhite) =>
    [...pieces]
      .filter(([, piece]) => (piece === piece.toUpperCase()) === isWhite)
      .map(([name, piece]) => `${NAMES[piece.toLowerCase()]} ${name}`)
      .join(", ");
  const last = typeof state?.last_move === "string" ? `; last move ${state.last_move}` : "";
  const turn = typeof state?.turn === "boolean" ? `; ${state.turn ? "White" : "Black"} to move` : "";
  return `Chess. White: ${of(true)}. Black: ${of(false)}${last}${turn}`;
}
