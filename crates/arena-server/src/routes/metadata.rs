//! `GET /api/metadata`, `GET /api/metadata/{name}`: what can be played.

use std::collections::BTreeMap;

use arena_model::ChallengeMetadata;
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Get;

pub(crate) async fn list_metadata(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let challenges = arena.engine.challenges();
    let all: BTreeMap<&str, &ChallengeMetadata> =
        challenges.iter().map(|(id, challenge)| (id.as_str(), challenge.metadata())).collect();
    Ok(json(to_text(&all)))
}

pub(crate) async fn find_metadata(State(arena): State<Arena>, request: Get) -> ApiResult {
    let challenge = arena.engine.challenges().get(request.param("name"));
    let challenge = challenge.ok_or_else(|| ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found"))?;
    Ok(json(to_text(challenge.metadata())))
}
