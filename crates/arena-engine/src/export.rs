//! Everything that the store holds, in an order in which it can be taken in again: users, sessions under way, then ended
//! sessions in the order in which they ended, each session with its messages behind it.
//!
//! Play goes on meanwhile, so sessions under way come first: one that ends before it is reached comes later, as ended.
//! What is in memory at a time is a page.

use std::collections::VecDeque;

use arena_model::{Channel, ChatMessage, Session, UserProfile};
use arena_store::{EndingNo, SessionNo};
use serde_json::json;

use crate::admin::Administrator;
use crate::engine::Engine;
use crate::request::EngineError;
use crate::users::unwritten;

/// Users and sessions that are read at a time.
const PAGE: usize = 64;

/// Messages that are read at a time.
const MESSAGES: usize = 500;

/// One thing of an export. Nothing is withheld from it.
#[derive(Debug)]
pub enum Exported {
    /// A user.
    User(UserProfile),
    /// A session. Its messages follow.
    Session(Box<Session>),
    /// A message of the last session.
    Message(ChatMessage),
}

/// An export under way.
pub struct Export {
    engine: Engine,
    next: Next,
    /// Sessions that were read and whose turn will come.
    sessions: VecDeque<(SessionNo, Session)>,
    /// The channels of the last session that are still to be read, and from which message on.
    channels: VecDeque<(SessionNo, Channel, u64)>,
}

/// What is read next from the store.
enum Next {
    Users(u64),
    Running(Option<SessionNo>),
    Ended(EndingNo),
}

impl Engine {
    /// Begins an export, which is recorded.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn export(&self, by: Administrator) -> Result<Export, EngineError> {
        self.inner.store.record(self.inner.audit(by, "export", json!({}))).await.map_err(unwritten)?;
        Ok(Export { engine: self.clone(), next: Next::Users(0), sessions: VecDeque::new(), channels: VecDeque::new() })
    }
}

impl Export {
    /// The next few things; none after the last.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&mut self) -> Result<Vec<Exported>, EngineError> {
        let store = &self.engine.inner.store;
        loop {
            if let Some((no, channel, from)) = self.channels.pop_front() {
                let messages = store.list_messages(Some(no), channel, from, MESSAGES).await?;
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
