import type { GameResult, ScoringEntry, ScoringStorageAdapter } from "@specarena/engine/types";
import { START, change } from "./rules.ts";

export function update(result: GameResult, store: ScoringStorageAdapter): void {
  const ids = result.players.map((invite) => result.playerIdentities[invite]);
  if (ids.length !== 2 || ids.some((id) => id === undefined)) return;
  const entries = ids.map((playerId): ScoringEntry => {
    return store.get(playerId) ?? { playerId, gamesPlayed: 0, metrics: { "elo:rating": START, "elo:best": START } };
  });
  const [one, other] = entries.map((entry) => entry.metrics["elo:rating"]);
  const [own, theirs] = result.scores.map((score) => score.utility);
  const gain = change(one, other, own > theirs ? 1 : own < theirs ? 0 : 0.5);
  entries.forEach((entry, seat) => {
    const rating = entry.metrics["elo:rating"] + (seat === 0 ? gain : -gain);
    const metrics = { "elo:rating": rating, "elo:best": Math.max(rating, entry.metrics["elo:best"]) };
    store.set({ ...entry, gamesPlayed: entry.gamesPlayed + 1, metrics });
  });
}
