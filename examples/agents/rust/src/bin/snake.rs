//! Snake: goes to the nearest food from which it can still reach its own tail, which it can follow forever.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};

use example_agents::{list, run};
use serde_json::{Value, json};

type Cell = (i64, i64);

const MOVES: [(&str, Cell); 4] = [("UP", (0, -1)), ("RIGHT", (1, 0)), ("DOWN", (0, 1)), ("LEFT", (-1, 0))];

/// Number of cells that a search visits beyond the snake's length, so that a step takes milliseconds on any grid.
const LOOK: usize = 1000;

/// Returns the most promising move. `eaten` is the food eaten up to the previous epoch.
fn decide(me: &str, state: &Value, eaten: &mut i64) -> Vec<Value> {
    let Some(snakes) = state["snakes"].as_object() else { return Vec::new() };
    let snakes: Vec<(&String, &Value)> = snakes.iter().filter(|(_, snake)| snake["alive"] == true).collect();
    let Some((_, own)) = snakes.iter().find(|(name, _)| *name == me) else { return Vec::new() };
    let (width, height) = pair(&state["grid"]["width"], &state["grid"]["height"]);
    let foods: HashSet<Cell> = list(&state["foods"]).iter().map(cell).collect();
    // Other snakes' tails count as occupied: most of them move on, but the tail of a snake that has just eaten stays.
    let mut taken: HashSet<Cell> = snakes.iter().flat_map(|(_, snake)| list(&snake["positions"])).map(cell).collect();
    let others = snakes.iter().filter(|(name, _)| *name != me);
    let heads: Vec<Cell> = others.map(|(_, snake)| cell(&snake["head_position"])).collect();
    let length = list(&own["positions"]).len();
    let tail = list(&own["positions"]).last().map_or((-1, -1), cell);
    let (x, y) = cell(&own["head_position"]);
    let score = state["score"][me].as_i64().unwrap_or(0);
    if std::mem::replace(eaten, score) == score {
        taken.remove(&tail);
    }
    let is_free = |(x, y): Cell| (0..width).contains(&x) && (0..height).contains(&y) && !taken.contains(&(x, y));

    let mut best = None;
    for (name, (dx, dy)) in MOVES {
        let cell = (x + dx, y + dy);
        if !is_free(cell) {
            continue;
        }
        let (is_way_out, room, distance) = explore(cell, is_free, &foods, length, tail);
        // If another head is one step away, both snakes could die.
        let is_contested = heads.iter().any(|head| steps(cell, *head) == 1);
        let outlook = (is_way_out, room.min(length), !is_contested, Reverse(distance), room);
        if best.as_ref().is_none_or(|(_, best_outlook)| outlook > *best_outlook) {
            best = Some((name, outlook));
        }
    }
    best.map(|(name, _)| json!({"action": "move", "move": name})).into_iter().collect()
}

/// Searches from a cell for a path to our tail, the number of reachable free cells, and the distance to food. Stops
/// when the result is known.
fn explore(
    start: Cell,
    is_free: impl Fn(Cell) -> bool,
    foods: &HashSet<Cell>,
    length: usize,
    tail: Cell,
) -> (bool, usize, u64) {
    let mut distances = HashMap::from([(start, 0)]);
    let mut queue = VecDeque::from([(start, 0)]);
    let (mut nearest, mut is_way_out) = (None, start == tail);
    while distances.len() < LOOK + length && !(nearest.is_some() && is_way_out) {
        let Some((cell, distance)) = queue.pop_front() else { break };
        if nearest.is_none() && foods.contains(&cell) {
            nearest = Some(distance);
        }
        for (_, (dx, dy)) in MOVES {
            let after = (cell.0 + dx, cell.1 + dy);
            // A tail that stays in this step also stays in the next one if we eat again.
            let stays = cell == start && foods.contains(&start) && !is_free(tail);
            is_way_out |= after == tail && !stays;
            if is_free(after) && !distances.contains_key(&after) {
                distances.insert(after, distance + 1);
                queue.push_back((after, distance + 1));
            }
        }
    }
    // Without food in the search: the direct distance, plus a constant, so that food in the search counts as nearer.
    let beeline = || LOOK as u64 + foods.iter().map(|food| steps(start, *food)).min().unwrap_or(0);
    let room = if is_way_out { length } else { distances.len() };
    (is_way_out, room, nearest.unwrap_or_else(beeline))
}

/// Returns the distance of two cells on an empty grid, in moves.
fn steps(a: Cell, b: Cell) -> u64 {
    a.0.abs_diff(b.0) + a.1.abs_diff(b.1)
}

fn cell(value: &Value) -> Cell {
    pair(&value[0], &value[1])
}

fn pair(x: &Value, y: &Value) -> Cell {
    (x.as_i64().unwrap_or(0), y.as_i64().unwrap_or(0))
}

fn main() -> std::io::Result<()> {
    let mut eaten = 0;
    run("snake-rs", "1", |me, state, _config| decide(me, state, &mut eaten))
}
