//! `POST /api/admin/messages/hide`: takes the content of a message away, for good; its hash stays for its readers.

use arena_engine::{Administrator, EngineError};
use axum::Extension;
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;
use crate::routes::channel::parse_channel;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hidden {
    channel: String,
    index: u64,
    content_sha256: String,
}

pub(super) async fn hide_message(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let fields = request.fields()?;
    let name = fields.text("channel")?;
    let index = fields.integer("index")?;
    let unknown = || ApiError::not_found("MESSAGE_NOT_FOUND", format!("there is no message {index} in {name}"));
    let channel = parse_channel(name).ok_or_else(unknown)?;
    let index = u64::try_from(index).map_err(|_| unknown())?;
    match arena.engine.hide_message(by, channel, index).await {
        Ok(hash) => {
            Ok(json(to_text(&Hidden { channel: channel.to_string(), index, content_sha256: hash.to_string() })))
        }
        Err(EngineError::UnknownSession) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}
