// Sentences that describe an epoch: its actions, problems and the outcome.
import { letter, list, number } from "./boards/seats.js";

/** Number of characters after which an action is cut. */
const MOST = 300;

const name = (names, seat) => `${letter(seat)} ${names[seat] ?? "unknown"}`;

/** Returns the problems of an epoch, each with its seat and a sentence. */
export function problems(line, names) {
  const sentences = [];
  const add = (seat, what) => sentences.push({ seat, text: `${name(names, seat)}: ${what}` });
  for (const { seat, verdict, detail } of list(line.disqualified)) add(seat, `disqualified: ${verdict}: ${detail}`);
  for (const { seat, what } of list(line.faults)) add(seat, `fault: ${what}`);
  for (const { seat, index, reason } of list(line.rejected)) {
    const which = Number.isInteger(index) ? ` ${index + 1}` : "";
    add(seat, `action${which} rejected: ${reason}`);
  }
  return sentences;
}

/** Returns the actions of an epoch, each with its seat and a sentence. Seats without a request are left out. */
export function actions(line, names) {
  const lists = list(line.actions);
  const sentences = lists.map((actions, seat) => ({ seat, actions })).filter(({ actions }) => Array.isArray(actions));
  return sentences.map(({ seat, actions }) => {
    const words = actions.length ? actions.map(tell).join("; ") : "nothing";
    const text = `${name(names, seat)}: ${words}`;
    return { seat, text: text.length > MOST ? `${text.slice(0, MOST)}…` : text };
  });
}

/** Returns a sentence on the outcome. The replay has the winner's side or id; the sentence has the winner's name. */
export function outcome(outcome, header, sides) {
  const { termination, winner } = outcome ?? {};
  const seat = header.agents.findIndex((agent, seat) => agent.agent_id === winner || (sides?.[seat] && sides[seat] === winner));
  const who = seat >= 0 ? `${letter(seat)} ${header.agents[seat].name} wins` : winner === "DRAW" ? "a draw" : winner === "VOID" ? "void, counts for no agent" : `${winner} wins`;
  return termination === "GAME_ENDED" ? who : `${termination}: ${who}`;
}

function tell(action) {
  if (action === null || typeof action !== "object" || Array.isArray(action)) return text(action);
  const { action: what = "", ...rest } = action;
  const keys = Object.keys(rest);
  // If `move` is the only field, its value is shown alone.
  if (keys.length === 1 && typeof rest.move === "string") return rest.move;
  if (keys.length === 1 && typeof rest.content === "string") return `${text(what)} ${rest.content}`;
  if (keys.length === 0) return text(what);
  return `${text(what)} (${keys.map((key) => `${key} ${text(rest[key])}`).join(", ")})`;
}

function text(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map((each) => (typeof each === "number" ? number(each) : text(each))).join(", ")}]`;
  return JSON.stringify(value);
}
