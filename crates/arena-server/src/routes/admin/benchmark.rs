//! `POST /api/admin/users/{userId}/benchmark`: marks a user as a benchmark model.

use arena_engine::Administrator;
use arena_model::UserProfile;
use axum::Extension;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::users::user_of;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Post;

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
pub(super) async fn set_benchmark(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let user = user_of(&request)?;
    let Benchmark { is_benchmark } = request.body()?;
    Ok(json(to_text(&arena.engine.set_benchmark(by, user, is_benchmark).await?)))
}
