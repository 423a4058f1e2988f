// `@specarena/engine/utils`: deriving secrets from a seed.

import Prando from "prando";
import { privateSeed } from "arena:session";

/**
 * Returns the seed for one purpose of a session, in hex: HMAC-SHA-256 of `arena:v1:rng:{context}` with the session's secret.
 * Different contexts give different seeds; the same context gives the same seed in each call of the session.
 */
export function derivePrivateSeed(context) {
  return privateSeed(context);
}

/** Returns `size` different integers from `from` to `to`, both included. Equal seeds give equal sets. */
export function generateRandomSetFromSeed(seed, size, from, to) {
  if (!(size <= to - from + 1)) throw new RangeError(`there are no ${size} different numbers from ${from} to ${to}`);
  const draw = new Prando(seed);
  const set = new Set();
  while (set.size < size) set.add(draw.nextInt(from, to));
  return set;
}
