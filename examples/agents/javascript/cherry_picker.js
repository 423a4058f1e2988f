#!/usr/bin/env node
// Cherry picker: gathers food in a world of its own. See foraging.js.

"use strict";

const colosseum = require("./colosseum.js");
const { forage } = require("./foraging.js");

// Returns actions for our actors and bases.
function decide(me, state, config) {
  return forage(me, state, config).actions;
}

colosseum.run("cherry-picker-js", "1", decide);
