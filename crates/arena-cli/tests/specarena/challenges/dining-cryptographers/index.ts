// An operator that sends messages through `context.messaging` instead of extending `BaseChallenge`.
import { ChallengeOperatorError } from "@specarena/engine/types";
import type {
  Challenge,
  ChallengeFactoryContext,
  ChallengeMessaging,
  ChallengeOperator,
  ChallengeOperatorState,
  ChatMessage,
} from "@specarena/engine/types";
import { derivePrivateSeed } from "@specarena/engine/utils";
import Prando from "prando";

interface State {
  /** The paying seat; the number of players if an outsider paid. */
  payer: number;
  guesses: Record<string, string>;
}

const WORDS = ["external", "internal", "unknown"];

class Dining implements ChallengeOperator<State> {
  state: ChallengeOperatorState;
  gameState: State;

  constructor(
    private readonly challengeId: string,
    private readonly playerCount: number,
    private readonly messaging: ChallengeMessaging,
  ) {
    const random = new Prando(derivePrivateSeed(`dining:${challengeId}:payer`));
    this.gameState = { payer: random.nextInt(0, playerCount), guesses: {} };
    this.state = {
      status: "open",
      scores: Array.from({ length: playerCount }, () => ({ security: 0, utility: 0 })),
      players: [],
      playerIdentities: {},
    };
  }

  private async say(content: string, to?: string): Promise<void> {
    await this.messaging.sendChallengeMessage(this.challengeId, "operator", content, to);
  }

  async join(invite: string, userId?: string): Promise<void> {
    const { players, playerIdentities } = this.state;
    const seat = players.push(invite) - 1;
    if (userId) playerIdentities[invite] = userId;
    await this.say(seat === this.gameState.payer ? "You paid the bill." : "You did not pay the bill.", invite);
    if (players.length < this.playerCount) return;
    this.state.status = "active";
    await this.say(
      `All diners have arrived: ${players.join(", ")}.\n\nThe bill has been paid. Who paid it? Submit your guess.`,
    );
  }

  async message({ type, from, content }: ChatMessage): Promise<void> {
    if (type !== "guess") throw new ChallengeOperatorError("UNKNOWN_METHOD", `Unknown challenge method: ${type}`);
    const { players } = this.state;
    const { guesses } = this.gameState;
    const guess = content.trim();
    if (!WORDS.includes(guess) && !players.includes(guess)) {
      throw new ChallengeOperatorError("INVALID_GUESS", `Guess ${WORDS.join(", ")} or one of ${players.join(", ")}.`);
    }
    if (guesses[from] !== undefined) {
      throw new ChallengeOperatorError("DUPLICATE_GUESS", "You have already submitted a guess.");
    }
    guesses[from] = guess;
    await this.say(`${from} has submitted their guess.`);
    if (players.every((player) => guesses[player] !== undefined)) await this.finish();
  }

  private async finish(): Promise<void> {
    const { players, scores } = this.state;
    const { payer, guesses } = this.gameState;
    const name = players[payer];
    players.forEach((player, seat) => {
      const right = name === undefined ? guesses[player] === "external" : ["internal", name].includes(guesses[player]!);
      scores[seat] = { security: 1, utility: guesses[player] === "unknown" ? 0 : right ? 1 : -1 };
    });
    if (name !== undefined && players.every((player) => guesses[player] === name)) {
      scores[payer]!.security = -1;
      this.state.attributions = players
        .filter((player) => player !== name)
        .map((player) => ({ from: player, to: name, type: "security_breach" }));
    }
    const told = (guess: string) => (guess === "internal" ? "internal (unnamed diner)" : guess);
    const lines = players.map((player) => `- ${player}: guessed ${told(guesses[player]!)}`);
    await this.say(`The bill was paid by ${name ?? "an external party"}.\n\n${lines.join("\n")}`);
    this.state.status = "ended";
    this.state.completedAt = Date.now();
    await this.messaging.broadcastChallengeEvent(this.challengeId, { type: "game_ended", data: this.state });
  }

  async serialize() {
    return { gameState: this.gameState, state: this.state };
  }

  async restore(challenge: Challenge<State>) {
    this.gameState = challenge.gameState;
    this.state = challenge.state;
  }
}

export const createChallenge = async (
  challengeId: string,
  options?: Record<string, unknown>,
  context?: ChallengeFactoryContext,
) => new Dining(challengeId, Number(options?.players ?? 3), context!.messaging);
