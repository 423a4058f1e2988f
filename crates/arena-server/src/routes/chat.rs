//! `POST /api/chat/send`: say something to the other players.

use arena_engine::{Chat, EngineError, Written};
use arena_model::Party;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Content, Filled};
use crate::openapi::{OnceKey, Sender};
use crate::request::Post;

/// What a player says to the others.
#[derive(Deserialize, ToSchema)]
struct Said {
    /// The session.
    #[schema(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    channel: Filled,
    /// The text.
    #[schema(value_type = String, example = "hello")]
    content: Content,
    /// The invite of the one player who may read it. Left out, all may.
    to: Option<String>,
}

/// The message has its place.
#[derive(Serialize, ToSchema)]
struct Sent {
    /// Its place in the channel, from 1.
    #[schema(minimum = 1)]
    index: u64,
    channel: String,
    from: String,
    #[schema(required = true)]
    to: Option<String>,
}

/// Say something to the other players.
#[utoipa::path(post, path = "/api/chat/send", tag = "chat", params(Sender, OnceKey), request_body = Said,
    security(("sessionKey" = [])),
    responses((status = 200, body = Sent, description = "It was said."),
        (status = 400, description = "
            `INVALID_CHANNEL`: there is no such session.
            `FORBIDDEN_SENDER`: nobody speaks for the operator.
            `PLAYER_NOT_FOUND`: the sender has no seat there.
            `RECIPIENT_NOT_FOUND`: whom it is for has no seat there."),
        (status = 413, description = "
            `MESSAGE_TOO_LARGE`: the content is longer than the server's limit.
            `CHANNEL_FULL`: there are more messages than the server's limit.")))]
pub(crate) async fn send_chat(State(arena): State<Arena>, request: Post) -> ApiResult {
    let Said { channel: Filled(channel), content: Content(content), to } = request.body()?;
    let to = to.as_deref().map(Party::from_wire);
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.rates.admit_writer(request.address, &from)?;
    let no_chat = || {
        ApiError::bad_request(
            "INVALID_CHANNEL",
            "channel must be the id of a session; nothing can be written to other channels",
        )
    };
    let session = channel.parse().map_err(|_| no_chat())?;
    let respond = Box::new(|written: &Written<'_>| match written.messages {
        [message] => to_text(&Sent {
            index: message.index,
            channel: message.channel.to_string(),
            from: message.from.to_string(),
            to: message.to.as_ref().map(Party::to_string),
        }),
        messages => unreachable!("chat() makes one message, not {}", messages.len()),
    });
    match arena.engine.chat(Chat { session, from, to, content }, request.once_by(&caller), respond).await {
        Err(EngineError::UnknownSession) => Err(no_chat()),
        result => Ok(json(result?)),
    }
}
