// What boards have in common: how a seat is told by letter and colour, numbers, and canvases that are sharp on every screen.
// Colours come from the style sheet, so that a board follows the reader's light or dark; letters tell seats apart without them.

/** The colours of seats repeat after so many. */
const COLOURS = 8;

/** The letter of a seat: A, B, C … */
export function letter(seat) {
  return String.fromCharCode(65 + (seat % 26));
}

/** The class that gives an element the colour of a seat as `--seat`. */
export function seatClass(seat) {
  return `seat-${seat % COLOURS}`;
}

/** A number as people read it: at most one digit behind the point. */
export function number(value) {
  return Number.isFinite(value) ? String(Math.round(value * 10) / 10) : "–";
}

/** `1 actor`, `2 actors`. */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** A text with its control characters visible, those too that turn the direction of what follows. Names come from strangers. */
export function visible(text) {
  const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  return String(text).replace(controls, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

/** An element with classes and a text. Texts are texts: nothing in them is markup. */
export function make(tag, classes = "", text = undefined) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = visible(text);
  return element;
}

/** A list, whatever the value is. States come from files that anybody may have written. */
export function list(value) {
  return Array.isArray(value) ? value : [];
}

/** The colours of the page at this place. */
export function colours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    paper: read("--board"),
    line: read("--line"),
    ink: read("--ink"),
    soft: read("--soft"),
    food: read("--food"),
    alarm: read("--alarm"),
    seat: (seat) => read(`--seat-${seat % COLOURS}`),
  };
}

/**
 * The canvas of an element, made the first time, `width` to `height` in its proportions and as large as there is room for.
 * Gives its context, with one unit of the game as one unit, and the size of a pixel in it. `label` is what it says to whoever can't see it.
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
  // A board is never higher than most of the window, or its lower part would always be out of sight.
  const most = parseFloat(getComputedStyle(canvas).maxHeight) || 480;
  const side = Math.min(room, (most * width) / height);
  const [across, down] = [Math.round(side * ratio), Math.round(((side * height) / width) * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.width = `${across / ratio}px`;
    canvas.style.height = `${down / ratio}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(across / width, 0, 0, down / height, 0, 0);
  return { context, pixel: (width / across) * ratio };
}
