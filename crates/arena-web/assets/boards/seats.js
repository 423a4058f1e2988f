// Helpers of all boards: letters and colors of seats, numbers, and canvases in the screen's resolution. Colors come
// from the style sheet, so that a board follows the light or dark mode. Letters identify seats for readers who can't
// distinguish the colors.

/** Number of seat colors, after which they repeat. */
const COLORS = 8;

/** Returns the letter of a seat: A, B, C … */
export function letter(seat) {
  return String.fromCharCode(65 + (seat % 26));
}

/** Returns the class that defines the CSS variable `--seat` as the seat's color. */
export function seatClass(seat) {
  return `seat-${seat % COLORS}`;
}

/** Formats a number with at most one decimal. */
export function number(value) {
  return Number.isFinite(value) ? String(Math.round(value * 10) / 10) : "–";
}

/** Formats a count with its noun: `1 actor`, `2 actors`. */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** Escapes control characters, including those that change the direction of text, since names are untrusted. */
export function visible(text) {
  const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  return String(text).replace(controls, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

/** Makes an element with classes and a text. The text is never parsed as markup. */
export function make(tag, classes = "", text = undefined) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = visible(text);
  return element;
}

/** Makes an SVG element. */
export function shape(tag, attributes, text = undefined) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = visible(text);
  return element;
}

/** Returns the value if it is a list, else an empty list, since states come from untrusted files. */
export function list(value) {
  return Array.isArray(value) ? value : [];
}

/** Returns the computed colors of an element. */
export function colors(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    paper: read("--board"),
    line: read("--line"),
    ink: read("--ink"),
    soft: read("--soft"),
    food: read("--food"),
    alarm: read("--alarm"),
    seat: (seat) => read(`--seat-${seat % COLORS}`),
  };
}

/**
 * Resizes the canvas of an element, which is created on first use, to the proportions `width` to `height` and the space
 * in the element. Returns the canvas's context, scaled to the game's units, and the size of a pixel in these units.
 * `label` is the canvas's `aria-label`.
 */
export function canvas(element, width, height, label) {
  let canvas = element.querySelector(":scope > canvas");
  if (!canvas) {
    canvas = make("canvas", "board");
    canvas.setAttribute("role", "img");
    element.replaceChildren(canvas);
  }
  canvas.setAttribute("aria-label", label);
  const ratio = globalThis.devicePixelRatio || 1;
  const room = element.clientWidth || 320;
  // A taller board would not fit into the window.
  const most = parseFloat(getComputedStyle(canvas).maxHeight) || 480;
  const side = Math.min(room, (most * width) / height);
  const [across, down] = [Math.round(side * ratio), Math.round(((side * height) / width) * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    // The height follows from the width, also when the element becomes narrower.
    canvas.style.width = `${across / ratio}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(across / width, 0, 0, down / height, 0, 0);
  return { context, pixel: (width / across) * ratio };
}
