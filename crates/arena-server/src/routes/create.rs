//! `POST /api/challenges/{name}`: a new session. The answer shows all invites, this once.

use arena_engine::Create;
use arena_model::{SessionView, Viewer, view};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::{CreationKey, Sender};
use crate::request::Post;

/// What a new session shall be like.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({}))]
struct NewChallenge {
    /// Options that differ from those of the arena, as far as the challenge type allows it.
    #[schema(value_type = Object, required = false)]
    options: Option<Map<String, Value>>,
}

/// Set up a session.
///
/// The answer shows all its invites, this once: hand them out to the players.
#[utoipa::path(post, path = "/api/challenges/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type.", example = "psi"), Sender, CreationKey),
    request_body(content = Option<NewChallenge>, description = "May be left out."),
    responses((status = 200, body = SessionView, description = "The session."),
        (status = 400, description = "
            `UNKNOWN_CHALLENGE`: it isn't played here.
            `INVALID_OPTIONS`: it can't be played so.
            `CHALLENGE_FAILED`: it is a script, and the script failed.
            `…`: any other code is the challenge's own.")))]
pub(crate) async fn create_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: Option<NewChallenge> = request.find_body()?;
    let options = wanted.and_then(|wanted| wanted.options).unwrap_or_default();
    let create = Create { challenge: request.param("name").to_owned(), options };
    let respond = Box::new(|written: &arena_engine::Written<'_>| to_text(&view(written.session, Viewer::Creator)));
    Ok(json(arena.engine.create(create, request.once_creating()?, respond).await?))
}
