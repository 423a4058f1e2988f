//! Export of the store's users, sessions and messages, in the order that an import needs: users, running sessions, then
//! ended sessions in the order in which they ended. The messages of a session follow the session.
//!
//! Games continue during an export. Running sessions come first, so that a session that ends during the export is still
//! exported with the ended sessions. Only one page is in memory at a time.

use std::collections::VecDeque;

use arena_model::{Channel, ChatMessage, Session, UserProfile};
use arena_store::{EndingNo, SessionNo};
use serde_json::json;

use crate::admin::Administrator;
use crate::engine::Engine;
use crate::request::{EngineError, unwritten};

/// The number of users or sessions in one read.
const PAGE: usize = 64;

/// The maximum number and size of messages in one read.
const MESSAGES: usize = 500;
const MESSAGE_BYTES: usize = 4 << 20;

/// One record of an export, without redaction.
#[derive(Debug)]
pub enum Exported {
    User(UserProfile),
    /// A session. Its messages follow.
    Session(Box<Session>),
    /// A message of the session that was exported last.
    Message(ChatMessage),
}

pub struct Export {
    engine: Engine,
    next: Next,
    /// Sessions that the export has read but not yet returned.
    sessions: VecDeque<(SessionNo, Session)>,
    /// The remaining channels of the last session, each with the next index to read.
    channels: VecDeque<(SessionNo, Channel, u64)>,
}

enum Next {
    Users(u64),
    Running(Option<SessionNo>),
    Ended(EndingNo),
}

impl Engine {
    /// Starts an export and records it in the audit log.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn export(&self, by: Administrator) -> Result<Export, EngineError> {
        self.inner.store.record(self.inner.audit(by, "export", json!({}))).await.map_err(unwritten)?;
        Ok(Export { engine: self.clone(), next: Next::Users(0), sessions: VecDeque::new(), channels: VecDeque::new() })
    }
}

impl Export {
    /// Returns the next records, or none after the last.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&mut self) -> Result<Vec<Exported>, EngineError> {
        let store = &self.engine.inner.store;
        loop {
            if let Some((no, channel, from)) = self.channels.pop_front() {
                let messages =
                    self.engine.inner.list_messages(Some(no), channel, from, MESSAGES, MESSAGE_BYTES).await?;
                if let Some(last) = messages.last() {
                    self.channels.push_front((no, channel, last.index + 1));
                    return Ok(messages.into_iter().map(Exported::Message).collect());
                }
                continue;
            }
            if let Some((no, session)) = self.sessions.pop_front() {
                let id = session.facts.id;
                self.channels.extend([(no, Channel::Operator(id), 1), (no, Channel::Chat(id), 1)]);
                return Ok(vec![Exported::Session(Box::new(session))]);
            }
            match self.next {
                Next::Users(offset) => {
                    let users = store.list_users(offset, PAGE).await?.items;
                    self.next = match users.len() {
                        0 => Next::Running(None),
                        n => Next::Users(offset + n as u64),
                    };
                    if !users.is_empty() {
                        return Ok(users.into_iter().map(Exported::User).collect());
                    }
                }
                Next::Running(after) => {
                    self.sessions = store.list_running(after).await?.into();
                    self.next = match self.sessions.back() {
                        Some((last, _)) => Next::Running(Some(*last)),
                        None => Next::Ended(EndingNo::default()),
                    };
                }
                Next::Ended(after) => {
                    let ended = store.list_ended(after, PAGE).await?;
                    let Some((last, ..)) = ended.last() else { return Ok(Vec::new()) };
                    self.next = Next::Ended(*last);
                    self.sessions = ended.into_iter().map(|(_, no, session)| (no, session)).collect();
                }
            }
        }
    }
}
