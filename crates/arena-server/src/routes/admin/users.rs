//! `POST /api/admin/users/{userId}/delete`: deletes a user on request. `…/benchmark`: marks a user as a benchmark model.

use arena_model::{IdError, UserId, UserProfile};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

fn user_of(request: &Post) -> Result<UserId, ApiError> {
    let invalid = |error: IdError| ApiError::bad_request("INVALID_FIELD", format!("userId is {error}"));
    request.param("userId").parse().map_err(invalid)
}

/// The user was deleted.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "deleted": true, "sessions": 7 }))]
struct Deleted {
    deleted: bool,
    /// The number of sessions from which the user's id was erased.
    sessions: usize,
}

/// Deletes a user who has no seat in a running session. The user's games stay, without its id.
#[utoipa::path(post, path = "/api/admin/users/{userId}/delete", tag = "administration", security(("administratorToken" = [])),
    params(("userId" = String, Path, description = "The user's id.", example = "ada")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = Deleted, description = "The user was deleted."),
        (status = 404, description = "`USER_NOT_FOUND`: there is no such user."),
        (status = 409, description = "`USER_PLAYS`: the user has a seat in a running session.")))]
pub(super) async fn delete_user(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let sessions = arena.engine.delete_user(by.0, user_of(&request)?).await?;
    Ok(json(to_text(&Deleted { deleted: true, sessions })))
}

/// The benchmark mark of a user.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "isBenchmark": true }))]
struct Benchmark {
    is_benchmark: bool,
}

/// Marks or unmarks a user as a benchmark model.
#[utoipa::path(post, path = "/api/admin/users/{userId}/benchmark", tag = "administration", security(("administratorToken" = [])), request_body = Benchmark,
    params(("userId" = String, Path, description = "The user's id.", example = "ada")),
    responses((status = 200, body = UserProfile, description = "The changed profile.")))]
pub(super) async fn set_benchmark(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let user = user_of(&request)?;
    let Benchmark { is_benchmark } = request.body()?;
    Ok(json(to_text(&arena.engine.set_benchmark(by.0, user, is_benchmark).await?)))
}
