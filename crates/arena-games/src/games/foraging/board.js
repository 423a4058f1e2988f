// The map of food_catcher and cherry_picker: bases are houses and actors discs, both in the color and with the letter of
// their seat; food is an apple, larger if there is more; an actor that carries food has a small one beside it; a cross
// marks what died in the last epoch.
import { canvas, colors, counted, letter, list, make, number } from "./seats.js";

/** The shapes around their middle, in pixels. */
const SHAPES = {
  base: "M-11 0L0-12L11 0H9V11H-9V0Z",
  actor: "M-9 0a9 9 0 1 0 18 0a9 9 0 1 0-18 0Z",
  food: "M0-4C3-7 9-5 9 1C9 6 4 10 0 8C-4 10-9 6-9 1C-9-5-3-7 0-4ZM-1-5Q0-10 4-11L5-9Q2-8 1-5Z",
  dead: "M-7-5L-5-7L0-2L5-7L7-5L2 0L7 5L5 7L0 2L-5 7L-7 5L-2 0Z",
};
const LEGEND = "House: base. Disc: actor. Green: food, also carried. Cross: died.";
/** The distance of the lines on a map, in its units. */
const LINES = 5;

/** Returns the things of a list that have a position. */
export const placed = (things) => list(things).filter(({ position } = {}) => Number.isFinite(position?.[0]) && Number.isFinite(position?.[1]));

/** Draws a state (one world) into `element`. `options` must have `ids` and `config`; `seat` and `label` are optional. */
export function draw(element, state, options) {
  const [width, height] = sizeOf(state, options.config);
  const { context, pixel } = canvas(element, width, height, describe(state, options));
  if (element.children.length === 1) element.append(make("p", "legend", LEGEND));
  const color = colors(element);
  context.fillStyle = color.paper;
  context.fillRect(0, 0, width, height);
  context.strokeStyle = color.line;
  context.lineWidth = pixel / 2;
  context.beginPath();
  // A file may claim a map of any size.
  const gap = Math.max(LINES, Math.max(width, height) / 64);
  for (let x = gap; x < width; x += gap) context.moveTo(x, 0), context.lineTo(x, height);
  for (let y = gap; y < height; y += gap) context.moveTo(0, y), context.lineTo(width, y);
  context.stroke();
  const place = (kind, [x, y], paint, size, seat) => {
    context.save();
    // At the edge of the map, a thing stands inside.
    const radius = 11 * size * pixel;
    context.translate(Math.min(Math.max(x, radius), width - radius), Math.min(Math.max(y, radius), height - radius));
    context.scale(pixel * size, pixel * size);
    const path = new Path2D(SHAPES[kind]);
    context.globalAlpha = seat === undefined || !Number.isInteger(options.seat) || options.seat === seat ? 1 : 0.55;
    context.lineWidth = 2;
    context.strokeStyle = color.paper;
    context.stroke(path);
    context.fillStyle = paint;
    context.fill(path);
    if (seat !== undefined) {
      context.fillStyle = color.paper;
      context.font = "bold 12px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(letter(seat), 0, kind === "base" ? 3 : 1);
    }
    context.restore();
  };
  // A source holds up to 50.
  for (const { position, quantity } of placed(state?.foods)) place("food", position, color.food, 0.55 + 0.1 * Math.sqrt(Math.min(Math.max(quantity, 0), 50) || 0));
  for (const [key, kind, size] of [["bases", "base", 1.15], ["actors", "actor", 0.85]]) {
    for (const { owner_id, position, food } of placed(state?.[key])) {
      const seat = options.ids.indexOf(owner_id);
      if (seat < 0) continue;
      place(kind, position, color.seat(seat), size, seat);
      if (kind === "actor" && food > 0) place("food", [position[0] + 8 * pixel, position[1] - 8 * pixel], color.food, 0.5);
    }
  }
  for (const { position } of placed(state?.dead_entities)) place("dead", position, color.alarm, 1);
}

/** Returns the width and height of a map. Without them, the map has the usual size of one of the two games. */
export function sizeOf(state, config) {
  const all = ["foods", "actors", "bases"].flatMap((key) => placed(state?.[key]));
  const usual = all.some(({ position }) => Math.max(...position) > 40) ? 75 : 40;
  return [config?.grid_width, config?.grid_height].map((side) => (Number.isFinite(side) && side > 0 ? side : usual));
}

/** Returns the note on a seat: score and a few words. */
export function note(state, seat, options) {
  if (!Array.isArray(state?.bases)) return { score: undefined, words: "" };
  const of = (key) => list(state[key]).filter((thing) => thing?.owner_id === options.ids[seat]);
  const food = (things) => things.reduce((sum, thing) => sum + (Number.isFinite(thing.food) ? thing.food : 0), 0);
  const [actors, bases] = [of("actors"), of("bases")];
  // The other players of cherry_picker have maps of their own.
  if (!actors.length && !bases.length) return { score: undefined, words: "" };
  const words = [counted(actors.length, "actor"), counted(bases.length, "base"), `${number(food(actors))} carried`];
  return { score: food(bases), words: words.join(", ") };
}

function describe(state, options) {
  const told = options.ids.map((_, seat) => {
    const { score, words } = note(state, seat, options);
    return words
      ? `; ${options.names?.[seat] ?? letter(seat)}: ${number(score)} in bases, ${words}`
      : "";
  });
  const label = options.label ? `${options.label}: ` : "";
  return `${label}a map with ${counted(list(state?.foods).length, "source")} of food${told.join("")}`;
}
