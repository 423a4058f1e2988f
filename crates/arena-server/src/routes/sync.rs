//! `GET /api/arena/sync`, `GET /api/chat/sync`: a channel's messages from an index on, optionally with a wait for the
//! first one.

use std::sync::Arc;
use std::time::Duration;

use arena_engine::{EngineError, Posted, Snapshot};
use arena_model::{Channel, Viewer};
use arena_wire::Messages;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;

use super::channel::{parse_channel, parse_operator_channel};
use crate::answer::json;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::limits::memory::{FREE, busy, reserve, with_reservation};
use crate::limits::{AddressBudget, NoMemory, RequestConnection, Reservation, ReservesMemory};
use crate::openapi::Sender;
use crate::request::{Filled, Get, Lenient, Whole};

/// Maximum wait for a message, in seconds. MCP clients time out after 60 s.
pub(crate) const MAX_WAIT_S: f64 = 50.0;

/// Maximum number of messages per read. Longer responses are streamed.
const PAGE: usize = 500;

/// Size in bytes from which on no message is added to a piece of a response.
const PIECE_BYTES: usize = 24 * 1024;

/// Minimum size in bytes of a piece that is sent separately before a long message.
const LEAST_PIECE_BYTES: usize = 64;

/// Selection of a channel's messages.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WantedMessages {
    /// The session's id. With the prefix `challenge_`, both routes read the operator channel. An unknown channel is
    /// empty.
    #[param(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    channel: Filled,
    /// Index of the first message. If it is missing or invalid: 1.
    #[param(value_type = Option<u64>, minimum = 1, example = 1)]
    index: Lenient<Whole<1>>,
    /// Maximum number of messages. Default: all.
    #[param(value_type = Option<u64>, minimum = 1)]
    limit: Lenient<Whole<1>>,
    /// Maximum wait for the first message, in seconds, up to 50.
    #[param(value_type = Option<f64>, minimum = 0, example = 0)]
    wait: Lenient<f64>,
}

/// Returns messages of a session's operator channel.
///
/// The operator sends each player its private data there, and public events to all.
#[utoipa::path(get, path = "/api/arena/sync", tag = "play", params(WantedMessages, Sender), security(("sessionKey" = [])),
    responses((status = 200, body = Messages, description = "Messages to other players are redacted until the session has ended."),
        (status = 400, description = "
            `MISSING_FIELD`: `channel` is missing.
            `INVALID_LIMIT`: `limit` isn't a whole number of at least 1.
            `INVALID_WAIT`: `wait` isn't a non-negative number.")))]
pub(crate) async fn sync_operator(State(arena): State<Arena>, request: Get) -> ApiResult {
    sync(arena, request, parse_operator_channel).await
}

/// Returns messages of a session's chat.
///
/// The channel `invites` is the public channel for announced invites.
#[utoipa::path(get, path = "/api/chat/sync", tag = "chat", params(WantedMessages, Sender), security(("sessionKey" = [])),
    responses((status = 200, body = Messages, description = "Messages to other players are redacted."),
        (status = 400, description = "
            `MISSING_FIELD`: `channel` is missing.
            `INVALID_LIMIT`: `limit` isn't a whole number of at least 1.
            `INVALID_WAIT`: `wait` isn't a non-negative number.")))]
pub(crate) async fn sync_chat(State(arena): State<Arena>, request: Get) -> ApiResult {
    sync(arena, request, parse_channel).await
}

async fn sync(arena: Arena, request: Get, parse: fn(&str) -> Option<Channel>) -> ApiResult {
    let WantedMessages { channel: Filled(name), index, limit, wait } = request.query()?;
    let from = index.known().map_or(1, |Whole(index)| index);
    let limit = match limit {
        Lenient::Missing => usize::MAX,
        Lenient::Valid(Whole(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
        Lenient::Invalid => {
            return Err(ApiError::bad_request("INVALID_LIMIT", "limit must be a whole number of at least 1"));
        }
    };
    let wait = read_wait(wait)?;
    let viewer = request.caller(&arena, &name).await?.viewer();
    let wait = wait.filter(|_| request.may_wait());
    let Some(channel) = parse(&name) else { return Ok(json(r#"{"messages":[],"count":0}"#)) };
    let first = read_or_wait(&arena, channel, from, limit.min(PAGE), wait).await?;
    let budget = request.request_connection.as_ref().and_then(RequestConnection::response_budget).cloned();
    answer(arena, budget, Wanted { channel, viewer, limit }, first).await
}

/// Parses the parameter `wait`. Returns `None` if the request doesn't wait.
///
/// # Errors
/// If the value isn't a non-negative number.
pub(super) fn read_wait(wait: Lenient<f64>) -> ApiResult<Option<Duration>> {
    match wait {
        Lenient::Missing => Ok(None),
        Lenient::Valid(wait) if wait >= 0.0 => Ok((wait > 0.0).then(|| Duration::from_secs_f64(wait.min(MAX_WAIT_S)))),
        Lenient::Valid(_) | Lenient::Invalid => {
            let text = format!("wait must be a number of seconds from 0 to {MAX_WAIT_S}");
            Err(ApiError::bad_request("INVALID_WAIT", text))
        }
    }
}

/// Reads messages. If there are none, waits up to `wait` for the first one.
async fn read_or_wait(
    arena: &Arena,
    channel: Channel,
    from: u64,
    limit: usize,
    wait: Option<Duration>,
) -> ApiResult<Snapshot> {
    let engine = &arena.engine;
    let snapshot = engine.read_within(channel, from, limit, PIECE_BYTES).await?;
    let Some(wait) = wait.filter(|_| is_worth_waiting(channel, &snapshot)) else { return Ok(snapshot) };
    let Some(mut subscription) = engine.subscribe(channel).await? else { return Ok(snapshot) };
    let deadline = tokio::time::sleep(wait);
    let stopping = arena.stopping();
    tokio::pin!(deadline, stopping);
    loop {
        // This read comes after the subscription. Otherwise a message between the two would be missed.
        let snapshot = subscription.read_within(from, limit, PIECE_BYTES).await?;
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

/// True if there are no messages yet, but new ones are possible. The operator of an ended session sends only replies to
/// actions, so a wait would be in vain. Chat continues after the end.
fn is_worth_waiting(channel: Channel, snapshot: &Snapshot) -> bool {
    let is_over = matches!(channel, Channel::Operator(_)) && snapshot.ended();
    snapshot.messages.is_empty() && !snapshot.removed && !is_over
}

struct Wanted {
    channel: Channel,
    viewer: Viewer,
    limit: usize,
}

/// Builds a response that streams the messages up to the channel's length in `first`. Memory is bounded even for long
/// channels and slow readers.
async fn answer(arena: Arena, budget: Option<AddressBudget>, wanted: Wanted, first: Snapshot) -> ApiResult {
    let mut pieces = Pieces { ended: first.ended(), until: first.len, next: None, sent: 0, arena, budget, wanted };
    let begun = pieces.begin(first).await?;
    let Some(second) = pieces.next else { return Ok(counted(json(begun))) };
    let rest = stream::try_unfold(Some((pieces, second)), |state| async move {
        let Some((mut pieces, next)) = state else { return Ok(None) };
        let text = pieces.read(next).await.inspect_err(|error| {
            if let Unanswered::Unread(error) = error {
                tracing::error!(%error, "a response was cut off because its channel cannot be read: {error}");
            }
        })?;
        let next = pieces.next;
        Ok::<_, Unanswered>(Some((text, next.map(|next| (pieces, next)))))
    });
    let begun = stream::once(async { Ok::<_, Unanswered>(begun) });
    Ok(counted(json(Body::from_stream(begun.chain(rest)))))
}

/// Marks a response that reserves its own memory.
fn counted(mut response: Response) -> Response {
    response.extensions_mut().insert(ReservesMemory);
    response
}

/// The cause of a missing or incomplete response.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error(transparent)]
    Unread(#[from] EngineError),
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

impl From<Unanswered> for ApiError {
    fn from(unanswered: Unanswered) -> ApiError {
        match unanswered {
            Unanswered::Unread(error) => error.into(),
            Unanswered::NoMemory(NoMemory) => busy(),
        }
    }
}

/// A response that reads its messages while it is written.
struct Pieces {
    arena: Arena,
    /// The memory budget; `None` if the response isn't written to a connection.
    budget: Option<AddressBudget>,
    wanted: Wanted,
    ended: bool,
    /// Index of the last requested message.
    until: u64,
    /// Index of the next message; `None` if all are written.
    next: Option<u64>,
    /// Number of messages written so far.
    sent: usize,
}

impl Pieces {
    /// Writes the first piece, from messages that are already read.
    async fn begin(&mut self, first: Snapshot) -> Result<Bytes, Unanswered> {
        let Some(from) = first.messages.first().map(|message| message.index()) else {
            return Ok(Bytes::from_static(br#"{"messages":[],"count":0}"#));
        };
        let text = self.write(&first.messages);
        match reserve(self.budget.as_ref(), None, text.len()) {
            Some(reservation) => Ok(with_reservation(text, reservation)),
            None => {
                drop((text, first));
                self.sent = 0;
                self.read(from).await
            }
        }
    }

    /// If there is no memory for the piece, its messages are dropped during the wait, and read again.
    async fn read(&mut self, from: u64) -> Result<Bytes, Unanswered> {
        let sent = self.sent;
        let mut reservation: Option<Reservation> = None;
        loop {
            let size = PAGE.min(self.wanted.limit - sent).min(usize::try_from(self.until + 1 - from).unwrap_or(PAGE));
            let page = self.arena.engine.read_within(self.wanted.channel, from, size, PIECE_BYTES).await?;
            let text = self.write(&page.messages);
            if let Some(reservation) = reserve(self.budget.as_ref(), reservation.take(), text.len()) {
                return Ok(with_reservation(text, reservation));
            }
            let bytes = text.len();
            drop((text, page));
            self.sent = sent;
            if let Some(budget) = &self.budget {
                reservation = Some(budget.hold_with_timeout(bytes).await?);
            }
        }
    }

    /// Writes a piece of the response: messages until it is long enough, and the JSON syntax around them.
    fn write(&mut self, messages: &[Arc<Posted>]) -> Vec<u8> {
        let reveal_chat = self.arena.settings.sessions.reveal_chat;
        let mut text = Vec::with_capacity(128 + messages.len().min(64) * 320);
        if self.sent == 0 {
            text.extend_from_slice(br#"{"messages":["#);
        }
        self.next = None;
        for message in messages {
            if text.len() >= PIECE_BYTES {
                self.next = Some(message.index());
                return text;
            }
            let json = message.json(self.wanted.viewer, self.ended, reveal_chat);
            // A long message gets a piece of its own.
            if text.len() > LEAST_PIECE_BYTES && text.len() + json.len() > FREE {
                self.next = Some(message.index());
                return text;
            }
            if self.sent > 0 {
                text.push(b',');
            }
            text.extend_from_slice(json);
            self.sent += 1;
        }
        let last = messages.last().map(|message| message.index());
        self.next = last.filter(|last| *last < self.until && self.sent < self.wanted.limit).map(|last| last + 1);
        if self.next.is_none() {
            text.extend_from_slice(format!(r#"],"count":{}}}"#, self.sent).as_bytes());
        }
        text
    }
}
