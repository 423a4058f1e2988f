//! The games as challenges of a server: what players are told of them.

use arena_model::SettingRange::{Real, Text, Whole};
use arena_model::{Hosted, Setting, SettingRange, TURN_MS_SETTING};

use crate::cherry_picker::CherryPicker;
use crate::chess::Chess;
use crate::food_catcher::FoodCatcher;
use crate::snake::Snake;

impl Hosted for Snake {
    const CHALLENGE: &'static str = "snake";
    const TITLE: &'static str = "Snake";
    const PROMPT: &'static str = "\
Snakes share a grid. Eat, grow, and stay alive. x grows to the right, y grows downwards, and [0, 0] is the upper left cell.

All snakes step at once, in the direction that each player gives. Then a snake whose head has left the grid, or is in a cell with \
any part of a snake, is dead; so two heads that meet both die, and a body that is run into doesn't. A cell that a tail has just left \
is safe. Food makes a snake one cell longer after its next step, in which the tail stays where it is. New food comes when little is \
left. The game ends after `n_epochs` epochs, when no snake is alive, or as soon as no epoch to come can change the ranking. Your \
points are the food that you have eaten, less one once you are dead; most points win.

The state:
- `snakes`: by player id, `alive`, `head_position` [x, y] and `positions`, head first. The dead stay in the list, and off the grid.
- `foods`: a list of [x, y].
- `grid`: `width`, `height` and `grid_string`, a text for each row: `@` food, `C` a head, `S` a tail, `^` `V` `<` `>` a body, with the \
direction in which the snake went.
- `score`: by player id.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[("move", "One step: `UP`, `RIGHT`, `DOWN` or `LEFT`, such as `{\"action\": \"move\", \"move\": \"UP\"}`.")];
    const OVERRIDABLE: &'static [Setting] = &[
        Setting::new("players", Whole(2, 8), PLAYERS),
        TURN_MS_SETTING,
        Setting::new("grid_width", Whole(2, 64), "Width of the grid, in cells."),
        Setting::new("grid_height", Whole(2, 64), "Height of the grid, in cells."),
        Setting::new("food_sources_to_spawn", Whole(1, 1000), "How many foods there are after new ones have come."),
        Setting::new(
            "min_food_sources",
            Whole(1, 1000),
            "New foods come when there are fewer; at most `food_sources_to_spawn`.",
        ),
        Setting::new("n_epochs", Whole(1, 1_000_000), EPOCHS),
    ];
    const CARD: (&'static str, &'static str) = ("green", "snake");
}

impl Hosted for Chess {
    const CHALLENGE: &'static str = "chess";
    const TITLE: &'static str = "Chess";
    const PROMPT: &'static str = "\
Chess, by the laws of FIDE. Colours are drawn by lot.

The state:
- `fen`: the position; `epd`: the same without the counters.
- `turn`: true when White is to move. `color`: what you play, `WHITE` or `BLACK`.
- `legal_moves`: all moves that can be played, in UCI notation: `e2e4`, castling `e1g1`, promotion `e7e8q`.
- `last_move`: the move before, or null.

Mate, stalemate, insufficient material, 75 moves without a capture or a pawn's move, and a fivefold repetition end the game by \
themselves. A threefold repetition, or 50 moves of each side without a capture or a pawn's move, is a draw if the player to move \
claims it.";
    const ACTIONS: &'static [(&'static str, &'static str)] = &[
        ("move", "One of the legal moves, such as `e2e4`: `{\"action\": \"move\", \"move\": \"e2e4\"}`."),
        (
            "claim_draw",
            "Claim a draw in the position as it stands. Give a move beside it, in a list, to be played if the claim doesn't hold.",
        ),
    ];
    const OVERRIDABLE: &'static [Setting] = &[
        TURN_MS_SETTING,
        Setting::new("fen", Text, "Where it starts: a FEN of six fields."),
        Setting::new(
            "n_epochs",
            // As far as all readers of JSON can count.
            Whole(-1, (1 << 53) - 1),
            "Moves of either side after which the game is a draw; -1 for as many as it takes, and 0 isn't possible.",
        ),
    ];
    const CARD: (&'static str, &'static str) = ("gray", "chess");

    fn write_public(&self, out: &mut Vec<u8>) {
        self.write_board(out);
    }
}

/// What all say of the number of seats, and of the length of the game.
const PLAYERS: &str = "How many play.";
const EPOCHS: &str = "The game ends after so many epochs.";

/// The options of a map with so many seats that whoever creates a session may choose. The bounds are those of
/// [`Constants`](crate::foraging::Constants).
const fn map(seats: i64) -> [Setting; 17] {
    const LENGTH: SettingRange = Real(0.0, 1000.0);
    const AMOUNT: SettingRange = Real(0.0, 1e6);
    [
        Setting::new("players", Whole(2, seats), PLAYERS),
        TURN_MS_SETTING,
        Setting::new("grid_width", Whole(10, 1000), "Width of the map."),
        Setting::new("grid_height", Whole(10, 1000), "Height of the map."),
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

const MOVE: (&str, &str) = (
    "move",
    "An actor goes up to `actor_speed` towards a point: `{\"action\": \"move\", \"actor_id\": \"…\", \"target\": [x, y]}`.",
);
const TAKE_FOOD: (&str, &str) = (
    "take_food",
    "An actor takes up to `take_food_speed` from a source within `take_food_max_distance`: keys `actor_id`, `food_id`.",
);
const DEPOSIT_FOOD: (&str, &str) = (
    "deposit_food",
    "An actor puts all that it carries into a base within `deposit_food_max_distance`, whose owner gets it: keys `actor_id`, `base_id`.",
);
const HEAL: (&str, &str) = (
    "heal",
    "Food of an own base within `deposit_food_max_distance` becomes missing health of an actor: keys `actor_id`, `base_id`.",
);
const SPAWN: (&str, &str) =
    ("spawn", "A base pays `spawn_actor_cost` of its food for a new actor, who stands on it: key `base_id`.");
const ATTACK: (&str, &str) = (
    "attack",
    "An actor takes `actor_damage` from the health of another's actor or base within `attack_range`: keys `actor_id`, `target` (an id).",
);
const MAKE_BASE: (&str, &str) = (
    "make_base",
    "An actor becomes a base where it stands. That costs `make_base_cost` of the food that it carries, the rest is in the base, and the actor is gone: key `actor_id`.",
);

impl Hosted for FoodCatcher {
    const CHALLENGE: &'static str = "food-catcher";
    const TITLE: &'static str = "Food catcher";
    const PROMPT: &'static str = "\
You share a map with the others. Each player has a base near a corner, and an actor on it. Actors gather food from sources and \
bring it to bases. Your points are the food in your bases after `n_epochs` epochs; what actors carry doesn't count. Most points win. \
All numbers below that stand as names are in `config`.

The state:
- `foods`: the sources, with `id`, `position` [x, y] and `quantity`. They grow by 5% in each epoch, up to 50, and vanish below 0.1. \
New ones come in fours, mirrored, when there are fewer than `max_food_sources`.
- `actors`, `bases`: everybody's, with `id`, `owner_id`, `position`, `food`, `health`, `max_health`.
- `dead_entities`: the actors and bases that died in the last epoch.

Each actor and each base does one thing in an epoch, the first that it can do. Actors that are closer than twice `actor_radius` at \
the end of an epoch collide, one's own too: the one that carries less survives and gets the other's food; between equals lots are \
drawn. What dies of an attack takes its food with it. At most 32 actors and 8 bases each.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[MOVE, TAKE_FOOD, DEPOSIT_FOOD, HEAL, SPAWN, ATTACK, MAKE_BASE];
    const OVERRIDABLE: &'static [Setting] = &map(4);
    const CARD: (&'static str, &'static str) = ("orange", "basket");
}

impl Hosted for CherryPicker {
    const CHALLENGE: &'static str = "cherry-picker";
    const TITLE: &'static str = "Cherry picker";
    const PROMPT: &'static str = "\
You have a map to yourself, and so has everybody else; all maps are alike at the start. You have a base and an actor on it. Actors \
gather food from sources and bring it to bases. Your points are the food in your bases after `n_epochs` epochs; what actors carry \
doesn't count. Most points win. All numbers below that stand as names are in `config`.

The state:
- `foods`: the sources, with `id`, `position` [x, y] and `quantity`. They grow by 5% in each epoch, up to 50, and vanish below 0.1. \
New ones come in fours, mirrored, when there are fewer than `max_food_sources`.
- `actors`, `bases`: with `id`, `owner_id`, `position`, `food`, `health`, `max_health`.
- `dead_entities`: the actors that died in the last epoch.

Each actor and each base does one thing in an epoch, the first that it can do. Actors that are closer than twice `actor_radius` at \
the end of an epoch collide: the one that carries less survives and gets the other's food; between equals lots are drawn. At most 32 \
actors and 8 bases.";
    const ACTIONS: &'static [(&'static str, &'static str)] = &[MOVE, TAKE_FOOD, DEPOSIT_FOOD, HEAL, SPAWN, MAKE_BASE];
    const OVERRIDABLE: &'static [Setting] = &map(8);
    const CARD: (&'static str, &'static str) = ("red", "cherry");
}
