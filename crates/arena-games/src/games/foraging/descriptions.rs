//! The descriptions of options and actions of these games, for players.

use arena_model::SettingRange::{Real, Whole};
use arena_model::{Setting, SettingRange, TURN_MS_SETTING};

use crate::games::{EPOCHS, PLAYERS};

/// The options of a session on such a map, with at most `seats` seats. Their bounds apply to
/// [`Constants`](super::Constants) as well.
pub const fn options_of_map(seats: i64) -> [Setting; 17] {
    const LENGTH: SettingRange = Real(0.0, 1000.0);
    const AMOUNT: SettingRange = Real(0.0, 1e6);
    [
        Setting::new("players", Whole(2, seats), PLAYERS),
        TURN_MS_SETTING,
        // The first actors can't touch on a map of 10, with the bounds of the radius and the border.
        Setting::new("grid_width", Whole(10, 1000), "Width of the map."),
        Setting::new("grid_height", Whole(10, 1000), "Height of the map."),
        // A source takes some 90 bytes of a state, and a state must fit into a pipe's 64 KiB.
        Setting::new("max_food_sources", Whole(1, 64), "Number of sources below which four new ones appear."),
        Setting::new("take_food_max_distance", LENGTH, "Maximum distance to a source for taking food."),
        Setting::new("deposit_food_max_distance", LENGTH, "Maximum distance to a base for a deposit or healing."),
        Setting::new("actor_radius", Real(0.0, 0.9), "Half the distance below which two actors collide."),
        Setting::new("attack_range", LENGTH, "Maximum distance of an attack."),
        Setting::new("take_food_speed", AMOUNT, "Food that an actor takes per epoch."),
        Setting::new("spawn_actor_cost", AMOUNT, "Food that a base pays for an actor."),
        Setting::new("make_base_cost", AMOUNT, "Food that an actor pays to become a base."),
        Setting::new(
            "base_spawn_border_offset",
            Real(0.0, 0.4),
            "Distance of the first bases from the edges, as a share of the map's width and height.",
        ),
        Setting::new("actor_speed", LENGTH, "Distance that an actor moves per epoch."),
        Setting::new("actor_damage", AMOUNT, "Health that an attack takes."),
        Setting::new("actor_max_health", Real(1.0, 1e6), "Initial and maximum health of actors and bases."),
        Setting::new("n_epochs", Whole(1, 1_000_000), EPOCHS),
    ]
}

/// The action `move` with its description.
pub const MOVE: (&str, &str) = (
    "move",
    "An actor moves up to `actor_speed` toward a point: `{\"action\": \"move\", \"actor_id\": \"…\", \"target\": [x, y]}`.",
);
pub const TAKE_FOOD: (&str, &str) = (
    "take_food",
    "An actor takes up to `take_food_speed` food from a source within `take_food_max_distance`: keys `actor_id`, `food_id`.",
);
pub const DEPOSIT_FOOD: (&str, &str) = (
    "deposit_food",
    "An actor puts all food that it carries into a base within `deposit_food_max_distance`; the base's owner gets the food: keys `actor_id`, `base_id`.",
);
pub const HEAL: (&str, &str) = (
    "heal",
    "An actor regains missing health for food of an own base within `deposit_food_max_distance`, one for one: keys `actor_id`, `base_id`.",
);
pub const SPAWN: (&str, &str) =
    ("spawn", "A base pays `spawn_actor_cost` of its food for a new actor at its position: key `base_id`.");
pub const ATTACK: (&str, &str) = (
    "attack",
    "An actor takes `actor_damage` from the health of another player's actor or base within `attack_range`: keys `actor_id`, `target` (an id).",
);
pub const MAKE_BASE: (&str, &str) = (
    "make_base",
    "An actor becomes a base at its position. This costs `make_base_cost` of the food that it carries; the rest is in the base, and the actor is gone: key `actor_id`.",
);
