//! The options and actions of the games on such a map, as players are told of them.

use arena_model::SettingRange::{Real, Whole};
use arena_model::{Setting, SettingRange, TURN_MS_SETTING};

use crate::games::{EPOCHS, PLAYERS};

/// The options of a session on such a map, with at most `seats` seats. Their bounds hold for [`Constants`](super::Constants) as well.
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
        Setting::new("max_food_sources", Whole(1, 64), "New sources of food come when there are fewer."),
        Setting::new("take_food_max_distance", LENGTH, "How near an actor has to be to take food from a source."),
        Setting::new(
            "deposit_food_max_distance",
            LENGTH,
            "How near an actor has to be to leave food in a base, or to be healed.",
        ),
        Setting::new("actor_radius", Real(0.0, 0.9), "Half the distance below which two actors collide."),
        Setting::new("attack_range", LENGTH, "How near a victim has to be."),
        Setting::new("take_food_speed", AMOUNT, "How much food an actor takes in an epoch."),
        Setting::new("spawn_actor_cost", AMOUNT, "What a base pays for an actor."),
        Setting::new("make_base_cost", AMOUNT, "What an actor pays to become a base."),
        Setting::new(
            "base_spawn_border_offset",
            Real(0.0, 0.4),
            "How far the first bases are from the edges, as a share of the map's width and height.",
        ),
        Setting::new("actor_speed", LENGTH, "How far an actor goes in an epoch."),
        Setting::new("actor_damage", AMOUNT, "How much health an attack takes."),
        Setting::new(
            "actor_max_health",
            Real(1.0, 1e6),
            "The health with which actors and bases begin, and the most that they can have.",
        ),
        Setting::new("n_epochs", Whole(1, 1_000_000), EPOCHS),
    ]
}

/// The action, and what it does.
pub const MOVE: (&str, &str) = (
    "move",
    "An actor goes up to `actor_speed` towards a point: `{\"action\": \"move\", \"actor_id\": \"…\", \"target\": [x, y]}`.",
);
/// The action, and what it does.
pub const TAKE_FOOD: (&str, &str) = (
    "take_food",
    "An actor takes up to `take_food_speed` from a source within `take_food_max_distance`: keys `actor_id`, `food_id`.",
);
/// The action, and what it does.
pub const DEPOSIT_FOOD: (&str, &str) = (
    "deposit_food",
    "An actor puts all that it carries into a base within `deposit_food_max_distance`, whose owner gets it: keys `actor_id`, `base_id`.",
);
/// The action, and what it does.
pub const HEAL: (&str, &str) = (
    "heal",
    "Food of an own base within `deposit_food_max_distance` becomes missing health of an actor: keys `actor_id`, `base_id`.",
);
/// The action, and what it does.
pub const SPAWN: (&str, &str) =
    ("spawn", "A base pays `spawn_actor_cost` of its food for a new actor, who stands on it: key `base_id`.");
/// The action, and what it does.
pub const ATTACK: (&str, &str) = (
    "attack",
    "An actor takes `actor_damage` from the health of another's actor or base within `attack_range`: keys `actor_id`, `target` (an id).",
);
/// The action, and what it does.
pub const MAKE_BASE: (&str, &str) = (
    "make_base",
    "An actor becomes a base where it stands. That costs `make_base_cost` of the food that it carries, the rest is in the base, and the actor is gone: key `actor_id`.",
);
