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

/** Returns the board module of a game; undefined if there is none. */
export function boardOf(game) {
  return BOARDS.get(game);
}

/** Returns the name of a challenge's game: challenges have hyphens where games have underscores. */
export function gameOf(challenge) {
  return challenge.replaceAll("-", "_");
}
