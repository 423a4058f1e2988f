#!/usr/bin/env node
// Food catcher: gathers food, and whoever has nothing better to do shoots at enemies in range. See foraging.js.

"use strict";

const colosseum = require("./colosseum.js");
const { forage, distance } = require("./foraging.js");

// Actions for our actors and bases.
function decide(me, state, config) {
  const { actions, idle } = forage(me, state, config);
  // A base that falls takes its food with it, so bases come first, and among each kind the weakest.
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
