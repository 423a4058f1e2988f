// The controls of the dining cryptographers: the ring of diners, three answers without a name, and one final guess.
import { letter, make, seatClass } from "../boards/seats.js";
import { button, group, lastMatch, onChoice, othersOf, ownMove, say, shape, turnOfGuess, wrap } from "./parts.js";

/** The answers that name no diner. */
const ANSWERS = { external: "An outsider paid", internal: "One of us paid", unknown: "I don't know" };

/** Returns this seat's turn. */
export function turn(game) {
  return turnOfGuess(game, (id) => `${id} has submitted their guess.`, `Talk with ${othersOf(game)}, then make your one guess.`);
}

/** Fills the panel. */
export function start(panel, game) {
  let picked = null;
  const bill = make("p", "callout");
  const ring = shape("svg", { viewBox: "0 0 200 200", class: "ring", role: "group", "aria-label": "The diners" });
  const answers = group("Answers without a name", "row");
  for (const [answer, text] of Object.entries(ANSWERS)) {
    const choice = button(text, () => pick(answer));
    choice.dataset.answer = answer;
    answers.append(choice);
  }
  const send = button("Guess", () => game.act("guess", picked), "btn primary", "send-guess");
  const final = make("p", "soft small", "To name a diner, click that diner. Your guess is final, and secret until all have guessed.");
  const done = make("p", "callout");
  panel.append(make("h2", "", "The table"), bill, ring, make("h2", "", "Who paid?"), answers, final, wrap("p", "row", send), done);

  const words = (answer) => {
    const seat = game.ids.indexOf(answer);
    if (seat < 0) return ANSWERS[answer] ?? "";
    return seat === game.seat ? "I paid" : `${game.names[seat]} paid`;
  };

  function pick(answer) {
    picked = answer;
    update();
  }

  function drawRing() {
    const count = game.ids.length;
    const size = Math.min(26, 190 / count);
    ring.replaceChildren(shape("circle", { cx: 100, cy: 100, r: 46, class: "table" }));
    const places = game.ids.map((_, seat) => {
      // This seat is at the bottom.
      const angle = (2 * Math.PI * (seat - game.seat)) / count + Math.PI / 2;
      return [100 + 70 * Math.cos(angle), 100 + 70 * Math.sin(angle)];
    });
    // Without the empty space above the topmost diner.
    const top = Math.floor(Math.min(54, ...places.map(([, y]) => y - size)) - 4);
    ring.setAttribute("viewBox", `0 ${top} 200 ${200 - top}`);
    game.ids.forEach((id, seat) => {
      const [x, y] = places[seat];
      const diner = shape("g", { class: `diner ${seatClass(seat)}`, "data-diner": seat, "aria-label": words(id) });
      diner.append(shape("circle", { cx: x, cy: y, r: size }), shape("text", { x, y: y + 2 }, letter(seat)));
      diner.append(shape("text", { x, y: y + size * 0.6, class: "name" }, seat === game.seat ? "You" : game.names[seat].replace("Player ", "P")));
      onChoice(diner, () => turn(game).isMine && pick(id));
      ring.append(diner);
    });
  }

  function update() {
    const { isMine } = turn(game);
    const paid = lastMatch(game, /^You (paid|did not pay) the bill\.$/)?.[1];
    say(bill, paid === "paid" ? "You paid the bill. Only you know." : "You did not pay the bill.");
    bill.hidden = !paid;
    if (ring.querySelectorAll(".diner").length !== game.ids.length) drawRing();
    for (const diner of ring.querySelectorAll(".diner")) {
      diner.setAttribute("aria-pressed", String(game.ids[diner.dataset.diner] === picked));
    }
    for (const choice of answers.children) {
      choice.setAttribute("aria-pressed", String(choice.dataset.answer === picked));
      choice.disabled = !isMine;
    }
    say(send, picked ? `Guess: ${words(picked)}` : "Choose an answer");
    send.disabled = !isMine || !picked;
    for (const each of [answers, final, send.parentElement]) each.hidden = !isMine;
    done.hidden = isMine;
    say(done, `Your guess: ${words(ownMove(game, "guess") ?? picked)}.`);
  }
  return update;
}
