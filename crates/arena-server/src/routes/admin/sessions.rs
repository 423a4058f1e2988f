//! `POST /api/admin/sessions/{id}/remove`: removes a session with its messages, invites and scores.

use arena_engine::{Administrator, EngineError, Withdrawal};
use axum::Extension;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

/// The session was removed.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "removed": true }))]
struct Removed {
    removed: bool,
}

/// Removes a session with its messages, invites and scores.
#[utoipa::path(post, path = "/api/admin/sessions/{id}/remove", tag = "administration", security(("administratorToken" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = Removed, description = "The session was removed."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist.")))]
pub(super) async fn remove_session(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let unknown = || ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found");
    let id = request.param("id").parse().map_err(|_| unknown())?;
    match arena.engine.withdraw_session(by, id, Withdrawal::Remove).await {
        Ok(()) => Ok(json(to_text(&Removed { removed: true }))),
        Err(EngineError::UnknownSession) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}
