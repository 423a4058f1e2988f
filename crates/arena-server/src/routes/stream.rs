//! `GET /api/chat/ws/{channel}`: a channel as Server-Sent Events. `GET /api/sessions/{id}/stream`: both channels of a
//! session, for pages, since a browser opens few connections to a server.
//!
//! The stream starts with the event `initial`, which holds the existing messages, or after the event that
//! `Last-Event-ID` names. Then it sends each new message once, in order, and finally `game_ended`. For slow readers the
//! server reads missed messages from the store, so none are dropped and none accumulate in memory.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arena_engine::{EngineError, Snapshot, Subscription};
use arena_model::{Channel, GameEndedView, SessionId, UserId, UserProfile, Viewer, game_ended};
use arena_wire::Message;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::channel::parse_channel;
use crate::answer::{to_text, with_kind};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::limits::memory::{FREE, reserve, with_reservation};
use crate::limits::{AddressBudget, RequestConnection, Reservation, ReservesMemory, StreamPlace};
use crate::metrics::GaugeGuard;
use crate::openapi::Sender;
use crate::request::Get;

/// Maximum number of messages per read of the channel, and so per write.
const AT_ONCE: usize = 256;

/// Size in bytes from which on no message is added to a write.
const WRITE_BYTES: usize = 24 * 1024;

/// Minimum size in bytes of a write that is sent separately before a long message.
const LEAST_WRITE_BYTES: usize = 64;

/// Maximum time for which messages are collected between two writes.
const GATHER: Duration = Duration::from_millis(10);

/// Number of subscribers that adds a millisecond to the time between two writes: about the number of writes that are
/// possible in a millisecond.
const SUBSCRIBERS_PER_MS: u64 = 100;

/// Returns the minimum time between two writes to a subscriber. For few subscribers it is zero, since it would delay
/// bots in each ply (docs/decisions/0037).
fn gathering(subscribers: usize) -> Duration {
    Duration::from_millis(subscribers as u64 / SUBSCRIBERS_PER_MS).min(GATHER)
}

/// Idle time after which the server sends a comment, so that proxies keep the stream open.
const PING_AFTER: Duration = Duration::from_secs(30);

/// Returns the last write of a stopping server. It sets the reconnection delay to a random time between 0.5 and 2
/// seconds, so that the subscribers don't return all at once. The browsers' default is several seconds.
fn come_back() -> Bytes {
    let mut byte = [0];
    // Without random numbers, the delay is 0.5 s.
    let _ = getrandom::fill(&mut byte);
    Bytes::from(format!("retry: {}\n\n", 500 + 6 * u32::from(byte[0])))
}

/// The `data` of an event.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[serde(tag = "type")]
#[expect(dead_code, reason = "the type only describes the events")]
enum StreamEvent {
    /// The existing messages: the first event, unless the request has `Last-Event-ID`.
    Initial {
        #[schema(value_type = [Message])]
        messages: Vec<()>,
    },
    /// A new message.
    NewMessage {
        #[schema(value_type = Message)]
        message: (),
    },
    /// The session has ended.
    GameEnded {
        #[schema(value_type = GameEndedView)]
        data: (),
    },
}

/// Streams a channel as Server-Sent Events.
///
/// Each event is one `data:` line with JSON and an `id:` line, without a name: first `initial` with the existing
/// messages, then each new message once, in order, and `game_ended` when the session ends. After 30 s without events a
/// comment is sent.
#[utoipa::path(get, path = "/api/chat/ws/{channel}", tag = "chat", security(("sessionKey" = [])),
    params(("channel" = String, Path, example = "018f6b2e-0000-7000-8000-00000000abcd",
            description = "The session's id (chat), `challenge_` and the id (operator channel), or `invites`."),
        Sender,
        ("Last-Event-ID" = Option<String>, Header, description = "Resumes after this event, without `initial`.", example = "7")),
    responses((status = 200, body = StreamEvent, content_type = "text/event-stream",
            description = "Events until the subscriber disconnects."),
        (status = 400, description = "`INVALID_LAST_EVENT_ID`: the value isn't an event id of this stream."),
        (status = 404, description = "`CHANNEL_NOT_FOUND`: the channel doesn't exist."),
        (status = 429, description = "`TOO_MANY_STREAMS`: too many streams of this address are open.")))]
pub(crate) async fn stream_channel(State(arena): State<Arena>, method: Method, request: Get) -> ApiResult {
    let (next, initial, end_sent) = start_of(&request.headers)?;
    let unknown = || ApiError::not_found("CHANNEL_NOT_FOUND", "channel not found");
    let name = request.param("channel");
    let viewer = request.caller(&arena, name).await?.viewer();
    let channel = parse_channel(name).ok_or_else(unknown)?;
    let subscription = arena.engine.subscribe(channel).await?.ok_or_else(unknown)?;
    require_connection(&request)?;
    let body = match method {
        Method::GET => {
            let reader = Reader::open(&arena, &request, (viewer, subscription), (next, initial, end_sent))?;
            Body::from_stream(stream::unfold(reader, Reader::next))
        }
        // A response to HEAD has headers only, so its events would never be read.
        _ => Body::empty(),
    };
    Ok(response(body))
}

/// The messages of a session that its page has.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamStart {
    /// The index of the operator channel's last message that the subscriber has.
    operator: Option<u64>,
    /// The index of the chat's last message that the subscriber has.
    chat: Option<u64>,
}

/// Streams both channels of a session as Server-Sent Events.
///
/// The events are those of the two channels, in the order of arrival; `channel` of a message names its channel. A
/// subscriber that resumes names the messages that it has: events have ids for their own channel only.
#[utoipa::path(get, path = "/api/sessions/{id}/stream", tag = "chat", security(("sessionKey" = [])),
    params(("id" = String, Path, example = "018f6b2e-0000-7000-8000-00000000abcd"), StreamStart, Sender),
    responses((status = 200, body = StreamEvent, content_type = "text/event-stream",
            description = "Events until the subscriber disconnects."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 429, description = "`TOO_MANY_STREAMS`: too many streams of this address are open.")))]
pub(crate) async fn stream_session(State(arena): State<Arena>, method: Method, request: Get) -> ApiResult {
    let StreamStart { operator, chat } = request.query()?;
    let name = request.param("id");
    let viewer = request.caller(&arena, name).await?.viewer();
    let unknown = || ApiError::not_found("CHALLENGE_NOT_FOUND", "session not found");
    let id: SessionId = name.parse().map_err(|_| unknown())?;
    let mut readers = Vec::new();
    for (channel, known) in [(Channel::Operator(id), operator), (Channel::Chat(id), chat)] {
        let subscription = arena.engine.subscribe(channel).await?.ok_or_else(unknown)?;
        let known = known.unwrap_or(0);
        let initial = if known == 0 { Initial::Wanted } else { Initial::Sent };
        readers.push((subscription, (known.saturating_add(1), initial, false)));
    }
    require_connection(&request)?;
    if method != Method::GET {
        return Ok(response(Body::empty()));
    }
    let place = Arc::new(arena.ledger.open_stream(request.address)?);
    let open = |(subscription, start)| Reader::new(&arena, &request, (viewer, subscription), start, Arc::clone(&place));
    let streams = readers.into_iter().map(open).map(|reader| Box::pin(stream::unfold(reader, Reader::next))).collect();
    Ok(response(Body::from_stream(merged(streams))))
}

/// Merges streams of events, which may come in several parts, without mixing their events. Ends with the first stream.
fn merged<S, E>(mut streams: Vec<S>) -> impl Stream<Item = Result<Bytes, E>>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    // The stream whose event isn't complete, and the stream to ask first.
    let (mut open, mut first) = (None, 0);
    stream::poll_fn(move |context| {
        for turn in 0..streams.len() {
            let at = (first + turn) % streams.len();
            if open.is_some_and(|open| open != at) {
                continue;
            }
            if let Poll::Ready(part) = streams[at].poll_next_unpin(context) {
                let is_complete =
                    part.as_ref().is_none_or(|part| part.as_ref().is_ok_and(|part| part.ends_with(b"\n\n")));
                open = (!is_complete).then_some(at);
                first = at + 1;
                return Poll::Ready(part);
            }
        }
        Poll::Pending
    })
}

/// Refuses a stream on one of the connections that are reserved for players.
fn require_connection(request: &Get) -> ApiResult<()> {
    let text = "the remaining connections are reserved for players (limits.connections); try again later";
    if request.may_wait() { Ok(()) } else { Err(ApiError::busy(text)) }
}

fn response(body: Body) -> Response {
    let mut response = with_kind("text/event-stream", body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(ReservesMemory);
    response
}

/// Suffix of the ids of `game_ended` and all later events. A subscriber that resumes there has received it.
const ENDED: &str = ".ended";

/// Returns where the stream starts: the index of the first message, the state of the event `initial`, and true if
/// `game_ended` was received. `Last-Event-ID` names the last event that the subscriber received.
fn start_of(headers: &HeaderMap) -> Result<(u64, Initial, bool), ApiError> {
    let id = headers.get("last-event-id").filter(|id| !id.is_empty());
    let Some(id) = id else { return Ok((1, Initial::Wanted, false)) };
    let invalid = || ApiError::bad_request("INVALID_LAST_EVENT_ID", "Last-Event-ID must be an event id of this stream");
    let id = id.to_str().map_err(|_| invalid())?;
    let (index, ended) = id.strip_suffix(ENDED).map_or((id, false), |index| (index, true));
    // `parse` alone would accept a plus sign.
    let index = Some(index).filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
    let index: u64 = index.and_then(|index| index.parse().ok()).ok_or_else(invalid)?;
    Ok((index.saturating_add(1), Initial::Sent, ended))
}

/// True if the write `text` must be sent before the message `json` is added. A long message gets a write of its own.
fn is_long_enough(text: &[u8], json: &[u8]) -> bool {
    text.len() > WRITE_BYTES || (text.len() > LEAST_WRITE_BYTES && text.len() + json.len() > FREE)
}

struct Reader {
    arena: Arena,
    address: Option<IpAddr>,
    budget: Option<AddressBudget>,
    viewer: Viewer,
    subscription: Subscription,
    /// Index of the next message to send, from 1.
    next: u64,
    initial: Initial,
    end_sent: bool,
    closed: bool,
    last_write: Instant,
    _counted: GaugeGuard,
    /// The streams of one response share a place.
    _place: Arc<StreamPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    /// No part of the event is written yet.
    Wanted,
    /// The event continues up to the message at this index, in several writes if it is long.
    Until(u64),
    Sent,
}

impl Reader {
    fn open(
        arena: &Arena,
        request: &Get,
        source: (Viewer, Subscription),
        start: (u64, Initial, bool),
    ) -> ApiResult<Reader> {
        let place = Arc::new(arena.ledger.open_stream(request.address)?);
        Ok(Reader::new(arena, request, source, start, place))
    }

    fn new(
        arena: &Arena,
        request: &Get,
        (viewer, subscription): (Viewer, Subscription),
        (next, initial, end_sent): (u64, Initial, bool),
        place: Arc<StreamPlace>,
    ) -> Reader {
        Reader {
            _counted: GaugeGuard::by(&arena.metrics.subscribers),
            arena: arena.clone(),
            address: request.address,
            budget: request.request_connection.as_ref().and_then(RequestConnection::response_budget).cloned(),
            viewer,
            subscription,
            next,
            initial,
            end_sent,
            closed: false,
            last_write: Instant::now(),
            _place: place,
        }
    }

    /// Waits for the next write and returns it.
    async fn next(mut self) -> Option<(Result<Bytes, EngineError>, Reader)> {
        if self.closed {
            return None;
        }
        let mut reservation: Option<Reservation> = None;
        loop {
            // A banned subscriber gets no more writes, not even a comment.
            if self.address.is_some_and(|address| self.arena.engine.admit_address(address).is_err()) {
                return None;
            }
            let (snapshot, profiles) = match self.read().await {
                Ok(read) => read,
                // The error ends the stream. The subscriber can resume after its last event id.
                Err(error) => {
                    self.closed = true;
                    return Some((Err(error), self));
                }
            };
            if snapshot.removed {
                return None;
            }
            let before = (self.next, self.initial, self.end_sent);
            let events = self.events(&snapshot, &profiles);
            if events.is_empty() {
                match self.wait().await {
                    Some(write) => return Some((Ok(write), self)),
                    None => continue,
                }
            }
            if let Some(reservation) = reserve(self.budget.as_ref(), reservation.take(), events.len()) {
                self.last_write = Instant::now();
                return Some((Ok(with_reservation(events, reservation)), self));
            }
            // The messages don't occupy memory during the wait: they are dropped and read again.
            let bytes = events.len();
            drop((events, snapshot, profiles));
            (self.next, self.initial, self.end_sent) = before;
            if let Some(budget) = &self.budget {
                // Without memory the stream ends. The subscriber can resume after its last event id.
                reservation = Some(budget.hold_with_timeout(bytes).await.ok()?);
            }
        }
    }

    /// Reads the next messages, and the players' profiles if `game_ended` is due.
    async fn read(&self) -> Result<(Snapshot, BTreeMap<UserId, UserProfile>), EngineError> {
        let read = self.subscription.read_within(self.next, AT_ONCE, WRITE_BYTES).await;
        let snapshot = read.inspect_err(|error| {
            tracing::error!(%error, "a stream ended because its channel cannot be read: {error}");
        })?;
        let session = snapshot.session.as_ref().filter(|_| snapshot.ended() && !self.end_sent && !snapshot.removed);
        let Some(session) = session else { return Ok((snapshot, BTreeMap::new())) };
        let profiles = self.arena.engine.profiles([&**session]).await.inspect_err(|error| {
            tracing::error!(%error, "a stream ended because profiles cannot be read: {error}");
        })?;
        Ok((snapshot, profiles))
    }

    /// Waits for a change of the channel. Returns a write without events if there is none for long, or if the server
    /// stops.
    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            () = self.subscription.changed() => {
                let gathering = gathering(self.subscription.watchers());
                // A timer rounds up to the next millisecond, so even a wait of zero could take one.
                if !gathering.is_zero() {
                    tokio::time::sleep_until(self.last_write + gathering).await;
                }
                None
            }
            () = tokio::time::sleep(PING_AFTER) => Some(Bytes::from_static(b": ping\n\n")),
            () = self.arena.stopping() => {
                self.closed = true;
                Some(come_back())
            }
        }
    }

    fn events(&mut self, snapshot: &Snapshot, profiles: &BTreeMap<UserId, UserProfile>) -> Vec<u8> {
        let ended = snapshot.ended();
        let reveal_chat = self.arena.settings.sessions.reveal_chat;
        let mut text = Vec::new();
        let messages: Vec<(u64, &Bytes)> = snapshot
            .messages
            .iter()
            .map(|message| (message.index(), message.json(self.viewer, ended, reveal_chat)))
            .collect();
        let mut messages = messages.into_iter().peekable();
        if self.initial == Initial::Wanted {
            // The event `initial` has at most `AT_ONCE` messages. Later messages follow as separate events.
            self.initial = Initial::Until(snapshot.len.min(self.next - 1 + AT_ONCE as u64));
            text.extend_from_slice(b"data: {\"type\":\"initial\",\"messages\":[");
        }
        if let Initial::Until(until) = self.initial {
            while let Some((index, json)) = messages.next_if(|(index, _)| *index <= until) {
                if is_long_enough(&text, json) {
                    return text;
                }
                if index > 1 {
                    text.push(b',');
                }
                text.extend_from_slice(json);
                self.next = index + 1;
            }
            // The remaining messages of `initial` follow in later writes.
            if self.next <= until && !snapshot.removed {
                return text;
            }
            self.initial = Initial::Sent;
            text.extend_from_slice(format!("]}}\nid: {}\n\n", self.next - 1).as_bytes());
        }
        let mark = if self.end_sent { ENDED } else { "" };
        for (index, json) in messages {
            if is_long_enough(&text, json) {
                return text;
            }
            text.extend_from_slice(b"data: {\"type\":\"new_message\",\"message\":");
            text.extend_from_slice(json);
            text.extend_from_slice(format!("}}\nid: {index}{mark}\n\n").as_bytes());
            self.next = index + 1;
        }
        if ended
            && !self.end_sent
            && self.next > snapshot.len
            && let Some(data) = snapshot.session.as_deref().and_then(|session| game_ended(session, profiles))
        {
            self.end_sent = true;
            let data = to_text(&data);
            text.extend_from_slice(format!("data: {{\"type\":\"game_ended\",\"data\":{data}}}\n").as_bytes());
            text.extend_from_slice(format!("id: {}{ENDED}\n\n", self.next - 1).as_bytes());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn merged_streams_keep_their_events_whole() {
        let parts = |list: &[&'static str]| {
            stream::iter(list.to_vec()).map(|part| Ok::<_, ()>(Bytes::from_static(part.as_bytes())))
        };
        let ends = |list| parts(list).chain(stream::pending());
        let both = merged(vec![ends(&["a1 ", "a2\n\n", "a3\n\n"]), ends(&["b1\n\n", "b2 ", "b3\n\n"])]);
        let text: Vec<u8> = both.take(6).map(|part| part.expect("a part").to_vec()).concat().await;
        assert_eq!(String::from_utf8(text).expect("text"), "a1 a2\n\nb1\n\na3\n\nb2 b3\n\n");
    }

    #[test]
    fn few_subscribers_get_messages_at_once_and_for_many_they_are_gathered() {
        let ms = |subscribers| gathering(subscribers).as_millis();
        assert_eq!([1, 4, 99, 100, 550, 1_000, 100_000].map(ms), [0, 0, 0, 1, 5, 10, 10]);
    }
}
