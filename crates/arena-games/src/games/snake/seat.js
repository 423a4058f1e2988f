// The controls of snake: four buttons, and the arrow keys.
import { make } from "../boards/seats.js";
import { button, wrap } from "./parts.js";

/** The steps, with the key and the sign of each. */
const STEPS = [
  ["UP", "Up", "ArrowUp", "↑"],
  ["LEFT", "Left", "ArrowLeft", "←"],
  ["RIGHT", "Right", "ArrowRight", "→"],
  ["DOWN", "Down", "ArrowDown", "↓"],
];

/** Fills the panel. */
export function start(panel, game) {
  const pad = make("div", "steps");
  pad.setAttribute("role", "group");
  pad.setAttribute("aria-label", "Direction");
  for (const [step, name, , sign] of STEPS) {
    const made = button(sign, () => game.isAsked && game.act("move", step), `btn step-${step.toLowerCase()}`);
    made.value = step;
    made.setAttribute("aria-label", name);
    pad.append(made);
  }
  const hint = make("p", "soft small", "Use these buttons or the arrow keys. All snakes move at once, when every player has chosen.");
  panel.append(wrap("div", "", make("h2", "", "Steer your snake"), pad, hint));
  document.addEventListener("keydown", (event) => {
    const step = STEPS.find(([, , key]) => key === event.key)?.[0];
    if (!step || !game.isAsked || event.target.closest?.("input, textarea, select")) return;
    event.preventDefault();
    game.act("move", step);
  });
  // A disabled button would lose the keyboard's focus in each turn.
  return () => {
    for (const each of pad.children) each.setAttribute("aria-disabled", String(!game.isAsked));
  };
}
