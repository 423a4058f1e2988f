//! The constants of a map and of what is on it.

use arena_model::OptionsError;
use serde::{Deserialize, Serialize};

use super::told::options_of_map;
use crate::games::check_bounds;

/// The constants that agents are told and users may set. The defaults are those of food_catcher. Lengths are in units
/// of the map; `options_of_map` has the bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constants {
    /// Width of the map: positions are from 0 to this.
    pub grid_width: u32,
    /// Height of the map, likewise.
    pub grid_height: u32,
    /// Sources are added, four at a time, while there are fewer than this.
    pub max_food_sources: usize,
    /// How near a source has to be for an actor to take from it.
    pub take_food_max_distance: f64,
    /// How near a base has to be for an actor to deposit there or to be healed.
    pub deposit_food_max_distance: f64,
    /// Half the distance below which two actors collide.
    pub actor_radius: f64,
    /// How near a victim has to be.
    pub attack_range: f64,
    /// How much food an actor takes in an epoch.
    pub take_food_speed: f64,
    /// What a base pays for an actor.
    pub spawn_actor_cost: f64,
    /// The price that an actor pays to become a base.
    pub make_base_cost: f64,
    /// How far the first bases are from the edges, as a share of the map's width and height.
    pub base_spawn_border_offset: f64,
    /// How far an actor goes in an epoch.
    pub actor_speed: f64,
    /// How much health an attack takes.
    pub actor_damage: f64,
    /// The health with which actors and bases begin, and the most that they can have.
    pub actor_max_health: f64,
    /// The game ends after this many epochs.
    pub n_epochs: u64,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            grid_width: 40,
            grid_height: 40,
            max_food_sources: 10,
            take_food_max_distance: 1.0,
            deposit_food_max_distance: 0.15,
            actor_radius: 0.45,
            attack_range: 5.0,
            take_food_speed: 5.0,
            spawn_actor_cost: 100.0,
            make_base_cost: 500.0,
            base_spawn_border_offset: 0.15,
            actor_speed: 1.0,
            actor_damage: 5.0,
            actor_max_health: 50.0,
            n_epochs: 10_000,
        }
    }
}

impl Constants {
    /// # Errors
    /// When a number is out of its range, which is said.
    pub fn check(&self) -> Result<(), OptionsError> {
        check_bounds(self, &options_of_map(0))
    }
}
