//! `GET /api/arena/sync`, `GET /api/chat/sync`: messages of a channel from an index on; with `wait`, as soon as there is one.

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
use crate::connections::Line;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Filled, Lenient, Whole};
use crate::memory::{Counted, FREE, Held, NoRoom, Share, busy};
use crate::openapi::Sender;
use crate::request::Get;

/// Longest wait for a message, in seconds. Clients of MCP give up after 60.
pub(crate) const MAX_WAIT_S: f64 = 50.0;

/// Messages read at a time. Longer answers are written while they are read.
const PAGE: usize = 500;

/// Bytes after which a piece of an answer is long enough.
const PIECE_BYTES: usize = 24 * 1024;

/// Bytes from which on a piece isn't made longer by a long message.
const LEAST_PIECE_BYTES: usize = 64;

/// Which messages of a channel.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WantedMessages {
    /// The session's id; with `challenge_` before it, its operator's channel on either route. An unknown channel is empty.
    #[param(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    channel: Filled,
    /// Messages from this index on. What isn't a whole number from 1 on is 1.
    #[param(value_type = Option<u64>, minimum = 1, example = 1)]
    index: Lenient<Whole<1>>,
    /// Most messages; all, if it isn't there.
    #[param(value_type = Option<u64>, minimum = 1)]
    limit: Lenient<Whole<1>>,
    /// Seconds to wait for a message, if there is none; what is more than 50 is 50.
    #[param(value_type = Option<f64>, minimum = 0, example = 0)]
    wait: Lenient<f64>,
}

/// Messages of the operator's channel.
///
/// There the operator tells each player its secret, and all what happens.
#[utoipa::path(get, path = "/api/arena/sync", tag = "play", params(WantedMessages, Sender), security(("sessionKey" = [])),
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
#[utoipa::path(get, path = "/api/chat/sync", tag = "chat", params(WantedMessages, Sender), security(("sessionKey" = [])),
    responses((status = 200, body = Messages, description = "What is for others is withheld."),
        (status = 400, description = "
            `MISSING_FIELD`: no channel.
            `INVALID_LIMIT`: `limit` isn't a whole number from 1 on.
            `INVALID_WAIT`: `wait` isn't a number of seconds.")))]
pub(crate) async fn sync_chat(State(arena): State<Arena>, request: Get) -> ApiResult {
    sync(arena, request, parse_channel).await
}

async fn sync(arena: Arena, request: Get, parse: fn(&str) -> Option<Channel>) -> ApiResult {
    let WantedMessages { channel: Filled(name), index, limit, wait } = request.query()?;
    let from = index.known().map_or(1, |Whole(index)| index);
    let limit = match limit {
        Lenient::LeftOut => usize::MAX,
        Lenient::Is(Whole(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
        Lenient::Junk => return Err(ApiError::bad_request("INVALID_LIMIT", "limit must be a whole number from 1 on")),
    };
    let wait = match wait {
        Lenient::LeftOut => None,
        Lenient::Is(wait) if wait >= 0.0 => (wait > 0.0).then(|| Duration::from_secs_f64(wait.min(MAX_WAIT_S))),
        Lenient::Is(_) | Lenient::Junk => {
            let text = format!("wait must be a number of seconds from 0 to {MAX_WAIT_S}");
            return Err(ApiError::bad_request("INVALID_WAIT", text));
        }
    };
    let viewer = request.caller(&arena, &name).await?.viewer();
    let wait = wait.filter(|_| request.may_wait());
    let Some(channel) = parse(&name) else { return Ok(json(r#"{"messages":[],"count":0}"#)) };
    let first = read_or_wait(&arena, channel, from, limit.min(PAGE), wait).await?;
    let share = request.line.as_ref().and_then(Line::share).cloned();
    answer(arena, share, Wanted { channel, viewer, limit }, first).await
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
    let snapshot = engine.read_within(channel, from, limit, PIECE_BYTES).await?;
    let Some(wait) = wait.filter(|_| is_worth_waiting(channel, &snapshot)) else { return Ok(snapshot) };
    let Some(mut subscription) = engine.subscribe(channel).await? else { return Ok(snapshot) };
    let deadline = tokio::time::sleep(wait);
    let stopping = arena.stopping();
    tokio::pin!(deadline, stopping);
    loop {
        // Read after subscribing: what comes between the two isn't missed.
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

/// Whether there is nothing yet, but may be soon. The operator of a session that has ended has said all it has to say, and
/// speaks only to who addresses it. Players may chat on.
fn is_worth_waiting(channel: Channel, snapshot: &Snapshot) -> bool {
    let is_over = matches!(channel, Channel::Operator(_)) && snapshot.ended();
    snapshot.messages.is_empty() && !snapshot.removed && !is_over
}

/// The messages that are asked for.
struct Wanted {
    channel: Channel,
    viewer: Viewer,
    /// Most messages.
    limit: usize,
}

/// The messages that were there when the question came, piece by piece, so that no channel is too long to be answered and no reader too slow.
async fn answer(arena: Arena, share: Option<Share>, wanted: Wanted, first: Snapshot) -> ApiResult {
    let mut pieces = Pieces { ended: first.ended(), until: first.len, next: None, sent: 0, arena, share, wanted };
    let begun = pieces.begin(first).await?;
    let Some(second) = pieces.next else { return Ok(counted(json(begun))) };
    let rest = stream::try_unfold(Some((pieces, second)), |state| async move {
        let Some((mut pieces, next)) = state else { return Ok(None) };
        let text = pieces.read(next).await.inspect_err(|error| {
            if let Unanswered::Unread(error) = error {
                tracing::error!(%error, "an answer breaks off since its channel can't be read: {error}");
            }
        })?;
        let next = pieces.next;
        Ok::<_, Unanswered>(Some((text, next.map(|next| (pieces, next)))))
    });
    let begun = stream::once(async { Ok::<_, Unanswered>(begun) });
    Ok(counted(json(Body::from_stream(begun.chain(rest)))))
}

/// The answer takes its room by itself.
fn counted(mut response: Response) -> Response {
    response.extensions_mut().insert(Counted);
    response
}

/// The reason why an answer isn't given, or breaks off.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    /// The channel can't be read.
    #[error(transparent)]
    Unread(#[from] EngineError),
    /// There is no room for it.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

impl From<Unanswered> for ApiError {
    fn from(unanswered: Unanswered) -> ApiError {
        match unanswered {
            Unanswered::Unread(error) => error.into(),
            Unanswered::NoRoom(NoRoom) => busy(),
        }
    }
}

/// An answer that is written as it is read.
struct Pieces {
    arena: Arena,
    /// Unset for what isn't written to a socket as it is.
    share: Option<Share>,
    wanted: Wanted,
    ended: bool,
    /// Index of the last message that is wanted.
    until: u64,
    /// Index of the next message; unset once all is written.
    next: Option<u64>,
    /// Messages that are written.
    sent: usize,
}

impl Pieces {
    /// The first piece, of messages that have been read.
    async fn begin(&mut self, first: Snapshot) -> Result<Bytes, Unanswered> {
        let Some(from) = first.messages.first().map(|message| message.index()) else {
            return Ok(Bytes::from_static(br#"{"messages":[],"count":0}"#));
        };
        let text = self.write(&first.messages);
        match self.room_for(text.len()) {
            Some(room) => Ok(with_room(text, room)),
            None => {
                drop((text, first));
                self.sent = 0;
                self.read(from).await
            }
        }
    }

    /// The next piece. Where there is no room for it, it is read again once there is some, so that nothing waits in memory for that.
    async fn read(&mut self, from: u64) -> Result<Bytes, Unanswered> {
        let sent = self.sent;
        let mut room: Option<Held> = None;
        loop {
            let size = PAGE.min(self.wanted.limit - sent).min(usize::try_from(self.until + 1 - from).unwrap_or(PAGE));
            let page = self.arena.engine.read_within(self.wanted.channel, from, size, PIECE_BYTES).await?;
            let text = self.write(&page.messages);
            let enough = room.take().filter(|room| room.bytes() >= text.len());
            if let Some(room) = enough.map(Some).or_else(|| self.room_for(text.len())) {
                return Ok(with_room(text, room));
            }
            let bytes = text.len();
            drop((text, page));
            self.sent = sent;
            if let Some(share) = &self.share {
                room = Some(share.hold_patiently(bytes).await?);
            }
        }
    }

    /// Room for a piece of this length, if there is some; small pieces need none.
    fn room_for(&self, bytes: usize) -> Option<Option<Held>> {
        match &self.share {
            Some(share) if bytes > FREE => share.try_hold(bytes).map(Some),
            _ => Some(None),
        }
    }

    /// Writes messages until the piece is long enough, and what is around them.
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
            // A message is a piece of its own, rather than make a long one of a short one.
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

fn with_room(text: Vec<u8>, room: Option<Held>) -> Bytes {
    match room {
        Some(room) => room.with(text.into()),
        None => text.into(),
    }
}
