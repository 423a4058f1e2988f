#!/usr/bin/env node
// A template for an agent. It follows the protocol and takes no actions.

"use strict";

const colosseum = require("./colosseum.js");

// Returns the actions of this epoch.
function decide(me, state, config) {
  console.error(`${me} sees ${Object.keys(state).sort()} in epoch ${state.epoch}`);
  // Fill this in. docs/agents.md has the states and actions of each game; an action of snake is
  // { action: "move", move: "UP" }
  return [];
}

colosseum.run("template-js", "1", decide);
