//! The sources of records and of the arena's log. The server makes records and leaves from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_model::{Channel, ChatMessage, ContentHash, Party, Phase, Session, SessionId, Status, Timestamp};
use arena_store::{
    ArchivedMessage, CommitError, CreatedSession, EndedSession, EndingNo, LogCursor, NewLeaf, RemovedSession,
    SessionNo, Store, StoreError, StoredLeaf,
};

use crate::engine::Engine;
use crate::inputs::{CommitContent, FORK};
use crate::request::EngineError;
use crate::transcript::EndedTranscript;

/// The maximum size of the messages in a record, in bytes. The record, which is in memory at once, is at most a few
/// times as long. A full game of food-catcher, the longest one, has more than half of it.
pub(crate) const MOST_BYTES: u64 = 128 << 20;

/// The number of messages in the first read.
const MESSAGES: usize = 500;

/// Returns the messages of a session in the store, in the order of their commits, with the commitments of hidden ones.
pub(crate) async fn list_stored(
    store: &Store,
    no: SessionNo,
    id: SessionId,
) -> Result<Vec<ArchivedMessage>, StoreError> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    loop {
        let read = messages.len() as u64;
        // Each read sorts all messages of the session, so later reads double the number of messages.
        let limit = messages.len().max(MESSAGES);
        let page = store.list_session_messages(no, id, read, limit).await?;
        let is_last = page.len() < limit;
        messages.extend(page.into_iter().map(|(_, message)| message));
        if is_last {
            break;
        }
    }
    // A commitment is stored before the content is erased, so this read finds those of all hidden messages.
    let mut commitments: BTreeMap<_, _> = match messages.iter().any(|message| message.hidden.is_some()) {
        true => store.list_commitments(no, id).await?.into_iter().collect(),
        false => BTreeMap::new(),
    };
    let with_commitment = |message: ChatMessage| {
        let commitment = commitments.remove(&(message.channel, message.index));
        (message, commitment)
    };
    Ok(messages.into_iter().map(with_commitment).collect())
}

/// The data of a session from which its record is made, without redaction.
#[derive(Debug, Clone)]
pub struct RecordSource {
    pub session: Arc<Session>,
    /// The messages of all channels, with [`Channel::Inputs`], in the order of their commits, except for chat that
    /// another node committed with an earlier time. They are the messages up to the session's version.
    pub messages: Vec<ChatMessage>,
    /// The commitments of hidden messages, by channel and index.
    pub commitments: BTreeMap<(Channel, u64), ContentHash>,
}

impl RecordSource {
    /// Returns the description of the origin of a fork; `None` for other sessions.
    pub fn origin(&self) -> Option<&str> {
        let is_origin = |message: &&ChatMessage| {
            message.channel.is_inputs() && message.index == 0 && message.method.as_deref() == Some(FORK)
        };
        self.messages.iter().find(is_origin).map(|message| message.content.as_str())
    }
}

impl Engine {
    /// Sets the function that commits to a content before an administrator erases it: by hiding a message, or by deleting
    /// a user. Without the function, records can't include messages that are hidden. Later calls have no effect.
    pub fn set_commitments(&self, commit: Arc<CommitContent>) {
        // The error contains the function of a later call.
        let _ = self.inner.commit.set(commit);
    }

    /// Returns the size of the texts of a session's messages in the store, in bytes. Archived messages don't count.
    ///
    /// # Errors
    /// If there is no such session, the store can't be read, or the messages are too long for a record.
    pub async fn record_bytes(&self, id: SessionId) -> Result<u64, EngineError> {
        let live = self.current(id).await?.ok_or(EngineError::UnknownSession)?;
        let bytes = self.inner.store.session_bytes(live.no).await?;
        if bytes > MOST_BYTES { Err(EngineError::RecordTooLong { limit: MOST_BYTES }) } else { Ok(bytes) }
    }

    /// Returns the data for a session's record, as of one moment. The caller must check its size before, with
    /// [`Engine::record_bytes`], and must not show it without redaction.
    ///
    /// # Errors
    /// If there is no such session, or the store can't be read.
    pub async fn record_source(&self, id: SessionId) -> Result<RecordSource, EngineError> {
        let live = self.current(id).await?.ok_or(EngineError::UnknownSession)?;
        let (session, chat_len, operator_len) = {
            let committed = live.committed.read();
            (Arc::clone(&committed.session), committed.chat.len(), committed.operator.len())
        };
        // The store may have newer messages than the session in memory, which was read first.
        let is_known = |message: &ChatMessage| match message.channel {
            Channel::Chat(_) => message.index <= chat_len,
            Channel::Operator(_) => message.index <= operator_len,
            Channel::Inputs(_) => message.index <= session.version,
            Channel::Invites => false,
        };
        let is_whole = |messages: &[ArchivedMessage]| {
            let posted = messages.iter().filter(|(message, _)| !message.channel.is_inputs() && is_known(message));
            posted.count() as u64 == chat_len + operator_len
        };
        let mut found = self.inner.list_all(live.no, id).await?;
        if !is_whole(&found) {
            // The session was removed in the meantime.
            return Err(EngineError::UnknownSession);
        }
        found.retain(|(message, _)| is_known(message));
        let commitment_of = |(message, commitment): &ArchivedMessage| {
            commitment.map(|commitment| ((message.channel, message.index), commitment))
        };
        let commitments = found.iter().filter_map(commitment_of).collect();
        let messages = found.into_iter().map(|(message, _)| message).collect();
        let messages = without_falling_times(messages, session.status() == Status::Ended);
        Ok(RecordSource { session, messages, commitments })
    }

    /// Lets [`Engine::take_ended`] find short sessions that are created from now on. An arena without a log shouldn't
    /// call this, because the sessions would only take memory.
    pub fn keep_ended(&self) {
        self.inner.ended.keep();
    }

    /// Returns the data for the record of an ended session, as [`Engine::record_source`] does, if it is in memory. It has
    /// no messages after the end. It is returned once. The caller must not show it without redaction.
    pub fn take_ended(&self, ended: &EndedSession) -> Option<RecordSource> {
        let EndedTranscript { session, messages } = self.inner.ended.take(ended.id)?;
        let is_same = matches!(session.phase, Phase::Ended { at, .. } if at == ended.at) && !ended.is_imported;
        // Chat that another node has taken leaves no trace in the commits of this node.
        let chat = messages.iter().filter(|posted| matches!(posted.message().channel, Channel::Chat(_))).count();
        if !is_same || chat as u64 != ended.chat_len {
            return None;
        }
        let messages = messages.iter().map(|posted| posted.message().clone()).collect();
        let messages = without_falling_times(messages, true);
        Some(RecordSource { session, messages, commitments: BTreeMap::new() })
    }

    /// Returns the number of leaves in the arena's log.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn log_size(&self) -> Result<u64, EngineError> {
        Ok(self.inner.store.log_size().await?)
    }

    /// Returns the position up to which creations, endings and removals are in the log.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn log_cursor(&self) -> Result<LogCursor, EngineError> {
        Ok(self.inner.store.log_cursor().await?)
    }

    /// Appends leaves to the log and moves the cursor, in one transaction.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the log doesn't have `expected_size` leaves, because another node has appended.
    /// Also if the store can't write.
    pub async fn append_leaves(
        &self,
        expected_size: u64,
        leaves: Vec<NewLeaf>,
        cursor: LogCursor,
    ) -> Result<(), CommitError> {
        self.inner.store.append_leaves(expected_size, leaves, cursor).await
    }

    /// Returns leaves from number `from` on, in order, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_leaves(&self, from: u64, limit: usize) -> Result<Vec<StoredLeaf>, EngineError> {
        Ok(self.inner.store.list_leaves(from, limit).await?)
    }

    /// Returns the leaves of a session with numbers below `before`, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_leaves_of(&self, session: SessionId, before: u64) -> Result<Vec<StoredLeaf>, EngineError> {
        Ok(self.inner.store.list_leaves_of(session, before).await?)
    }

    /// Returns the number of the last leaf of a session of this kind.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_leaf(&self, session: SessionId, kind: &str) -> Result<Option<u64>, EngineError> {
        Ok(self.inner.store.find_leaf(session, kind).await?)
    }

    /// Returns the sessions created after `after`, in the order of creation, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_created(&self, after: SessionNo, limit: usize) -> Result<Vec<CreatedSession>, EngineError> {
        Ok(self.inner.store.list_created(after, limit).await?)
    }

    /// Returns the sessions that ended after `after`, in the order of their ends, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_endings(&self, after: EndingNo, limit: usize) -> Result<Vec<EndedSession>, EngineError> {
        Ok(self.inner.store.list_endings(after, limit).await?)
    }

    /// Returns the removals after number `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_removed(&self, after: u64, limit: usize) -> Result<Vec<RemovedSession>, EngineError> {
        Ok(self.inner.store.list_removed(after, limit).await?)
    }
}

/// A chat message of a player, or a transition or an answer of the operator with its messages.
struct Step {
    at: Timestamp,
    is_chat: bool,
    is_transition: bool,
    /// True if it has a message besides its input.
    has_message: bool,
    messages: Vec<ChatMessage>,
}

/// Moves chat messages so that no time is before that of an earlier message, as records require. A node writes chat
/// without waiting for the newest transition of another node, and the other way around, so their times can be in
/// another order than their commits. The order of transitions stays, and so does the order of each channel. Chat that
/// follows the end of a session stays there, because the record's hash in the log never changes.
fn without_falling_times(messages: Vec<ChatMessage>, has_ended: bool) -> Vec<ChatMessage> {
    let mut latest: Option<Timestamp> = None;
    let falls = messages.iter().any(|message| {
        let is_earlier = latest.is_some_and(|latest| message.at < latest);
        if !message.channel.is_inputs() {
            latest = latest.max(Some(message.at));
        }
        is_earlier
    });
    if !falls {
        return messages;
    }
    let mut steps: Vec<Step> = Vec::new();
    for message in messages {
        let (is_input, at) = (message.channel.is_inputs(), message.at);
        let is_of_operator = !is_input && message.from == Party::Operator;
        match steps.last_mut() {
            Some(step) if is_of_operator && !step.is_chat && step.at == at => {
                step.has_message = true;
                step.messages.push(message);
            }
            _ => {
                let is_chat = !is_of_operator && matches!(message.channel, Channel::Chat(_));
                let is_transition = !is_of_operator && !is_chat;
                steps.push(Step { at, is_chat, is_transition, has_message: !is_input, messages: vec![message] });
            }
        }
    }
    let end = steps.iter().rposition(|step| step.is_transition).filter(|_| has_ended);
    let mut ordered: Vec<Step> = Vec::with_capacity(steps.len());
    for (position, step) in steps.into_iter().enumerate() {
        let is_earlier = |other: &Step| other.has_message && other.at <= step.at;
        let first = ordered.iter().rposition(is_earlier).map_or(0, |last| last + 1);
        let later = ordered[first..].iter().position(|other| other.has_message);
        let place = later.map_or(ordered.len(), |later| first + later);
        // The node of a chat message knew the earlier ones, and the node of a transition the earlier transitions.
        let is_movable = ordered[place..].iter().all(|other| other.is_chat != step.is_chat);
        let is_late = end.is_some_and(|end| position > end);
        let place = if is_movable && !is_late { place } else { ordered.len() };
        ordered.insert(place, step);
    }
    ordered.into_iter().flat_map(|step| step.messages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::InviteCode;

    /// Returns a message by a word: `i` for an input, `a` for an action, `o` for the operator's message, `c` for chat,
    /// then the time.
    fn message(word: &str) -> ChatMessage {
        let id = SessionId(uuid::Uuid::from_u128(7));
        let player = Party::Player(InviteCode(uuid::Uuid::from_u128(8)));
        let (kind, at) = word.split_at(1);
        let (channel, from) = match kind {
            "i" => (Channel::Inputs(id), Party::Operator),
            "a" => (Channel::Operator(id), player),
            "o" => (Channel::Operator(id), Party::Operator),
            _ => (Channel::Chat(id), player),
        };
        let at = Timestamp(at.parse().expect("a time"));
        ChatMessage { channel, index: 1, from, to: None, content: word.to_owned(), method: None, at, hidden: None }
    }

    #[test]
    fn chat_moves_if_nodes_commit_in_another_order_than_their_times() {
        // The messages in the order of their commits, true if the session has ended, and the order in the record.
        let cases = [
            ("i1 a5 o5 c7 a7 o7 i6 c8", false, "i1 a5 o5 c7 a7 o7 i6 c8"),
            ("i1 a5 o5 a9 o9 c8", false, "i1 a5 o5 c8 a9 o9"),
            ("i1 a5 o5 c9 a8 o8", false, "i1 a5 o5 a8 o8 c9"),
            ("i1 c8 c9 a7 o7 c10", false, "i1 a7 o7 c8 c9 c10"),
            ("i1 a9 o9 o9 a10 o10 c8 c8 c11", false, "i1 c8 c8 a9 o9 o9 a10 o10 c11"),
            // The time of an input without a message doesn't matter.
            ("i1 a5 i6 c4 a9 i9 c8", false, "i1 c4 a5 i6 c8 a9 i9"),
            ("i1 c9 i8 c10", false, "i1 i8 c9 c10"),
            // Chat after the end isn't in the record, so it must not move before it.
            ("i1 a5 o5 a9 o9 c8", true, "i1 a5 o5 a9 o9 c8"),
            ("i1 a5 o5 c9 a8 o8", true, "i1 a5 o5 a8 o8 c9"),
            ("i1 a5 o5 c4 a9 o9 c8 o10", true, "i1 c4 a5 o5 a9 o9 c8 o10"),
            // No order of transitions is repaired.
            ("a9 a8", false, "a9 a8"),
        ];
        for (committed, has_ended, expected) in cases {
            let messages = committed.split(' ').map(message).collect();
            let ordered = without_falling_times(messages, has_ended);
            let words: Vec<&str> = ordered.iter().map(|message| message.content.as_str()).collect();
            assert_eq!(words.join(" "), expected, "{committed} {has_ended}");
        }
    }
}
