//! What food_catcher and cherry_picker share: a map with sources of food, and actors that carry it to their bases.
//!
//! A [`World`] holds one map and the agents on it. How many share a map, who is asked and when a game ends is said in
//! `food_catcher.rs` and `cherry_picker.rs`.
//!
//! An epoch, in this order:
//!
//! 1. **Food.** Sources with less than 0.1 vanish, the others grow by 5%, up to 50. While there are fewer than
//!    `max_food_sources`, four are added: a random point and its mirror images in both axes, all with the same random
//!    quantity from 0.1 to 50.
//! 2. **Actions.** The agents' lists are taken one after the other, in an order drawn for the epoch, each from first to
//!    last, with immediate effect. An actor or base does one thing in an epoch: the first that it can do. What comes
//!    after that is rejected, and so is whatever can't be done; it changes nothing. One acts with one's own actors and
//!    bases only, but may leave food in any base. Who has died in this epoch does nothing more, and nothing more can be done with them. A new actor
//!    acts from the next epoch on.
//! 3. **Deaths.** Actors and bases without health leave the map, and their food is lost.
//! 4. **Collisions.** Two actors collide when they are closer than twice `actor_radius`, also two of one owner. They
//!    are judged by where everybody stands and what everybody carries when the collisions begin: those who carry least
//!    come first, and those who carry the same in an order drawn by lot. Whoever is alive when its turn comes kills all
//!    whom it touches, and gets their food. So the dead kill nobody, whoever dies has a survivor beside it, and no seat
//!    is favoured. A lot rather than both: a base that spawns while an empty actor stands on it would otherwise cost
//!    its owner the two of them, and perhaps the game.
//!
//! Actions, each an object with a key `action`:
//!
//! | action | other keys | what it does |
//! |---|---|---|
//! | `move` | `actor_id`, `target`: `[x, y]` | the actor goes straight towards the target, at most `actor_speed`, and not beyond the edges of the map |
//! | `take_food` | `actor_id`, `food_id` | takes up to `take_food_speed` from a source within `take_food_max_distance` |
//! | `deposit_food` | `actor_id`, `base_id` | puts all that it carries into a base within `deposit_food_max_distance`, whose owner gets it |
//! | `heal` | `actor_id`, `base_id` | turns food of an own base within `deposit_food_max_distance` into health that is missing, one for one |
//! | `attack` | `actor_id`, `target`: an id | takes `actor_damage` from the health of another's actor or base within `attack_range` |
//! | `make_base` | `actor_id` | the actor becomes a base where it stands: `make_base_cost` of the food that it carries is spent, the rest is in the base, and the actor is gone. Nobody has died of that, so it isn't among the `dead_entities` |
//! | `spawn` | `base_id` | pays `spawn_actor_cost` of the base's food for a new actor on the base |
//!
//! What is one's own can't be attacked. An agent has at most [`MAX_ACTORS`] actors and [`MAX_BASES`] bases, so that a
//! state stays a message that agents can read in one go. More actors couldn't be fed: one takes 5 food in an epoch, and a
//! source grows by 2.5 at most.
//!
//! The state holds `foods` (`position`, `quantity`, `id`), `actors` and `bases` (`position`, `id`, `owner_id`, `food`,
//! `health`, `max_health`), and `dead_entities`, which are the actors and bases that died in the last epoch: with the
//! food that is lost with them, which is none after a collision. `max_health` is `actor_max_health` for both.
//!
//! Numbers are doubles, and nothing but sums, products, quotients and square roots is made of them, so they are the
//! same everywhere.

mod action;
mod constants;
mod id;
#[cfg(test)]
mod policy;
pub mod terminal;
pub mod told;
mod world;

use serde::Deserialize;

use crate::Module;
pub use action::Action;
pub use constants::Constants;
#[cfg(test)]
pub use policy::{any_reply, check_replies, forage, raid};
pub use world::World;

/// The board of a map in a browser.
pub const MODULE: Module = Module { name: "foraging", script: include_str!("board.js"), style: "" };

/// The scores that a state contains: the food in each agent's bases.
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

/// The most actors of one agent.
pub const MAX_ACTORS: usize = 32;

/// The most bases of one agent.
pub const MAX_BASES: usize = 8;
