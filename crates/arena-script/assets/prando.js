// `prando`: a small generator of random numbers that begin anew with the same seed. Its numbers are those of the published package
// of this name, so what was dealt there is dealt here: Marsaglia's xorshift of 32 bits with the shifts 13, 17 and 5, seeded by
// a number, or by the hash of a text.

const MIN = -(2 ** 31);
const MAX = 2 ** 31 - 1;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function shift(value) {
  value ^= value << 13;
  value ^= value >> 17;
  return value ^ (value << 5);
}

/** A text's hash; 0 for none. Each character shifts what came before. */
function hash(text) {
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    value = shift((Math.imul(value, 31) + text.charCodeAt(index)) | 0);
  }
  return value;
}

export default class Prando {
  #seed;
  #value;

  constructor(seed) {
    if (typeof seed === "string") this.#seed = hash(seed);
    else if (typeof seed === "number") this.#seed = seed;
    else this.#seed = MIN + Math.floor((MAX - MIN) * Math.random());
    // A shifted 0 stays 0.
    if (this.#seed === 0) this.#seed = 1;
    this.reset();
  }

  /** Back to the beginning. */
  reset() {
    this.#value = this.#seed;
  }

  skip(iterations = 1) {
    for (let left = iterations; left > 0; left--) this.#value = shift(this.#value);
  }

  /** A number from `min` up to `pseudoMax`. */
  next(min = 0, pseudoMax = 1) {
    this.skip();
    return ((this.#value - MIN) / (MAX - MIN)) * (pseudoMax - min) + min;
  }

  /** A whole number from `min` to `max`, both included. */
  nextInt(min = 10, max = 100) {
    return Math.floor(this.next(min, max + 1));
  }

  nextBoolean() {
    return this.next() > 0.5;
  }

  nextChar(chars = LETTERS) {
    return chars.charAt(this.nextInt(0, chars.length - 1));
  }

  nextString(length = 16, chars = LETTERS) {
    let text = "";
    while (text.length < length) text += this.nextChar(chars);
    return text;
  }

  nextArrayItem(array) {
    return array[this.nextInt(0, array.length - 1)];
  }
}

export { Prando };
