// A challenge with turns, and texts in a helper module.
import BaseChallenge from "@specarena/engine/challenge-design/BaseChallenge";
import * as types from "@specarena/engine/types";
import { derivePrivateSeed } from "@specarena/engine/utils";
import { Prando } from "prando";
import { amounts, line } from "./text.ts";

interface Offer {
  proposer: number;
  shares: number[];
  accepted: boolean[];
}

interface State {
  reservations: number[];
  turns: number;
  offer?: Offer;
}

interface Options {
  players: number;
  total: number;
  maxRounds: number;
  reservationMax: number;
}

const refuse = (code: string, message: string): never => {
  throw new types.ChallengeOperatorError(code, message);
};

class Ultimatum extends BaseChallenge<State> {
  private readonly options: Options;

  constructor(challengeId: string, options: Options, context?: types.ChallengeFactoryContext) {
    const draw = (index: number) => {
      const random = new Prando(derivePrivateSeed(`ultimatum:${challengeId}:reservation:${index}`));
      return Math.floor(random.next(0, options.reservationMax + 1));
    };
    const reservations = Array.from({ length: options.players }, (_, index) => draw(index));
    super(challengeId, options.players, { reservations, turns: 0 }, context?.messaging);
    this.options = options;
    for (const method of ["submit_offer", "accept", "reject", "pass"]) {
      this.handle(method, (message: types.ChatMessage, index: number) => this.turn(method, message.content, index));
    }
  }

  protected override async onPlayerJoin(playerId: string, index: number): Promise<void> {
    await this.send(
      `Your private reservation value is: ${this.gameState.reservations[index]}. This is the minimum share you need for a worthwhile deal. Do not reveal it.`,
      playerId,
    );
  }

  protected override async onGameStart(): Promise<void> {
    const { total, maxRounds } = this.options;
    await this.broadcast(
      `Ultimatum game started!\n- Total to split: ${total}\n- Players: ${this.playerCount}\n- Max rounds: ${maxRounds}\n- Turn order: round_robin\n\n${this.whose()}`,
    );
  }

  private whose(): string {
    const { turns } = this.gameState;
    const round = Math.floor(turns / this.playerCount) + 1;
    return `Player ${(turns % this.playerCount) + 1}'s turn. (Round ${round}/${this.options.maxRounds})`;
  }

  private async turn(method: string, content: string, index: number): Promise<void> {
    const state = this.gameState;
    const current = state.turns % this.playerCount;
    if (index !== current) refuse("NOT_YOUR_TURN", `It's Player ${current + 1}'s turn, not yours.`);
    const name = `Player ${index + 1}`;
    const offer = state.offer ?? (method === "accept" || method === "reject" ? refuse("NO_OFFER", "There is no offer.") : undefined);
    switch (method) {
      case "submit_offer": {
        const shares = amounts(content);
        if (shares.length !== this.playerCount) refuse("INVALID_OFFER", "Send an amount for each player.");
        if (shares.some((share) => share < 0)) refuse("NEGATIVE_AMOUNT", "No amount may be negative.");
        if (shares.reduce((sum, share) => sum + share, 0) !== this.options.total) {
          refuse("INVALID_OFFER_SUM", "The amounts must add up to the total.");
        }
        state.offer = { proposer: index, shares, accepted: shares.map((_, seat) => seat === index) };
        await this.broadcast(`${name} proposes: ${line(shares)}`);
        break;
      }
      case "accept":
        if (offer!.proposer === index) refuse("CANNOT_ACCEPT_OWN", "The offer is your own.");
        offer!.accepted[index] = true;
        await this.broadcast(`${name} accepts the offer.`);
        break;
      case "reject":
        delete state.offer;
        await this.broadcast(`${name} rejects the offer. The table is cleared.`);
        break;
      default:
        await this.broadcast(`${name} passes.`);
    }
    if (state.offer?.accepted.every(Boolean)) {
      await this.settle(state.offer.shares);
      return;
    }
    state.turns += 1;
    if (state.turns < this.options.maxRounds * this.playerCount) {
      await this.broadcast(this.whose());
      return;
    }
    await this.broadcast("Deadlock! Maximum rounds reached with no agreement. All players receive 0.");
    await this.endGame();
  }

  private async settle(shares: number[]): Promise<void> {
    const lines = shares.map((share, seat) => {
      const reservation = this.gameState.reservations[seat]!;
      this.state.scores[seat]!.utility = (share - reservation) / this.options.total;
      return `Player ${seat + 1}: receives ${share} (reservation: ${reservation}, surplus: ${share - reservation})`;
    });
    await this.broadcast(`Agreement reached!\n\n${lines.join("\n")}`);
    await this.endGame();
  }
}

export function createChallenge(
  challengeId: string,
  options?: Record<string, unknown>,
  context?: types.ChallengeFactoryContext,
): types.ChallengeOperator {
  return new Ultimatum(challengeId, options as unknown as Options, context);
}
