//! `POST /api/arena/message`: a player's action.

use arena_engine::{Act, EngineError};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::{OnceKey, Sender};
use crate::request::{Content, Filled, Post};

/// A player's action.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    /// The session's id.
    #[schema(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    challenge_id: Filled,
    /// The action's content, as the method's description requires.
    #[schema(value_type = String, example = "142, 377")]
    content: Content,
    /// The name of one of the `methods` of the challenge type.
    #[schema(example = "guess")]
    message_type: Option<String>,
}

/// The action was accepted.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "ok": "Message sent" }))]
struct Acted {
    ok: &'static str,
}

/// Sends a player's action to the operator.
///
/// The result appears on the operator channel. A refused action has no effect. If the session isn't active, the
/// response is 200 and the operator sends `ERR_GAME_NOT_RUNNING` to the player.
#[utoipa::path(post, path = "/api/arena/message", tag = "play", params(Sender, OnceKey), request_body = Action,
    security(("sessionKey" = [])),
    responses((status = 200, body = Acted, description = "The action was accepted."),
        (status = 400, description = "
            `CHALLENGE_NOT_FOUND`: the session doesn't exist.
            `FORBIDDEN_SENDER`: `operator` is not allowed as the sender.
            `PLAYER_NOT_FOUND`: the sender has no seat in the session.
            `UNKNOWN_METHOD`: the challenge type has no such method.
            `CHALLENGE_FAILED`: the challenge's script failed. Nothing has changed.
            `…`: any other code comes from the challenge, such as `INVALID_GUESS`."),
        (status = 409, description = "`SCRIPT_MISSING`: the session uses a version of a script that this server doesn't have."),
        (status = 413, description = "
            `MESSAGE_TOO_LARGE`: the content exceeds the server's limit.
            `CHANNEL_FULL`: the channel has reached the server's limit of messages.")))]
pub(crate) async fn act_in_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let Action { challenge_id: Filled(session), content: Content(content), message_type: method } = request.body()?;
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.admit_writer(request.address, &from)?;
    // Some clients send the name of the operator channel instead of the session's id.
    let session = session.strip_prefix("challenge_").unwrap_or(&session);
    let session = session.parse().map_err(|_| EngineError::UnknownSession)?;
    let respond = arena.ledger.charging(request.address, |_| to_text(&Acted { ok: "Message sent" }));
    Ok(json(arena.engine.act(Act { session, from, method, content }, request.once_by(&caller), respond).await?))
}
