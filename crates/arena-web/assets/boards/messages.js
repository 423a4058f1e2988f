// The board of challenges: a picture of the state, and the operator's and players' messages in order.
import { pictureOf } from "./pictures.js";
import { letter, list, make, seatClass } from "./seats.js";

/** The number of earlier epochs whose messages are shown. */
export const memory = 200;

/**
 * Draws the messages that one seat or all seats can read. A state for all seats is a list by seat. Of `options`, `history`
 * holds the earlier states, the oldest first, and `talk` is the element for the messages if there is a picture.
 */
export function draw(element, state, options) {
  const seen = new Map();
  const states = [...list(options.history), state];
  const players = [];
  let challenge;
  states.forEach((each, at) => {
    const worlds = Array.isArray(each) ? each : [each];
    worlds.forEach((world, seat) => {
      if (Array.isArray(each) && Number.isInteger(options.seat) && options.seat !== seat) return;
      challenge = world?.challenge ?? challenge;
      list(world?.players).forEach((name, place) => (players[place] = name));
      for (const message of list(world?.messages)) {
        const key = `${message?.channel} ${message?.index}`;
        if (!seen.has(key)) seen.set(key, { message, isFresh: at === states.length - 1 });
      }
    });
  });
  const items = make("ol", "messages");
  for (const { message, isFresh } of seen.values()) items.append(row(message, isFresh, players, options));
  if (seen.size === 0) items.append(make("li", "soft", "No messages yet."));
  const known = [...seen.values()].map(({ message }) => message).sort((one, other) => one?.index - other?.index);
  const picture = pictureOf(challenge, known, players, options.names);
  element.replaceChildren(picture ?? items);
  if (picture) options.talk?.replaceChildren(items);
  items.scrollTop = items.scrollHeight;
}

/** Returns no score, since challenges are scored at their end. */
export function note() {
  return { score: undefined, words: "" };
}

function row(message, isFresh, players, options) {
  const name = (code) => {
    const seat = players.indexOf(code);
    return seat < 0 ? String(code) : `${letter(seat)} ${options.names?.[seat] ?? ""}`;
  };
  const seat = players.indexOf(message.from);
  const item = make("li", `${seat < 0 ? "operator" : seatClass(seat)}${isFresh ? " fresh" : ""}`);
  const head = make("p", "from", name(message.from));
  if (message.to) head.append(make("span", "soft", ` to ${name(message.to)} only`));
  head.append(make("span", "soft", [message.from, "chat"].includes(message.channel) ? "" : ` · ${message.channel}`));
  item.append(head, make("p", "text", typeof message.content === "string" ? message.content : JSON.stringify(message.content)));
  return item;
}
