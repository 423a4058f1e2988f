#!/usr/bin/env node
// Food catcher: gathers food; actors without a task attack enemies in range. See foraging.js.

"use strict";

const colosseum = require("./colosseum.js");
const { forage, distance } = require("./foraging.js");

// Returns actions for our actors and bases.
function decide(me, state, config) {
  const { actions, idle } = forage(me, state, config);
  // A destroyed base loses its food, so bases come first, and the weakest of each kind.
  const enemies = (entities) =>
    entities.filter((entity) => entity.owner_id !== me).sort((a, b) => a.health - b.health);
  const targets = [...enemies(state.bases), ...enemies(state.actors)];
  for (const actor of idle) {
    const target = targets.find((target) => distance(actor.position, target.position) <= config.attack_range);
    if (target) actions.push({ action: "attack", actor_id: actor.id, target: target.id });
  }
  return actions;
}

colosseum.run("food-catcher-js", "1", decide);
