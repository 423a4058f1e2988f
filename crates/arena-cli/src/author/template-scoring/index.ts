import type { GameResult, ScoringStorageAdapter } from "@specarena/engine/types";

/** The data that this strategy keeps about each player. */
interface Sums {
  best: number;
  utility: number;
}

/** Counts one ended game. The games come in the order in which they ended, each of them once. */
export function update(result: GameResult, store: ScoringStorageAdapter): void {
  const highest = Math.max(...result.scores.map((score) => score.utility));
  result.players.forEach((invite, seat) => {
    const playerId = result.playerIdentities[invite];
    if (playerId === undefined) return; // anonymous
    const { utility } = result.scores[seat];
    const sums = store.getState<Sums>(playerId) ?? { best: 0, utility: 0 };
    sums.best += utility === highest ? 1 : 0;
    sums.utility += utility;
    store.setState(sums, playerId);
    const gamesPlayed = (store.get(playerId)?.gamesPlayed ?? 0) + 1;
    const metrics = { "ID:best": sums.best / gamesPlayed, "ID:utility": sums.utility / gamesPlayed };
    store.set({ playerId, gamesPlayed, metrics });
  });
}
