// `prando`: a small generator of random numbers that repeat for the same seed. Its numbers are those of the published package
// of this name, so deals are the same: Marsaglia's xorshift of 32 bits with the shifts 13, 17 and 5, seeded by
// a number or the hash of a text.
//
// Most scripts deal in each call, and a function call costs more than the shifts, so the shifts are repeated in each function that
// draws. `(value + 0x80000000) / 0xffffffff` is the number from 0 to 1.

const { floor } = Math;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Returns a text's hash, or 0 for an empty text. */
function hash(text) {
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    // 31 times the previous hash, plus the character.
    value = ((value << 5) - value + text.charCodeAt(index)) | 0;
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
  }
  return value;
}

export default class Prando {
  #seed;
  #value;

  constructor(seed) {
    if (typeof seed === "string") this.#seed = hash(seed);
    else if (typeof seed === "number") this.#seed = seed;
    else this.#seed = floor(0xffffffff * Math.random()) - 0x80000000;
    // The shifts never change a state of 0.
    if (this.#seed === 0) this.#seed = 1;
    this.#value = this.#seed;
  }

  /** Restarts the sequence. */
  reset() {
    this.#value = this.#seed;
  }

  skip(iterations = 1) {
    let value = this.#value;
    for (let left = iterations; left > 0; left--) {
      value ^= value << 13;
      value ^= value >> 17;
      value ^= value << 5;
    }
    this.#value = value;
  }

  /** Draws a number from `min` up to `pseudoMax`. */
  next(min = 0, pseudoMax = 1) {
    let value = this.#value;
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    this.#value = value;
    return ((value + 0x80000000) / 0xffffffff) * (pseudoMax - min) + min;
  }

  /** Draws an integer from `min` to `max`, both included. */
  nextInt(min = 10, max = 100) {
    let value = this.#value;
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    this.#value = value;
    return floor(((value + 0x80000000) / 0xffffffff) * (max + 1 - min) + min);
  }

  nextBoolean() {
    return this.next() > 0.5;
  }

  nextChar(chars = LETTERS) {
    return chars.charAt(this.nextInt(0, chars.length - 1));
  }

  nextString(length = 16, chars = LETTERS) {
    const choices = chars.length;
    let value = this.#value;
    let text = "";
    while (text.length < length) {
      value ^= value << 13;
      value ^= value >> 17;
      value ^= value << 5;
      text += chars.charAt(floor(((value + 0x80000000) / 0xffffffff) * choices));
    }
    this.#value = value;
    return text;
  }

  nextArrayItem(array) {
    return array[this.nextInt(0, array.length - 1)];
  }
}

export { Prando };
