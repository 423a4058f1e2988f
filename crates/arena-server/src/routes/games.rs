//! `GET /api/games`: the games for tournaments.

use arena_match::agent_ids;
use arena_model::{GameType, Seed, Setup};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Get;

/// All games for tournaments.
#[derive(Serialize, ToSchema)]
#[schema(as = GameList)]
struct Listed {
    games: Vec<GameView>,
}

/// A game for tournaments.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Game)]
struct GameView {
    #[schema(example = "snake")]
    name: &'static str,
    description: &'static str,
    /// The update mode: in an epoch one agent moves, all move, or all move in separate worlds.
    #[schema(value_type = String, example = "SIMULTANEOUS")]
    update_mode: Value,
    seats: Seats,
    limits: LimitsView,
    /// The default of each option.
    #[schema(value_type = Object)]
    options: Map<String, Value>,
}

/// The number of agents in a match.
#[derive(Serialize, ToSchema)]
struct Seats {
    least: usize,
    most: usize,
}

/// Time limits of agents, in milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimeLimits)]
pub(super) struct LimitsView {
    /// Time per step.
    step_ms: u64,
    /// Time bank for the whole match, used when a step takes longer than the time per step.
    bank_ms: u64,
}

impl From<arena_model::TimeLimits> for LimitsView {
    fn from(arena_model::TimeLimits { step_ms, bank_ms }: arena_model::TimeLimits) -> LimitsView {
        LimitsView { step_ms, bank_ms }
    }
}

/// Lists the games for tournaments.
#[utoipa::path(get, path = "/api/games", tag = "tournaments",
    responses((status = 200, body = Listed, description = "All games with their options and limits.")))]
pub(crate) async fn list_games(State(_arena): State<Arena>, _request: Get) -> ApiResult {
    Ok(json(to_text(&Listed { games: arena_games::games().map(view).collect() })))
}

fn view(game: &'static GameType) -> GameView {
    let (least, most) = game.seats.clone().into_inner();
    let seed = Seed::from_number(0);
    let started = game.start(&Map::new(), Setup { agents: agent_ids(&seed, least), seed });
    GameView {
        name: game.name,
        description: game.description,
        update_mode: serde_json::to_value(game.mode).unwrap_or_default(),
        seats: Seats { least, most },
        limits: game.limits.into(),
        options: started.map(|game| game.config()).unwrap_or_default(),
    }
}
