//! The common part of food_catcher and cherry_picker: a map with sources of food, and actors that carry food to
//! bases.
//!
//! A [`World`] holds one map and the agents on it. `food_catcher.rs` and `cherry_picker.rs` define the number of agents
//! on a map, the agents that move and the end of a game.
//!
//! An epoch, in this order:
//!
//! 1. **Food.** Sources with less than 0.1 vanish, the others grow by 5%, up to 50. While there are fewer than
//!    `max_food_sources`, four are added: a random point and its mirror images in both axes, all with the same random
//!    quantity from 0.1 to 50.
//! 2. **Actions.** The agents' lists are processed in an order drawn for the epoch, each from first to last, with
//!    immediate effect. An actor or base acts once in an epoch: the first possible action counts. Later and impossible
//!    actions are rejected and change nothing. An agent acts with its own actors and bases only, but may leave food in
//!    any base. An actor or base that has died in this epoch does nothing more and is no valid target. A new actor acts
//!    from the next epoch on.
//! 3. **Deaths.** Actors and bases without health leave the map, and their food is lost.
//! 4. **Collisions.** Two actors collide if they are closer than twice `actor_radius`, also two of one owner. Positions
//!    and loads at the start of this step count. Actors are processed by load, the smallest first, and equal loads in
//!    an order drawn by lot. Each actor that is alive at its turn kills all actors that it touches and gets their food.
//!    So the dead kill no others, each death has a survivor beside it, and no seat has an advantage. If two actors with
//!    equal loads killed each other, a base that spawns an actor under an empty one would cost its owner both actors,
//!    and perhaps the game.
//!
//! Actions are objects with a key `action`:
//!
//! | action | other keys | what it does |
//! |---|---|---|
//! | `move` | `actor_id`, `target`: `[x, y]` | the actor goes straight towards the target, at most `actor_speed`, and not beyond the edges of the map |
//! | `take_food` | `actor_id`, `food_id` | takes up to `take_food_speed` from a source within `take_food_max_distance` |
//! | `deposit_food` | `actor_id`, `base_id` | puts all that it carries into a base within `deposit_food_max_distance`; the base's owner gets it |
//! | `heal` | `actor_id`, `base_id` | turns food of an own base within `deposit_food_max_distance` into missing health, one for one |
//! | `attack` | `actor_id`, `target`: an id | takes `actor_damage` from the health of another's actor or base within `attack_range` |
//! | `make_base` | `actor_id` | the actor becomes a base at its position: `make_base_cost` of the food that it carries is spent, the rest is in the base, and the actor is gone. This is no death, so it isn't among the `dead_entities` |
//! | `spawn` | `base_id` | pays `spawn_actor_cost` of the base's food for a new actor on the base |
//!
//! An agent can't attack its own actors and bases. An agent has at most [`MAX_ACTORS`] actors and [`MAX_BASES`]
//! bases, so that a state stays small enough for agents to read at once. The food wouldn't suffice for more actors:
//! an actor takes 5 food in an epoch, and a source grows by 2.5 at most.
//!
//! The state holds `foods` (`position`, `quantity`, `id`), `actors` and `bases` (`position`, `id`, `owner_id`, `food`,
//! `health`, `max_health`), and `dead_entities`: the actors and bases that died in the last epoch, with the food that
//! was lost with them (none after a collision). `max_health` is `actor_max_health` for both.
//!
//! Numbers are doubles, computed with sums, products, quotients and square roots only, so they are the same on every
//! machine.

mod action;
pub mod bots;
mod constants;
pub mod descriptions;
mod id;
pub mod picture;
#[cfg(test)]
mod policy;
pub mod terminal;
mod world;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Module, SeatControls};
pub use action::Action;
pub use constants::Constants;
#[cfg(test)]
pub use policy::{any_reply, check_replies, forage, raid};
pub use world::World;

/// The board of a map in a browser.
pub const MODULE: Module =
    Module { name: "foraging", script: include_str!("board.js"), style: include_str!("board.css") };

/// The controls of a seat in a browser.
pub const CONTROLS: SeatControls = SeatControls { name: "foraging", script: include_str!("seat.js") };

/// Returns the options of games that people start against house bots.
pub fn short_options() -> Value {
    json!({ "n_epochs": 200 })
}

/// Reads the scores from a state: the food in each agent's bases.
pub fn read_scores(state: &str, ids: &[String]) -> Option<Vec<Option<f64>>> {
    #[derive(Deserialize)]
    struct State {
        bases: Option<Vec<Base>>,
    }
    #[derive(Deserialize)]
    struct Base {
        owner_id: String,
        food: f64,
    }
    let State { bases } = serde_json::from_str(state).ok()?;
    let of = |id: &String| {
        let own = bases.as_ref()?.iter().filter(|base| base.owner_id == *id);
        Some(own.map(|base| base.food).sum())
    };
    Some(ids.iter().map(of).collect())
}

/// The maximum number of actors of one agent.
pub const MAX_ACTORS: usize = 32;

/// The maximum number of bases of one agent.
pub const MAX_BASES: usize = 8;
