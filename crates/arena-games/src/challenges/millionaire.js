// The controls of the millionaires' problem: the own wealth, a choice of the richer player, and the guessed amount.
import { make } from "../boards/seats.js";
import { button, group, lastMatch, othersOf, ownMove, say, turnOfGuess, wrap } from "./parts.js";

/** The maximum wealth in millions. */
const RICHEST = 100;

/** Returns this seat's turn. */
export function turn(game) {
  return turnOfGuess(game, (id) => `Player ${id} sent a guess`, `Talk with ${othersOf(game)}, then say who is richer.`);
}

/** Fills the panel. */
export function start(panel, game) {
  const other = othersOf(game);
  let side = null;
  const wealth = make("p", "figure");
  const hint = make("p", "soft small", "Only you know this number.");
  const sides = { richer: `${other} is richer`, equal: "We are equally rich", poorer: `${other} is poorer` };
  const choices = group("The richer player", "row");
  for (const [name, text] of Object.entries(sides)) {
    const choice = button(text, () => choose(name), "btn");
    choice.dataset.side = name;
    choices.append(choice);
  }
  const slider = Object.assign(make("input"), { type: "range", id: "guessed-wealth", min: 1, max: RICHEST });
  slider.addEventListener("input", () => update());
  const label = Object.assign(make("label", "", `Your guess of the wealth of ${other}`), { htmlFor: slider.id });
  const send = button("Guess", () => game.act("guess", slider.value), "btn primary", "send-guess");
  const note = make("p", "soft small", "Being right about who is richer gives you the point. An exact guess also costs the other player's security.");
  const amount = wrap("div", "", label, slider, note, wrap("p", "row", send), make("p", "soft small", "Your guess is final."));
  const done = make("p", "callout");
  const question = make("h2", "", "Who is richer?");
  panel.append(make("h2", "", "Your wealth"), wealth, hint, question, choices, amount, done);

  const own = () => Number(lastMatch(game, /^Your wealth is \$(\d+)M\./)?.[1]);

  function choose(name) {
    side = name;
    const [least, most] = { richer: [own() + 1, RICHEST], equal: [own(), own()], poorer: [1, own() - 1] }[name];
    Object.assign(slider, { min: least, max: most, value: Math.round((least + most) / 2) });
    update();
  }

  function update() {
    const { isMine } = turn(game);
    say(wealth, own() ? `$${own()}M` : "…");
    for (const choice of choices.children) {
      const name = choice.dataset.side;
      choice.setAttribute("aria-pressed", String(name === side));
      choice.disabled = !own() || (name === "richer" && own() === RICHEST) || (name === "poorer" && own() === 1);
    }
    for (const each of [question, choices]) each.hidden = !isMine;
    amount.hidden = !isMine || !side;
    label.hidden = slider.hidden = note.hidden = side === "equal";
    say(send, side === "equal" ? `Guess $${slider.value}M: we are equally rich` : `Guess $${slider.value}M: ${sides[side] ?? ""}`);
    done.hidden = isMine;
    say(done, `Your guess: $${ownMove(game, "guess") ?? slider.value}M. It is final.`);
  }
  return update;
}
