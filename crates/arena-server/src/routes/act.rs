//! `POST /api/arena/message`: act in a session.

use arena_engine::{Act, EngineError, Written};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::fields::{Content, Filled};
use crate::openapi::{OnceKey, Sender};
use crate::request::Post;

/// What a player does.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    /// The session.
    #[schema(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    challenge_id: Filled,
    /// What the method's description asks for.
    #[schema(value_type = String, example = "142, 377")]
    content: Content,
    /// The name of one of the `methods` of the challenge type.
    #[schema(example = "guess")]
    message_type: Option<String>,
}

/// The action was taken.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "ok": "Message sent" }))]
struct Acted {
    ok: &'static str,
}

/// Act in a session.
///
/// What comes of it is told on the operator's channel. A refused action hasn't happened. If the game isn't on, it is the
/// operator who says so (`ERR_GAME_NOT_RUNNING`), and the answer is 200.
#[utoipa::path(post, path = "/api/arena/message", tag = "play", params(Sender, OnceKey), request_body = Action,
    security(("sessionKey" = [])),
    responses((status = 200, body = Acted, description = "It has happened."),
        (status = 400, description = "
            `CHALLENGE_NOT_FOUND`: there is no such session.
            `FORBIDDEN_SENDER`: nobody speaks for the operator.
            `PLAYER_NOT_FOUND`: the sender has no seat there.
            `UNKNOWN_METHOD`: the challenge type has no such method.
            `CHALLENGE_FAILED`: the challenge is a script, and the script failed. Nothing has changed.
            `…`: any other code is the challenge's own, such as `INVALID_GUESS`."),
        (status = 409, description = "`SCRIPT_MISSING`: it is played by a version of a script that this server doesn't have."),
        (status = 413, description = "
            `MESSAGE_TOO_LARGE`: the content is longer than the server's limit.
            `CHANNEL_FULL`: there are more messages than the server's limit.")))]
pub(crate) async fn act_in_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let Action { challenge_id: Filled(session), content: Content(content), message_type: method } = request.body()?;
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.rates.admit_writer(request.address, &from)?;
    // Some clients name the session by its operator's channel.
    let session = session.strip_prefix("challenge_").unwrap_or(&session);
    let session = session.parse().map_err(|_| EngineError::UnknownSession)?;
    let respond = Box::new(|_: &Written<'_>| to_text(&Acted { ok: "Message sent" }));
    Ok(json(arena.engine.act(Act { session, from, method, content }, request.once_by(&caller), respond).await?))
}
