// The controls of the ultimatum game: the offer as a split bar, answers to it, and sliders for an offer of one's own.
import { bar, negotiation } from "../boards/pictures.js";
import { make } from "../boards/seats.js";
import { button, joined, lastMatch, say, shape, textsOf, wrap } from "./parts.js";

/** Reads the negotiation from the operator's texts. */
function read(game) {
  const table = negotiation(textsOf(game));
  return { ...table, total: table.total ?? game.config.total ?? 100, rounds: table.rounds ?? game.config.maxRounds };
}

/** Returns this seat's turn. */
export function turn(game) {
  const { offer, mover, round, rounds, total } = read(game);
  const when = `Round ${round} of ${rounds ?? "?"}.`;
  if (mover !== game.seat) return { isMine: false, text: `Waiting for ${game.names[mover] ?? "the others"}. ${when}` };
  if (offer && offer.proposer !== game.seat) {
    return { isMine: true, text: `${game.names[offer.proposer]} offers you ${offer.shares[game.seat]} of ${total}. ${when}` };
  }
  return { isMine: true, text: `${offer ? "Your offer stands." : "There is no offer yet."} ${when}` };
}

/** Draws shares as a bar, and describes them. */
function split(picture, shares, names) {
  picture.replaceChildren();
  bar(picture, shares, names, [0, 0, 400, 44]);
  picture.setAttribute("aria-label", shares.map((share, seat) => `${names[seat]}: ${share}`).join(", "));
}

/** Fills the panel. */
export function start(panel, game) {
  const frame = () => shape("svg", { viewBox: "0 0 400 44", class: "split", role: "img" });
  const current = frame();
  const about = make("p", "soft small");
  const worth = make("p", "callout");
  const accept = button("Accept", () => game.act("accept", ""), "btn primary", "accept");
  const reject = button("Reject", () => game.act("reject", ""), "btn danger", "reject");
  const pass = button("Pass this turn", () => game.act("pass", ""), "btn", "pass");
  const answers = wrap("p", "row", accept, reject, pass);

  const counter = make("h2", "", "Make an offer");
  const preview = frame();
  const keep = make("p", "");
  const send = button("Offer", () => game.act("submit_offer", shares().join(", ")), "btn primary", "send-offer");
  const sliders = wrap("div", "sliders");
  const own = wrap("div", "", counter, preview, sliders, keep, wrap("p", "row", send));
  panel.append(make("h2", "", "The offer on the table"), current, about, worth, answers, own);

  const given = () => [...sliders.querySelectorAll("input[type=range]")].map((slider) => [Number(slider.dataset.seat), Number(slider.value)]);

  function shares() {
    const { total } = read(game);
    const gifts = new Map(given());
    const sum = [...gifts.values()].reduce((all, gift) => all + gift, 0);
    return game.ids.map((_, seat) => gifts.get(seat) ?? total - sum);
  }

  function makeSliders(total) {
    game.ids.forEach((_, seat) => {
      if (seat === game.seat) return;
      const slider = Object.assign(make("input"), { type: "range", min: 0, max: total, value: Math.floor(total / game.ids.length), id: `share-${seat}` });
      slider.dataset.seat = seat;
      const exact = Object.assign(make("input"), { type: "number", min: 0, max: total, value: slider.value });
      exact.setAttribute("aria-label", `Share of ${game.names[seat]} as a number`);
      slider.addEventListener("input", () => {
        exact.value = slider.value;
        update();
      });
      exact.addEventListener("input", () => {
        slider.value = exact.value;
        update();
      });
      const label = Object.assign(make("label", "", `Share of ${game.names[seat]}`), { htmlFor: slider.id });
      sliders.append(label, wrap("div", "exact", slider, exact));
    });
  }

  function update() {
    const { offer, accepted, total, mover } = read(game);
    const isMine = mover === game.seat;
    if (!sliders.children.length && game.ids.length > 1 && mover !== null) makeSliders(total);
    current.toggleAttribute("hidden", !offer);
    if (offer) split(current, offer.shares, game.names);
    const agreed = accepted.map((seat) => game.names[seat]);
    const by = offer && (offer.proposer === game.seat ? "You made this offer." : `${game.names[offer.proposer]} made this offer.`);
    say(about, offer ? `${by} Agreed so far: ${joined(agreed)}.` : "No offer. Without an agreement, everybody gets nothing.");
    const least = lastMatch(game, /^Your private reservation value is: (\d+)\./)?.[1];
    worth.hidden = least === undefined;
    say(worth, `You gain by every share above ${least}. Only you know this number.`);
    // They keep their place, so that the page doesn't jump at each turn.
    for (const part of [answers, own]) part.classList.toggle("away", !isMine);
    accept.hidden = !offer || offer.proposer === game.seat;
    reject.hidden = !offer;
    const share = offer?.shares[game.seat] ?? 0;
    const isGain = least === undefined || share > Number(least);
    say(accept, isGain ? `Accept ${share}` : `Accept ${share} (you need ${least})`);
    accept.classList.toggle("primary", isGain);
    say(reject, offer?.proposer === game.seat ? "Withdraw your offer" : "Reject");
    say(counter, offer ? "Make another offer" : "Make an offer");
    if (!sliders.children.length) return;
    const wanted = shares();
    const rest = wanted[game.seat];
    split(preview, wanted.map((share) => Math.max(share, 0)), game.names);
    say(keep, rest < 0 ? `The shares exceed ${total} by ${-rest}.` : `You keep ${rest}.`);
    const gifts = given().map(([seat, gift]) => `${gift} to ${game.names[seat]}`);
    say(send, `Offer ${joined(gifts)}`);
    send.classList.toggle("primary", accept.hidden || !isGain);
    send.disabled = rest < 0;
  }
  return update;
}
