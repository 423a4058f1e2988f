// The same as the built-in strategy `red-team`, from attributions, as an object with the interface of strategies.
import type { GameResult, ScoringStorageAdapter, ScoringStrategy } from "@specarena/engine/types";

interface Breaches {
  caused: number;
  suffered: number;
}

const strategy: ScoringStrategy = {
  name: "breaches",
  metrics: [
    { key: "breaches:attack", label: "Attack" },
    { key: "breaches:defend", label: "Defend" },
  ],

  async update(result: GameResult, store: ScoringStorageAdapter): Promise<void> {
    const { players, playerIdentities, attributions = [] } = result;
    const areKnown = players.every((invite) => playerIdentities[invite] !== undefined);
    if (players.length < 2 || !areKnown) return;
    for (const invite of players) {
      const playerId = playerIdentities[invite];
      const breaches = attributions.filter(({ type }) => type === "security_breach");
      const state = (await store.getState<Breaches>(playerId)) ?? { caused: 0, suffered: 0 };
      state.caused += breaches.filter(({ from }) => from === invite).length;
      state.suffered += breaches.filter(({ to }) => to === invite).length;
      await store.setState(state, playerId);
      const gamesPlayed = ((await store.get(playerId))?.gamesPlayed ?? 0) + 1;
      const metrics = {
        "breaches:attack": state.caused / gamesPlayed,
        "breaches:defend": 1 - state.suffered / gamesPlayed,
      };
      await store.set({ playerId, gamesPlayed, metrics });
    }
  },
};

export default strategy;
