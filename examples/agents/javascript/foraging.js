// What food_catcher and cherry_picker have in common: actors gather food, carry it home, and keep out of each other's way.

"use strict";

// An actor goes home with this much. Carrying has no limit, but what is carried doesn't count, and can be lost.
const LOAD = 40;

// What is left in a source, since sources grow by a share of what they hold.
const LEAVE = 15;

// A little room for rounding, in everything that is measured.
const SLACK = 0.01;

// Ways around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All try the same side first,
// so two who meet head-on pass each other.
const HALF = Math.sqrt(0.5);
const TURNS = [[1, 0], [HALF, -HALF], [HALF, HALF], [0, -1], [0, 1], [-HALF, -HALF], [-HALF, HALF]];

// Actions for all actors and bases that have something to do, and the actors that haven't.
function forage(me, state, config) {
  // Those who carry most choose first, and so have the right of way.
  const actors = state.actors.filter((actor) => actor.owner_id === me).sort((a, b) => b.food - a.food);
  const bases = state.bases.filter((base) => base.owner_id === me);
  const epochsLeft = config.n_epochs > 0 ? config.n_epochs - state.epoch : Infinity;
  // Where everybody will be at the end of the epoch, as far as we know, and how far from there nobody else must be: of two actors
  // that get too close, one dies. We know where ours go; the others' may come a step nearer.
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
  // A new actor has to bring in more than it costs, so there is a limit to their number, and a time to stop.
  if (actors.length < 2 * state.foods.length && epochsLeft > 3 * config.spawn_actor_cost) {
    for (const base of bases) {
      const isFree = [...places.values()].every((place) => distance(place.position, base.position) >= place.gap);
      if (isFree && base.food >= config.spawn_actor_cost) actions.push({ action: "spawn", base_id: base.id });
    }
  }
  return { actions, idle };
}

// What an actor would do if it were alone. `claimed` is how much of each source others are after.
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
  // Without a base there is nowhere to go, and a new one has to be paid from what one carries.
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

// Where to go next on the way to a target without coming too close to anybody, or null to wait.
function step(actor, target, places, config) {
  const [x, y] = actor.position;
  const way = distance(actor.position, target);
  if (way === 0) return null;
  const length = Math.min(way, config.actor_speed);
  const [dx, dy] = [((target[0] - x) / way) * length, ((target[1] - y) / way) * length];
  // Nobody who is further away can be in the way.
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

// Whichever of `entities` is nearest to an actor, or null if there are none.
function nearest(actor, entities) {
  let best = null;
  for (const entity of entities) {
    if (best === null || distance(actor.position, entity.position) < distance(actor.position, best.position)) best = entity;
  }
  return best;
}

// How far two points are from each other.
function distance(a, b) {
  return Math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2);
}

module.exports = { forage, distance };
