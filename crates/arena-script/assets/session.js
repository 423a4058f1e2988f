// Both ends of one call: what the arena asks of a script, and what the script has to say to that. Each call has a world of its
// own, so there is nothing here to be cleaned up. No script can import this module; it sees what it needs of it through others.

const said = { messages: [], log: [], deadline: undefined };

// Undefined until the call begins. A world is kept as it is before that and serves all calls, so nothing may have come of them yet.
let call;
let asked = false;

/** Whether something was asked for that is another in each call, before there is a call. */
export function isAsked() {
  return asked;
}

function the() {
  if (call !== undefined) return call;
  asked = true;
  throw new Error("there is no call yet");
}

/** What `BaseChallenge` and `context.messaging` speak through. The promises are there for scripts that await them. */
export const messaging = {
  async sendChallengeMessage(_challengeId, from, content, to) {
    say("operator", from, content, to);
  },
  async sendMessage(_channel, from, content, to) {
    say("chat", from, content, to);
  },
  // The arena tells of a game's end itself, when it has become so.
  async broadcastChallengeEvent(_challengeId, event) {
    if (event?.type !== "game_ended") throw new TypeError(`there is no event but game_ended; not ${event?.type}`);
  },
};

function say(channel, from, content, to) {
  if (from !== "operator") throw new TypeError(`a challenge speaks as "operator" only, not as ${JSON.stringify(from)}`);
  if (typeof content !== "string") throw new TypeError(`what is sent must be a string, not ${named(content)}`);
  said.messages.push({ channel, content, to: to ?? null });
}

export function setDeadline(ms) {
  if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`a deadline is a number of milliseconds from now, not ${ms}`);
  said.deadline = Math.round(ms);
}

export function clearDeadline() {
  said.deadline = null;
}

/** The time of the call, in milliseconds. */
export function now() {
  return the().now;
}

// HMAC-SHA-256 over a text with the session's secret. The worker provides it, since QuickJS has no cryptography.
let derive;

/** Takes the arena's function. */
export function equip(theirs) {
  derive = theirs;
}

/** The seed for one purpose of the session. Sessions that began by version 1 have one seed for all purposes, and keep it. */
export function privateSeed(context) {
  const { api, privateSeed } = the();
  return api < 2 ? privateSeed : derive(privateSeed, `${context}`.toWellFormed());
}

/** Takes in what is asked. From now on the script finds time and chance. */
export function begin(input) {
  call = parse(input);
  said.messages = [];
  said.log = [];
  said.deadline = undefined;
  const { random } = call;
  a = random[0];
  b = random[1];
  c = random[2];
  d = random[3];
}

// The two halves of a call. Between them the arena lets everything come to its end that the script has begun and doesn't await.
let operator;

/** Lets the script do what is asked. Undefined, or a JSON text if it can't or won't. */
export function act(create) {
  return answered(() => acted(create));
}

/** What has come of it, as a JSON text. */
export function tell() {
  return answered(async () => JSON.stringify({ done: await outcome() }));
}

/** Rejected only if it is stopped, or if what the script throws can't be looked at. */
async function answered(half) {
  try {
    return await half();
  } catch (error) {
    return refusal(error, "");
  }
}

/** The answer of a script that has thrown this. What it has logged before tells its author how it came to this. */
function refusal(error, where) {
  if (error?.name === "ChallengeOperatorError" && typeof error.code === "string") {
    return JSON.stringify({ refused: { code: error.code, message: String(error.message) } });
  }
  const lines = said.log.map((line) => `    console: ${line}`);
  const stack = [typeof error?.stack === "string" ? error.stack : "", ...lines].join("\n");
  return JSON.stringify({ failed: { message: where + told(error), stack } });
}

/** The same, where `reason` is why a promise was rejected that nobody awaits. */
export function unawaited(reason) {
  return refusal(reason, "a promise that nobody awaits was rejected: ");
}

async function acted(create) {
  if (typeof create !== "function") throw new TypeError("the script doesn't export a function createChallenge");
  // A check may let a whole game be played in one world, as a server does that never restores.
  if (operator === undefined) {
    const context = { messaging, challengeId: call.challenge.id, setDeadline, clearDeadline };
    const created = await create(call.challenge.id, call.options, context);
    for (const name of ["join", "message", "serialize", "restore"]) {
      if (typeof created?.[name] !== "function") {
        throw new TypeError(`what createChallenge returns has no function ${name}`);
      }
    }
    if (call.kind !== "create") await created.restore(call.challenge);
    operator = created;
  }
  switch (call.kind) {
    case "join":
      await operator.join(call.invite, call.invite);
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
    throw new TypeError(`serialize() returns the member ${lost}, which isn't kept; only gameState and state are`);
  }
  const { state = operator.state, gameState = operator.gameState } = kept;
  if (typeof state !== "object" || state === null) throw new TypeError("the challenge has no state");
  if (typeof gameState !== "object" || gameState === null || Array.isArray(gameState)) {
    throw new TypeError(`gameState must be an object, not ${named(gameState)}`);
  }
  const stray = Object.keys(state).find((name) => !STATE.includes(name));
  if (stray !== undefined) throw new TypeError(`state.${stray} isn't kept from call to call; gameState is`);
  if (!Array.isArray(state.scores)) throw new TypeError(`state.scores must be an array, not ${named(state.scores)}`);
  state.scores.forEach((score, index) => {
    if (Number.isFinite(score?.security) && Number.isFinite(score?.utility)) return;
    throw new TypeError(`state.scores[${index}] must hold two numbers, security and utility`);
  });
  const wrong = unfit(gameState, 0);
  if (wrong !== undefined) {
    const short = wrong.length > 200 ? `${wrong.slice(0, 60)}…${wrong.slice(-60)}` : wrong;
    throw new TypeError(`gameState${short}`);
  }
  // Whom a script built on BaseChallenge would listen to.
  const handles = operator.handlers instanceof Map ? [...operator.handlers.keys()] : null;
  const { status, scores, players, attributions } = state;
  return { status, scores, players, attributions: attributions ?? [], gameState, handles, ...said };
}

/** What serialize() may return: the members of a stored challenge, of which two are the script's to change. */
const KEPT = ["state", "gameState", "id", "name", "createdAt", "challengeType", "invites", "gameCategory"];
const STATE = ["status", "scores", "players", "attributions", "playerIdentities", "completedAt"];

/** Where something begins that JSON doesn't keep, and what it is; undefined if all of it is kept. */
function unfit(value, depth) {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : ` is ${value}, which JSON doesn't keep`;
    case "object":
      break;
    default:
      return ` is a ${typeof value}, which JSON doesn't keep`;
  }
  if (value === null || typeof value.toJSON === "function") return undefined;
  if (depth > 100) return " is nested too deeply, or contains itself";
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index];
      // Most arrays are of finite numbers, and a call for each takes long.
      if (typeof item === "number" && item - item === 0) continue;
      const wrong = unfit(item, depth + 1);
      if (wrong !== undefined) return `[${index}]${wrong}`;
    }
    return undefined;
  }
  if (value instanceof Map || value instanceof Set || value instanceof Promise || value instanceof RegExp) {
    return ` is a ${value.constructor.name}, which JSON doesn't keep; override serialize() and restore(), or use an array or object`;
  }
  for (const name of Object.keys(value)) {
    const wrong = unfit(value[name], depth + 1);
    if (wrong !== undefined) return `.${name}${wrong}`;
  }
  return undefined;
}

// What a world has of its own: the call's randomness and time, and a console.

// The script may change what is built in before the call begins.
const { parse } = JSON;

// Chris Doty-Humphrey's sfc32, with 53 bits of two draws.
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

// A script that doesn't name it has none.
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

/** A value as a person would want to read it in a log. */
function told(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return named(value);
  }
}

function named(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}
