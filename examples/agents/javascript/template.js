#!/usr/bin/env node
// An agent to start from. It does nothing yet, properly.

"use strict";

const colosseum = require("./colosseum.js");

// What to do in this epoch, as a list of actions.
function decide(me, state, config) {
  console.error(`${me} sees ${Object.keys(state).sort()} in epoch ${state.epoch}`);
  // Fill this in. docs/agents.md has the states and the actions of each game; one of snake is
  // { action: "move", move: "UP" }
  return [];
}

colosseum.run("template-js", "1", decide);
