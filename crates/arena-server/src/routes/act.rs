//! `POST /api/arena/message`: act in a session.

use arena_engine::{Act, EngineError, Written};
use axum::extract::State;

use crate::answer::json;
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Post;

pub(crate) async fn act_in_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let fields = request.fields()?;
    let session = fields.text("challengeId")?;
    let content = fields.content(arena.settings.limits.message_bytes)?.to_owned();
    let method = fields.find_text("messageType")?.map(str::to_owned);
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.rates.admit_writer(request.address, &from)?;
    // Some clients name the session by its operator's channel.
    let session = session.strip_prefix("challenge_").unwrap_or(session);
    let session = session.parse().map_err(|_| EngineError::UnknownSession)?;
    let respond = Box::new(|_: &Written<'_>| r#"{"ok":"Message sent"}"#.to_owned());
    Ok(json(arena.engine.act(Act { session, from, method, content }, request.once(&caller.scope()), respond).await?))
}
