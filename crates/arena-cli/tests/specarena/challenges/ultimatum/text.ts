export const amounts = (text: string): number[] => (text.match(/-?\d+/g) ?? []).map(Number);

export const line = (shares: number[]): string =>
  shares.map((share, seat) => `Player ${seat + 1}: ${share}`).join(", ");
