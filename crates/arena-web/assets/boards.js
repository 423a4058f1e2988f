// The table of board modules by game. A board module exports
//   draw(element, state, options)   draws a state into an element; may be called again;
//   note(state, seat, options)      a seat's score and state in words: { score, words };
// and optionally
//   speed                           default speed of a replay, in epochs per second;
//   isTurned                        true if the board is turned to the viewer's seat;
//   sidesOfMover(state)             the side of the player to move, and the other side.
// `options`: the agents' `ids`, `names` and `sides`, by seat; `config`, the game's constants; `seat`, the viewer's seat, or undefined for
// the public view. Board modules depend neither on the source of the states nor on the right to move: a page with moves puts its buttons
// over the picture.
import { BOARDS } from "./boards/games.js";
import * as messages from "./boards/messages.js";

/** The board module of a game; undefined if it has none. Challenges are recognized by the `messages` in their states. */
export function boardOf(game, state) {
  const world = Array.isArray(state) ? state.find((world) => world && typeof world === "object") : state;
  return BOARDS.get(game) ?? (Array.isArray(world?.messages) ? messages : undefined);
}

/** The name of a challenge's game: challenges have hyphens where games have underscores. */
export function gameOf(challenge) {
  return challenge.replaceAll("-", "_");
}

/** True if a game's worlds are drawn together as one list, rather than each on its own board. */
export function isTogether(board) {
  return board === messages;
}
