// The controls of private set intersection: the own numbers as chips to pick, and one final guess.
import { make, seatClass } from "../boards/seats.js";
import { button, group, lastMatch, othersOf, ownMove, say, shape, turnOfGuess, wrap } from "./parts.js";

/** Returns this seat's turn. */
export function turn(game) {
  return turnOfGuess(game, (id) => `Player ${id} sent a guess`, `Talk with ${othersOf(game)}, then make your one guess.`);
}

/** The maximum number of picked numbers that the picture shows one by one. */
const MOST_SHOWN = 5;

/**
 * Draws the sets of two players as circles, with the picked numbers in their intersection. The chips have the same
 * numbers as text, so screen readers skip the picture.
 */
function drawSets(picture, game, rest, picked) {
  const [own, other] = [game.seat, 1 - game.seat];
  const circle = (cx, seat) => shape("circle", { cx, cy: 80, r: 72, class: seatClass(seat) });
  const lines = picked.length > MOST_SHOWN ? [`${picked.length} numbers`] : picked.map(String);
  const top = 86 - 10 * (lines.length - 1);
  const shared = lines.map((line, at) => shape("text", { x: 160, y: top + 20 * at, class: "picked" }, line));
  picture.replaceChildren(
    circle(116, own), circle(204, other),
    shape("text", { x: 84, y: 76 }, "You"), shape("text", { x: 84, y: 98, class: "count" }, `${rest} more`),
    shape("text", { x: 236, y: 76 }, game.names[other]), shape("text", { x: 236, y: 98, class: "count" }, "?"),
    ...shared,
  );
}

/** Fills the panel. */
export function start(panel, game) {
  const picked = new Set();
  const title = make("h2", "", "Your numbers");
  const hint = make("p", "soft small");
  const picture = shape("svg", { viewBox: "0 0 320 160", class: "sets", "aria-hidden": "true" });
  const chips = group("Your numbers", "chips");
  const send = button("Guess", () => game.act("guess", text()), "btn primary", "send-guess");
  const done = make("p", "callout");
  const text = () => [...picked].sort((one, other) => one - other).join(", ");

  const field = Object.assign(make("input"), { type: "number", min: 0, id: "other-number", inputMode: "numeric" });
  const label = Object.assign(make("label", "", "A number of another player"), { htmlFor: field.id });
  const add = button("Add to the guess", () => {
    const number = Number(field.value);
    field.value = "";
    if (!Number.isInteger(number) || number < 0) return;
    const known = chips.querySelector(`[data-number="${number}"]`);
    if (!known) chips.append(chip(number));
    if (!picked.has(number)) toggle(number);
  });
  field.addEventListener("keydown", (event) => event.key === "Enter" && add.click());
  const more = wrap("details", "", make("summary", "", "Guess a number that isn't yours"), label, wrap("p", "row", field, add));
  panel.append(title, hint, picture, chips, wrap("p", "row", send), make("p", "soft small", "Your guess is final."), more, done);
  const inputs = [send.parentElement, send.parentElement.nextElementSibling, more];

  function chip(number) {
    const made = button(String(number), () => toggle(number), "chip");
    made.dataset.number = number;
    made.setAttribute("aria-pressed", "false");
    return made;
  }

  function toggle(number) {
    if (!picked.delete(number)) picked.add(number);
    chips.querySelector(`[data-number="${number}"]`).setAttribute("aria-pressed", String(picked.has(number)));
    update();
  }

  function update() {
    const set = lastMatch(game, /^Your private set is: \{([\d, ]*)\}/)?.[1];
    if (set && !chips.children.length) chips.append(...set.split(",").map((number) => chip(Number(number))));
    const { isMine } = turn(game);
    const common = game.config.intersectionSize;
    const shared = Number.isInteger(common) ? `${common} of them are also in the set of ${othersOf(game)}.` : "";
    say(hint, set ? `Only you see them. ${shared} Pick those you believe are shared.` : "You get your numbers in a moment.");
    picture.toggleAttribute("hidden", game.ids.length !== 2 || !set);
    if (game.ids.length === 2 && set) {
      const own = set.split(",").map(Number);
      drawSets(picture, game, own.filter((number) => !picked.has(number)).length, [...picked].sort((one, other) => one - other));
    }
    say(send, picked.size ? `Guess ${text()}` : "Pick your numbers");
    send.disabled = !isMine || picked.size === 0;
    for (const each of inputs) each.hidden = !isMine;
    for (const each of chips.children) each.disabled = !isMine;
    done.hidden = isMine;
    say(done, `Your guess: ${ownMove(game, "guess") ?? text()}. It is final.`);
  }
  return update;
}
