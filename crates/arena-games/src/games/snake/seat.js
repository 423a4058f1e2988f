// The controls of snake: four buttons, the arrow keys or WASD, swipes on the board, and a pace. A step chosen while
// another one is on its way waits for the next state; a later choice replaces it.
import { list, make } from "../boards/seats.js";
import { button, fit, group, wrap } from "./parts.js";

/** The steps with their directions and keys, as names or codes. */
const STEPS = [
  { step: "UP", name: "Up", sign: "↑", way: [0, -1], keys: ["ArrowUp", "KeyW"] },
  { step: "LEFT", name: "Left", sign: "←", way: [-1, 0], keys: ["ArrowLeft", "KeyA"] },
  { step: "RIGHT", name: "Right", sign: "→", way: [1, 0], keys: ["ArrowRight", "KeyD"] },
  { step: "DOWN", name: "Down", sign: "↓", way: [0, 1], keys: ["ArrowDown", "KeyS"] },
];
/** The paces: the milliseconds after which a snake without a choice goes straight on. */
const PACES = [[0, "Wait for me"], [1500, "Slow"], [800, "Medium"], [400, "Fast"]];
/** The time limit, in milliseconds, up to which a game has a pace from the start, and the time that an answer may take. */
const [SHORT, SPARE] = [10_000, 600];
/** The length of a swipe in pixels. */
const SWIPE = 24;

const stepTo = ([x, y]) => STEPS.find(({ way }) => way[0] === x && way[1] === y);

/** Fills the panel. */
export function start(panel, game) {
  /** The step that waits, the step on its way, the last state, the timer of the pace, and the start of a swipe. */
  let [waiting, sent, seen, timer, from] = [null, null, null, 0, null];
  const pad = group("Direction", "steps");
  for (const each of STEPS) {
    const made = button(each.sign, () => steer(each), `btn step-${each.step.toLowerCase()}`);
    pad.append(Object.assign(made, { value: each.step, ariaLabel: each.name }));
  }
  const limit = Number(game.config.turnMs ?? game.config.step_time_limit);
  const pace = Object.assign(make("select"), { id: "pace" });
  pace.append(...PACES.map(([ms, name]) => new Option(name, String(ms))));
  if (limit <= SHORT) pace.value = String(PACES[1][0]);
  pace.addEventListener("change", goOn);
  const hint = make("p", "soft small", "Arrow keys, W A S D, or swipes on the board. All snakes step at once, when everybody has chosen. At a pace, yours goes straight on by itself.");
  const steering = wrap("div", "beside-board steering", pad, wrap("label", "", "Pace ", pace), hint);
  panel.append(steering);

  const snake = () => game.state?.snakes?.[game.ids[game.seat]];
  const body = () => list(snake()?.positions);
  /** Returns the direction of the snake's last step; at the start, away from its tail. */
  const heading = ([head, neck] = body()) => (head && neck ? [head[0] - neck[0], head[1] - neck[1]] : [0, 0]);

  /** Sends a step, or keeps it for the next state. A step back into the snake's own neck is ignored. */
  function steer(wanted) {
    const [x, y] = sent?.way ?? heading();
    if (wanted === stepTo([-x, -y]) && body().length > 2) return;
    if (game.isAsked && !sent) send(wanted);
    else waiting = wanted;
    show();
  }

  async function send(wanted) {
    clearTimeout(timer);
    sent = wanted;
    const state = seen;
    if ((await game.act("move", wanted.step)) || state !== seen) return;
    sent = null;
    goOn();
  }

  /** Lets the snake go straight on after the time of the pace, and before the time limit. */
  function goOn() {
    clearTimeout(timer);
    const straight = stepTo(heading());
    const ms = Math.min(Number(pace.value), limit - SPARE);
    if (Number(pace.value) && straight) timer = setTimeout(() => game.isAsked && !sent && send(straight), ms);
  }

  document.addEventListener("keydown", (event) => {
    const wanted = STEPS.find(({ keys }) => keys.includes(event.code) || keys.includes(event.key));
    const isElsewhere = event.target.closest?.("input, textarea, select") || event.altKey || event.ctrlKey || event.metaKey;
    if (!wanted || panel.hidden || isElsewhere) return;
    event.preventDefault();
    // A key that is held steers in each turn, and leaves no step behind.
    if (!event.repeat || game.isAsked) steer(wanted);
  });
  document.addEventListener("pointerdown", (event) => {
    from = event.target.closest?.("#board canvas") && [event.clientX, event.clientY];
  });
  document.addEventListener("pointermove", (event) => {
    const [x, y] = from && event.buttons ? [event.clientX - from[0], event.clientY - from[1]] : [0, 0];
    if (Math.hypot(x, y) < SWIPE) return;
    from = [event.clientX, event.clientY];
    steer(stepTo(Math.abs(x) > Math.abs(y) ? [Math.sign(x), 0] : [0, Math.sign(y)]));
  });

  function show() {
    for (const each of pad.children) {
      // A disabled button would lose the keyboard's focus.
      each.setAttribute("aria-disabled", String(snake()?.alive !== true));
      each.setAttribute("aria-pressed", String(each.value === waiting?.step));
    }
  }

  game.onDrawn = () => fit(game, pad);
  return () => {
    if (seen !== game.state) {
      const next = waiting;
      [seen, sent, waiting] = [game.state, null, null];
      goOn();
      if (next && game.isAsked) steer(next);
    }
    show();
  };
}
