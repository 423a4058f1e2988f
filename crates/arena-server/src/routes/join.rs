//! `POST /api/arena/join`: take a seat.

use arena_engine::{EngineError, Join, Written};
use arena_model::{ChallengeMetadata, SessionId, UserId};
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

#[derive(Serialize)]
struct Joined<'j> {
    #[serde(rename = "ChallengeID")]
    id: SessionId,
    #[serde(rename = "ChallengeInfo")]
    info: &'j ChallengeMetadata,
}

pub(crate) async fn join_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let fields = request.fields()?;
    let invite = fields.text("invite")?;
    let user = match fields.find_text("userId")? {
        Some(user) => Some(
            user.parse::<UserId>()
                .map_err(|error| ApiError::bad_request("INVALID_FIELD", format!("userId is {error}")))?,
        ),
        None => None,
    };
    let invite = invite.parse().map_err(|_| EngineError::UnknownInvite(invite.to_owned()))?;
    let respond = Box::new(|written: &Written<'_>| {
        to_text(&Joined { id: written.session.facts.id, info: written.challenge.metadata() })
    });
    Ok(json(arena.engine.join(Join { invite, user }, request.once()?, respond).await?))
}
