// The map of food_catcher and cherry_picker: bases are squares, actors discs, both with the letter of their seat; a source's size
// shows its food; a cross marks an entity that died in the last epoch.
import { canvas, colors, counted, letter, list, number } from "./seats.js";

/** Draws a state (one world) into `element`. `options` must have `ids` and `config`; `seat` and `label` are optional. */
export function draw(element, state, options) {
  const side = (value) => (Number.isFinite(value) && value > 0 ? value : 40);
  const [width, height] = [side(options.config?.grid_width), side(options.config?.grid_height)];
  const { context, pixel } = canvas(element, width, height, describe(state, options));
  const color = colors(element);
  context.fillStyle = color.paper;
  context.fillRect(0, 0, width, height);
  // Entities have a minimum size on the screen.
  const least = 5 * pixel;
  const places = (key) =>
    list(state?.[key]).filter(({ position } = {}) => Number.isFinite(position?.[0]) && Number.isFinite(position?.[1]));
  context.fillStyle = color.food;
  for (const { position: [x, y], quantity } of places("foods")) {
    const radius = Math.max(least * 0.4, Math.sqrt(Math.max(quantity, 0) || 0) * 0.09);
    context.globalAlpha = 0.75;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
  const seatOf = (thing) => options.ids.indexOf(thing.owner_id);
  const mark = (seat, x, y, size) => {
    context.fillStyle = color.paper;
    context.font = `bold ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(letter(seat), x, y + size * 0.06);
  };
  const own = (seat) => !Number.isInteger(options.seat) || options.seat === seat;
  for (const base of places("bases")) {
    const [seat, [x, y]] = [seatOf(base), base.position];
    if (seat < 0) continue;
    const size = Math.max(least * 3.2, 1.6);
    context.globalAlpha = own(seat) ? 1 : 0.55;
    context.fillStyle = color.seat(seat);
    context.fillRect(x - size / 2, y - size / 2, size, size);
    mark(seat, x, y, size * 0.75);
  }
  const radius = Math.max(least * 1.3, options.config?.actor_radius ?? 0.45);
  for (const actor of places("actors")) {
    const [seat, [x, y]] = [seatOf(actor), actor.position];
    if (seat < 0) continue;
    context.globalAlpha = own(seat) ? 1 : 0.55;
    context.fillStyle = color.seat(seat);
    context.strokeStyle = color.paper;
    context.lineWidth = pixel;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    mark(seat, x, y, radius * 1.3);
    if (actor.food > 0) {
      // A ring around an actor that carries food.
      context.strokeStyle = color.food;
      context.lineWidth = 2 * pixel;
      context.beginPath();
      context.arc(x, y, radius + 2 * pixel, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  context.strokeStyle = color.alarm;
  context.lineWidth = 2 * pixel;
  for (const { position: [x, y] } of places("dead_entities")) {
    context.beginPath();
    context.moveTo(x - least, y - least), context.lineTo(x + least, y + least);
    context.moveTo(x + least, y - least), context.lineTo(x - least, y + least);
    context.stroke();
  }
}

/** Returns the note on a seat: score and a few words. */
export function note(state, seat, options) {
  if (!Array.isArray(state?.bases)) return { score: undefined, words: "" };
  const of = (key) => list(state[key]).filter((thing) => thing?.owner_id === options.ids[seat]);
  const food = (things) => things.reduce((sum, thing) => sum + (Number.isFinite(thing.food) ? thing.food : 0), 0);
  const [actors, bases] = [of("actors"), of("bases")];
  const words = [counted(actors.length, "actor"), counted(bases.length, "base"), `${number(food(actors))} carried`];
  return { score: food(bases), words: words.join(", ") };
}

function describe(state, options) {
  const told = options.ids.map((_, seat) => {
    const { score, words } = note(state, seat, options);
    return score > 0 || !/^(0 actors, 0 bases|$)/.test(words)
      ? `; ${options.names?.[seat] ?? letter(seat)}: ${number(score)} in bases, ${words}`
      : "";
  });
  const label = options.label ? `${options.label}: ` : "";
  return `${label}a map with ${counted(list(state?.foods).length, "source")} of food${told.join("")}`;
}
