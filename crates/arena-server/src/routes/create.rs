//! `POST /api/challenges/{name}`: a new session. Only this response contains all invites.

use arena_engine::Create;
use arena_model::{Viewer, view};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::creator::{NewSession, with_creator_key};
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::{CreationKey, Sender};
use crate::request::Post;

/// Settings of a new session.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({}))]
struct NewChallenge {
    /// Overrides of the arena's options. The challenge type determines the options that a session may override.
    #[schema(value_type = Object, required = false)]
    options: Option<Map<String, Value>>,
    /// True for a session that no list shows or counts: the session is in no history, and its game is unrated. Anyone
    /// who knows its id can watch it.
    #[schema(required = false)]
    unlisted: Option<bool>,
}

/// Creates a session.
///
/// Only this response contains all invites: pass them on to the players. It also contains the creator's key, which cancels
/// and unlists the session, and lists its free invites.
#[utoipa::path(post, path = "/api/challenges/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"), Sender, CreationKey),
    request_body(content = Option<NewChallenge>, description = "Optional."),
    responses((status = 200, body = NewSession, description = "The session."),
        (status = 400, description = "
            `UNKNOWN_CHALLENGE`: this server doesn't host the challenge type.
            `INVALID_OPTIONS`: the options are invalid.
            `CHALLENGE_FAILED`: the challenge's script failed.
            `…`: any other code comes from the challenge."),
        (status = 429, description = "`TOO_MANY_SESSIONS`: too many sessions of this address haven't ended."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn create_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: Option<NewChallenge> = request.find_body()?;
    let (options, unlisted) = wanted.map_or((None, None), |wanted| (wanted.options, wanted.unlisted));
    let once = request.once_creating()?;
    arena.admit_session(request.address, once).await?;
    let create = Create {
        challenge: request.param("name").to_owned(),
        options: options.unwrap_or_default(),
        is_rated: true,
        is_unlisted: unlisted == Some(true),
    };
    let respond = arena.ledger.charging(request.address, |written| {
        to_text(&view(written.session, Viewer::Creator).with_name(&written.challenge.metadata().name))
    });
    let answer = arena.engine.create(create, once, respond).await?;
    Ok(json(with_creator_key(&arena, answer)?))
}
