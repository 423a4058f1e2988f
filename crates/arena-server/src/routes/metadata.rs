//! `GET /api/metadata`, `GET /api/metadata/{name}`: the hosted challenge types.

use std::collections::BTreeMap;

use arena_model::ChallengeInfo;
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Get;

/// Lists the hosted challenge types.
#[utoipa::path(get, path = "/api/metadata", tag = "challenges",
    responses((status = 200, body = BTreeMap<String, ChallengeInfo<'static>>, description = "Challenge types by id, such as `psi`.")))]
pub(crate) async fn list_metadata(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let challenges = arena.engine.challenges();
    let all: BTreeMap<&str, ChallengeInfo<'_>> =
        challenges.iter().map(|(id, challenge)| (id.as_str(), ChallengeInfo::of_type(&**challenge))).collect();
    Ok(json(to_text(&all)))
}

/// Returns one challenge type.
#[utoipa::path(get, path = "/api/metadata/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi")),
    responses((status = 200, body = ChallengeInfo<'static>, description = "The challenge type with its rules."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: this server doesn't host the challenge type.")))]
pub(crate) async fn find_metadata(State(arena): State<Arena>, request: Get) -> ApiResult {
    let challenges = arena.engine.challenges();
    let challenge = challenges.get(request.param("name"));
    let challenge = challenge.ok_or_else(ApiError::challenge_not_found)?;
    Ok(json(to_text(&ChallengeInfo::of_type(&**challenge))))
}
