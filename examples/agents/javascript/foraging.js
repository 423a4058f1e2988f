// Shared code of food_catcher and cherry_picker: actors gather food, carry it home, and avoid collisions.

"use strict";

// The load with which an actor goes home. Loads are unlimited, but they don't count and can be lost.
const LOAD = 40;

// The food that actors leave in a source, because a source grows by a share of its content.
const LEAVE = 15;

// Tolerance for rounding errors.
const SLACK = 0.01;

// Directions around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All actors try the
// same side first, so two that meet head-on pass each other.
const HALF = Math.sqrt(0.5);
const TURNS = [[1, 0], [HALF, -HALF], [HALF, HALF], [0, -1], [0, 1], [-HALF, -HALF], [-HALF, HALF]];

// Returns actions for all actors and bases with a task, and the actors without one.
function forage(me, state, config) {
  // Actors with larger loads choose first and so have the right of way.
  const actors = state.actors.filter((actor) => actor.owner_id === me).sort((a, b) => b.food - a.food);
  const bases = state.bases.filter((base) => base.owner_id === me);
  const epochsLeft = config.n_epochs > 0 ? config.n_epochs - state.epoch : Infinity;
  // Known positions at the end of the epoch, and the distance that other actors must keep: of two actors
  // that get too close, one dies. Our own moves are known; an opponent's actor may come a step nearer.
  const gap = 2 * config.actor_radius + SLACK;
  const places = new Map(
    state.actors.map(({ id, owner_id, position }) => [
      id,
      { position, gap: owner_id === me ? gap : gap + config.actor_speed },
    ]),
  );
  const claimed = new Map();
  const actions = [];
  const idle = [];
  for (const actor of actors) {
    let action = choose(actor, bases, state.foods, claimed, config, epochsLeft);
    if (action?.action === "move") {
      const position = step(actor, action.target, places, config);
      action = position && { ...action, target: position };
      places.set(actor.id, { position: position ?? actor.position, gap });
    }
    if (action) actions.push(action);
    else idle.push(actor);
  }
  // A new actor must bring in more than it costs, so their number is limited, and spawning stops in time.
  if (actors.length < 2 * state.foods.length && epochsLeft > 3 * config.spawn_actor_cost) {
    for (const base of bases) {
      const isFree = [...places.values()].every((place) => distance(place.position, base.position) >= place.gap);
      if (isFree && base.food >= config.spawn_actor_cost) actions.push({ action: "spawn", base_id: base.id });
    }
  }
  return { actions, idle };
}

// Returns an actor's action without regard to collisions. `claimed` is the part of each source that other actors aim for.
function choose(actor, bases, foods, claimed, config, epochsLeft) {
  const base = nearest(actor, bases);
  if (base === null && actor.food >= config.make_base_cost) return { action: "make_base", actor_id: actor.id };
  const wayHome = base ? distance(actor.position, base.position) : 0;
  if (base && wayHome <= config.deposit_food_max_distance) {
    if (actor.food > 0) return { action: "deposit_food", actor_id: actor.id, base_id: base.id };
    if (actor.health < actor.max_health / 2 && base.food > 0) {
      return { action: "heal", actor_id: actor.id, base_id: base.id };
    }
  }
  // Without a base there is no home, and a new base is paid from the actor's load.
  const room = (base ? LOAD : config.make_base_cost) - actor.food;
  const isLate = base && wayHome / config.actor_speed + 10 >= epochsLeft;
  let best = null;
  let bestRate = 0;
  let bestGain = 0;
  for (const food of room > 0 && !isLate ? foods : []) {
    const gain = Math.min(room, food.quantity - LEAVE - (claimed.get(food.id) ?? 0));
    const way = distance(actor.position, food.position);
    const wayBack = base ? distance(food.position, base.position) : 0;
    const rate = gain / (1 + (way + wayBack) / config.actor_speed + gain / config.take_food_speed);
    if (rate > bestRate) [best, bestRate, bestGain] = [food, rate, gain];
  }
  if (best) {
    claimed.set(best.id, (claimed.get(best.id) ?? 0) + bestGain);
    if (distance(actor.position, best.position) <= config.take_food_max_distance) {
      return { action: "take_food", actor_id: actor.id, food_id: best.id };
    }
    return { action: "move", actor_id: actor.id, target: best.position };
  }
  if (base && actor.food > 0) return { action: "move", actor_id: actor.id, target: base.position };
  return null;
}

// Returns the next position on the way to a target at a safe distance from others, or null to wait.
function step(actor, target, places, config) {
  const [x, y] = actor.position;
  const way = distance(actor.position, target);
  if (way === 0) return null;
  const length = Math.min(way, config.actor_speed);
  const [dx, dy] = [((target[0] - x) / way) * length, ((target[1] - y) / way) * length];
  // Actors further away can't be in the way.
  const others = [];
  for (const [id, place] of places) {
    if (id !== actor.id && distance(place.position, actor.position) < place.gap + length) others.push(place);
  }
  for (const [cosine, sine] of TURNS) {
    const position = [
      Math.min(Math.max(x + dx * cosine - dy * sine, 0), config.grid_width),
      Math.min(Math.max(y + dx * sine + dy * cosine, 0), config.grid_height),
    ];
    if (others.every((other) => distance(position, other.position) >= other.gap)) return position;
  }
  return null;
}

// Returns the nearest of `entities` to an actor, or null if there are none.
function nearest(actor, entities) {
  let best = null;
  for (const entity of entities) {
    if (best === null || distance(actor.position, entity.position) < distance(actor.position, best.position)) best = entity;
  }
  return best;
}

// Returns the distance of two points.
function distance(a, b) {
  return Math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2);
}

module.exports = { forage, distance };
