//! The house bots of snake. `careful` goes to the nearest food, unless the step leaves its snake too little room.
//! `hungry` takes the direct way to the food and looks only one step ahead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use crate::bots::{BotInput, HouseBot};

/// The bot that searches the reachable cells before a step.
pub const CAREFUL: HouseBot = HouseBot {
    name: "careful",
    motto: "eats where it keeps room to live",
    method: "move",
    think: |input| think(input, MAX_VISITED),
};

/// The bot that only avoids occupied cells.
pub const HUNGRY: HouseBot = HouseBot {
    name: "hungry",
    motto: "takes the straight way to the food",
    method: "move",
    think: |input| think(input, 1),
};

type Cell = (i64, i64);

const STEPS: [(&str, Cell); 4] = [("UP", (0, -1)), ("RIGHT", (1, 0)), ("DOWN", (0, 1)), ("LEFT", (-1, 0))];

/// The maximum number of cells that a search visits.
const MAX_VISITED: usize = 400;

/// The occupied cells of the grid.
struct Grid {
    size: Cell,
    taken: BTreeSet<Cell>,
    foods: BTreeSet<Cell>,
}

impl Grid {
    fn is_free(&self, cell: Cell) -> bool {
        (0..self.size.0).contains(&cell.0) && (0..self.size.1).contains(&cell.1) && !self.taken.contains(&cell)
    }

    /// Returns the number of cells that are reachable from `start`, up to `most`, and the distance of the nearest
    /// food in these cells.
    fn explore(&self, start: Cell, most: usize) -> (usize, Option<usize>) {
        let mut distances = BTreeMap::from([(start, 0)]);
        let mut open = VecDeque::from([start]);
        let mut food = None;
        while let Some(cell) = open.pop_front().filter(|_| distances.len() < most || food.is_none()) {
            if distances.len() >= MAX_VISITED {
                break;
            }
            let distance = distances[&cell];
            if food.is_none() && self.foods.contains(&cell) {
                food = Some(distance);
            }
            for (_, step) in STEPS {
                let next = (cell.0 + step.0, cell.1 + step.1);
                if self.is_free(next) && !distances.contains_key(&next) {
                    distances.insert(next, distance + 1);
                    open.push_back(next);
                }
            }
        }
        (distances.len().min(most), food)
    }
}

fn think(input: &BotInput<'_>, look: usize) -> Option<String> {
    let snakes = input.state.get("snakes")?.as_object()?;
    let alive = || snakes.iter().filter(|(_, snake)| snake["alive"] == true);
    let own = snakes.get(input.me).filter(|snake| snake["alive"] == true)?;
    let head = cell_of(&own["head_position"])?;
    let length = own["positions"].as_array().map_or(1, Vec::len);
    let grid = Grid {
        size: (input.state.get("grid")?["width"].as_i64()?, input.state.get("grid")?["height"].as_i64()?),
        // Tails count as occupied, because the tail of a snake that has just eaten stays in place.
        taken: alive().flat_map(|(_, snake)| cells_of(&snake["positions"])).collect(),
        foods: input.state.get("foods").map(cells_of).unwrap_or_default().into_iter().collect(),
    };
    let others: Vec<Cell> =
        alive().filter(|(id, _)| *id != input.me).filter_map(|(_, snake)| cell_of(&snake["head_position"])).collect();
    let free = STEPS.iter().map(|(name, step)| (name, (head.0 + step.0, head.1 + step.1)));
    let outlook = |cell: Cell| {
        let (room, food) = grid.explore(cell, look.min(2 * length + 10));
        let beeline = grid.foods.iter().map(|food| apart(cell, *food)).min().unwrap_or(0) as usize;
        // If another snake's head can enter the same cell, both snakes may die. `hungry` ignores this, and uses the
        // distance on an empty grid.
        let is_contested = look > 1 && others.iter().any(|head| apart(cell, *head) == 1);
        let way = if look > 1 { food.unwrap_or(MAX_VISITED + beeline) } else { beeline };
        (room, !is_contested, std::cmp::Reverse(way))
    };
    let best = free.filter(|(_, cell)| grid.is_free(*cell)).max_by_key(|(_, cell)| outlook(*cell));
    // If every step is fatal, the bot goes up.
    Some(best.map_or("UP", |(name, _)| name).to_owned())
}

fn cells_of(list: &Value) -> Vec<Cell> {
    list.as_array().into_iter().flatten().filter_map(cell_of).collect()
}

fn cell_of(place: &Value) -> Option<Cell> {
    Some((place.get(0)?.as_i64()?, place.get(1)?.as_i64()?))
}

/// Returns the number of moves between two cells on an empty grid.
fn apart(one: Cell, other: Cell) -> i64 {
    (one.0 - other.0).abs() + (one.1 - other.1).abs()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::bots::BotGame;

    /// Returns the moves of both bots for a snake in the upper left, next to another snake that forms a wall.
    fn steps(foods: &Value) -> [Option<String>; 2] {
        let state = json!({
            "grid": {"width": 5, "height": 5},
            "foods": foods,
            "snakes": {
                "me": {"alive": true, "head_position": [1, 2], "positions": [[1, 2], [1, 3], [1, 4], [2, 4]]},
                "wall": {"alive": true, "head_position": [2, 0], "positions": [[2, 0], [2, 1], [2, 2], [2, 3], [3, 3]]},
            },
        });
        let state: Map<String, Value> = serde_json::from_value(state).unwrap();
        [&CAREFUL, &HUNGRY].map(|player| BotGame::of(player, 0).decide("me", &state))
    }

    #[test]
    fn both_go_to_the_food_beside_them() {
        let left = Some("LEFT".to_owned());
        assert_eq!(steps(&json!([[0, 2]])), [left.clone(), left]);
    }

    #[test]
    fn the_dead_move_no_more() {
        let state = json!({"grid": {"width": 5, "height": 5}, "foods": [], "snakes": {"me": {"alive": false}}});
        assert_eq!(BotGame::of(&CAREFUL, 0).decide("me", state.as_object().unwrap()), None);
    }
}
