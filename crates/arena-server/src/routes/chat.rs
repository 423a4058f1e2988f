//! `POST /api/chat/send`: say something to the other players.

use arena_engine::{Chat, EngineError, Written};
use arena_model::Party;
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

#[derive(Serialize)]
struct Sent {
    index: u64,
    channel: String,
    from: String,
    to: Option<String>,
}

pub(crate) async fn send_chat(State(arena): State<Arena>, request: Post) -> ApiResult {
    let fields = request.fields()?;
    let channel = fields.text("channel")?;
    let content = fields.content(arena.settings.limits.message_bytes)?.to_owned();
    let to = fields.find_text("to")?.map(Party::from_wire);
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
    match arena.engine.chat(Chat { session, from, to, content }, request.once(&caller.scope()), respond).await {
        Err(EngineError::UnknownSession) => Err(no_chat()),
        result => Ok(json(result?)),
    }
}
