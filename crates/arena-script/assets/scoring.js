// One call of a scoring strategy: several games in their order, with the rows that the strategy may read and change. As
// session.js, on which this module builds, it runs in a world of its own and cleans up nothing.

import { answered, begin as read, equip, isAsked, named, restart, said, unawaited, unfit } from "arena:session";

export { equip, isAsked, unawaited };

// Saved here, because the script may change built-in objects before the call begins.
const { parse, stringify } = JSON;

let call;
// The rows by board and player; the strategy's own state is the row of the player "".
const boards = new Map();
const changed = new Set();

export function begin(input) {
  call = read(input);
  for (const [board, player, entry, state] of call.rows) rowsOf(board).set(player, { board, player, entry, state });
}

/** Runs the updates. Returns undefined, or a JSON text for a failure. */
export function act(exports) {
  return answered(async () => {
    const strategy = strategyIn(exports);
    for (const { board, result, random } of call.games) {
      restart(result.completedAt, random);
      await strategy.update(result, storeOf(rowsOf(board), board, new Set(Object.values(result.playerIdentities))));
    }
  });
}

/** Returns the changed rows, as a JSON text. */
export function tell() {
  return answered(async () => {
    const rows = [...changed].map(({ board, player, entry, state }) => [board, player, entry, state]);
    return stringify({ counted: { rows, log: said.log } });
  });
}

/** Returns the strategy: the module itself, its default export, or another exported object with `update`. */
function strategyIn(exports) {
  const isStrategy = (value) => typeof value?.update === "function";
  const strategy = [exports, exports.default, ...Object.values(exports)].find(isStrategy);
  if (strategy === undefined) throw new TypeError("the script exports no function update, and no object with one");
  return strategy;
}

function rowsOf(board) {
  let rows = boards.get(board);
  if (rows === undefined) boards.set(board, (rows = new Map()));
  return rows;
}

/** Returns the `store` of one game. */
function storeOf(rows, board, players) {
  const rowOf = (player) => {
    let row = rows.get(player);
    if (row === undefined) rows.set(player, (row = { board, player, entry: null, state: null }));
    return row;
  };
  const rowOfPlayer = (player) => {
    if (players.has(player)) return rowOf(player);
    const name = typeof player === "string" ? stringify(player.slice(0, 100)) : named(player);
    throw new TypeError(`${name} isn't the id of a player of this game; use the values of result.playerIdentities`);
  };
  // Without a player, the state is about all. A player who isn't known is an error.
  const rowOfState = (players) => (players.length === 0 ? rowOf("") : rowOfPlayer(players[0]));
  const get = (player) => {
    const { entry } = rowOfPlayer(player);
    return entry === null ? undefined : { playerId: player, ...entry, metrics: { ...entry.metrics } };
  };
  const set = (entry) => {
    if (typeof entry !== "object" || entry === null) throw new TypeError(`an entry must be an object, not ${named(entry)}`);
    const { playerId, gamesPlayed, metrics, ...others } = entry;
    const row = rowOfPlayer(playerId);
    const stray = Object.keys(others)[0];
    if (stray !== undefined) throw new TypeError(`an entry has no member ${stray}; use setState for more data`);
    if (!Number.isSafeInteger(gamesPlayed) || gamesPlayed < 0) {
      throw new TypeError(`gamesPlayed must be a whole number, not ${shown(gamesPlayed)}`);
    }
    const numbers = {};
    for (const key of Object.keys(metrics ?? {})) {
      if (!call.metrics.includes(key)) throw new TypeError(`the metric ${key} isn't in scoring.json`);
    }
    for (const key of call.metrics) {
      const value = metrics?.[key];
      if (!Number.isFinite(value)) throw new TypeError(`the metric ${key} must be a finite number, not ${shown(value)}`);
      numbers[key] = value;
    }
    row.entry = { gamesPlayed, metrics: numbers };
    changed.add(row);
  };
  const getState = (...players) => {
    const { state } = rowOfState(players);
    return state === null ? undefined : parse(state);
  };
  const setState = (state, ...players) => {
    const row = rowOfState(players);
    const wrong = unfit(state, 0)?.replace("override serialize() and restore(), or ", "");
    if (wrong !== undefined) throw new TypeError(`the state${wrong.slice(0, 200)}`);
    const text = state === undefined ? null : stringify(state);
    const isOfAll = players.length === 0;
    const most = isOfAll ? call.stateBytes : call.playerStateBytes;
    if (text?.length > most) {
      const whose = isOfAll ? "the strategy's state" : "a player's state";
      throw new RangeError(`${whose} has grown to ${text.length} characters; at most ${most} are allowed`);
    }
    row.state = text;
    changed.add(row);
  };
  return {
    get,
    set,
    getState,
    setState,
    // The same under the names of the reference server. A store belongs to one challenge and one strategy.
    getScoreEntry: async (_challengeType, _strategyName, playerId) => get(playerId),
    setScoreEntry: async (_challengeType, _strategyName, entry) => set(entry),
    getStrategyState: async (_challengeType, _strategyName, ...playerId) => getState(...playerId),
    setStrategyState: async (_challengeType, _strategyName, playerId, state) => setState(state, playerId),
  };
}

function shown(value) {
  return typeof value === "number" ? `${value}` : named(value);
}
