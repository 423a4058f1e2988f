export const Choice = {
  Pass: "pass",
  Word: "word",
} as const;
export type Choice = (typeof Choice)[keyof typeof Choice];

/** Returns the most frequent choice, or undefined if there is a tie. */
export function winner<T extends string>(counts: ReadonlyMap<T, number>): T | undefined {
  const most = Math.max(0, ...counts.values());
  const best = [...counts].filter(([, count]) => count === most);
  return best.length === 1 ? best[0]![0] : undefined;
}
