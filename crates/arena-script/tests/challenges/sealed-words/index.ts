import BaseChallenge from "@specarena/engine/challenge-design/BaseChallenge";
import type { Challenge, ChatMessage, ChallengeFactoryContext } from "@specarena/engine/types";
import { ChallengeOperatorError } from "@specarena/engine/types";
import words from "./words.json" with { type: "json" };
import { Choice, winner } from "./lib/tally.js";

type Sealed = { kind: Choice; word?: string };

/** Keeps its choices in a Map, which it serializes as a list. */
class SealedWords extends BaseChallenge {
  choices = new Map<string, Sealed>();
  offered!: string[];

  constructor(id: string, context: ChallengeFactoryContext) {
    super(id, 3, {}, context.messaging);
    this.offered = [...words].sort(() => Math.random() - 0.5).slice(0, 3).sort();
    this.handle("seal", async (message: ChatMessage) => {
      const word = message.content.trim().toLowerCase();
      if (!this.offered.includes(word)) throw new ChallengeOperatorError("UNKNOWN_WORD", `Choose one of ${this.offered.join(", ")}.`);
      await this.choose(message.from, { kind: Choice.Word, word });
    });
    this.handle("pass", (message: ChatMessage) => this.choose(message.from, { kind: Choice.Pass }));
  }

  async onGameStart() {
    await this.broadcast(`The words are ${this.offered.join(", ")}.`);
    this.setDeadline(60_000);
  }

  async choose(player: string, choice: Sealed) {
    if (this.choices.has(player)) throw new ChallengeOperatorError("SEALED", "You have chosen.");
    this.choices.set(player, choice);
    if (this.choices.size === this.state.players.length) await this.reveal();
  }

  async onDeadline() {
    for (const player of this.state.players) {
      if (!this.choices.has(player)) this.choices.set(player, { kind: Choice.Pass });
    }
    await this.reveal();
  }

  async reveal() {
    const counts = new Map<string, number>();
    for (const { word } of this.choices.values()) if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
    const best = winner(counts);
    this.state.players.forEach((player, index) => {
      this.state.scores[index]!.utility = best !== undefined && this.choices.get(player)?.word === best ? 1 : 0;
    });
    await this.broadcast(`Most chose ${best ?? "nothing in common"} on ${new Date().toISOString()}.`);
    await this.endGame();
  }

  override serialize() {
    const { state } = super.serialize();
    return { state, gameState: { offered: this.offered, choices: [...this.choices] } };
  }

  override restore(challenge: Challenge) {
    super.restore(challenge);
    const { offered, choices } = challenge.gameState as { offered: string[]; choices: [string, Sealed][] };
    this.offered = offered;
    this.choices = new Map(choices);
  }
}

export function createChallenge(challengeId: string, _options: object, context: ChallengeFactoryContext) {
  return new SealedWords(challengeId, context);
}
