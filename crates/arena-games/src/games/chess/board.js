// The board of chess, from the side of White or of the seat that is looked after. The pieces are the filled signs of Unicode for both
// sides, told apart by fill and outline, so that nothing depends on which signs a font has.

const SVG = "http://www.w3.org/2000/svg";
const SIGNS = { k: "♚", q: "♛", r: "♜", b: "♝", n: "♞", p: "♟" };
const NAMES = { k: "king", q: "queen", r: "rook", b: "bishop", n: "knight", p: "pawn" };
/** Asks for the sign as text: some systems show pawns as coloured pictures. */
const AS_TEXT = "\uFE0E";
/** Epochs in a second of a replay: moves of chess are thought about. */
export const speed = 2;
/** The board is turned to the seat that looks. */
export const isTurned = true;
/** What each board shows. */
const drawn = new WeakMap();

/** Draws a state into `element`. Of `options` it takes `sides` and `seat`: Black looks from the other side. */
export function draw(element, state, options) {
  const pieces = read(state?.fen);
  let board = element.querySelector(":scope > svg");
  if (!board) {
    board = document.createElementNS(SVG, "svg");
    board.setAttribute("viewBox", "0 0 8 8");
    board.setAttribute("class", "board chess");
    board.setAttribute("role", "img");
    element.replaceChildren(board);
  }
  // What is drawn already stays: a click counts only if what is under it is the same from its beginning to its end.
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

/** The squares as they lie on the board that `draw` makes with these options: the column and row of each from the upper left corner, and what stands on it. */
export function squares(state, options) {
  const pieces = read(state?.fen);
  return Array.from({ length: 64 }, (_, place) => {
    const [column, row] = [place % 8, Math.floor(place / 8)];
    const name = square(...squareAt(column, row, options));
    const piece = pieces.get(name);
    const side = piece === piece?.toUpperCase() ? "white" : "black";
    return { column, row, name, holds: piece ? `${side} ${NAMES[piece.toLowerCase()]}` : "empty" };
  });
}

/** The sides of the player to move, and of the other. Nothing if the state doesn't tell. */
export function sidesOfMover(state) {
  if (typeof state?.turn !== "boolean") return undefined;
  return state.turn ? ["WHITE", "BLACK"] : ["BLACK", "WHITE"];
}

/** What the state says of a seat. Chess has no score before its end. */
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

/** File and rank, from 0, of what lies there on the screen. */
function squareAt(column, row, options) {
  return options.sides?.[options.seat] === "BLACK" ? [7 - column, row] : [column, 7 - row];
}

function square(file, rank) {
  return "abcdefgh"[file] + (rank + 1);
}

/** The pieces of a position by square: letters as FEN has them. */
function read(fen) {
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
