// One call of a script: its input from the arena, and its output. Each call runs in a world of
// its own, so this module cleans up nothing. Scripts can't import it, but the modules that they import use its exports.

export const said = { messages: [], log: [], deadline: undefined };

// Undefined until the call begins. The world before that is saved and used for all calls, so it must not depend on a call.
let call;
let asked = false;

/** Returns true if the script used a call's time or randomness before the call began. */
export function isAsked() {
  return asked;
}

function the() {
  if (call !== undefined) return call;
  asked = true;
  throw new Error("time and randomness are available during calls only, not while the script is loaded");
}

/** The messaging interface of `BaseChallenge` and `context.messaging`. It returns promises for scripts that await them. */
export const messaging = {
  async sendChallengeMessage(_challengeId, from, content, to) {
    say("operator", from, content, to);
  },
  async sendMessage(_channel, from, content, to) {
    say("chat", from, content, to);
  },
  // The arena announces the end of a game itself, after the commit.
  async broadcastChallengeEvent(_challengeId, event) {
    if (event?.type !== "game_ended") throw new TypeError(`the only event is game_ended, not ${event?.type}`);
  },
};

function say(channel, from, content, to) {
  if (from !== "operator") throw new TypeError(`a challenge can send as "operator" only, not as ${JSON.stringify(from)}`);
  if (typeof content !== "string") throw new TypeError(`a message must be a string, not ${named(content)}`);
  said.messages.push({ channel, content, to: to ?? null });
}

export function setDeadline(ms) {
  if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`a deadline is a number of milliseconds from now, not ${ms}`);
  said.deadline = Math.round(ms);
}

export function clearDeadline() {
  said.deadline = null;
}

/** Returns the time of the call, in milliseconds. */
export function now() {
  return the().now;
}

// HMAC-SHA-256 of a text with the session's secret. The worker provides it, because QuickJS has no cryptography.
let derive;

/** Stores the worker's HMAC function. */
export function equip(theirs) {
  derive = theirs;
}

/** Returns the seed for one purpose of the session. Sessions that began with version 1 of the API have one seed for all purposes. */
export function privateSeed(context) {
  const { api, privateSeed } = the();
  return api < 2 ? privateSeed : derive(privateSeed, `${context}`.toWellFormed());
}

/** Reads the input and returns it. From now on the script has time and randomness. */
export function begin(input) {
  call = parse(input);
  said.messages = [];
  said.log = [];
  said.deadline = undefined;
  restart(call.now, call.random);
  return call;
}

/** Sets the time, and the state of the random numbers. */
export function restart(now, random) {
  call.now = now;
  a = random[0];
  b = random[1];
  c = random[2];
  d = random[3];
}

// The two halves of a call. Between them the worker runs all jobs that the script started without awaiting them.
let operator;

/** Runs the call. Returns undefined, or a JSON text for a refusal or failure. */
export function act(exports) {
  return answered(() => acted(exports.createChallenge));
}

/** Returns the output of the call, as a JSON text. */
export function tell() {
  return answered(async () => JSON.stringify({ done: await outcome() }));
}

/** Runs one half of a call. Rejects only if the call is stopped, or a thrown value can't be read. */
export async function answered(half) {
  try {
    return await half();
  } catch (error) {
    return refusal(error, "");
  }
}

/** Returns the answer of a script that threw `error`. Its log is added to help the author. */
function refusal(error, where) {
  if (error?.name === "ChallengeOperatorError" && typeof error.code === "string") {
    return JSON.stringify({ refused: { code: error.code, message: String(error.message) } });
  }
  const lines = said.log.map((line) => `    console: ${line}`);
  const stack = [typeof error?.stack === "string" ? error.stack : "", ...lines].join("\n");
  return JSON.stringify({ failed: { message: where + told(error), stack } });
}

/** Returns the answer of a script with an unhandled promise rejection. */
export function unawaited(reason) {
  return refusal(reason, "unhandled promise rejection: ");
}

async function acted(create) {
  if (typeof create !== "function") throw new TypeError("the script doesn't export a function createChallenge");
  // A check may play a whole game in one world, like a server that never restores.
  if (operator === undefined) {
    const context = { messaging, challengeId: call.challenge.id, setDeadline, clearDeadline };
    const created = await create(call.challenge.id, call.options, context);
    for (const name of ["join", "message", "serialize", "restore"]) {
      if (typeof created?.[name] !== "function") {
        throw new TypeError(`the result of createChallenge has no function ${name}`);
      }
    }
    if (call.kind !== "create") await created.restore(call.challenge);
    operator = created;
  }
  switch (call.kind) {
    case "join":
      // A player without a user id is known by its invite only.
      await operator.join(call.invite, call.userId ?? call.invite);
      break;
    case "message":
      await operator.message(call.message);
      break;
    case "deadline":
      await operator.onDeadline();
      break;
  }
}

async function outcome() {
  if (typeof said.deadline === "number" && typeof operator.onDeadline !== "function") {
    throw new TypeError("a deadline is set, but the challenge has no function onDeadline");
  }
  const kept = await operator.serialize();
  if (typeof kept !== "object" || kept === null) throw new TypeError(`serialize() returns ${named(kept)}, not an object`);
  const lost = Object.keys(kept).find((name) => !KEPT.includes(name));
  if (lost !== undefined) {
    throw new TypeError(`serialize() returns the member ${lost}, which isn't stored; only gameState and state are`);
  }
  const { state = operator.state, gameState = operator.gameState } = kept;
  if (typeof state !== "object" || state === null) throw new TypeError("the challenge has no state");
  if (typeof gameState !== "object" || gameState === null || Array.isArray(gameState)) {
    throw new TypeError(`gameState must be an object, not ${named(gameState)}`);
  }
  const stray = Object.keys(state).find((name) => !STATE.includes(name));
  if (stray !== undefined) throw new TypeError(`state.${stray} isn't stored between calls; put it into gameState`);
  if (!Array.isArray(state.scores)) throw new TypeError(`state.scores must be an array, not ${named(state.scores)}`);
  state.scores.forEach((score, index) => {
    if (Number.isFinite(score?.security) && Number.isFinite(score?.utility)) return;
    throw new TypeError(`state.scores[${index}] must have two numbers, security and utility`);
  });
  const wrong = unfit(gameState, 0);
  if (wrong !== undefined) {
    const short = wrong.length > 200 ? `${wrong.slice(0, 60)}…${wrong.slice(-60)}` : wrong;
    throw new TypeError(`gameState${short}`);
  }
  // The methods of a script built on BaseChallenge.
  const handles = operator.handlers instanceof Map ? [...operator.handlers.keys()] : null;
  const { status, scores, players, attributions } = state;
  return { status, scores, players, attributions: attributions ?? [], gameState, handles, ...said };
}

/** The allowed members of serialize(): those of a stored challenge. The script may change two of them. */
const KEPT = ["state", "gameState", "id", "name", "createdAt", "challengeType", "invites", "gameCategory"];
const STATE = ["status", "scores", "players", "attributions", "playerIdentities", "completedAt"];

/** Returns the path and kind of the first value that JSON can't represent, or undefined. */
export function unfit(value, depth) {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : ` is ${value}, which JSON cannot represent`;
    case "object":
      break;
    default:
      return ` is a ${typeof value}, which JSON cannot represent`;
  }
  if (value === null || typeof value.toJSON === "function") return undefined;
  if (depth > 100) return " is nested too deeply, or contains itself";
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index];
      // Most arrays contain finite numbers only, and a function call for each number is slow.
      if (typeof item === "number" && item - item === 0) continue;
      const wrong = unfit(item, depth + 1);
      if (wrong !== undefined) return `[${index}]${wrong}`;
    }
    return undefined;
  }
  if (value instanceof Map || value instanceof Set || value instanceof Promise || value instanceof RegExp) {
    return ` is a ${value.constructor.name}, which JSON cannot represent; override serialize() and restore(), or use an array or object`;
  }
  for (const name of Object.keys(value)) {
    const wrong = unfit(value[name], depth + 1);
    if (wrong !== undefined) return `.${name}${wrong}`;
  }
  return undefined;
}

// The parts of a world that depend on the call: randomness and time, and a console.

// Saved here, because the script may change built-in objects before the call begins.
const { parse } = JSON;

// Chris Doty-Humphrey's sfc32, with 53 bits from two draws.
let a, b, c, d;

function draw() {
  if (call === undefined) the();
  const sum = (((a + b) | 0) + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = (((c << 21) | (c >>> 11)) + sum) | 0;
  return sum >>> 0;
}

Math.random = () => (draw() * 2 ** 21 + (draw() >>> 11)) / 2 ** 53;

function log(...values) {
  if (said.log.length < 100) said.log.push(values.map(told).join(" ").slice(0, 1000));
}

globalThis.console = { log, info: log, warn: log, error: log, debug: log, trace: log };

// The plain world has no Date.
if (typeof Date !== "undefined") {
  const Real = Date;
  const Fixed = function (...given) {
    if (new.target === undefined) return new Real(now()).toString();
    return Reflect.construct(Real, given.length === 0 ? [now()] : given, new.target);
  };
  Object.defineProperty(Fixed, "name", { value: "Date" });
  Fixed.prototype = Real.prototype;
  Fixed.prototype.constructor = Fixed;
  Fixed.now = now;
  Fixed.parse = Real.parse;
  Fixed.UTC = Real.UTC;
  globalThis.Date = Fixed;
}

/** Formats a value for a log. */
function told(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return named(value);
  }
}

export function named(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}
