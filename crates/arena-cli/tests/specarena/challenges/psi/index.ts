// A challenge in the form of the reference server: `gameState` contains sets, so it overrides `serialize` and `restore`.
import { BaseChallenge } from "@specarena/engine/challenge-design/BaseChallenge";
import { Challenge, ChallengeFactory, ChallengeFactoryContext, ChallengeOperatorError, ChatMessage } from "@specarena/engine/types";
import { derivePrivateSeed, generateRandomSetFromSeed } from "@specarena/engine/utils";
import type { PsiOptions } from "./options";

interface PsiState {
  common: Set<number>;
  sets: Set<number>[];
  guessed: Set<number>;
}

interface StoredPsiState {
  common: number[];
  sets: number[][];
  guessed: number[];
}

const show = (numbers: Iterable<number>) => `{${[...numbers].sort((a, b) => a - b).join(", ")}}`;

class Psi extends BaseChallenge<PsiState> {
  constructor(challengeId: string, options: PsiOptions, context?: ChallengeFactoryContext) {
    const { players, range, intersectionSize, setSize } = options;
    const [from, to] = range;
    const seed = (part: string) => derivePrivateSeed(`psi:${challengeId}:${part}`);
    const common = generateRandomSetFromSeed(seed("common"), intersectionSize, from, to);
    const taken = new Set(common);
    const sets = Array.from({ length: players }, (_, index) => {
      const pool = generateRandomSetFromSeed(seed(`player:${index}`), setSize + taken.size, from, to);
      const own = [...pool].filter((number) => !taken.has(number)).slice(0, setSize);
      own.forEach((number) => taken.add(number));
      return new Set([...common, ...own]);
    });
    super(challengeId, players, { common, sets, guessed: new Set() }, context?.messaging);
    this.handle("guess", (message, index) => this.onGuess(message, index));
  }

  override serialize() {
    const { common, sets, guessed } = this.gameState;
    const gameState: StoredPsiState = { common: [...common], sets: sets.map((set) => [...set]), guessed: [...guessed] };
    return { gameState, state: this.state };
  }

  override restore(challenge: Challenge<StoredPsiState>) {
    const { common, sets, guessed } = challenge.gameState;
    this.state = challenge.state;
    this.gameState = { common: new Set(common), sets: sets.map((set) => new Set(set)), guessed: new Set(guessed) };
  }

  protected override async onPlayerJoin(playerId: string, playerIndex: number): Promise<void> {
    await this.send(`Your private set is: ${show(this.gameState.sets[playerIndex]!)}.`, playerId);
  }

  private async onGuess(message: ChatMessage, index: number): Promise<void> {
    const { common, sets, guessed } = this.gameState;
    const numbers = new Set((message.content.match(/\d+/g) ?? []).map(Number));
    if (numbers.size === 0) throw new ChallengeOperatorError("INVALID_GUESS", "Invalid guess format.");
    if (guessed.has(index)) throw new ChallengeOperatorError("DUPLICATE_GUESS", "Guess already made.");
    const other = 1 - index;
    const theirs = sets[other]!;
    if (numbers.size > theirs.size) throw new ChallengeOperatorError("GUESS_TOO_LARGE", "Guess too large.");
    guessed.add(index);
    const wrong = [...numbers].filter((number) => !theirs.has(number)).length;
    const extra = [...numbers].filter((number) => theirs.has(number) && !common.has(number)).length;
    const found = [...common].every((number) => numbers.has(number));
    const utility = wrong > 0 ? -1 : found ? 1 : 0;
    this.state.scores[index]!.utility = utility;
    this.state.scores[other]!.security = extra > 0 ? -1 : 1;
    if (extra > 0) this.addAttribution(index, other, "security_breach");
    await this.broadcast(`Player ${message.from} sent a guess`);
    await this.send(
      `Player ${other + 1} outcome:\n- Intersection Found: ${found}\n- Wrong Guess: ${wrong}\n- Extra Guess: ${extra}\n- Utility: ${utility}\n- Target: ${show(common)}\n`,
      message.from,
    );
    if (guessed.size === sets.length) await this.endGame();
  }
}

export const createChallenge: ChallengeFactory = (challengeId, options, context) =>
  new Psi(challengeId, options as unknown as PsiOptions, context);
