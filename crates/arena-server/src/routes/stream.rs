//! `GET /api/chat/ws/{channel}`: a channel as Server-Sent Events.
//!
//! First `initial` with what is there, or what came since `Last-Event-ID`; then each new message once, in order; then
//! `game_ended`. A reader that is slow finds what it missed in the store, so nothing is dropped and nothing piles up.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use arena_engine::{Snapshot, Subscription};
use arena_model::{GameEndedView, UserId, UserProfile, Viewer, game_ended};
use arena_wire::Message;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::channel::parse_channel;
use crate::answer::{to_text, with_kind};
use crate::arena::Arena;
use crate::connections::Line;
use crate::error::{ApiError, ApiResult};
use crate::memory::{self, FREE, Held, Share};
use crate::metrics::Counted;
use crate::openapi::Sender;
use crate::request::Get;

/// Messages in one write. What has gathered goes out together.
const AT_ONCE: usize = 256;

/// Bytes after which a write is long enough.
const WRITE_BYTES: usize = 24 * 1024;

/// Bytes from which on a write isn't made longer by a long message.
const LEAST_WRITE_BYTES: usize = 64;

/// Longest time between two writes to a subscriber for which a message waits, with whatever else comes.
const GATHER: Duration = Duration::from_millis(10);

/// Watchers of a session who make its messages wait a millisecond longer: about as many as can be written to in that time.
const WATCHERS_PER_MS: u64 = 100;

/// Shortest time between two writes to each of this number of watchers: none for few, since bots would wait in each ply
/// (docs/decisions/0037).
fn gathering(watchers: usize) -> Duration {
    Duration::from_millis(watchers as u64 / WATCHERS_PER_MS).min(GATHER)
}

/// Silence after which a comment is sent, so that proxies don't take the stream for dead.
const PING_AFTER: Duration = Duration::from_secs(30);

/// What a subscriber is told last when the server stops: after how many milliseconds to come back. Browsers would wait for seconds.
const COME_BACK: &[u8] = b"retry: 500\n\n";

/// The `data` of an event.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[serde(tag = "type")]
#[expect(dead_code, reason = "written by hand; this is its description")]
enum StreamEvent {
    /// What was there: the first event, unless `Last-Event-ID` came.
    Initial {
        #[schema(value_type = [Message])]
        messages: Vec<()>,
    },
    /// A message has come.
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

/// A channel as it fills, as Server-Sent Events.
///
/// Each event is one `data:` line with JSON and an `id:` line, without a name: first `initial` with what is there, then each
/// message once, in order, and `game_ended` when the session ends. A comment comes every 30 s.
#[utoipa::path(get, path = "/api/chat/ws/{channel}", tag = "chat", security(("sessionKey" = [])),
    params(("channel" = String, Path, example = "018f6b2e-0000-7000-8000-00000000abcd",
            description = "The session's id for its chat; with `challenge_` before it, its operator's channel; or `invites`."),
        Sender,
        ("Last-Event-ID" = Option<String>, Header, description = "Go on behind this event, without `initial`.", example = "7")),
    responses((status = 200, body = StreamEvent, content_type = "text/event-stream",
            description = "Events, for as long as the subscriber stays."),
        (status = 400, description = "`INVALID_LAST_EVENT_ID`: it isn't an id of this stream."),
        (status = 404, description = "`CHANNEL_NOT_FOUND`: there is no such channel.")))]
pub(crate) async fn stream_channel(State(arena): State<Arena>, method: Method, request: Get) -> ApiResult {
    let start = Start::of(&request.headers)?;
    let unknown = || ApiError::not_found("CHANNEL_NOT_FOUND", "there is no such channel");
    let name = request.param("channel");
    let viewer = request.caller(&arena, name).await?.viewer();
    let channel = parse_channel(name).ok_or_else(unknown)?;
    let subscription = arena.engine.subscribe(channel).await?.ok_or_else(unknown)?;
    if !request.may_wait() {
        return Err(ApiError::busy(
            "the server has connections left for players only (limits.connections); try again later",
        ));
    }
    let body = match method {
        Method::GET => {
            let share = request.line.as_ref().and_then(Line::share).cloned();
            let reader = Reader::new(arena, request.address, share, viewer, start, subscription);
            Body::from_stream(stream::unfold(reader, Reader::next))
        }
        // HEAD asks for the headers; a subscription behind it would never be read.
        _ => Body::empty(),
    };
    let mut response = with_kind("text/event-stream", body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(memory::Counted);
    Ok(response)
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With everything.
    Afresh,
    /// Behind the event that the subscriber saw last.
    After { index: u64, ended: bool },
}

/// What ids have behind the index of the last message, from `game_ended` on: who comes back knows of the end.
const ENDED: &str = ".ended";

impl Start {
    fn of(headers: &HeaderMap) -> Result<Start, ApiError> {
        let Some(id) = headers.get("last-event-id") else { return Ok(Start::Afresh) };
        let invalid = || ApiError::bad_request("INVALID_LAST_EVENT_ID", "Last-Event-ID must be an id of this stream");
        let id = id.to_str().map_err(|_| invalid())?;
        if id.is_empty() {
            return Ok(Start::Afresh);
        }
        let (index, ended) = id.strip_suffix(ENDED).map_or((id, false), |index| (index, true));
        // `parse` would take a plus sign.
        let index = Some(index).filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
        let index = index.and_then(|index| index.parse().ok()).ok_or_else(invalid)?;
        Ok(Start::After { index, ended })
    }
}

/// True if a write goes out before a message is added to it. A long message is a write of its own, rather than make a long one of a short one.
fn is_long_enough(text: &[u8], json: &[u8]) -> bool {
    text.len() > WRITE_BYTES || (text.len() > LEAST_WRITE_BYTES && text.len() + json.len() > FREE)
}

/// One subscriber.
struct Reader {
    arena: Arena,
    address: Option<IpAddr>,
    share: Option<Share>,
    viewer: Viewer,
    subscription: Subscription,
    /// Index of the next message to send.
    next: u64,
    initial: Initial,
    end_sent: bool,
    closed: bool,
    last_write: Instant,
    _counted: Counted,
}

/// The event that holds what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    /// Has still to be begun.
    Wanted,
    /// Goes on up to the message of this index, in several writes if it is long.
    Until(u64),
    /// Is written.
    Sent,
}

impl Reader {
    fn new(
        arena: Arena,
        address: Option<IpAddr>,
        share: Option<Share>,
        viewer: Viewer,
        start: Start,
        subscription: Subscription,
    ) -> Reader {
        let counted = Counted::by(&arena.metrics.subscribers);
        let (next, initial, end_sent) = match start {
            Start::Afresh => (1, Initial::Wanted, false),
            Start::After { index, ended } => (index.saturating_add(1), Initial::Sent, ended),
        };
        let last_write = Instant::now();
        Reader {
            arena,
            address,
            share,
            viewer,
            subscription,
            next,
            initial,
            end_sent,
            closed: false,
            last_write,
            _counted: counted,
        }
    }

    /// The next thing to write, as soon as there is one.
    async fn next(mut self) -> Option<(Result<Bytes, arena_engine::EngineError>, Reader)> {
        if self.closed {
            return None;
        }
        let mut room: Option<Held> = None;
        loop {
            // One who is banned meanwhile gets nothing more. At the latest the next comment would be it.
            if self.address.is_some_and(|address| self.arena.engine.admit_address(address).is_err()) {
                return None;
            }
            let snapshot = match self.subscription.read_within(self.next, AT_ONCE, WRITE_BYTES).await {
                Ok(snapshot) => snapshot,
                // Ends the stream; the subscriber comes back with the id of the last event.
                Err(error) => {
                    tracing::error!(%error, "a stream ends since its channel can't be read: {error}");
                    self.closed = true;
                    return Some((Err(error), self));
                }
            };
            if snapshot.removed {
                return None;
            }
            let profiles = match self.profiles(&snapshot).await {
                Ok(profiles) => profiles,
                Err(error) => {
                    tracing::error!(%error, "a stream ends since profiles can't be read: {error}");
                    self.closed = true;
                    return Some((Err(error), self));
                }
            };
            let before = (self.next, self.initial, self.end_sent);
            let events = self.events(&snapshot, &profiles);
            if !events.is_empty() {
                let enough = room.take().filter(|room| room.bytes() >= events.len());
                let Some(room) = enough.map(Some).or_else(|| self.room_for(events.len())) else {
                    // They are read again once there is room, so that nothing waits in memory for that.
                    let bytes = events.len();
                    drop((events, snapshot, profiles));
                    (self.next, self.initial, self.end_sent) = before;
                    if let Some(share) = &self.share {
                        // The subscriber comes back with the id of the last event.
                        room = Some(share.hold_patiently(bytes).await.ok()?);
                    }
                    continue;
                };
                self.last_write = Instant::now();
                let events = match room {
                    Some(room) => room.with(events.into()),
                    None => events.into(),
                };
                return Some((Ok(events), self));
            }
            let arena = self.arena.clone();
            tokio::select! {
                () = self.subscription.changed() => {
                    let gathering = gathering(self.subscription.watchers());
                    // A timer rounds up to the next millisecond, also where there is nothing to wait for.
                    if !gathering.is_zero() {
                        tokio::time::sleep_until(self.last_write + gathering).await;
                    }
                }
                () = tokio::time::sleep(PING_AFTER) => return Some((Ok(Bytes::from_static(b": ping\n\n")), self)),
                () = arena.stopping() => {
                    self.closed = true;
                    return Some((Ok(Bytes::from_static(COME_BACK)), self));
                }
            }
        }
    }

    /// Room for events of this length, if there is some; a short write needs none.
    fn room_for(&self, bytes: usize) -> Option<Option<Held>> {
        match &self.share {
            Some(share) if bytes > FREE => share.try_hold(bytes).map(Some),
            _ => Some(None),
        }
    }

    /// Who played, once that is to be told.
    async fn profiles(&self, snapshot: &Snapshot) -> Result<BTreeMap<UserId, UserProfile>, arena_engine::EngineError> {
        match &snapshot.session {
            Some(session) if snapshot.ended() && !self.end_sent => self.arena.engine.profiles([&**session]).await,
            _ => Ok(BTreeMap::new()),
        }
    }

    /// What a snapshot has to tell this subscriber, as events.
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
            // As many as a snapshot may hold. What is beyond comes as messages of its own.
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
            // The rest has still to be read.
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

    #[test]
    fn few_watchers_are_written_to_at_once_and_for_many_messages_are_gathered() {
        let ms = |watchers| gathering(watchers).as_millis();
        assert_eq!([1, 4, 99, 100, 550, 1_000, 100_000].map(ms), [0, 0, 0, 1, 5, 10, 10]);
    }
}
