#!/usr/bin/env node
// Snake: goes to the nearest food from which it can still reach its own tail, which it can follow forever.

"use strict";

const colosseum = require("./colosseum.js");

const MOVES = { UP: [0, -1], RIGHT: [1, 0], DOWN: [0, 1], LEFT: [-1, 0] };

// Number of cells that a search visits beyond the snake's length, so that a step takes milliseconds on any grid.
const LOOK = 1000;

// Food eaten up to the previous epoch.
let eaten = 0;

// Returns the most promising move.
function decide(me, state, config) {
  const snakes = Object.entries(state.snakes).filter(([, snake]) => snake.alive);
  const own = snakes.find(([name]) => name === me)?.[1];
  if (own === undefined) return [];
  const { width, height } = state.grid;
  // Cells as numbers, because sets compare lists by identity.
  const number = ([x, y]) => y * width + x;
  const foods = new Map(state.foods.map((food) => [number(food), food]));
  // Other snakes' tails count as occupied: most of them move on, but the tail of a snake that has just eaten stays.
  const taken = new Set(snakes.flatMap(([, snake]) => snake.positions.map(number)));
  const heads = snakes.filter(([name]) => name !== me).map(([, snake]) => snake.head_position);
  const length = own.positions.length;
  const tail = own.positions[length - 1];
  const [x, y] = own.head_position;
  const before = eaten;
  eaten = state.score[me] ?? 0;
  if (eaten === before) taken.delete(number(tail));
  const isFree = ([x, y]) => x >= 0 && x < width && y >= 0 && y < height && !taken.has(number([x, y]));

  let best = null;
  let bestOutlook = null;
  for (const [move, [dx, dy]] of Object.entries(MOVES)) {
    const cell = [x + dx, y + dy];
    if (!isFree(cell)) continue;
    const [isWayOut, room, distance] = explore(cell, isFree, number, foods, length, tail);
    // If another head is one step away, both snakes could die.
    const isContested = heads.some((head) => steps(cell, head) === 1);
    const outlook = [isWayOut ? 1 : 0, Math.min(room, length), isContested ? 0 : 1, -distance, room];
    if (best === null || isGreater(outlook, bestOutlook)) [best, bestOutlook] = [move, outlook];
  }
  return best === null ? [] : [{ action: "move", move: best }];
}

// Searches from a cell for a path to our tail, the number of reachable free cells, and the distance to food. Stops when
// the result is known.
function explore(start, isFree, number, foods, length, tail) {
  const distances = new Map([[number(start), 0]]);
  const queue = [start];
  let nearest = null;
  let isWayOut = steps(start, tail) === 0;
  for (let next = 0; next < queue.length; next += 1) {
    if (distances.size >= LOOK + length || (nearest !== null && isWayOut)) break;
    const cell = queue[next];
    const distance = distances.get(number(cell));
    if (nearest === null && foods.has(number(cell))) nearest = distance;
    for (const [dx, dy] of Object.values(MOVES)) {
      const after = [cell[0] + dx, cell[1] + dy];
      // A tail that stays in this step also stays in the next one if we eat again.
      const stays = cell === start && foods.has(number(start)) && !isFree(tail);
      if (steps(after, tail) === 0 && !stays) isWayOut = true;
      if (isFree(after) && !distances.has(number(after))) {
        distances.set(number(after), distance + 1);
        queue.push(after);
      }
    }
  }
  if (nearest === null) {
    // Without food in the search: the direct distance, plus a constant, so that food in the search counts as nearer.
    const beelines = [...foods.values()].map((food) => steps(start, food));
    nearest = LOOK + (beelines.length > 0 ? Math.min(...beelines) : 0);
  }
  return [isWayOut, isWayOut ? length : distances.size, nearest];
}

// Returns the distance of two cells on an empty grid, in moves.
function steps(a, b) {
  return Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]);
}

// True if the first list is greater: the first different item decides.
function isGreater(a, b) {
  const differs = a.findIndex((item, index) => item !== b[index]);
  return differs >= 0 && a[differs] > b[differs];
}

colosseum.run("snake-js", "1", decide);
