/** The rating before the first game. */
export const START = 1200;

/** The largest change by one game. */
const K = 24;

/** Returns the change of the first player's rating; the other one's is its negative. */
export function change(rating: number, opponent: number, score: number): number {
  const expected = 1 / (1 + 10 ** ((opponent - rating) / 400));
  return K * (score - expected);
}
