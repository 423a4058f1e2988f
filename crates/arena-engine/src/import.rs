//! Taking records in, line by line: an export of an arena, or what the reference server answered.
//!
//! A session is taken with the messages that follow it, in one commit, so that nothing stands half written whenever an
//! import breaks off; and what is there already is left alone, so that it can be repeated. What comes first counts first.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use arena_model::{
    Channel, ChatMessage, Record, RecordError, Session, SessionId, SessionRecord, UserProfile, read_record,
};
use arena_store::{AuditNo, CommitError, ImportedSession, Taken};
use serde_json::json;

use crate::admin::Administrator;
use crate::engine::{Engine, Inner};
use crate::request::EngineError;
use crate::users::unwritten;

/// Commits under way beside each other. They share their fsyncs.
const AT_ONCE: usize = 64;

/// Most lines of which an import's report says why they weren't taken.
const MOST_REASONS: usize = 100;

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Users that were taken.
    pub users: u64,
    /// Sessions that were taken.
    pub sessions: u64,
    /// Messages that were taken.
    pub messages: u64,
    /// Why lines weren't taken, of the first 100 of them that have a reason of their own.
    pub skipped: Vec<Skipped>,
    /// How many records weren't taken, those included that went with their session.
    pub skipped_total: u64,
}

/// A line that wasn't taken, or something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Which, from 1.
    pub line: u64,
    /// Why.
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

/// An import under way.
pub struct Import {
    engine: Engine,
    by: Administrator,
    /// Its entry in the audit.
    no: AuditNo,
    /// Most bytes of a session with its messages.
    limit: usize,
    /// The session whose messages may follow.
    current: Option<Current>,
    under_way: VecDeque<UnderWay>,
    bytes_under_way: usize,
    report: ImportReport,
}

/// A session, as far as it has been read.
struct Current {
    line: u64,
    id: SessionId,
    /// `None` if it isn't taken: then its messages aren't either.
    session: Option<Session>,
    messages: Vec<ChatMessage>,
    bytes: usize,
}

/// Something that has been given to the store.
struct UnderWay {
    line: u64,
    bytes: usize,
    what: What,
    outcome: Pin<Box<dyn Future<Output = Result<Taken, CommitError>> + Send>>,
}

enum What {
    User,
    Session { id: SessionId, messages: u64 },
}

impl Engine {
    /// Begins an import, which is recorded. `limit` is how many bytes of text a session may have with its messages: that is
    /// what is kept in memory at a time, and a few sessions on their way to the disk.
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
    /// Takes a line, which is a record. One that can't be taken is noted in the report.
    ///
    /// # Errors
    /// If the store can't write. What was taken before stays.
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
            // It may have been one of the messages of the current session, and more of them may follow.
            Err(error @ RecordError::Malformed(_)) => {
                self.report.skip(line, error);
                Ok(())
            }
        }
    }

    /// Notes that a line can't be taken, for a reason that shows before it is read.
    pub fn skip(&mut self, line: u64, reason: &str) {
        self.report.skip(line, reason);
    }

    /// Takes the last session and waits until all is durable.
    ///
    /// # Errors
    /// If the store can't write. What was taken before stays.
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
                self.report.skip(line, "a message in it is of another session");
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
            _ => self.report.skip(line, "it is a message of another session than the last one before it"),
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

    /// Gives the current session to the store, now that all of it has been read.
    async fn end_session(&mut self) -> Result<(), EngineError> {
        let Some(Current { line, id, session: Some(session), mut messages, bytes }) = self.current.take() else {
            return Ok(());
        };
        give_places(&mut messages);
        let what = What::Session { id, messages: messages.len() as u64 };
        let imported = ImportedSession { session, messages, import: self.no };
        let outcome = Box::pin(self.engine.inner.store.import_session(imported));
        self.submit(UnderWay { line, bytes, what, outcome }).await
    }

    async fn submit_user(&mut self, line: u64, profile: UserProfile, bytes: usize) -> Result<(), EngineError> {
        let profile = Arc::new(profile);
        let written = self.engine.inner.store.import_user(Arc::clone(&profile));
        let inner = Arc::clone(&self.engine.inner);
        // In a task of its own where something in memory has to follow, whether or not somebody waits.
        let outcome: Pin<Box<dyn Future<Output = Result<Taken, CommitError>> + Send>> = match profile.is_benchmark {
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
        self.settle(AT_ONCE).await
    }

    /// Waits until at most so many commits are under way.
    async fn settle(&mut self, at_most: usize) -> Result<(), EngineError> {
        while self.under_way.len() > at_most
            && let Some(UnderWay { line, bytes, what, outcome }) = self.under_way.pop_front()
        {
            self.bytes_under_way -= bytes;
            match (outcome.await, what) {
                (Ok(Taken::New), What::User) => self.report.users += 1,
                (Ok(Taken::New), What::Session { messages, .. }) => {
                    self.report.sessions += 1;
                    self.report.messages += messages;
                }
                (Ok(_), What::User) => self.report.skip(line, "the user is known here already"),
                (Ok(taken), What::Session { id, messages }) => {
                    let reason = match taken {
                        Taken::ForeignInvite => format!("session {id} has an invite that belongs to another one here"),
                        _ => format!("session {id} is here already"),
                    };
                    self.report.skip(line, reason);
                    self.report.skipped_total += messages;
                }
                (Err(CommitError::Conflict), _) => self.report.skip(line, "it contradicts what is here already"),
                (Err(error), _) => return Err(unwritten(error)),
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Takes note of whether a user is a benchmark model, as the store has it now.
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
        Channel::Invites => None,
    }
}

/// Gives messages the places 1, 2, 3 … in their channels, in the order of the indexes that they came with; of equal ones
/// the first comes first.
fn give_places(messages: &mut [ChatMessage]) {
    messages.sort_by_key(|message| message.index);
    let mut lens: BTreeMap<Channel, u64> = BTreeMap::new();
    for message in messages {
        let len = lens.entry(message.channel).or_default();
        *len += 1;
        message.index = *len;
    }
}
