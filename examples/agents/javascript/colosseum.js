// The protocol: JSON objects on lines, read from stdin and answered on stdout. The agent decides the actions.

"use strict";

const fs = require("fs");

// Stdout is reserved for the protocol. From here on, console.log() writes to stderr, which is the agent's log.
console.log = console.info = console.debug = console.error;

// Plays one match. `decide(me, state, config)` receives the agent's id, the state, and the constants of the game, and
// returns a list of actions.
function run(name, version, decide) {
  let me = null;
  let config = {};
  for (const line of lines()) {
    const message = read(line);
    if ("stop" in message) return;
    const reply = {};
    if ("ping" in message) reply.pong = "pong";
    if ("set_agent_id" in message) {
      me = message.set_agent_id;
      config = message.config ?? {};
      Object.assign(reply, { agent_id: me, agent_name: name, agent_version: version });
    }
    if ("world_state" in message) {
      Object.assign(reply, { agent_id: me, actions: tryToDecide(decide, me, message.world_state, config) });
    }
    if (Object.keys(reply).length > 0) write(JSON.stringify(reply) + "\n");
  }
}

// Reads the lines of stdin, with blocking calls, because an agent has no other work while it waits.
function* lines() {
  const chunk = Buffer.alloc(65536);
  let parts = [];
  for (;;) {
    const length = fs.readSync(0, chunk);
    if (length === 0) return;
    let start = 0;
    for (let end; (end = chunk.subarray(0, length).indexOf(10, start)) >= 0; start = end + 1) {
      parts.push(Buffer.from(chunk.subarray(start, end)));
      yield Buffer.concat(parts).toString("utf8");
      parts = [];
    }
    parts.push(Buffer.from(chunk.subarray(start, length)));
  }
}

function read(line) {
  try {
    const message = JSON.parse(line);
    if (typeof message === "object" && message !== null) return message;
  } catch (error) {
    console.error(`not JSON: ${error.message}`);
  }
  return {};
}

function tryToDecide(decide, me, state, config) {
  // An epoch without actions is better than a crash, which ends the match.
  try {
    return decide(me, state, config);
  } catch (error) {
    console.error(error);
    return [];
  }
}

function write(text) {
  // A pipe may accept a part of the bytes.
  let rest = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(fs.writeSync(1, rest));
}

module.exports = { run };
