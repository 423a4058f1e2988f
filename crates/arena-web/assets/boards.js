// Which module draws which game. A board module exports
//   draw(element, state, options)   draws a state into an element, and again as often as one likes;
//   note(state, seat, options)      what the state says of a seat: { score, words };
// and, if the game needs it,
//   speed                           epochs in a second of a replay, unless the reader chooses;
//   isTurned                        true if the board is turned to the seat that looks;
//   sidesOfMover(state)             the sides of the one seat that is asked, and of the other.
// `options`: `ids` and `names` of the agents and what they play as (`sides`), all by seat; `config`, the game's constants; `seat`, whose
// view it is, or nothing for everybody's. They know games only, not where the states come from, nor who may play: whoever plays puts what
// can be clicked over the picture.
import { BOARDS } from "./boards/games.js";
import * as messages from "./boards/messages.js";

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
