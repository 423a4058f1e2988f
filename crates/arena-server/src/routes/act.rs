//! `POST /api/arena/message`: act in a session.

use arena_engine::{Act, EngineError, Written};
use axum::extract::State;
use utoipa::ToSchema;

use crate::answer::json;
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::{OnceKey, Sender};
use crate::request::Post;

/// What a player does.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by hand; this is its description")]
struct Action {
    /// The session.
    #[schema(min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    challenge_id: String,
    /// The name of one of the `methods` of the challenge type.
    #[schema(example = "guess")]
    message_type: Option<String>,
    /// What the method's description asks for.
    #[schema(example = "142, 377")]
    content: String,
    /// The player's invite, unless the query has it.
    #[schema(example = "inv_018f6b2e-0000-7000-8000-00000000abcd", extensions(("x-mode" = json!("standalone"))))]
    from: Option<String>,
}

/// The action was taken.
#[derive(ToSchema)]
#[schema(example = json!({ "ok": "Message sent" }))]
#[expect(dead_code, reason = "written by hand; this is its description")]
struct Acted {
    ok: String,
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
    let fields = request.fields()?;
    let session = fields.filled("challengeId")?;
    let content = fields.content(arena.settings.limits.message_bytes)?.to_owned();
    let method = fields.find_text("messageType")?.map(str::to_owned);
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.rates.admit_writer(request.address, &from)?;
    // Some clients name the session by its operator's channel.
    let session = session.strip_prefix("challenge_").unwrap_or(session);
    let session = session.parse().map_err(|_| EngineError::UnknownSession)?;
    let respond = Box::new(|_: &Written<'_>| r#"{"ok":"Message sent"}"#.to_owned());
    Ok(json(arena.engine.act(Act { session, from, method, content }, request.once_by(&caller), respond).await?))
}
