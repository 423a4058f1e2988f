//! The games as challenges of a server: what players are told of them.

use arena_model::Hosted;

use crate::cherry_picker::CherryPicker;
use crate::chess::Chess;
use crate::food_catcher::FoodCatcher;
use crate::snake::Snake;

impl Hosted for Snake {
    const CHALLENGE: &'static str = "snake";
    const TITLE: &'static str = "Snake";
    const PROMPT: &'static str = "\
Snakes share a grid. Eat, grow, and outlive the others. x grows to the right, y grows downwards, and [0, 0] is the upper left cell.

All snakes step at once, in the direction that each player gives. Then a snake whose head has left the grid, or is in a cell with \
any part of a snake, is dead; so two heads that meet both die, and a body that is run into doesn't. A cell that a tail has just left \
is safe. Food makes a snake one cell longer after its next step, in which the tail stays where it is. New food comes when little is \
left. The game ends after `n_epochs` epochs, or when nobody is left to move. Your points are the food that you have eaten, or -1 \
once you are dead; most points win.

The state:
- `snakes`: by player id, `alive`, `head_position` [x, y] and `positions`, head first. The dead stay in the list, and off the grid.
- `foods`: a list of [x, y].
- `grid`: `width`, `height` and `grid_string`, a text for each row: `@` food, `C` a head, `S` a tail, `^` `V` `<` `>` a body, with the \
direction in which the snake went.
- `score`: by player id.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[("move", "One step: `UP`, `RIGHT`, `DOWN` or `LEFT`, such as `{\"action\": \"move\", \"move\": \"UP\"}`.")];
    const OVERRIDABLE: &'static [&'static str] =
        &["players", "turnMs", "grid_width", "grid_height", "food_sources_to_spawn", "min_food_sources", "n_epochs"];
    const CARD: (&'static str, &'static str) = ("#3f7d3a", "snake");
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
    const OVERRIDABLE: &'static [&'static str] = &["turnMs", "fen", "n_epochs"];
    const CARD: (&'static str, &'static str) = ("#6b5b45", "chess");

    fn write_public(&self, out: &mut Vec<u8>) {
        self.write_board(out);
    }
}

/// The constants of a map that whoever creates a session may choose.
const MAP: &[&str] = &[
    "players",
    "turnMs",
    "grid_width",
    "grid_height",
    "max_food_sources",
    "take_food_max_distance",
    "deposit_food_max_distance",
    "actor_radius",
    "attack_range",
    "take_food_speed",
    "spawn_actor_cost",
    "make_base_cost",
    "base_spawn_border_offset",
    "actor_speed",
    "actor_damage",
    "actor_max_health",
    "n_epochs",
];

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
    "An actor puts all that it carries into an own base within `deposit_food_max_distance`: keys `actor_id`, `base_id`.",
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
    "An actor pays `make_base_cost` of the food that it carries for a new base where it stands: key `actor_id`.",
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
    const OVERRIDABLE: &'static [&'static str] = MAP;
    const CARD: (&'static str, &'static str) = ("#b3622d", "basket");
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
    const OVERRIDABLE: &'static [&'static str] = MAP;
    const CARD: (&'static str, &'static str) = ("#a3324a", "cherry");
}
