//! The constants of a map and its entities.

use arena_model::OptionsError;
use serde::{Deserialize, Serialize};

use super::descriptions::options_of_map;
use crate::games::check_bounds;

/// The constants that agents receive and users may set. The defaults are those of food_catcher. Lengths are in units of
/// the map; `options_of_map` has the bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constants {
    /// The width of the map; the largest x of a position.
    pub grid_width: u32,
    pub grid_height: u32,
    /// The number of sources below which four new ones are added.
    pub max_food_sources: usize,
    /// The maximum distance from an actor to a source from which it takes food.
    pub take_food_max_distance: f64,
    /// The maximum distance from an actor to a base for a deposit or for healing.
    pub deposit_food_max_distance: f64,
    /// Half the distance below which two actors collide.
    pub actor_radius: f64,
    pub attack_range: f64,
    /// The food that an actor takes in an epoch.
    pub take_food_speed: f64,
    pub spawn_actor_cost: f64,
    /// The price of a base, paid by the actor that becomes it.
    pub make_base_cost: f64,
    /// The distance of the first bases from the edges, as a share of the map's width and height.
    pub base_spawn_border_offset: f64,
    /// The distance that an actor moves in an epoch.
    pub actor_speed: f64,
    /// The health that an attack takes.
    pub actor_damage: f64,
    /// The initial and maximum health of actors and bases.
    pub actor_max_health: f64,
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
    /// If a constant is out of range. The text names the constant.
    pub fn check(&self) -> Result<(), OptionsError> {
        check_bounds(self, &options_of_map(0))
    }
}
