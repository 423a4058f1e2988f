// The board of chess, from the side of White or of the selected seat, and beside it the moves and the captured pieces.
import { list, make } from "./seats.js";

const SVG = "http://www.w3.org/2000/svg";
/** The outlines of the pieces, about 28 units wide and high around (20, 19.5). `picture.rs` reads these lines. */
const OUTLINES = {
  k: "M18.5 4h3v2.5H24v2.8h-2.5v4.2h-3V9.3H16V6.5h2.5zM20 14c2-2.6 5-3.4 7.6-2.6 4.6 1.4 5.6 6 3.6 9.4L27.5 27c1.6 1.4 2.5 3.8 2.5 7.5H10c0-3.7.9-6.1 2.5-7.5l-3.7-6.2c-2-3.4-1-8 3.6-9.4 2.6-.8 5.6 0 7.6 2.6zv9M12.5 27h15M11 31h18",
  q: "M12.3 27 7.6 15.6l6.3 5.6 1-9.6L20 20.4l5.1-8.8 1 9.6 6.3-5.6L27.7 27c1.5 1.6 2.3 4 2.3 7.5H10c0-3.5.8-5.9 2.3-7.5zh15.4M11 31h18M7.2 12a2.3 2.3 0 1 0 .01 0zM14.8 7.6a2.3 2.3 0 1 0 .01 0zM25.2 7.6a2.3 2.3 0 1 0 .01 0zM32.8 12a2.3 2.3 0 1 0 .01 0z",
  r: "M10 34.5V31l3-2.5L14 17l-3-2.5V8h4.6v3h2.9V8h3v3h2.9V8H29v6.5L26 17l1 11.5 3 2.5v3.5zM14 17h12M13 28.5h14",
  b: "M20 9.4c5 3.6 7.4 7 7.4 10.8 0 2.6-1.2 4.8-3.2 6.3l.8 3.5c3 .4 5 2 5 4.5H10c0-2.5 2-4.1 5-4.5l.8-3.5c-2-1.5-3.2-3.7-3.2-6.3 0-3.8 2.4-7.2 7.4-10.8zM20 5a2.6 2.6 0 1 0 .01 0zM22.6 13.4 19.2 19M15.8 26.5h8.4M15 30h10",
  n: "M11 34.5c0-5.2 2.4-7.6 5.8-10.4 1.7-1.4 2.4-2.7 2.4-4.3-1.8 1.4-3.7 2-5.6 2.2-1.1 1.7-2.6 2.7-4.1 2.7-1.8 0-3-1.3-3-3.2 0-1.7.9-3.2 2.3-5 1.2-1.6 1.9-3.1 2.5-4.8.6-1.7 1.6-2.9 3-3.7L14 4.5l4.6 2.6C27.4 7.6 32 14.6 32 24.5c0 3.8-.4 7-1 10zM15.4 13.6a.9.9 0 1 0 .01 0zM22.5 10.5c4 2.5 5.6 7.5 5.3 14",
  p: "M20 7.5a5.4 5.4 0 0 1 3.3 9.7c.9 4.4 3 6.9 5.3 9.3 1.6 1.6 2.4 4.1 2.4 8H9c0-3.9.8-6.4 2.4-8 2.3-2.4 4.4-4.9 5.3-9.3A5.4 5.4 0 0 1 20 7.5zM15.5 17.2h9M10.5 30.5h19",
};
const NAMES = { k: "king", q: "queen", r: "rook", b: "bishop", n: "knight", p: "pawn" };
/** The values of the pieces that can be captured, the highest first. */
const VALUES = { q: 9, r: 5, b: 3, n: 3, p: 1 };

/** The epochs per second of a replay: slow, because viewers think about moves. */
export const speed = 2;
/** True if the board is turned to the selected seat. */
export const isTurned = true;
/** The number of earlier states that a replay passes as `history`, for the list of moves. */
export const memory = 1000;
/** The picture on each board, and the moves beside it. */
const drawn = new WeakMap();

/** Draws a state into `element`. The board is turned to Black if Black's seat is selected by `options.seat` and `options.sides`. */
export function draw(element, state, options) {
  const pieces = readFen(state?.fen);
  let board = element.querySelector(":scope > svg");
  if (!board) {
    board = part("svg", { viewBox: "0 0 8 8", class: "board chess", role: "img" });
    element.classList.add("chess-table");
    element.replaceChildren(board, make("div", "beside-chess"));
  }
  drawBeside(element.lastElementChild, state, options);
  // An unchanged picture isn't redrawn, because a player may be dragging one of its pieces.
  const picture = JSON.stringify([state?.fen, state?.last_move, squareAt(0, 0, options)]);
  if (drawn.get(board) === picture) return;
  drawn.set(board, picture);
  const check = checkedKing(state?.fen, pieces);
  board.setAttribute("aria-label", describe(state, pieces, check));
  const last = typeof state?.last_move === "string" ? [state.last_move.slice(0, 2), state.last_move.slice(2, 4)] : [];
  const [cells, texts, men] = [[], [], []];
  for (const { column, row, name } of squares(state, options)) {
    const [file, rank] = squareAt(column, row, options);
    const marks = `${last.includes(name) ? " fresh" : ""}${name === check ? " check" : ""}`;
    cells.push(part("rect", { x: column, y: row, width: 1, height: 1, class: `${(file + rank) % 2 ? "light" : "dark"}${marks}` }));
    if (column === 0) texts.push(part("text", { x: 0.05, y: row + 0.22, class: "coordinate" }, String(rank + 1)));
    if (row === 7) texts.push(part("text", { x: column + 0.82, y: 7.94, class: "coordinate" }, name[0]));
    const piece = pieces.get(name);
    if (piece) men.push(man(piece, { "data-at": name, transform: placed(column, row) }));
  }
  board.replaceChildren(...cells, ...texts, ...men);
}

/** Draws a piece, given as a FEN letter. */
function man(piece, attributes) {
  const side = piece === piece.toUpperCase() ? "white" : "black";
  return part("path", { class: `piece ${side}`, d: OUTLINES[piece.toLowerCase()], ...attributes });
}

/** Returns the transformation of a piece on the square with this upper left corner. */
export function placed(column, row) {
  return `translate(${column - 0.06} ${row - 0.046}) scale(.028)`;
}

/** Makes the picture of a piece for a text. */
export function figure(piece) {
  const picture = part("svg", { viewBox: "4 2 32 35", class: "chessman", "aria-hidden": "true" });
  picture.append(man(piece, {}));
  return picture;
}

/** Shows the moves up to this state, between the pieces that the players of the upper and the lower side have taken. */
function drawBeside(place, state, options) {
  const states = [...list(options.history), state];
  const key = JSON.stringify([states.length, state?.fen, states[0]?.fen, squareAt(0, 0, options)]);
  if (drawn.get(place) === key) return;
  drawn.set(place, key);
  const moves = make("ol", "moves");
  // A list that scrolls is in the keyboard's order.
  moves.tabIndex = 0;
  moves.setAttribute("aria-label", "Moves");
  for (const { number, isWhite, text } of readMoves(states)) {
    if (isWhite || !moves.children.length) moves.append(make("li"));
    const row = moves.lastElementChild;
    row.value = number;
    if (!isWhite && !row.children.length) row.append(make("span", "", "…"), " ");
    row.append(make("span", "", text), isWhite ? " " : "");
  }
  const isTurned = squareAt(0, 0, options)[0] === 7;
  const [upper, lower] = [isTurned, !isTurned].map((isWhite) => taken(isWhite, readFen(states[0]?.fen), readFen(state?.fen)));
  place.replaceChildren(upper, moves, lower);
  moves.scrollTop = moves.scrollHeight;
  moves.scrollLeft = moves.scrollWidth;
}

/** Makes the row of the pieces that a side has taken since a position, with the side's lead in material. */
function taken(isWhite, before, now) {
  const count = (pieces, piece) => [...pieces.values()].filter((each) => each === piece).length;
  const [own, other] = isWhite ? ["toUpperCase", "toLowerCase"] : ["toLowerCase", "toUpperCase"];
  const gone = (kind) => count(before, kind[other]()) - count(now, kind[other]());
  // A promoted pawn isn't taken.
  const promoted = Object.keys(VALUES).reduce((sum, kind) => sum + Math.max(0, -gone(kind)), 0);
  const lost = Object.keys(VALUES).flatMap((kind) => Array(Math.max(0, gone(kind) - (kind === "p" ? promoted : 0))).fill(kind));
  const lead = Object.entries(VALUES).reduce((sum, [kind, value]) => sum + value * (count(now, kind[own]()) - count(now, kind[other]())), 0);
  const row = make("p", "taken");
  row.setAttribute("role", "img");
  const names = lost.map((kind) => NAMES[kind]).join(", ") || "nothing";
  row.setAttribute("aria-label", `${isWhite ? "White" : "Black"} has taken ${names}${lead > 0 ? `, and leads by ${lead}` : ""}`);
  row.append(...lost.map((kind) => figure(kind[other]())));
  if (lead > 0) row.append(make("b", "", `+${lead}`));
  return row;
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

/** Returns the note on a seat: its side. Chess has no score before its end. */
export function note(_, seat, options) {
  return { score: undefined, words: { WHITE: "White", BLACK: "Black" }[options.sides?.[seat]] ?? "" };
}

/**
 * Returns the moves between the states: the move's number, the side, and the text in standard algebraic notation, such as
 * `Nf3`, `exd5`, `O-O` or `e8=Q+`.
 */
export function readMoves(states) {
  const moves = [];
  let before;
  for (const state of states) {
    if (typeof state?.fen !== "string" || state.fen === before?.fen) continue;
    if (before && typeof state.last_move === "string") {
      const [, turn, , , , number] = before.fen.split(" ");
      moves.push({ number: Number(number), isWhite: turn === "w", text: san(before, state) });
    }
    before = state;
  }
  return moves;
}

function san(before, after) {
  const pieces = readFen(before.fen);
  const uci = after.last_move;
  const [from, to, promotion] = [uci.slice(0, 2), uci.slice(2, 4), uci.slice(4)];
  const piece = pieces.get(from);
  const letter = piece?.toUpperCase() ?? "";
  const sign = !checkedKing(after.fen, readFen(after.fen)) ? "" : list(after.legal_moves).length ? "+" : "#";
  const castling = { e1g1: "O-O", e8g8: "O-O", e1c1: "O-O-O", e8c8: "O-O-O" }[uci];
  if (letter === "K" && castling) return castling + sign;
  // A pawn's move to another file is always a capture, perhaps en passant.
  if (letter === "P") return `${from[0] === to[0] ? "" : `${from[0]}x`}${to}${promotion ? `=${promotion.toUpperCase()}` : ""}${sign}`;
  const others = list(before.legal_moves).filter((move) => typeof move === "string" && move.slice(2, 4) === to && move.slice(0, 2) !== from && pieces.get(move.slice(0, 2)) === piece);
  const isShared = (at) => others.some((other) => other[at] === from[at]);
  const which = others.length === 0 ? "" : !isShared(0) ? from[0] : !isShared(1) ? from[1] : from;
  return `${letter}${which}${pieces.has(to) ? "x" : ""}${to}${sign}`;
}

const STRAIGHT = [[0, 1], [1, 0], [0, -1], [-1, 0]];
const DIAGONAL = [[1, 1], [1, -1], [-1, -1], [-1, 1]];
const LEAPS = [[1, 2], [2, 1], [2, -1], [1, -2], [-1, -2], [-2, -1], [-2, 1], [-1, 2]];

/** Returns the square of the king to move if it is in check. */
function checkedKing(fen, pieces) {
  const isWhite = typeof fen === "string" && fen.split(" ")[1] === "w";
  const king = [...pieces].find(([, piece]) => piece === (isWhite ? "K" : "k"))?.[0];
  if (!king) return undefined;
  const [file, rank] = ["abcdefgh".indexOf(king[0]), Number(king[1]) - 1];
  const meets = (kinds, steps, most) => steps.some(([across, up]) => {
    for (let far = 1; far <= most; far++) {
      const piece = pieces.get(square(file + far * across, rank + far * up));
      if (piece) return (isWhite ? kinds : kinds.toUpperCase()).includes(piece);
    }
    return false;
  });
  const ahead = isWhite ? 1 : -1;
  const isCheck = meets("rq", STRAIGHT, 7) || meets("bq", DIAGONAL, 7) || meets("n", LEAPS, 1) || meets("p", [[-1, ahead], [1, ahead]], 1);
  return isCheck ? king : undefined;
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
function readFen(fen) {
  const pieces = new Map();
  const ranks = typeof fen === "string" ? fen.split(" ")[0].split("/").slice(0, 8) : [];
  ranks.forEach((rank, row) => {
    let file = 0;
    for (const sign of rank) {
      if (/[1-8]/.test(sign)) file += Number(sign);
      else if (file < 8 && sign.toLowerCase() in OUTLINES) pieces.set(square(file++, 7 - row), sign);
    }
  });
  return pieces;
}

function describe(state, pieces, check) {
  const of = (isWhite) =>
    [...pieces]
      .filter(([, piece]) => (piece === piece.toUpperCase()) === isWhite)
      .map(([name, piece]) => `${NAMES[piece.toLowerCase()]} ${name}`)
      .join(", ");
  const last = typeof state?.last_move === "string" ? `; last move ${state.last_move}` : "";
  const turn = typeof state?.turn === "boolean" ? `; ${state.turn ? "White" : "Black"} to move${check ? ", in check" : ""}` : "";
  return `Chess. White: ${of(true)}. Black: ${of(false)}${last}${turn}`;
}
