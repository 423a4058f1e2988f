//! Shared code of food_catcher and cherry_picker: actors gather food, carry it home, and avoid collisions.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::list;

/// A point of the map.
pub type Point = [f64; 2];

/// The load with which an actor goes home. Loads are unlimited, but they don't count and can be lost.
const LOAD: f64 = 40.0;

/// The food that actors leave in a source, because a source grows by a share of its content.
const LEAVE: f64 = 15.0;

/// Tolerance for rounding errors.
const SLACK: f64 = 0.01;

/// Directions around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All
/// actors try the same side first, so two that meet head-on pass each other.
const TURNS: [Point; 7] =
    [[1.0, 0.0], [HALF, -HALF], [HALF, HALF], [0.0, -1.0], [0.0, 1.0], [-HALF, -HALF], [-HALF, HALF]];
const HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// An actor or a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity<'a> {
    /// The entity's id.
    pub id: &'a str,
    /// The id of its agent.
    pub owner_id: &'a str,
    /// The position.
    pub position: Point,
    /// The food that it carries or holds.
    pub food: f64,
    /// The health; at 0 the entity dies.
    pub health: f64,
    /// The initial `health`.
    pub max_health: f64,
}

/// Reads the entities of a list in a state.
pub fn entities(list_of: &Value) -> Vec<Entity<'_>> {
    let entity = |value| Entity {
        id: text(value, "id"),
        owner_id: text(value, "owner_id"),
        position: position(value),
        food: number(value, "food"),
        health: number(value, "health"),
        max_health: number(value, "max_health"),
    };
    list(list_of).iter().map(entity).collect()
}

/// Returns a numeric member; 0 if it is missing.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

/// Returns the distance of two points.
pub fn distance(a: Point, b: Point) -> f64 {
    ((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])).sqrt()
}

/// An actor's known position at the end of the epoch, and the distance that other actors must keep.
struct Place<'a> {
    id: &'a str,
    position: Point,
    gap: f64,
}

/// An actor's decision.
enum Choice {
    Go(Point),
    Act(Value),
}

/// Returns actions for all actors and bases with a task, and the actors without one.
pub fn forage<'a>(me: &str, state: &'a Value, config: &Value) -> (Vec<Value>, Vec<Entity<'a>>) {
    let everybody = entities(&state["actors"]);
    let mut actors: Vec<Entity<'_>> = everybody.iter().filter(|actor| actor.owner_id == me).cloned().collect();
    // Actors with larger loads choose first and so have the right of way.
    actors.sort_by(|a, b| b.food.total_cmp(&a.food));
    let bases: Vec<Entity<'_>> = entities(&state["bases"]).into_iter().filter(|base| base.owner_id == me).collect();
    let n_epochs = number(config, "n_epochs");
    let epochs_left = if n_epochs > 0.0 { n_epochs - number(state, "epoch") } else { f64::INFINITY };
    // Of two actors that get too close, one dies. Our own moves are known; an opponent's actor may come a step nearer.
    let gap = 2.0 * number(config, "actor_radius") + SLACK;
    let strangers_gap = gap + number(config, "actor_speed");
    let place = |actor: &Entity<'a>| Place {
        id: actor.id,
        position: actor.position,
        gap: if actor.owner_id == me { gap } else { strangers_gap },
    };
    let mut places: Vec<Place<'_>> = everybody.iter().map(place).collect();
    let mut claimed = HashMap::new();
    let (mut actions, mut idle) = (Vec::new(), Vec::new());
    let actors_count = actors.len();
    for actor in actors {
        match choose(&actor, &bases, &state["foods"], &mut claimed, config, epochs_left) {
            Some(Choice::Act(action)) => actions.push(action),
            Some(Choice::Go(target)) => match step(&actor, target, &places, config) {
                Some(position) => {
                    places.iter_mut().filter(|place| place.id == actor.id).for_each(|place| place.position = position);
                    actions.push(json!({"action": "move", "actor_id": actor.id, "target": position}));
                }
                None => idle.push(actor),
            },
            None => idle.push(actor),
        }
    }
    // A new actor must bring in more than it costs, so their number is limited, and spawning stops in time.
    let cost = number(config, "spawn_actor_cost");
    if actors_count < 2 * list(&state["foods"]).len() && epochs_left > 3.0 * cost {
        for base in bases {
            let is_free = places.iter().all(|place| distance(place.position, base.position) >= place.gap);
            if is_free && base.food >= cost {
                actions.push(json!({"action": "spawn", "base_id": base.id}));
            }
        }
    }
    (actions, idle)
}

/// Returns an actor's action without regard to collisions. `claimed` is the part of each source that other actors aim
/// for.
fn choose<'a>(
    actor: &Entity<'_>,
    bases: &[Entity<'_>],
    foods: &'a Value,
    claimed: &mut HashMap<&'a str, f64>,
    config: &Value,
    epochs_left: f64,
) -> Option<Choice> {
    let way_to = |base: &&Entity<'_>| distance(actor.position, base.position);
    let base = bases.iter().min_by(|a, b| way_to(a).total_cmp(&way_to(b)));
    if base.is_none() && actor.food >= number(config, "make_base_cost") {
        return Some(Choice::Act(json!({"action": "make_base", "actor_id": actor.id})));
    }
    let way_home = base.as_ref().map_or(0.0, way_to);
    if let Some(base) = base.filter(|_| way_home <= number(config, "deposit_food_max_distance")) {
        if actor.food > 0.0 {
            return Some(Choice::Act(json!({"action": "deposit_food", "actor_id": actor.id, "base_id": base.id})));
        }
        if actor.health < actor.max_health / 2.0 && base.food > 0.0 {
            return Some(Choice::Act(json!({"action": "heal", "actor_id": actor.id, "base_id": base.id})));
        }
    }
    // Without a base there is no home, and a new base is paid from the actor's load.
    let room = if base.is_some() { LOAD } else { number(config, "make_base_cost") } - actor.food;
    let speed = number(config, "actor_speed");
    let is_late = base.is_some() && way_home / speed + 10.0 >= epochs_left;
    let foods = if room > 0.0 && !is_late { list(foods) } else { &[] };
    let (mut best, mut best_rate, mut best_gain) = (None, 0.0, 0.0);
    for food in foods {
        let others = claimed.get(text(food, "id")).copied().unwrap_or(0.0);
        let gain = room.min(number(food, "quantity") - LEAVE - others);
        let way = distance(actor.position, position(food));
        let way_back = base.map_or(0.0, |base| distance(position(food), base.position));
        let rate = gain / (1.0 + (way + way_back) / speed + gain / number(config, "take_food_speed"));
        if rate > best_rate {
            (best, best_rate, best_gain) = (Some(food), rate, gain);
        }
    }
    if let Some(food) = best {
        let id = text(food, "id");
        *claimed.entry(id).or_default() += best_gain;
        return match distance(actor.position, position(food)) <= number(config, "take_food_max_distance") {
            true => Some(Choice::Act(json!({"action": "take_food", "actor_id": actor.id, "food_id": id}))),
            false => Some(Choice::Go(position(food))),
        };
    }
    base.filter(|_| actor.food > 0.0).map(|base| Choice::Go(base.position))
}

/// Returns the next position on the way to a target at a safe distance from others, or `None` to wait.
fn step(actor: &Entity<'_>, target: Point, places: &[Place<'_>], config: &Value) -> Option<Point> {
    let [x, y] = actor.position;
    let way = distance(actor.position, target);
    if way == 0.0 {
        return None;
    }
    let length = way.min(number(config, "actor_speed"));
    let (dx, dy) = ((target[0] - x) / way * length, (target[1] - y) / way * length);
    // Actors further away can't be in the way.
    let is_near =
        |place: &&Place<'_>| place.id != actor.id && distance(place.position, actor.position) < place.gap + length;
    let others: Vec<&Place<'_>> = places.iter().filter(is_near).collect();
    TURNS
        .iter()
        .map(|[cosine, sine]| {
            let turned = [x + dx * cosine - dy * sine, y + dx * sine + dy * cosine];
            [
                turned[0].max(0.0).min(number(config, "grid_width")),
                turned[1].max(0.0).min(number(config, "grid_height")),
            ]
        })
        .find(|position| others.iter().all(|other| distance(*position, other.position) >= other.gap))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn position(value: &Value) -> Point {
    let at = &value["position"];
    [at[0].as_f64().unwrap_or(0.0), at[1].as_f64().unwrap_or(0.0)]
}
