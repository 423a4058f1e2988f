//! The pages' plots as SVG files, for embedding elsewhere: `/leaderboard.svg`, `/users/{id}/rating.svg`,
//! `/agents/{id}/rating.svg` and `/tournaments/{id}/standings.svg`. The parameter `theme` is `light`, `dark` or `auto`.

use arena_engine::EngineError;
use arena_model::UserId;
use arena_report::{Picture, Theme, ratings_picture};
use axum::extract::State;
use axum::http::HeaderValue;

use super::assets::svg;
use super::boards::board::{DOTS, Leaderboard, PlayerKind};
use super::tournaments::agents;
use super::users::history::History;
use super::{PageResult, Visit, boards};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::id_of_tournament;
use crate::tournaments::TournamentRefusal;

/// Caching policy of embedded plots. They are requested often and change slowly, so caches may keep them for a minute.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// `GET /leaderboard.svg`, with the parameters `challenge`, `strategy`, `players` and `sort` of the leaderboard's page.
pub(super) async fn leaderboard(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let query = &visit.query;
    let wanted = query.get("challenge").filter(|challenge| !challenge.is_empty());
    let board = match boards::wanted_board(&arena, wanted, query.get("strategy"))? {
        Some(board) => Leaderboard::read(&arena, board, query.get("sort"), (PlayerKind::of(query)?, DOTS)).await?,
        None => None,
    };
    let title =
        wanted.map_or_else(|| "Utility and security".to_owned(), |name| format!("{name}: utility and security"));
    send(&visit, board.and_then(|board| board.picture(&title)).as_ref())
}

/// `GET /users/{id}/rating.svg`.
pub(super) async fn user(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id: UserId = visit.param("id").parse().map_err(|_| EngineError::UnknownUser)?;
    let history = History::read(&arena, &id).await?.ok_or(EngineError::UnknownUser)?;
    send(&visit, history.picture(&arena, &id).as_ref())
}

/// `GET /agents/{id}/rating.svg`.
pub(super) async fn agent(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let history = agents::history(&arena, visit.param("id")).await?;
    send(&visit, history.picture().as_ref())
}

/// `GET /tournaments/{id}/standings.svg`.
pub(super) async fn tournament(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id = id_of_tournament(visit.param("id"))?;
    let Some(tournaments) = &arena.tournaments else {
        return Err(TournamentRefusal::NoTournament(id.to_string()).into());
    };
    let picture =
        tournaments.read(move |tournaments| Ok::<_, TournamentRefusal>(ratings_picture(&tournaments.record(id)?.1)));
    send(&visit, picture.await?.as_ref())
}

/// Sends the plot as a file, or 304 if the client's copy is current.
fn send(visit: &Visit, picture: Option<&Picture>) -> PageResult {
    let theme = Theme::of(visit.query.get("theme").unwrap_or("auto"));
    let theme =
        theme.ok_or_else(|| ApiError::bad_request("INVALID_FIELD", "theme must be one of: auto, light, dark"))?;
    let picture = picture.ok_or_else(|| ApiError::not_found("NO_PICTURE", "no data to plot yet"))?;
    Ok(svg(&visit.headers, picture.to_file_for(theme), FRESH))
}
