//! `POST /api/chat/send`: a chat message to other players.

use arena_engine::{Chat, EngineError};
use arena_model::Party;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{OnceKey, Sender};
use crate::request::{Content, Filled, Post};

/// A chat message.
#[derive(Deserialize, ToSchema)]
struct ChatRequest {
    /// The session's id.
    #[schema(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    channel: Filled,
    /// The text of the message.
    #[schema(value_type = String, example = "hello")]
    content: Content,
    /// The invite of the only recipient. Default: all players.
    to: Option<String>,
}

/// The sent message.
#[derive(Serialize, ToSchema)]
struct Sent {
    /// The message's index in the channel, from 1.
    #[schema(minimum = 1)]
    index: u64,
    channel: String,
    from: String,
    #[schema(required = true)]
    to: Option<String>,
}

/// Sends a chat message to all players or to one.
#[utoipa::path(post, path = "/api/chat/send", tag = "chat", params(Sender, OnceKey), request_body = ChatRequest,
    security(("sessionKey" = [])),
    responses((status = 200, body = Sent, description = "The message was sent."),
        (status = 400, description = "
            `INVALID_CHANNEL`: the session doesn't exist.
            `FORBIDDEN_SENDER`: `operator` is not allowed as the sender.
            `PLAYER_NOT_FOUND`: the sender has no seat in the session.
            `RECIPIENT_NOT_FOUND`: the recipient has no seat in the session."),
        (status = 413, description = "
            `MESSAGE_TOO_LARGE`: the content exceeds the server's limit.
            `CHANNEL_FULL`: the channel has reached the server's limit of messages.
            `CHAT_FULL`: the session's chat has reached the server's limit of bytes.")))]
pub(crate) async fn send_chat(State(arena): State<Arena>, request: Post) -> ApiResult {
    let ChatRequest { channel: Filled(channel), content: Content(content), to } = request.body()?;
    let to = to.as_deref().map(Party::from_wire);
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.admit_writer(request.address, &from)?;
    let no_chat = || {
        ApiError::bad_request("INVALID_CHANNEL", "channel must be the id of a session; other channels are read-only")
    };
    let session = channel.parse().map_err(|_| no_chat())?;
    let respond = arena.ledger.charging(request.address, |written| match written.messages {
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
