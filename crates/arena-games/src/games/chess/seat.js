// The controls of chess: transparent buttons over the squares of the board, a choice of the piece for promotions, and
// lists of moves and captured pieces. As buttons, the squares work with the keyboard and screen readers.
import { readFen, squares } from "../boards/chess.js";
import { make } from "../boards/seats.js";
import { button, onChoice, say, shape, wrap } from "./parts.js";

/** The pieces for promotions, by their letters in UCI notation. */
const PROMOTIONS = { q: ["Queen", "♛"], r: ["Rook", "♜"], b: ["Bishop", "♝"], n: ["Knight", "♞"] };

/** The signs of pieces, the most valuable first. Kings can't be captured. */
const ARMY = [["q", "♛"], ["r", "♜"], ["b", "♝"], ["n", "♞"], ["p", "♟"]];

/** Requests text style, because some systems show pawns as emoji. */
const AS_TEXT = "\uFE0E";

/** Fills the panel. */
export function start(panel, game) {
  const hint = make("p", "soft small", "Select one of your pieces on the board, then its target square.");
  const captured = make("dl", "captured");
  const moves = make("ol", "moves");
  // A list that scrolls is in the keyboard's order.
  moves.tabIndex = 0;
  moves.setAttribute("aria-label", "Moves");
  const list = wrap("details", "", make("summary", "", "Moves"), moves);
  const claim = button("Claim a draw", () => game.isAsked && game.act("claim_draw", ""));
  const about = make("p", "soft small", "A claim holds if the position occurs for the third time, or after 50 moves without a capture or a pawn move.");
  const draw = wrap("details", "", make("summary", "", "Claim a draw"), about, claim);
  panel.append(hint, captured, list, draw);
  list.open = matchMedia("(min-width: 60rem)").matches;

  const offer = offerMoves(async (legal) => {
    const move = legal.length === 1 ? legal[0] : await choosePromotion(legal);
    if (move) game.act("move", move);
  });
  game.onDrawn = (picture, state, options) => offer(picture, state, options, game.isAsked);

  return () => {
    const played = readMoves(game.states);
    if (moves.children.length !== Math.ceil(played.length / 2) || moves.dataset.count !== String(played.length)) {
      moves.dataset.count = played.length;
      const pairs = Array.from({ length: Math.ceil(played.length / 2) }, (_, at) => played.slice(2 * at, 2 * at + 2));
      moves.replaceChildren(...pairs.map((pair) => make("li", "", pair.join("  "))));
      moves.scrollTop = moves.scrollHeight;
    }
    list.hidden = played.length === 0;
    hint.hidden = !game.isAsked;
    showCaptured(captured, game.states[0]?.fen, game.state?.fen);
    claim.disabled = !game.isAsked;
  };
}

/** Asks for the piece of a promotion. Returns the move, or null if the player cancels. */
function choosePromotion(legal) {
  const dialog = make("dialog", "promotion");
  const title = make("h2", "", "Promote the pawn to");
  title.id = "promotion-title";
  dialog.setAttribute("aria-labelledby", title.id);
  const choices = legal.map((move) => {
    const [name, sign] = PROMOTIONS[move.at(-1)] ?? [move, ""];
    const choice = button(name, () => dialog.close(move));
    choice.prepend(make("span", "sign", sign + AS_TEXT));
    choice.dataset.piece = move.at(-1);
    return choice;
  });
  dialog.append(title, wrap("p", "row", ...choices), button("Cancel", () => dialog.close(""), "btn"));
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
    dialog.showModal();
  });
}

/**
 * Returns a function that puts buttons for the player's legal moves over a board. `move` is called with the legal moves
 * between the chosen squares, which differ in the promotion only.
 */
function offerMoves(move) {
  /** The square of the selected piece. */
  let from = null;
  /** The moves for which the buttons were made, and the drawing below the buttons. */
  let [offered, drawing] = [null, null];

  return function show(picture, state, options, isAsked) {
    // Screen readers skip buttons inside `role="img"`.
    picture.setAttribute("role", "group");
    const isMine = isAsked && options.sides[options.seat] === (state.turn ? "WHITE" : "BLACK");
    const legal = isMine && Array.isArray(state.legal_moves) ? state.legal_moves : [];
    if (!legal.some((each) => each.startsWith(from ?? "-"))) from = null;
    const wanted = JSON.stringify([legal, from]);
    if (wanted === offered && drawing === picture.firstElementChild) return;
    [offered, drawing] = [wanted, picture.firstElementChild];
    for (const old of picture.querySelectorAll(".square")) old.remove();
    const made = [];
    for (const { column, row, name, holds } of squares(state, options)) {
      const isEnd = from !== null && legal.some((each) => each.startsWith(from + name));
      if (!isEnd && !legal.some((each) => each.startsWith(name))) continue;
      const square = shape("g", { class: `square${name === from ? " from" : ""}`, "data-square": name });
      square.setAttribute("aria-label", `${name}, ${holds}${isEnd ? ", legal target" : ""}`);
      if (!isEnd) square.setAttribute("aria-pressed", String(name === from));
      square.append(shape("rect", { x: column, y: row, width: 1, height: 1 }));
      if (isEnd) square.append(shape("circle", { cx: column + 0.5, cy: row + 0.5, r: 0.16 }));
      onChoice(square, () => {
        if (isEnd) {
          const moves = legal.filter((each) => each.startsWith(from + name));
          from = null;
          move(moves);
        } else {
          from = name === from ? null : name;
        }
        show(picture, state, options, isAsked);
        picture.querySelector(`[data-square="${name}"]`)?.focus();
      });
      made.push({ square, isEnd, name });
    }
    // The keyboard reaches the selected piece first, then its targets, then the other pieces.
    const rank = ({ isEnd, name }) => (name === from ? 0 : isEnd ? 1 : 2);
    made.sort((one, other) => rank(one) - rank(other));
    picture.append(...made.map(({ square }) => square));
  };
}

/** Returns the moves between the states in long notation: `e2–e4`, `Ng1–f3`, `Nf3×e5`. */
function readMoves(states) {
  const moves = [];
  let before = null;
  for (const state of states) {
    if (typeof state?.fen !== "string" || state.fen === before?.fen) continue;
    if (before && typeof state.last_move === "string") {
      const pieces = readFen(before.fen);
      const [from, to, promotion] = [state.last_move.slice(0, 2), state.last_move.slice(2, 4), state.last_move.slice(4)];
      const piece = pieces.get(from)?.toUpperCase() ?? "";
      const isCastling = piece === "K" && from[0] === "e" && (to[0] === "g" || to[0] === "c");
      const takes = pieces.has(to) || (piece === "P" && from[0] !== to[0]) ? "×" : "–";
      const end = promotion ? `=${promotion.toUpperCase()}` : "";
      moves.push(isCastling ? (to[0] === "g" ? "O-O" : "O-O-O") : `${piece === "P" ? "" : piece}${from}${takes}${to}${end}`);
    }
    before = state;
  }
  return moves;
}

/** Shows the pieces that each side has lost since the position `from`. */
function showCaptured(place, from, fen) {
  const [before, all] = [[...readFen(from).values()], [...readFen(fen).values()]];
  const lost = (isWhite) => ARMY.flatMap(([piece, sign]) => {
    const count = (pieces) => pieces.filter((each) => each === (isWhite ? piece.toUpperCase() : piece)).length;
    return Array.from({ length: Math.max(0, count(before) - count(all)) }, () => sign + AS_TEXT);
  }).join("");
  const texts = [["White lost", lost(true)], ["Black lost", lost(false)]];
  if (!place.children.length) place.append(...texts.flatMap(([name]) => [make("dt", "", name), make("dd", "")]));
  texts.forEach(([, text], at) => {
    say(place.children[2 * at + 1], text);
    place.children[2 * at].hidden = place.children[2 * at + 1].hidden = !text;
  });
  place.hidden = texts.every(([, text]) => !text);
}
