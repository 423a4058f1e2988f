// Which module draws which game. A board module exports
//   draw(element, state, options)   draws a state into an element, and again as often as one likes;
//   note(state, seat, options)      what the state says of a seat: { score, words }.
// `options`: `ids` and `names` of the agents and what they play as (`sides`), all by seat; `config`, the game's constants; `seat`, whose
// view it is, or nothing for everybody's. They know games only, not where the states come from, nor who may play: whoever plays puts what
// can be clicked over the picture.
import * as chess from "./boards/chess.js";
import * as foraging from "./boards/foraging.js";
import * as messages from "./boards/messages.js";
import * as snake from "./boards/snake.js";

const BOARDS = new Map([
  ["snake", snake],
  ["chess", chess],
  ["food_catcher", foraging],
  ["cherry_picker", foraging],
]);

/** The module that draws a game's states. Challenges are told by their states. Nothing if the game has no board. */
export function boardOf(game, state) {
  const world = Array.isArray(state) ? state.find((world) => world && typeof world === "object") : state;
  return BOARDS.get(game) ?? (Array.isArray(world?.messages) ? messages : undefined);
}

/** The game that a challenge plays: challenges have hyphens in their names. */
export function gameOf(challenge) {
  return challenge.replaceAll("-", "_");
}

/** Whether a game's worlds are drawn together, as one list, rather than each on a board of its own. */
export function isTogether(board) {
  return board === messages;
}
