//! `POST /api/admin/recompute`: counts all games anew and mends what differs.

use arena_engine::Administrator;
use arena_model::UserId;
use axum::Extension;
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Post;

#[derive(Serialize)]
struct Counted {
    users: u64,
    games: u64,
    wrong: Vec<UserId>,
}

pub(super) async fn recompute(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    _request: Post,
) -> ApiResult {
    let recount = arena.engine.recount(by).await?;
    Ok(json(to_text(&Counted { users: recount.users, games: recount.games, wrong: recount.wrong })))
}
