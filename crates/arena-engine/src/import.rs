//! Import of records, line by line. The records come from an arena's export or from responses of the reference server.
//!
//! A session and the messages that follow it are one commit, so an interrupted import leaves no incomplete session. An
//! import never changes existing data, so it can be repeated. If two records have the same id, the import uses the
//! first one.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use arena_model::{
    Channel, ChatMessage, Record, RecordError, Session, SessionId, SessionRecord, Timestamp, UserProfile, read_record,
};
use arena_store::{AuditNo, CommitError, ImportOutcome, ImportedSession};
use serde_json::json;

use crate::admin::Administrator;
use crate::engine::{Engine, Inner};
use crate::request::{EngineError, unwritten};

/// The maximum number of concurrent commits. Concurrent commits share an fsync.
const MAX_COMMITS: usize = 64;

/// The maximum number of skipped lines that a report lists with their reasons.
const MOST_REASONS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    pub users: u64,
    pub sessions: u64,
    pub messages: u64,
    /// The skipped lines with their reasons, at most the first 100. Messages of skipped sessions aren't listed.
    pub skipped: Vec<Skipped>,
    /// The number of skipped records, including those skipped with their session.
    pub skipped_total: u64,
}

/// A line that was skipped wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The line's number, from 1.
    pub line: u64,
    pub reason: String,
}

impl ImportReport {
    fn skip(&mut self, line: u64, reason: impl ToString) {
        self.skipped_total += 1;
        if self.skipped.len() < MOST_REASONS {
            self.skipped.push(Skipped { line, reason: reason.to_string() });
        }
    }
}

pub struct Import {
    engine: Engine,
    by: Administrator,
    no: AuditNo,
    /// The maximum size of a session with its messages, in bytes.
    limit: usize,
    /// The session to which the next messages belong.
    current: Option<Current>,
    under_way: VecDeque<UnderWay>,
    bytes_under_way: usize,
    report: ImportReport,
}

/// A session that is being read.
struct Current {
    line: u64,
    id: SessionId,
    /// The session, or `None` if it and its messages are skipped.
    session: Option<Session>,
    messages: Vec<ChatMessage>,
    bytes: usize,
}

/// A commit that the store hasn't confirmed yet.
struct UnderWay {
    line: u64,
    bytes: usize,
    what: What,
    outcome: Pin<Box<dyn Future<Output = Result<ImportOutcome, CommitError>> + Send>>,
}

enum What {
    User,
    Session { id: SessionId, messages: u64 },
}

impl Engine {
    /// Starts an import and records it in the audit. `limit` is the maximum size of a session's text with its messages,
    /// in bytes. One such session and a few commits are in memory at a time.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn import(&self, by: Administrator, limit: usize) -> Result<Import, EngineError> {
        let no = self.inner.store.record(self.inner.audit(by, "import", json!({}))).await.map_err(unwritten)?;
        Ok(Import {
            engine: self.clone(),
            by,
            no,
            limit,
            current: None,
            under_way: VecDeque::new(),
            bytes_under_way: 0,
            report: ImportReport::default(),
        })
    }
}

impl Import {
    /// Imports one line, which contains one record. The report lists an invalid record as skipped.
    ///
    /// # Errors
    /// If the store can't write. Earlier lines stay imported.
    pub async fn take(&mut self, line: u64, text: &str) -> Result<(), EngineError> {
        match read_record(text) {
            Ok(Record::Session(record)) => self.begin_session(line, *record, text.len()).await,
            Ok(Record::Message(message)) => {
                self.add_message(line, message, text.len());
                Ok(())
            }
            Ok(Record::User(profile)) => {
                self.end_session().await?;
                self.submit_user(line, profile, text.len()).await
            }
            Err(error @ RecordError::NotEnded { id, .. }) => {
                self.end_session().await?;
                self.current = Some(Current { line, id, session: None, messages: Vec::new(), bytes: 0 });
                self.report.skip(line, error);
                Ok(())
            }
            // The malformed record may be a message of the current session, so the session stays open for more.
            Err(error @ RecordError::Malformed(_)) => {
                self.report.skip(line, error);
                Ok(())
            }
        }
    }

    /// Adds a line to the report that the caller has skipped without reading it.
    pub fn skip(&mut self, line: u64, reason: &str) {
        self.report.skip(line, reason);
    }

    /// Imports the last session, and waits until all commits are durable.
    ///
    /// # Errors
    /// If the store can't write. Earlier lines stay imported.
    pub async fn finish(mut self) -> Result<ImportReport, EngineError> {
        self.end_session().await?;
        self.settle(0).await?;
        let ImportReport { users, sessions, messages, skipped_total, .. } = &self.report;
        let detail = json!({
            "import": self.no.0, "users": users, "sessions": sessions, "messages": messages, "skipped": skipped_total,
        });
        let inner = &self.engine.inner;
        inner.store.record(inner.audit(self.by, "imported", detail)).await.map_err(unwritten)?;
        Ok(self.report)
    }

    async fn begin_session(&mut self, line: u64, record: SessionRecord, bytes: usize) -> Result<(), EngineError> {
        self.end_session().await?;
        let SessionRecord { session, messages, lost } = record;
        for error in lost {
            self.report.skip(line, error);
        }
        let id = session.facts.id;
        let mut current = Current { line, id, session: Some(session), messages: Vec::new(), bytes };
        for message in messages {
            if session_of(message.channel) == Some(id) {
                current.messages.push(message);
            } else {
                self.report.skip(line, "a message of the record belongs to another session");
            }
        }
        self.current = Some(current);
        self.drop_oversized();
        Ok(())
    }

    fn add_message(&mut self, line: u64, message: ChatMessage, bytes: usize) {
        match &mut self.current {
            Some(current) if session_of(message.channel) == Some(current.id) => {
                if current.session.is_some() {
                    current.bytes += bytes;
                    current.messages.push(message);
                } else {
                    self.report.skipped_total += 1;
                }
                self.drop_oversized();
            }
            _ => self.report.skip(line, "the message doesn't belong to the session before it"),
        }
    }

    fn drop_oversized(&mut self) {
        if let Some(current) = &mut self.current
            && current.session.is_some()
            && current.bytes > self.limit
        {
            let limit = self.limit;
            let reason = format!("the session and its messages are longer than {limit} bytes (limits.import_bytes)");
            self.report.skip(current.line, reason);
            self.report.skipped_total += current.messages.len() as u64;
            current.session = None;
            current.messages = Vec::new();
        }
    }

    async fn end_session(&mut self) -> Result<(), EngineError> {
        let Some(Current { line, id, session: Some(session), mut messages, bytes }) = self.current.take() else {
            return Ok(());
        };
        renumber(&mut messages);
        let what = What::Session { id, messages: messages.len() as u64 };
        let imported = ImportedSession { session, messages, import: self.no };
        let outcome = Box::pin(self.engine.inner.store.import_session(imported));
        self.submit(UnderWay { line, bytes, what, outcome }).await
    }

    async fn submit_user(&mut self, line: u64, profile: UserProfile, bytes: usize) -> Result<(), EngineError> {
        let profile = Arc::new(profile);
        let written = self.engine.inner.store.import_user(Arc::clone(&profile));
        let inner = Arc::clone(&self.engine.inner);
        // If memory must be updated, a spawned task does it, so that the update completes even if the caller is
        // dropped.
        let outcome: Pin<Box<dyn Future<Output = Result<ImportOutcome, CommitError>> + Send>> =
            match profile.is_benchmark {
                false => Box::pin(written),
                true => {
                    let noted = tokio::spawn(async move {
                        let taken = written.await?;
                        inner.follow_benchmark(&profile).await?;
                        Ok(taken)
                    });
                    Box::pin(async {
                        noted.await.unwrap_or(Err(CommitError::Unavailable(arena_store::StoreError::Closed)))
                    })
                }
            };
        self.submit(UnderWay { line, bytes, what: What::User, outcome }).await
    }

    async fn submit(&mut self, under_way: UnderWay) -> Result<(), EngineError> {
        self.bytes_under_way += under_way.bytes;
        self.under_way.push_back(under_way);
        while self.bytes_under_way > self.limit && self.under_way.len() > 1 {
            self.settle(self.under_way.len() - 1).await?;
        }
        self.settle(MAX_COMMITS).await
    }

    /// Waits until at most `at_most` commits are running.
    async fn settle(&mut self, at_most: usize) -> Result<(), EngineError> {
        while self.under_way.len() > at_most
            && let Some(UnderWay { line, bytes, what, outcome }) = self.under_way.pop_front()
        {
            self.bytes_under_way -= bytes;
            match (outcome.await, what) {
                (Ok(ImportOutcome::New), What::User) => self.report.users += 1,
                (Ok(ImportOutcome::New), What::Session { messages, .. }) => {
                    self.report.sessions += 1;
                    self.report.messages += messages;
                }
                (Ok(_), What::User) => self.report.skip(line, "the user exists already"),
                (Ok(taken), What::Session { id, messages }) => {
                    let reason = match taken {
                        ImportOutcome::ForeignInvite => {
                            format!("session {id} has an invite of another session of this arena")
                        }
                        _ => format!("session {id} exists already"),
                    };
                    self.report.skip(line, reason);
                    self.report.skipped_total += messages;
                }
                (Err(CommitError::Conflict), _) => self.report.skip(line, "the record contradicts existing data"),
                (Err(error), _) => return Err(unwritten(error)),
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Updates the benchmark flag of a user in memory from the store.
    async fn follow_benchmark(&self, profile: &UserProfile) -> Result<(), CommitError> {
        let _administering = self.administering.lock().await;
        let stored = self.store.find_profiles([&profile.user_id]).await?;
        if let Some(stored) = stored.get(&profile.user_id) {
            self.note_benchmark(stored);
        }
        Ok(())
    }
}

fn session_of(channel: Channel) -> Option<SessionId> {
    match channel {
        Channel::Chat(id) | Channel::Operator(id) => Some(id),
        Channel::Invites | Channel::Inputs(_) => None,
    }
}

/// Assigns the indexes 1, 2, 3 … in each channel, in the order of the original indexes. Messages with equal original
/// indexes keep their order. Then sorts the messages of all channels by time.
fn renumber(messages: &mut [ChatMessage]) {
    messages.sort_by_key(|message| message.index);
    let mut ends: BTreeMap<Channel, (u64, Timestamp)> = BTreeMap::new();
    let mut times: BTreeMap<(Channel, u64), Timestamp> = BTreeMap::new();
    for message in &mut *messages {
        let (len, at) = ends.entry(message.channel).or_insert((0, message.at));
        (*len, *at) = (*len + 1, message.at.max(*at));
        message.index = *len;
        times.insert((message.channel, *len), *at);
    }
    // A foreign record may contradict itself: a message counts as no earlier than the one before it in its channel.
    messages.sort_by_cached_key(|message| times.get(&(message.channel, message.index)).copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::Party;

    #[test]
    fn imported_messages_are_in_the_order_of_time_and_of_each_channel() {
        let id = SessionId(uuid::Uuid::from_u128(7));
        let (chat, operator) = (Channel::Chat(id), Channel::Operator(id));
        // Channel, original index and time, then the expected order as channel, index and time.
        let mut messages: Vec<ChatMessage> =
            [(operator, 4, 50), (chat, 9, 20), (operator, 2, 10), (chat, 3, 40), (chat, 3, 30)]
                .map(|(channel, index, at)| ChatMessage {
                    channel,
                    index,
                    from: Party::Operator,
                    to: None,
                    content: String::new(),
                    method: None,
                    at: Timestamp(at),
                    hidden: None,
                })
                .to_vec();
        renumber(&mut messages);
        let order: Vec<_> = messages.iter().map(|message| (message.channel, message.index, message.at.0)).collect();
        let expected = [(operator, 1, 10), (chat, 1, 40), (chat, 2, 30), (chat, 3, 20), (operator, 2, 50)];
        assert_eq!(order, expected);
    }
}
