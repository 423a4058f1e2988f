//! `POST /api/admin/messages/hide`: deletes the content of a message and keeps its hash. `/api/admin/sessions/{id}/remove`:
//! removes a session with its messages, invites and scores.

use arena_engine::{EngineError, Withdrawal};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::{Filled, Post};
use crate::routes::channel::parse_channel;
use crate::routes::create::not_found;

/// The hidden message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Hidden {
    channel: String,
    index: u64,
    /// SHA-256 of the message's text, as hexadecimal digits.
    content_sha256: String,
}

/// The message to hide.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "channel": "018f6b2e-0000-7000-8000-00000000abcd", "index": 7 }))]
struct HideRequest {
    #[schema(value_type = String)]
    channel: Filled,
    index: i64,
}

/// Deletes the content of a message permanently.
///
/// Readers of the message then get the hash of its content instead.
#[utoipa::path(post, path = "/api/admin/messages/hide", tag = "administration", security(("administratorToken" = [])), request_body = HideRequest,
    responses((status = 200, body = Hidden, description = "The message was hidden."),
        (status = 404, description = "`MESSAGE_NOT_FOUND`: the message doesn't exist.")))]
pub(super) async fn hide_message(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let HideRequest { channel: Filled(name), index } = request.body()?;
    let unknown = || ApiError::not_found("MESSAGE_NOT_FOUND", format!("message {index} not found in channel {name}"));
    let channel = parse_channel(&name).ok_or_else(unknown)?;
    let index = u64::try_from(index).map_err(|_| unknown())?;
    match arena.engine.hide_message(by.0, channel, index).await {
        Ok(hash) => {
            Ok(json(to_text(&Hidden { channel: channel.to_string(), index, content_sha256: hash.to_string() })))
        }
        Err(EngineError::UnknownSession) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}

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
pub(super) async fn remove_session(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let id = request.param("id").parse().map_err(|_| ApiError::challenge_not_found())?;
    arena.engine.withdraw_session(by.0, id, Withdrawal::Remove).await.map_err(not_found)?;
    Ok(json(to_text(&Removed { removed: true })))
}
