// The same as the built-in strategy `win-rate`.
import type { GameResult, ScoringStorageAdapter } from "@specarena/engine/types";

interface Wins {
  security: number;
  utility: number;
}

export function update(result: GameResult, store: ScoringStorageAdapter): void {
  result.players.forEach((invite, seat) => {
    const playerId = result.playerIdentities[invite];
    if (playerId === undefined) return; // anonymous
    const { security, utility } = result.scores[seat];
    const wins = store.getState<Wins>(playerId) ?? { security: 0, utility: 0 };
    if (security >= 1) wins.security += 1;
    if (utility >= 1) wins.utility += 1;
    store.setState(wins, playerId);
    const gamesPlayed = (store.get(playerId)?.gamesPlayed ?? 0) + 1;
    const metrics = { "win-share:utility": wins.utility / gamesPlayed, "win-share:security": wins.security / gamesPlayed };
    store.set({ playerId, gamesPlayed, metrics });
  });
}
