// Parts of the controls of a seat. A module with the controls of a challenge exports
//   start(panel, game)   fills an empty panel, and returns a function that updates it after each change of `game`;
// and optionally
//   turn(game)           the seat's turn: { isMine, text }. By default, the players in the operator's last `asked` are
//                        to move.
// `game` has
//   ids, names, seat     the players' ids and names by seat ("You" for this seat), and this seat;
//   config               the session's options and the game's constants;
//   messages             the operator channel's messages that this seat can read, in order;
//   states, state        the states that the operator has sent, and the last of them;
//   isAsked              true if the operator has asked this seat for a move that the seat hasn't sent;
//   board                the live board, with its elements `place`, `picture` and `caption`, and the `sides` by seat;
//   onDrawn              a function that a module may set: it gets the picture, the state and the board's options;
//   act(method, content) sends a move; its promise holds true if the server has taken the move.
// A panel keeps its elements: replacing a button between mouse down and mouse up would lose the click.
import { make } from "../boards/seats.js";
export { shape } from "../boards/seats.js";

/** The least height of a board on a canvas, and the space below its controls, in pixels. */
const [LEAST, GAP] = [200, 8];

/** Makes a button. */
export function button(text, onClick, classes = "btn", id = "") {
  const made = Object.assign(make("button", classes, text), { type: "button", ...(id && { id }) });
  made.addEventListener("click", onClick);
  return made;
}

/** Makes an element with children. */
export function wrap(tag, classes, ...children) {
  const made = make(tag, classes);
  made.append(...children);
  return made;
}

/** Limits the height of a board on a canvas, so that the parts below it down to the end of `last` fit on the screen. */
export function fit({ board }, last) {
  const canvas = board.picture?.querySelector("canvas");
  if (!canvas) return;
  const { top, bottom } = canvas.getBoundingClientRect();
  const below = [board.caption, last].map((part) => part.getBoundingClientRect()).filter((part) => part.top >= bottom);
  const room = innerHeight - (top + scrollY) - Math.max(0, ...below.map((part) => part.bottom - bottom)) - GAP;
  const most = `${Math.max(Math.round(room), LEAST)}px`;
  if (board.place.style.getPropertyValue("--most") === most) return;
  board.place.style.setProperty("--most", most);
  board.draw();
}

/** Makes an empty group of buttons. */
export function group(label, classes) {
  return Object.assign(make("div", classes), { role: "group", ariaLabel: label });
}

/** Sets an element's text if it differs. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Calls `choose` when an SVG element is clicked, or Enter or Space is pressed on it. */
export function onChoice(element, choose) {
  element.setAttribute("role", "button");
  element.setAttribute("tabindex", "0");
  element.addEventListener("click", choose);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
}

/** Returns the operator's texts that this seat can read. */
export function textsOf(game) {
  return game.messages.filter(({ from, redacted }) => from === "operator" && !redacted).map(({ content }) => content);
}

/** Returns the last match of a pattern in the operator's texts. */
export function lastMatch(game, pattern) {
  return textsOf(game).reduce((found, text) => pattern.exec(text) ?? found, null);
}

/** Joins names: `Player 1`, `Player 1 and Player 3`. */
export function joined(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Returns the names of the other players. */
export function othersOf(game) {
  return joined(game.names.filter((_, seat) => seat !== game.seat));
}

/** Returns the content of this seat's own last message with a method. */
export function ownMove(game, method) {
  const own = game.messages.filter(({ from, type }) => from === game.ids[game.seat] && type === method);
  return own.at(-1)?.content;
}

/**
 * Returns the turn in a game in which each player guesses once. `announced` returns the operator's text about the guess
 * of a player; `text` is the hint before this seat's guess.
 */
export function turnOfGuess(game, announced, text) {
  const texts = new Set(textsOf(game));
  const awaited = game.names.filter((_, seat) => !texts.has(announced(game.ids[seat])));
  if (!texts.has(announced(game.ids[game.seat]))) return { isMine: true, text };
  return { isMine: false, text: `You have guessed. Waiting for ${joined(awaited)}.` };
}
