//! `/sessions/{id}/replay`: the replay of an ended session. `/sessions/{id}/events`: the messages of
//! both channels in the order of their timestamps, paged, for the replay page.
//!
//! Each channel has its own message indexes. A binary search over the timestamps finds the start of a page in both
//! channels. The search takes a few dozen reads of one message, even in long sessions. The timeline of a session's page
//! reads the same events (`timeline.rs`).

use std::net::IpAddr;
use std::sync::Arc;

use arena_engine::{Posted, Snapshot, Subscription};
use arena_model::{Channel, SessionId, Status, Viewer};
use arena_wire::Message;
use axum::extract::State;
use axum::http::StatusCode;
use maud::html;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

use super::redacted::{RedactedSession, read_message};
use super::summary::SessionSummary;
use super::{ending, find, heading, unknown_session};
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::web::components::btn;
use crate::web::layout::{NavEntry, Page};
use crate::web::{GUARDS, PageResult, Visit, unrendered};

/// Maximum number of events per page.
const MOST: usize = 200;

/// `GET /sessions/{id}/replay`.
pub(crate) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id: SessionId = visit.param("id").parse().map_err(|_| unknown_session())?;
    let (session, summary, profiles) = find(&arena, &visit).await?;
    if session.status() != Status::Ended {
        let text = "the session has no replay yet, because it has not ended";
        return Err(ApiError::new(StatusCode::CONFLICT, "CHALLENGE_NOT_ENDED", text).into());
    }
    let channels = Channels::open(&arena, id, Viewer::Nobody, visit.address).await?;
    let (total, leaks) = (channels.len(), leaks(&arena, &channels, (&session, &summary)).await?);
    let actions = html! {
        (btn(&format!("/sessions/{id}"), "Transcript"))
        (btn(&format!("/challenges/{}", session.challenge_type), "Play this"))
    };
    let body = html! {
        (heading(&session, &summary, &actions))
        noscript { p.error { "The replay needs JavaScript." } }
        div.viewer id="events" data-session=(id) data-challenge=(session.challenge_type) data-players=(session.state.players.join(" "))
            data-names=(to_text(&summary.names)) data-options=(session.options) data-total=(total) data-leaks=(to_text(&leaks)) data-loading[total > 0] {
            p.soft { @if total == 0 { "No messages." } @else { "Loading…" } }
        }
        (ending(&session, &summary, &profiles))
    };
    let title = format!("Replay: {}", summary.title());
    let page = Page::new(&title, NavEntry::Elsewhere, body).with_style("viewer.css").with_style("session.css");
    Ok(unrendered(page.with_script("events.js")))
}

/// Maximum number of events that are searched for leaks.
const SEARCHED: u64 = 2_000;

/// Returns the numbers, from 0, of events that gave away a secret. Only the first ones of a long session are searched.
async fn leaks(
    arena: &Arena,
    channels: &Channels,
    (session, summary): (&RedactedSession, &SessionSummary),
) -> ApiResult<Vec<u64>> {
    let mut leaks = Vec::new();
    if session.state.attributions.is_empty() {
        return Ok(leaks);
    }
    let mut offset = 0;
    while offset < channels.len().min(SEARCHED) {
        let events = channels.read(offset, MOST).await?;
        if events.is_empty() {
            break;
        }
        let messages: Vec<Message> = events.iter().map(|(_, message)| channels.message(message)).collect();
        let remarks = summary.remarks(arena, session, &messages.iter().collect::<Vec<_>>());
        leaks.extend((offset..).zip(&remarks).filter(|(_, remark)| remark.is_some()).map(|(event, _)| event));
        offset += events.len() as u64;
    }
    Ok(leaks)
}

/// A session's two channels, for a viewer.
pub(crate) struct Channels {
    arena: Arena,
    viewer: Viewer,
    /// The viewer's address, for which reads of long texts count.
    address: Option<IpAddr>,
    operator: Subscription,
    chat: Subscription,
    /// Numbers of messages in the operator channel and the chat channel.
    lens: (u64, u64),
    ended: bool,
    reveal_chat: bool,
    /// The place of the page, until it has read its events. Players of the session need none.
    _place: Option<OwnedSemaphorePermit>,
}

#[derive(serde::Serialize)]
struct Event<'m> {
    channel: &'static str,
    message: &'m RawValue,
    /// The remark on a message that gave away a secret, once the session has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

#[derive(serde::Serialize)]
struct Events<'m> {
    /// Number of events of the whole session.
    total: u64,
    events: Vec<Event<'m>>,
}

/// `GET /sessions/{id}/events`, with `offset` and `limit`.
pub(crate) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id: SessionId = visit.param("id").parse().map_err(|_| unknown_session())?;
    let offset = visit.query.number("offset").unwrap_or(0);
    let limit = visit.query.number("limit").map_or(MOST, |limit| limit.min(MOST as u64) as usize);
    let (session, summary, _) = find(&arena, &visit).await?;
    let channels = Channels::open(&arena, id, Viewer::Nobody, visit.address).await?;
    let events = channels.read(offset, limit).await?;
    let messages: Vec<Message> = events.iter().map(|(_, message)| channels.message(message)).collect();
    let remarks = summary.remarks(&arena, &session, &messages.iter().collect::<Vec<_>>());
    let events = events.iter().zip(remarks).map(|(read, remark)| {
        let (channel, message) = read;
        Event { channel, message: channels.json(message), remark }
    });
    let events = events.collect();
    let mut response = json(to_text(&Events { total: channels.len(), events }));
    response.headers_mut().extend(GUARDS);
    Ok(response)
}

impl Channels {
    pub(crate) async fn open(
        arena: &Arena,
        id: SessionId,
        viewer: Viewer,
        address: Option<IpAddr>,
    ) -> ApiResult<Channels> {
        let place = if viewer == Viewer::Nobody {
            Arc::clone(&arena.transcript_places).acquire_owned().await.ok()
        } else {
            None
        };
        let open = async |channel| -> ApiResult<(Subscription, Snapshot)> {
            let subscription = arena.engine.subscribe(channel).await?.ok_or_else(unknown_session)?;
            let end = subscription.read(u64::MAX, 1).await?;
            Ok((subscription, end))
        };
        let (operator, operator_end) = open(Channel::Operator(id)).await?;
        let (chat, chat_end) = open(Channel::Chat(id)).await?;
        let reveal_chat = arena.settings.sessions.reveal_chat;
        Ok(Channels {
            arena: arena.clone(),
            viewer,
            address,
            operator,
            chat,
            lens: (operator_end.len, chat_end.len),
            ended: operator_end.ended(),
            reveal_chat,
            _place: place,
        })
    }

    /// Returns the number of messages in both channels.
    pub(crate) fn len(&self) -> u64 {
        self.lens.0 + self.lens.1
    }

    pub(crate) async fn read(&self, offset: u64, limit: usize) -> ApiResult<Vec<(&'static str, Arc<Posted>)>> {
        let offset = offset.min(self.len());
        let operator_count = self.count_operator_messages(offset).await?;
        let chat_count = offset - operator_count;
        let some = async |channel: &Subscription, passed: u64, len: u64| -> ApiResult<Vec<Arc<Posted>>> {
            let limit = limit.min(usize::try_from(len.saturating_sub(passed)).unwrap_or(limit));
            let mut messages = Vec::with_capacity(limit);
            // A read returns fewer messages if their texts are long.
            while messages.len() < limit {
                let more = channel.read(passed + 1 + messages.len() as u64, limit - messages.len()).await?.messages;
                if more.is_empty() {
                    break;
                }
                messages.extend(more);
            }
            Ok(messages)
        };
        let mut operator_messages = some(&self.operator, operator_count, self.lens.0).await?.into_iter().peekable();
        let mut chat_messages = some(&self.chat, chat_count, self.lens.1).await?.into_iter().peekable();
        let next = || match (operator_messages.peek(), chat_messages.peek()) {
            (Some(one), Some(other)) if one.at() > other.at() => Some(("chat", chat_messages.next()?)),
            (Some(_), _) => Some(("operator", operator_messages.next()?)),
            (None, _) => Some(("chat", chat_messages.next()?)),
        };
        let read: Vec<(&'static str, Arc<Posted>)> = std::iter::from_fn(next).take(limit).collect();
        let bytes = read.iter().map(|(_, posted)| posted.text_bytes()).sum();
        self.arena.ledger.charge_read(self.address, bytes)?;
        Ok(read)
    }

    /// Of messages with equal timestamps, the operator's come first.
    async fn count_operator_messages(&self, count: u64) -> ApiResult<u64> {
        let (mut low, mut high) = (count.saturating_sub(self.lens.1), count.min(self.lens.0));
        while low < high {
            let operator_count = u64::midpoint(low, high);
            // `operator_count` is too low if the operator's next message precedes the last counted chat message.
            let (next, last) =
                (at(&self.operator, operator_count + 1).await?, at(&self.chat, count - operator_count).await?);
            if next.at() <= last.at() { low = operator_count + 1 } else { high = operator_count }
        }
        Ok(low)
    }

    /// Returns the number of a message's event, from 1; `None` if there is no such message.
    pub(crate) async fn position(&self, is_operator: bool, index: u64) -> ApiResult<Option<u64>> {
        let (own, other) = if is_operator { (&self.operator, &self.chat) } else { (&self.chat, &self.operator) };
        let (own_len, other_len) = if is_operator { self.lens } else { (self.lens.1, self.lens.0) };
        if index == 0 || index > own_len {
            return Ok(None);
        }
        let time = at(own, index).await?.at();
        let (mut low, mut high) = (0, other_len);
        while low < high {
            let middle = u64::midpoint(low, high);
            let other_time = at(other, middle + 1).await?.at();
            let is_before = if is_operator { other_time < time } else { other_time <= time };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(Some(index + low))
    }

    /// Returns a message's JSON, redacted for the viewer.
    fn json<'m>(&self, message: &'m Posted) -> &'m RawValue {
        serde_json::from_slice(message.json(self.viewer, self.ended, self.reveal_chat)).expect("views are JSON")
    }

    /// Returns a message, redacted for the viewer.
    pub(crate) fn message(&self, message: &Posted) -> Message {
        read_message(message, self.viewer, self.ended, self.reveal_chat)
    }
}

async fn at(channel: &Subscription, index: u64) -> ApiResult<Arc<Posted>> {
    let found = channel.read(index, 1).await?.messages.pop();
    // Channels have no gaps, so a missing message means that the session was removed.
    found.ok_or_else(unknown_session)
}
