//! `POST /api/admin/recompute`: recomputes all scores from the games. `POST /api/admin/strategies/{name}/recompute`: has a
//! scripted strategy count all games again.

use arena_model::UserId;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;
use crate::routes::scoring::CountShown;

/// The result of a recount.
#[derive(Serialize, ToSchema)]
struct Counted {
    users: u64,
    games: u64,
    /// Users whose standings were wrong.
    #[schema(value_type = Vec<UserId>)]
    wrong: Vec<String>,
}

/// Recomputes all scores from the games, and corrects those that differ.
#[utoipa::path(post, path = "/api/admin/recompute", tag = "administration", security(("administratorToken" = [])), request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = Counted, description = "The numbers of counted games and users, and the corrected users.")))]
pub(super) async fn recompute(State(arena): State<Arena>, by: ByAdministrator, _request: Post) -> ApiResult {
    let recount = arena.engine.recount(by.0).await?;
    let wrong = recount.wrong.iter().map(ToString::to_string).collect();
    Ok(json(to_text(&Counted { users: recount.users, games: recount.games, wrong })))
}

/// Has a scripted strategy count all games again. The boards show the old numbers until the new ones are complete.
#[utoipa::path(post, path = "/api/admin/strategies/{name}/recompute", tag = "administration", security(("administratorToken" = [])), request_body(content = Option<Object>, description = "Ignored."),
    params(("name" = String, Path, description = "The strategy's name.", example = "elo")),
    responses((status = 200, body = CountShown, description = "The state of the count."),
        (status = 404, description = "`STRATEGY_NOT_FOUND`: the server has no scripted strategy of this name.")))]
pub(super) async fn recompute_strategy(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let name = request.param("name");
    if !arena.engine.scoring().scripted().iter().any(|scripted| scripted.strategy.name == name) {
        let text = format!("the server has no scripted strategy {name:?}");
        return Err(ApiError::not_found("STRATEGY_NOT_FOUND", &text));
    }
    arena.engine.restart_strategy(by.0, name).await?;
    Ok(json(to_text(&CountShown::from(arena.engine.find_strategy(name).await?))))
}
