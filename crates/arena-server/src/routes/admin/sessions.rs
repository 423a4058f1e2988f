//! `POST /api/admin/sessions/{id}/remove`: removes a session with its messages and invites, and all that it counted for.

use arena_engine::{Administrator, EngineError};
use axum::Extension;
use axum::extract::State;

use crate::answer::json;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

pub(super) async fn remove_session(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let unknown = || ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found");
    let id = request.param("id").parse().map_err(|_| unknown())?;
    match arena.engine.remove_session(by, id).await {
        Ok(()) => Ok(json(r#"{"removed":true}"#)),
        Err(EngineError::UnknownSession) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}
