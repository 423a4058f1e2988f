// `@specarena/engine/utils`: secrets that are dealt from a seed.

import Prando from "prando";
import { privateSeed } from "arena:session";

/**
 * The seed for one purpose of a session, in hexadecimal digits: HMAC-SHA-256 over `arena:v1:rng:{context}` with the session's secret.
 * Other contexts give other seeds; the same context gives the same seed in each call of the session.
 */
export function derivePrivateSeed(context) {
  return privateSeed(context);
}

/** `size` different whole numbers from `from` to `to`, both included. Equal seeds give equal sets. */
export function generateRandomSetFromSeed(seed, size, from, to) {
  if (!(size <= to - from + 1)) throw new RangeError(`there are no ${size} different numbers from ${from} to ${to}`);
  const draw = new Prando(seed);
  const set = new Set();
  while (set.size < size) set.add(draw.nextInt(from, to));
  return set;
}
