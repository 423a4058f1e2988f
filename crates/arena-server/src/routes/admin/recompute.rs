//! `POST /api/admin/recompute`: recomputes all scores from the games.

use arena_engine::Administrator;
use arena_model::UserId;
use axum::Extension;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Post;

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
pub(super) async fn recompute(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    _request: Post,
) -> ApiResult {
    let recount = arena.engine.recount(by).await?;
    let wrong = recount.wrong.iter().map(ToString::to_string).collect();
    Ok(json(to_text(&Counted { users: recount.users, games: recount.games, wrong })))
}
