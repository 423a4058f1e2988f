// `prando`: a small generator of random numbers that begin anew with the same seed. Its numbers are those of the published package
// of this name, so what was dealt there is dealt here: Marsaglia's xorshift of 32 bits with the shifts 13, 17 and 5, seeded by
// a number, or by the hash of a text.
//
// Most scripts deal in each of their calls, and calling a function costs more than the shifts: so they stand in each function that
// draws. `(value + 0x80000000) / 0xffffffff` makes a number from 0 to 1 of them.

const { floor } = Math;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** A text's hash; 0 for none. Each character shifts what came before. */
function hash(text) {
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    // 31 times what was there, and the character.
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
    // A shifted 0 stays 0.
    if (this.#seed === 0) this.#seed = 1;
    this.#value = this.#seed;
  }

  /** Back to the beginning. */
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

  /** A number from `min` up to `pseudoMax`. */
  next(min = 0, pseudoMax = 1) {
    let value = this.#value;
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    this.#value = value;
    return ((value + 0x80000000) / 0xffffffff) * (pseudoMax - min) + min;
  }

  /** A whole number from `min` to `max`, both included. */
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
