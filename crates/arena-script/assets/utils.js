// `@specarena/engine/utils`: secrets that are dealt from a seed.

import Prando from "prando";
import { privateSeed } from "arena:session";

/** The seed of a session's secrets, in hexadecimal digits: the same in each call of one session, and told to nobody before its end. */
export function derivePrivateSeed(_context) {
  return privateSeed();
}

/** `size` different whole numbers from `from` to `to`, both included. Equal seeds give equal sets. */
export function generateRandomSetFromSeed(seed, size, from, to) {
  if (!(size <= to - from + 1)) throw new RangeError(`there are no ${size} different numbers from ${from} to ${to}`);
  const draw = new Prando(seed);
  const set = new Set();
  while (set.size < size) set.add(draw.nextInt(from, to));
  return set;
}
