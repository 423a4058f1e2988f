// What happened in an epoch, as sentences: who did what, what went wrong, how it ended.
import { letter, list, number } from "./boards/seats.js";

/** More than this of one action is cut. */
const MOST = 300;

const name = (names, seat) => `${letter(seat)} ${names[seat] ?? "nobody"}`;

/** What went wrong in an epoch: seat and sentence each. */
export function problems(line, names) {
  const told = [];
  const add = (seat, what) => told.push({ seat, text: `${name(names, seat)}: ${what}` });
  for (const { seat, verdict, detail } of list(line.disqualified)) add(seat, `disqualified: ${verdict}: ${detail}`);
  for (const { seat, what } of list(line.faults)) add(seat, `fault: ${what}`);
  for (const { seat, index, reason } of list(line.rejected)) {
    const which = Number.isInteger(index) ? ` ${index + 1}` : "";
    add(seat, `action${which} rejected: ${reason}`);
  }
  return told;
}

/** What was done in an epoch: seat and sentence each. Who wasn't asked did nothing, and isn't told of. */
export function actions(line, names) {
  const lists = list(line.actions);
  const told = lists.map((actions, seat) => ({ seat, actions })).filter(({ actions }) => Array.isArray(actions));
  return told.map(({ seat, actions }) => {
    const words = actions.length ? actions.map(tell).join("; ") : "nothing";
    const text = `${name(names, seat)}: ${words}`;
    return { seat, text: text.length > MOST ? `${text.slice(0, MOST)}…` : text };
  });
}

/** How it ended. Who won is told by side or id, and read by name. */
export function outcome(outcome, header, sides) {
  const { termination, winner } = outcome ?? {};
  const seat = header.agents.findIndex((agent, seat) => agent.agent_id === winner || (sides?.[seat] && sides[seat] === winner));
  const who = seat >= 0 ? `${letter(seat)} ${header.agents[seat].name} wins` : winner === "DRAW" ? "a draw" : winner === "VOID" ? "void, counts for no agent" : `${winner} wins`;
  return `${termination}: ${who}`;
}

function tell(action) {
  if (action === null || typeof action !== "object" || Array.isArray(action)) return text(action);
  const { action: what = "", ...rest } = action;
  const keys = Object.keys(rest);
  // A move that moves is told by where it goes.
  if (keys.length === 1 && typeof rest.move === "string") return rest.move;
  if (keys.length === 0) return text(what);
  return `${text(what)} (${keys.map((key) => `${key} ${text(rest[key])}`).join(", ")})`;
}

function text(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map((each) => (typeof each === "number" ? number(each) : text(each))).join(", ")}]`;
  return JSON.stringify(value);
}
