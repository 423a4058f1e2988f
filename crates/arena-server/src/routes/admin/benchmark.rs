//! `POST /api/admin/users/{userId}/benchmark`: whether a user is a benchmark model.

use arena_engine::Administrator;
use axum::Extension;
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

pub(super) async fn set_benchmark(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let user = request.param("userId").parse();
    let user = user.map_err(|error| ApiError::bad_request("INVALID_FIELD", format!("userId is {error}")))?;
    let benchmark = request.fields()?.boolean("isBenchmark")?;
    Ok(json(to_text(&arena.engine.set_benchmark(by, user, benchmark).await?)))
}
