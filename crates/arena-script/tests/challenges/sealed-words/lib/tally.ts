export enum Choice {
  Pass = "pass",
  Word = "word",
}

/** Returns the most frequent choice, or undefined if there is a tie. */
export function winner<T extends string>(counts: ReadonlyMap<T, number>): T | undefined {
  const most = Math.max(0, ...counts.values());
  const best = [...counts].filter(([, count]) => count === most);
  return best.length === 1 ? best[0]![0] : undefined;
}
