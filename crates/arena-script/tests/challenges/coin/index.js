// Implements the operator interface directly, in plain JavaScript.
import { ChallengeOperatorError } from "@specarena/engine/types";

export async function createChallenge(challengeId, options, context) {
  const { messaging } = context;
  const tell = (content, to) => messaging.sendChallengeMessage(challengeId, "operator", content, to);
  return {
    state: {
      status: "open",
      scores: [{ security: 0, utility: 0 }, { security: 0, utility: 0 }],
      players: [],
      playerIdentities: {},
    },
    gameState: { shown: {} },

    async join(invite, userId) {
      this.state.players.push(invite);
      this.state.playerIdentities[invite] = userId;
      await tell(`You are player ${this.state.players.length}.`, invite);
      if (this.state.players.length === 2) {
        this.state.status = "active";
        await tell("Show your coins.");
      }
    },

    async message({ from, type, content }) {
      if (type !== "show") throw new ChallengeOperatorError("UNKNOWN_METHOD", `Unknown challenge method: ${type}`);
      if (content !== "heads" && content !== "tails") {
        throw new ChallengeOperatorError("INVALID_COIN", "A coin shows heads or tails.");
      }
      const { shown } = this.gameState;
      if (from in shown) throw new ChallengeOperatorError("ALREADY_SHOWN", "You have shown your coin.");
      shown[from] = content;
      const [one, two] = this.state.players.map((player) => shown[player]);
      if (one === undefined || two === undefined) return;
      this.state.scores.forEach((score, index) => {
        score.utility = (one === two) === (index === 0) ? 1 : -1;
        score.security = 1;
      });
      this.state.status = "ended";
      await messaging.broadcastChallengeEvent(challengeId, { type: "game_ended", data: this.state });
    },

    serialize() {
      return { state: this.state, gameState: this.gameState };
    },

    restore({ state, gameState }) {
      this.state = state;
      this.gameState = gameState;
    },
  };
}
