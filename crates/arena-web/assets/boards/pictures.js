// The pictures of challenges in replays, drawn from the messages up to a moment: what the players have, what they have
// said, and what they have guessed or offered. A picture has 320 by 240 units.
import { letter, seatClass, shape } from "./seats.js";

const PICTURES = new Map([["psi", psi], ["millionaire", millionaire], ["ultimatum", ultimatum], ["dining-cryptographers", dining]]);
/** Maximum number of characters of a name or guess, of numbers in a column, and of earlier offers. */
const [LONGEST, MOST_NUMBERS, MOST_OFFERS] = [14, 12, 8];
const BOLD = { "font-weight": 700 };
const BAD = { ...BOLD, fill: "var(--alarm)" };
const SOFT = { fill: "var(--soft)", "font-size": 12 };
const DASHED = { stroke: "var(--soft)", "stroke-dasharray": "5 4" };

/** Draws a challenge from its messages in order, and the players' ids and names by seat. Returns null without a picture. */
export function pictureOf(challenge, messages, players, names) {
  const draw = PICTURES.get(challenge);
  if (!draw || players.length === 0 || (draw === psi && players.length > 2)) return null;
  const readable = messages.filter((message) => typeof message?.content === "string" && !message.redacted);
  const operator = readable.filter(({ channel, from }) => channel !== "chat" && from === "operator");
  const svg = shape("svg", { viewBox: "0 0 320 240", class: "game picture", role: "img" });
  const label = draw({
    svg,
    players,
    names: players.map((_, seat) => cut(names?.[seat] ?? `Player ${seat + 1}`)),
    chat: readable.filter(({ channel }) => channel === "chat"),
    texts: operator.filter(({ to }) => !to).map(({ content }) => content),
    guesses: players.map((id) => readable.findLast(({ channel, from, content }) => channel !== "chat" && from === id && content.startsWith("(guess) "))?.content.slice(8)),
    // The first group of a pattern in what the operator told each player in private.
    told: (pattern) => players.map((id) => operator.map(({ to, content }) => (to === id && pattern.exec(content)?.[1]) || "").find(Boolean)),
  });
  svg.setAttribute("aria-label", label);
  return svg;
}

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
const numbersIn = (text) => (text?.match(/\d+/g) ?? []).map(Number);
const write = (svg, x, y, text, style = {}) => svg.append(shape("text", { x, y, fill: "var(--ink)", ...style }, String(text)));
const sign = (svg, seat, name, x, y) => write(svg, x, y, `${letter(seat)} ${name}`, { ...BOLD, class: seatClass(seat), fill: "var(--seat)" });
const fill = (svg, tag, seat, style) => svg.append(shape(tag, { class: seatClass(seat), fill: "var(--seat-bg)", stroke: "var(--seat)", "stroke-width": 2, ...style }));
const line = (svg, d, style = {}) => svg.append(shape("path", { d, fill: "none", stroke: "var(--line)", "stroke-width": 2, ...style }));

/** Returns places on a ring, clockwise from the top. */
function ring({ length }) {
  const angle = (place) => (2 * Math.PI * place) / length;
  return Array.from({ length }, (_, place) => [160 + 110 * Math.sin(angle(place)), 112 - 86 * Math.cos(angle(place))]);
}

/** The sets of two players: bold numbers if their owner has said them, red ones if the other player has guessed a secret. */
function psi({ svg, players, names, chat, guesses, told }) {
  const sets = told(/^Your private set is: \{([\d, ]*)\}/).map(numbersIn);
  const said = players.map((id) => chat.filter(({ from }) => from === id).flatMap(({ content }) => numbersIn(content)));
  const guessed = guesses.map(numbersIn);
  const common = sets[0].filter((number) => sets[1]?.includes(number));
  const column = (numbers, xs, style) => {
    const shown = numbers.length > MOST_NUMBERS ? [...numbers.slice(0, MOST_NUMBERS - 1), `+${numbers.length - MOST_NUMBERS + 1}`] : numbers;
    const top = 111 - 9.5 * (Math.ceil(shown.length / xs.length) - 1);
    shown.forEach((number, at) => write(svg, xs[at % xs.length], top + 19 * Math.floor(at / xs.length), number, style(number)));
  };
  sets.forEach((_, seat) => fill(svg, "circle", seat, { cx: 118 + 84 * seat, cy: 106, r: 96, "fill-opacity": 0.5 }));
  column(common, [160], (number) => (said.flat().includes(number) ? BOLD : SOFT));
  const labels = sets.map((set, seat) => {
    const own = set.filter((number) => !common.includes(number));
    column(own, seat ? [234, 270] : [50, 86], (number) => (guessed[1 - seat]?.includes(number) ? BAD : said[seat].includes(number) ? BOLD : SOFT));
    sign(svg, seat, names[seat], 80 + 160 * seat, 220);
    write(svg, 80 + 160 * seat, 236, guesses[seat] ? `guess: ${cut(guesses[seat])}` : "", SOFT);
    return `; ${names[seat]} has said ${own.filter((number) => said[seat].includes(number)).length} of ${own.length} secret numbers`;
  });
  return `Sets with ${common.length} common numbers${labels.join("")}`;
}

/** The wealth as columns, each with the other player's guess as a line. */
function millionaire({ svg, names, guesses, told }) {
  line(svg, "M30 184h260");
  const labels = told(/^Your wealth is \$(\d+)M/).map((wealth, seat) => {
    const [x, height, guess] = [94 + 132 * seat, 1.4 * Number(wealth ?? 0), numbersIn(guesses[1 - seat])[0]];
    fill(svg, "rect", seat, { x: x - 36, y: 184 - height, width: 72, height, rx: 6 });
    write(svg, x, 178, wealth ? `$${wealth}M` : "?", BOLD);
    sign(svg, seat, names[seat], x, 206);
    if (guess === undefined) return `${names[seat]}: $${wealth ?? "?"}M`;
    line(svg, `M${x - 46} ${184 - 1.4 * guess}h92`, { ...DASHED, class: seatClass(1 - seat), stroke: "var(--seat)" });
    write(svg, x, 226, `${letter(1 - seat)} guessed $${guess}M`, guess === Number(wealth) ? BAD : SOFT);
    return `${names[seat]}: $${wealth ?? "?"}M, guessed as $${guess}M`;
  });
  return labels.join("; ");
}

/** Reads a negotiation from the operator's texts to all players: the offers, the one that stands, and who has agreed to it. */
export function negotiation(texts) {
  const table = { total: undefined, rounds: undefined, round: 1, mover: null, offer: null, offers: [], accepted: [], last: "No offer yet" };
  for (const text of texts) {
    const total = /^Ultimatum game started!\n- Total to split: (\d+)/.exec(text)?.[1];
    if (total) table.total = Number(total);
    const [, player, word, shares] = /^Player (\d+) (proposes|accepts|rejects|passes)(?:: (.*)|.*)$/.exec(text) ?? [];
    if (shares) {
      table.offer = { proposer: player - 1, shares: shares.split(", ").map((share) => Number(share.split(": ")[1])) };
      table.offers.push(table.offer);
      table.accepted = [player - 1];
    } else if (word === "accepts") table.accepted.push(player - 1);
    else if (word === "rejects") table.offer = null;
    const turn = /(?:^|\n)Player (\d+)'s turn\. \(Round (\d+)\/(\d+)\)$/.exec(text);
    if (turn) [table.mover, table.round, table.rounds] = [turn[1] - 1, Number(turn[2]), Number(turn[3])];
    if (word) table.last = [player - 1, word];
    else if (/^(Agreement|Deadlock)/.test(text)) table.last = text.startsWith("A") ? "Agreed" : "No agreement";
  }
  return table;
}

/** Draws shares as a bar. Without a `style`, the parts have texts: the share, and the name where it fits. */
export function bar(svg, shares, names, [left, y, width, height], style = undefined) {
  const unit = width / (shares.reduce((sum, share) => sum + share, 0) || 1);
  shares.reduce((x, share, seat) => {
    fill(svg, "rect", seat, { x, y, width: Math.max(unit * share - 2, 0), height, rx: 3, ...style });
    const text = names && unit * share >= 110 ? `${names[seat]} ${share}` : share;
    if (!style && unit * share > 24) write(svg, x + (unit * share) / 2, y + height / 2 + 6, text, { ...BOLD, "font-size": 16 });
    return x + unit * share;
  }, left);
}

/** The offer on the table as a bar, below the earlier offers. */
function ultimatum({ svg, names, texts, told }) {
  const { offer, offers, last, round, rounds } = negotiation(texts);
  const title = Array.isArray(last) ? `${names[last[0]]} ${last[1]}` : last;
  write(svg, 160, 24, title, { ...BOLD, "font-size": 18 });
  write(svg, 160, 44, rounds ? `Round ${round} of ${rounds}` : "", SOFT);
  const earlier = offers.filter((each) => each !== offer).slice(-MOST_OFFERS);
  earlier.forEach(({ shares }, at) => bar(svg, shares, null, [20, 130 - 9 * (earlier.length - at), 280, 6], { fill: "var(--seat)", stroke: "none", "fill-opacity": 0.5 }));
  if (offer) bar(svg, offer.shares, null, [20, 138, 280, 46]);
  else line(svg, "M20 138h280v46h-280Z", DASHED);
  told(/^Your private reservation value is: (\d+)/).forEach((least, seat, { length }) => {
    const x = 20 + (280 * (seat + 0.5)) / length;
    sign(svg, seat, length > 3 ? "" : names[seat], x, 206);
    write(svg, x, 224, least ? `needs ${least}` : "", SOFT);
  });
  return `${title}${offer ? `: ${offer.shares.map((share, seat) => `${share} for ${names[seat]}`).join(", ")}` : ""}`;
}

/** The diners, with a line between those that have talked in private, a ring around the payer, and the guesses. */
function dining({ svg, players, names, chat, guesses, told }) {
  const bills = told(/^You (paid|did not pay) the bill\.$/);
  const payer = bills.indexOf("paid");
  const fact = payer >= 0 ? `${letter(payer)} paid` : bills.every(Boolean) ? "An outsider paid" : "Who paid?";
  const places = ring(players);
  for (const { from, to } of chat) {
    const [one, other] = [from, to].map((id) => places[players.indexOf(id)]);
    if (one && other) line(svg, `M${one}L${other}`, DASHED);
  }
  fill(svg, "circle", 0, { cx: 160, cy: 120, r: 49, fill: "var(--panel)", stroke: "var(--line)" });
  write(svg, 160, 124, fact, { ...BOLD, "font-size": 11 });
  const words = guesses.map((guess) => (players.includes(guess) ? `names ${letter(players.indexOf(guess))}` : cut(guess ?? "")));
  places.forEach(([cx, cy], seat) => {
    if (seat === payer) fill(svg, "circle", seat, { cx, cy, r: 24, fill: "none", stroke: "var(--ink)" });
    fill(svg, "circle", seat, { cx, cy, r: 19 });
    sign(svg, seat, "", cx, cy + 5);
    write(svg, cx, cy + 36, words[seat], SOFT);
  });
  return `${fact}; ${names.map((name, seat) => `${name} ${words[seat] ? `guessed: ${words[seat]}` : "hasn't guessed"}`).join(", ")}`;
}
