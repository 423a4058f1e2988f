//! Sessions that an administrator or their creator removes or takes from all lists.

use std::sync::Arc;
use std::time::Instant;

use arena_model::{Channel, Draft, Party, Session, SessionFacts, SessionId, Status, Timestamp};
use arena_store::{CommitError, RemovedSession};
use serde_json::json;

use crate::admin::Administrator;
use crate::completion::Completion;
use crate::engine::{Engine, Inner, LONGEST_CONTENTION};
use crate::live::LiveRef;
use crate::request::EngineError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    Creator,
    Administrator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// A removal by the administrator, in any phase.
    Remove,
    /// A removal before the end.
    Cancel(Requester),
    /// The removal from all lists, before the end. The session continues and counts nowhere.
    Unlist(Requester),
}

impl Withdrawal {
    /// Checks that the caller may withdraw the session. The creator may also be a player, who could drop a game that it
    /// is about to lose.
    ///
    /// # Errors
    /// If the session has ended, or a rated game has begun and the caller is its creator.
    fn check(self, session: &Session) -> Result<(), EngineError> {
        let requester = match self {
            Withdrawal::Remove => return Ok(()),
            Withdrawal::Cancel(requester) | Withdrawal::Unlist(requester) => requester,
        };
        match session.status() {
            Status::Ended => Err(EngineError::SessionEnded),
            Status::Active if requester == Requester::Creator && session.facts.rated.is_some() => {
                Err(EngineError::RatedGame)
            }
            Status::Open | Status::Active => Ok(()),
        }
    }

    /// Returns the action in the audit, and the reason of a removal in the arena's log.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Withdrawal::Remove => ("remove", RemovedSession::ADMINISTRATOR),
            Withdrawal::Cancel(Requester::Administrator) => ("cancel", RemovedSession::ADMINISTRATOR),
            Withdrawal::Cancel(Requester::Creator) => ("cancel", RemovedSession::CREATOR),
            Withdrawal::Unlist(_) => ("unlist", ""),
        }
    }
}

impl Engine {
    /// Removes a session or takes it from all lists. The audit and the arena's log show it. `by` has the address for the
    /// audit. An unlisted session stays unchanged if it is unlisted again.
    ///
    /// # Errors
    /// If there is no such session, it has ended, its creator may no longer withdraw it, or the store can't write.
    pub async fn withdraw_session(
        &self,
        by: Administrator,
        id: SessionId,
        withdrawal: Withdrawal,
    ) -> Result<(), EngineError> {
        let engine = self.clone();
        Completion::new(async move {
            let live = engine.current(id).await?.ok_or(EngineError::UnknownSession)?;
            engine.inner.withdraw(by, &live, withdrawal).await
        })
        .await
    }
}

impl Inner {
    async fn withdraw(&self, by: Administrator, live: &LiveRef, withdrawal: Withdrawal) -> Result<(), EngineError> {
        let _deciding = live.deciding.lock().await;
        let begun = Instant::now();
        for attempt in 0.. {
            if live.is_stale() {
                live.reload(&self.store).await?;
            }
            let (session, last_activity) = {
                let committed = live.committed.read();
                if committed.removed {
                    return Err(EngineError::UnknownSession);
                }
                (Arc::clone(&committed.session), committed.last_activity)
            };
            let committed = match withdrawal {
                Withdrawal::Unlist(_) if session.facts.is_unlisted => return Ok(()),
                Withdrawal::Unlist(_) => {
                    withdrawal.check(&session)?;
                    self.unlist(by, live, session, last_activity).await?
                }
                Withdrawal::Remove | Withdrawal::Cancel(_) => {
                    withdrawal.check(&session)?;
                    self.remove(by, live, session, withdrawal).await
                }
            };
            match committed {
                Ok(()) => return Ok(()),
                Err(CommitError::Unavailable(error)) => {
                    // After a store failure, the result of the commit is unknown: reload before the next decision.
                    live.mark_stale();
                    return Err(error.into());
                }
                Err(CommitError::Conflict | CommitError::Answered(_)) => {
                    self.back_off(attempt).await;
                    live.reload(&self.store).await?;
                    if begun.elapsed() > LONGEST_CONTENTION {
                        break;
                    }
                }
            }
        }
        Err(EngineError::Contended)
    }

    async fn remove(
        &self,
        by: Administrator,
        live: &LiveRef,
        session: Arc<Session>,
        withdrawal: Withdrawal,
    ) -> Result<(), CommitError> {
        let (action, reason) = withdrawal.names();
        let id = session.facts.id;
        let detail = json!({ "session": id, "type": session.facts.challenge, "status": session.status().as_str() });
        let audit = self.audit(by, action, detail);
        let archived = self.store.remove_session_for(live.no, session, reason, audit).await?;
        live.show_removed();
        self.live.evict(id, live);
        self.remove_archive(archived).await;
        Ok(())
    }

    /// Takes a session from all lists.
    ///
    /// # Errors
    /// If a deadline has passed. The inner error is that of the commit.
    async fn unlist(
        &self,
        by: Administrator,
        live: &LiveRef,
        session: Arc<Session>,
        last_activity: Timestamp,
    ) -> Result<Result<(), CommitError>, EngineError> {
        let now = self.environment.now().max(last_activity);
        // The record shows the change as a wake-up without effects, so a passed deadline must come first.
        if session.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(EngineError::Contended);
        }
        let id = session.facts.id;
        let audit = self.audit(by, "unlist", json!({ "session": id }));
        let facts = SessionFacts { is_unlisted: true, rated: None, ..(*session.facts).clone() };
        let after = Session { version: session.version + 1, facts: Arc::new(facts), ..(*session).clone() };
        let draft = Draft {
            channel: Channel::Inputs(id),
            from: Party::Operator,
            to: None,
            content: String::new(),
            method: Some("wake".to_owned()),
        };
        let after = Arc::new(after);
        let input = draft.at(after.version, now);
        let unlisted = self.store.unlist_session(live.no, session, Arc::clone(&after), input, audit).await;
        if unlisted.is_ok() {
            {
                let mut committed = live.committed.write();
                committed.session = after;
                // It lacks the input of this change.
                committed.transcript = None;
            }
            live.wake();
        }
        Ok(unlisted)
    }
}
