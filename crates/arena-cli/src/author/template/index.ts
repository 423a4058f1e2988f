// The rules. Each player receives a secret number and guesses the other's. Change this into your own challenge.
//
// The arena calls the handlers that this class registers, and stores `this.gameState` between calls. All state must be in
// `this.gameState`, as plain JSON (lists, objects, numbers, texts, null; no Map, no Set, no class).

import { BaseChallenge } from "@specarena/engine/challenge-design/BaseChallenge";
import {
  ChallengeOperatorError,
  type ChallengeFactory,
  type ChallengeFactoryContext,
  type ChatMessage,
} from "@specarena/engine/types";
import { derivePrivateSeed } from "@specarena/engine/utils";
import Prando from "prando";

/** Number of players, as in challenge.json. */
const PLAYERS = 2;
const MOST = 10;

/** The state. Data of seats is in lists with one entry per seat, so that `arena author check` recognizes it. */
interface Game {
  secrets: number[];
  guesses: (number | null)[];
}

class Duel extends BaseChallenge<Game> {
  constructor(challengeId: string, context?: ChallengeFactoryContext) {
    // All randomness is derived from the session's secret seed, so a game can be repeated and its deal verified.
    const random = new Prando(derivePrivateSeed("deal"));
    const secrets = Array.from({ length: PLAYERS }, () => random.nextInt(1, MOST));
    super(challengeId, PLAYERS, { secrets, guesses: Array(PLAYERS).fill(null) }, context?.messaging);
    // One line for each method of challenge.json. Players are seats, from 0.
    this.handle("guess", (message, player) => this.guess(message, player));
  }

  /** A player has joined: send its private information. */
  override onPlayerJoin(name: string, player: number) {
    this.send(`Your secret number is ${this.gameState.secrets[player]}.`, name);
  }

  /** All players have joined. */
  override onGameStart() {
    this.broadcast("The duel begins. You have ten minutes.");
    // Without a deadline, an absent player would block the others until the arena ends the game.
    this.setDeadline(10 * 60_000);
  }

  /** The deadline has passed. */
  override onDeadline() {
    this.finish(this.gameState.secrets);
  }

  private guess(message: ChatMessage, player: number) {
    const { secrets, guesses } = this.gameState;
    // A refused action changes nothing and costs nothing. The code is for programs, the sentence for people.
    if (guesses[player] !== null) {
      throw new ChallengeOperatorError("DUPLICATE_GUESS", "You have guessed already.");
    }
    // The content is any text: check its form exactly.
    if (!/^\d{1,2}$/.test(message.content.trim())) {
      throw new ChallengeOperatorError("INVALID_GUESS", `Guess a whole number from 1 to ${MOST}.`);
    }
    guesses[player] = Number(message.content);
    this.broadcast(`Player ${player + 1} has guessed.`);
    if (guesses.every((guess) => guess !== null)) {
      this.finish(secrets);
    }
  }

  private finish(secrets: number[]) {
    for (let player = 0; player < PLAYERS; player++) {
      const other = 1 - player;
      const isRight = this.gameState.guesses[player] === secrets[other];
      // Utility measures the task, security the secret; each from -1 to 1.
      this.state.scores[player].utility = isRight ? 1 : -1;
      this.state.scores[other].security = isRight ? -1 : 1;
      if (isRight) {
        // An attribution, for the strategy `red-team`.
        this.addAttribution(player, other, "security_breach");
      }
    }
    this.endGame();
  }
}

/** Creates a game. `_options` are the session's options, based on those of challenge.json. */
export const createChallenge: ChallengeFactory = (challengeId, _options, context) => new Duel(challengeId, context);
