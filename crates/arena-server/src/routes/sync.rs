//! `GET /api/arena/sync`, `GET /api/chat/sync`: messages of a channel from an index on; with `wait`, as soon as there is one.

use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Posted, Snapshot};
use arena_model::{Channel, MessageView, Viewer};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use utoipa::ToSchema;

use super::channel::{parse_channel, parse_operator_channel};
use crate::answer::json;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Sender;
use crate::request::Get;

/// Longest wait for a message, in seconds. Clients of MCP give up after 60.
pub(crate) const MAX_WAIT_S: f64 = 50.0;

/// Messages read at a time. Longer answers are written while they are read.
const PAGE: usize = 500;

/// Which messages of a channel.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand; this is its description")]
struct Wanted {
    /// The session's id; with `challenge_` before it, its operator's channel on either route. An unknown channel is empty.
    #[param(min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    channel: String,
    /// Messages from this index on. What isn't a whole number from 1 on is 1.
    #[param(minimum = 1, example = 1)]
    index: Option<u64>,
    /// Most messages; all, if it isn't there.
    #[param(minimum = 1)]
    limit: Option<u64>,
    /// Seconds to wait for a message, if there is none; what is more than 50 is 50.
    #[param(minimum = 0, example = 0)]
    wait: Option<f64>,
}

/// Messages in the order of their channel.
#[derive(ToSchema)]
#[expect(dead_code, reason = "written as it is read; this is its description")]
struct Messages {
    #[schema(value_type = [MessageView])]
    messages: Vec<()>,
    /// How many these are.
    count: u64,
}

/// Messages of the operator's channel.
///
/// There the operator tells each player its secret, and all what happens.
#[utoipa::path(get, path = "/api/arena/sync", tag = "play", params(Wanted, Sender), security(("sessionKey" = [])),
    responses((status = 200, body = Messages, description = "What is for others is withheld until the session has ended."),
        (status = 400, description = "
            `MISSING_FIELD`: no channel.
            `INVALID_LIMIT`: `limit` isn't a whole number from 1 on.
            `INVALID_WAIT`: `wait` isn't a number of seconds.")))]
pub(crate) async fn sync_operator(State(arena): State<Arena>, request: Get) -> ApiResult {
    sync(arena, request, parse_operator_channel).await
}

/// Messages of a session's chat.
///
/// Also those of `invites`, the public channel on which invites are offered.
#[utoipa::path(get, path = "/api/chat/sync", tag = "chat", params(Wanted, Sender), security(("sessionKey" = [])),
    responses((status = 200, body = Messages, description = "What is for others is withheld."),
        (status = 400, description = "
            `MISSING_FIELD`: no channel.
            `INVALID_LIMIT`: `limit` isn't a whole number from 1 on.
            `INVALID_WAIT`: `wait` isn't a number of seconds.")))]
pub(crate) async fn sync_chat(State(arena): State<Arena>, request: Get) -> ApiResult {
    sync(arena, request, parse_channel).await
}

async fn sync(arena: Arena, request: Get, parse: fn(&str) -> Option<Channel>) -> ApiResult {
    let query = &request.query;
    let name = query.get("channel").filter(|name| !name.is_empty()).ok_or_else(|| ApiError::missing("channel"))?;
    let from = query.number("index").unwrap_or(1).max(1);
    let limit = match query.get("limit") {
        None => usize::MAX,
        Some(_) => query
            .number("limit")
            .filter(|limit| *limit > 0)
            .and_then(|limit| limit.try_into().ok())
            .ok_or_else(|| ApiError::bad_request("INVALID_LIMIT", "limit must be a whole number from 1 on"))?,
    };
    let wait = parse_wait(query.get("wait"))?;
    let viewer = request.caller(&arena, name).await?.viewer();
    let Some(channel) = parse(name) else { return Ok(json(r#"{"messages":[],"count":0}"#)) };
    let first = read_or_wait(&arena, channel, from, limit.min(PAGE), wait).await?;
    Ok(answer(arena, Page { channel, viewer, limit }, first))
}

fn parse_wait(text: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Ok((seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(MAX_WAIT_S)))),
        _ => Err(ApiError::bad_request(
            "INVALID_WAIT",
            format!("wait must be a number of seconds from 0 to {MAX_WAIT_S}"),
        )),
    }
}

/// What is there, or else what comes first within `wait`.
async fn read_or_wait(
    arena: &Arena,
    channel: Channel,
    from: u64,
    limit: usize,
    wait: Option<Duration>,
) -> ApiResult<Snapshot> {
    let engine = &arena.engine;
    let snapshot = engine.read(channel, from, limit).await?;
    let Some(wait) = wait.filter(|_| is_worth_waiting(channel, &snapshot)) else { return Ok(snapshot) };
    let Some(mut subscription) = engine.subscribe(channel).await? else { return Ok(snapshot) };
    let deadline = tokio::time::sleep(wait);
    let stopping = arena.stopping();
    tokio::pin!(deadline, stopping);
    loop {
        // Read after subscribing: what comes between the two isn't missed.
        let snapshot = subscription.read(from, limit).await?;
        if !is_worth_waiting(channel, &snapshot) {
            return Ok(snapshot);
        }
        tokio::select! {
            () = subscription.changed() => {}
            () = &mut deadline => return Ok(snapshot),
            () = &mut stopping => return Ok(snapshot),
        }
    }
}

/// Whether there is nothing yet, but may be soon. The operator of a session that has ended has said all it has to say, and
/// speaks only to who addresses it. Players may chat on.
fn is_worth_waiting(channel: Channel, snapshot: &Snapshot) -> bool {
    let is_over = matches!(channel, Channel::Operator(_)) && snapshot.ended();
    snapshot.messages.is_empty() && !snapshot.removed && !is_over
}

/// What is asked for, beyond the first page.
struct Page {
    channel: Channel,
    viewer: Viewer,
    /// Messages still wanted.
    limit: usize,
}

fn answer(arena: Arena, page: Page, first: Snapshot) -> Response {
    let Page { channel, viewer, limit } = page;
    let reveal_chat = arena.settings.sessions.reveal_chat;
    let ended = first.ended();
    let until = first.len;
    let rest = |messages: &[Arc<Posted>], sent: usize| match messages.last() {
        Some(last) if last.index() < until && sent < limit => Some(last.index() + 1),
        _ => None,
    };
    let sent = first.messages.len();
    let mut text = Vec::with_capacity(64 + sent * 320);
    text.extend_from_slice(br#"{"messages":["#);
    write_messages(&mut text, &first.messages, viewer, ended, reveal_chat);
    let Some(next) = rest(&first.messages, sent) else {
        write_end(&mut text, sent);
        return json(text);
    };

    // What was there when the question came, page by page, so that no channel is too long to be answered.
    let pages = stream::try_unfold(Some((text, next, sent)), move |state| {
        let arena = arena.clone();
        async move {
            let Some((mut text, from, sent)) = state else { return Ok(None) };
            let size = PAGE.min(limit - sent).min(usize::try_from(until + 1 - from).unwrap_or(PAGE));
            let page = arena.engine.read(channel, from, size).await.inspect_err(|error| {
                tracing::error!(%error, "an answer breaks off since its channel can't be read: {error}");
            })?;
            if !page.messages.is_empty() {
                text.push(b',');
            }
            write_messages(&mut text, &page.messages, viewer, ended, reveal_chat);
            let sent = sent + page.messages.len();
            let next = match page.messages.last() {
                Some(last) if last.index() < until && sent < limit => Some((Vec::new(), last.index() + 1, sent)),
                _ => {
                    write_end(&mut text, sent);
                    None
                }
            };
            Ok::<_, arena_engine::EngineError>(Some((Bytes::from(text), next)))
        }
    });
    json(Body::from_stream(pages))
}

fn write_messages(text: &mut Vec<u8>, messages: &[Arc<Posted>], viewer: Viewer, ended: bool, reveal_chat: bool) {
    for (i, message) in messages.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend_from_slice(message.json(viewer, ended, reveal_chat));
    }
}

fn write_end(text: &mut Vec<u8>, count: usize) {
    text.extend_from_slice(format!(r#"],"count":{count}}}"#).as_bytes());
}
