// The table of board modules by game. A board module exports
//   draw(element, state, options)   draws a state into an element; may be called again;
//   note(state, seat, options)      a seat's score and state in words: { score, words };
// and optionally
//   speed                           default speed of a replay, in epochs per second;
//   isTurned                        true if the board is turned to the viewer's seat;
//   memory                          the number of earlier states that the board needs in a replay;
//   sidesOfMover(state)             the side of the player to move, and the opponent's side.
// `options`: the agents' `ids`, `names` and `sides`, by seat; `config`, the game's constants; `seat`, the viewer's
// seat, or undefined for the public view; `history`, the earlier states, the oldest first; `label`, a world's name; `talk`,
// an element for messages beside a picture. Replays and live pages use the same board modules. A page on which the viewer can move puts its buttons over the picture.
import { BOARDS } from "./boards/games.js";
import * as messages from "./boards/messages.js";

/** Returns the board module of a game; undefined if there is none. A state with `messages` is that of a challenge. */
export function boardOf(game, state) {
  const world = Array.isArray(state) ? state.find((world) => world && typeof world === "object") : state;
  return BOARDS.get(game) ?? (Array.isArray(world?.messages) ? messages : undefined);
}

/** Returns the name of a challenge's game: challenges have hyphens where games have underscores. */
export function gameOf(challenge) {
  return challenge.replaceAll("-", "_");
}

/** Returns true if the board draws all worlds of a game together, rather than each on its own. */
export function isTogether(board) {
  return board === messages;
}
