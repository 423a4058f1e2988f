// The board of snake: a grid, y downwards. Heads are larger and have the letter of their seat; a cross marks a dead snake.
import { canvas, colors, counted, letter, list } from "./seats.js";

/** The maximum size of grids that are drawn as a whole. */
const MAX_SIZE = 256;

/** Draws a state into `element`. `options` must have `ids`; `names` and `seat`, the selected one, are optional. */
export function draw(element, state, options) {
  const side = (value) => (Number.isInteger(value) && value > 0 ? Math.min(value, MAX_SIZE) : 10);
  const [width, height] = [side(state?.grid?.width), side(state?.grid?.height)];
  const { context, pixel } = canvas(element, width, height, describe(state, options));
  const color = colors(element);
  const isOn = (place) => Number.isInteger(place?.[0]) && Number.isInteger(place?.[1])
    && place[0] >= 0 && place[0] < width && place[1] >= 0 && place[1] < height;
  context.fillStyle = color.paper;
  context.fillRect(0, 0, width, height);
  context.strokeStyle = color.line;
  context.lineWidth = pixel;
  context.beginPath();
  for (let x = 0; x <= width; x++) context.moveTo(x, 0), context.lineTo(x, height);
  for (let y = 0; y <= height; y++) context.moveTo(0, y), context.lineTo(width, y);
  context.stroke();
  context.fillStyle = color.food;
  for (const place of list(state?.foods).filter(isOn)) {
    context.beginPath();
    context.arc(place[0] + 0.5, place[1] + 0.5, 0.28, 0, 2 * Math.PI);
    context.fill();
  }
  const snakes = options.ids.map((id, seat) => ({ seat, snake: state?.snakes?.[id] })).filter(({ snake }) => snake);
  for (const { seat, snake } of snakes.filter(({ snake }) => snake.alive === false)) {
    // A snake that left the grid is marked at its edge.
    const [x, y] = list(snake.head_position);
    if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
    cross(context, clamp(x, width), clamp(y, height), color.seat(seat));
  }
  for (const { seat, snake } of snakes.filter(({ snake }) => snake.alive === true)) {
    const body = list(snake.positions).filter(isOn);
    const isOther = Number.isInteger(options.seat) && options.seat !== seat;
    context.globalAlpha = isOther ? 0.55 : 1;
    context.strokeStyle = context.fillStyle = color.seat(seat);
    context.lineWidth = 0.62;
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    body.forEach(([x, y], at) => (at ? context.lineTo(x + 0.5, y + 0.5) : context.moveTo(x + 0.5, y + 0.5)));
    context.stroke();
    const head = snake.head_position;
    if (isOn(head)) {
      context.beginPath();
      context.arc(head[0] + 0.5, head[1] + 0.5, 0.44, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      context.fillStyle = color.paper;
      context.font = "bold 0.6px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(letter(seat), head[0] + 0.5, head[1] + 0.54);
    }
    context.globalAlpha = 1;
  }
}

/** Returns the note on a seat: score and a few words. */
export function note(state, seat, options) {
  const id = options.ids[seat];
  const snake = state?.snakes?.[id];
  const words = snake?.alive === false ? "dead" : snake ? `length ${list(snake.positions).length}` : "";
  return { score: state?.score?.[id], words };
}

function clamp(value, side) {
  return Math.min(Math.max(value, 0), side - 1);
}

function cross(context, x, y, color) {
  context.strokeStyle = color;
  context.lineWidth = 0.14;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(x + 0.22, y + 0.22), context.lineTo(x + 0.78, y + 0.78);
  context.moveTo(x + 0.78, y + 0.22), context.lineTo(x + 0.22, y + 0.78);
  context.stroke();
}

function describe(state, options) {
  const told = options.ids.map((id, seat) => {
    const snake = state?.snakes?.[id];
    if (!snake) return "";
    const where = list(snake.head_position).join(", ");
    const words = snake.alive === false ? "dead" : `head at ${where}, length ${list(snake.positions).length}`;
    return `; ${options.names?.[seat] ?? letter(seat)} ${words}`;
  });
  const grid = `${state?.grid?.width ?? "?"} by ${state?.grid?.height ?? "?"}`;
  return `Snake on a grid of ${grid}, ${counted(list(state?.foods).length, "piece")} of food${told.join("")}`;
}
