//! Administrator operations. The engine commits each change together with its audit entry, and updates its data in
//! memory before it returns. The caller checks the administrator's rights first.

use std::net::IpAddr;
use std::sync::Arc;

use arena_model::{Channel, ContentHash, Seat, SessionId, UserId, UserProfile};
use arena_store::{AuditEntry, AuditNo, Ban, BanSubject, DeletionOutcome, Page, Recount, StoreError, UserDeletion};
use serde_json::{Value, json};

use crate::completion::Completion;
use crate::engine::{Engine, Inner};
use crate::inputs::ContentPlace;
use crate::live::LiveRef;
use crate::request::{EngineError, unwritten};

/// An administrator, as recorded in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Administrator {
    pub address: IpAddr,
}

impl Engine {
    /// Sets or clears the benchmark mark of a user. The mark affects only games that end after this call.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn set_benchmark(
        &self,
        by: Administrator,
        user: UserId,
        benchmark: bool,
    ) -> Result<UserProfile, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let _administering = inner.administering.lock().await;
            let audit = inner.audit(by, "benchmark", json!({ "userId": user, "isBenchmark": benchmark }));
            let profile = inner.store.set_benchmark(user, benchmark, audit).await.map_err(unwritten)?;
            inner.note_benchmark(&profile);
            Ok(profile)
        })
        .await
    }

    /// Hides a message: erases its content permanently, and returns the hash of the content.
    ///
    /// # Errors
    /// If there is no such session or message, or the store can't write.
    pub async fn hide_message(
        &self,
        by: Administrator,
        channel: Channel,
        index: u64,
    ) -> Result<ContentHash, EngineError> {
        let engine = self.clone();
        Completion::new(async move {
            let inner = &engine.inner;
            let hidden = match channel {
                Channel::Invites => inner.hide_public(by, index).await?,
                Channel::Chat(id) | Channel::Operator(id) => {
                    let live = engine.current(id).await?.ok_or(EngineError::UnknownSession)?;
                    inner.hide_in_session(by, &live, channel, index).await?
                }
                Channel::Inputs(_) => None,
            };
            hidden.ok_or(EngineError::UnknownMessage { channel, index })
        })
        .await
    }

    /// Adds a ban, or replaces the reason of an existing one.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn ban(&self, by: Administrator, subject: BanSubject, reason: String) -> Result<Ban, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let _administering = inner.administering.lock().await;
            let audit = inner.audit(by, "ban", json!({ "subject": subject.to_string(), "reason": reason }));
            let ban = Ban { subject, reason, at: inner.environment.now() };
            inner.store.ban(ban.clone(), audit).await.map_err(unwritten)?;
            inner.bans.add(&ban);
            Ok(ban)
        })
        .await
    }

    /// Lifts a ban. Returns true if the subject was banned.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn lift_ban(&self, by: Administrator, subject: BanSubject) -> Result<bool, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let _administering = inner.administering.lock().await;
            let audit = inner.audit(by, "lift", json!({ "subject": subject.to_string() }));
            let lifted = inner.store.lift_ban(subject.clone(), audit).await.map_err(unwritten)?;
            inner.bans.lift(&subject);
            Ok(lifted)
        })
        .await
    }

    /// Deletes a user who has no seat in a running session. Returns the number of the user's sessions.
    ///
    /// # Errors
    /// [`EngineError::UnknownUser`] and [`EngineError::UserPlays`]. Also if the store can't be read or write.
    pub async fn delete_user(&self, by: Administrator, user: UserId) -> Result<usize, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let _administering = inner.administering.lock().await;
            // The audit log is kept, so it doesn't contain the id.
            let detail = json!({ "userIdSha256": ContentHash::of(user.as_str()).to_string() });
            let audit = inner.audit(by, "delete-user", detail);
            let placeholder = format!("deleted-{}", inner.environment.uuid(audit.at));
            let placeholder: UserId = placeholder.parse().expect("a word and a UUID are an id");
            let (content, commit) = (user.clone(), inner.commit.get().cloned());
            // Without the function there are no records that need the commitment.
            let unrecorded = ContentHash::of(placeholder.as_str());
            let commit = move |id: SessionId, seat: Seat| {
                let place = ContentPlace::User(id, seat);
                commit.as_ref().and_then(|commit| commit(place, content.as_str())).unwrap_or(unrecorded)
            };
            let deletion = UserDeletion { user: user.clone(), placeholder, commit: Box::new(commit), audit };
            match inner.store.delete_user(deletion).await.map_err(unwritten)? {
                DeletionOutcome::Unknown => Err(EngineError::UnknownUser),
                DeletionOutcome::Playing(sessions) => Err(EngineError::UserPlays { sessions }),
                DeletionOutcome::Deleted(sessions) => {
                    inner.benchmarks.write().remove(&user);
                    inner.ended.clear();
                    for id in &sessions {
                        inner.live.mark_stale(*id);
                    }
                    Ok(sessions.len())
                }
            }
        })
        .await
    }

    /// Checks that an address isn't banned.
    ///
    /// # Errors
    /// [`EngineError::Banned`].
    pub fn admit_address(&self, address: IpAddr) -> Result<(), EngineError> {
        self.inner.bans.admit_address(address)
    }

    /// Returns all bans.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_bans(&self) -> Result<Vec<Ban>, EngineError> {
        Ok(self.inner.store.list_bans().await?)
    }

    /// Recomputes the standings of all users from their games, and corrects stored standings that differ.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn recount(&self, by: Administrator) -> Result<Recount, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let mended = |user: &UserId| inner.audit(by, "mend", json!({ "userId": user }));
            let recount = inner.store.recount(mended).await.map_err(unwritten)?;
            let Recount { users, games, wrong } = &recount;
            let detail = json!({ "users": users, "games": games, "wrong": wrong.len() });
            let noted = inner.store.record(inner.audit(by, "recompute", detail)).await;
            // The corrected standings are already stored, even if the store can't write the audit entry.
            noted.map_err(|error| if wrong.is_empty() { unwritten(error) } else { StoreError::Unsure.into() })?;
            Ok(recount)
        })
        .await
    }

    /// Adds an audit entry for an administrator's action on data outside the store.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn record_action(&self, by: Administrator, action: &str, detail: Value) -> Result<(), EngineError> {
        let audit = self.inner.audit(by, action, detail);
        self.inner.store.record(audit).await.map(drop).map_err(unwritten)
    }

    /// Returns the audit entries, newest first.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_audit(&self, offset: u64, limit: usize) -> Result<Page<(AuditNo, AuditEntry)>, EngineError> {
        Ok(self.inner.store.list_audit(offset, limit).await?)
    }
}

impl Inner {
    /// Creates an audit entry at the current time.
    pub(crate) fn audit(&self, by: Administrator, action: &str, detail: Value) -> AuditEntry {
        let address = by.address.to_canonical().to_string();
        AuditEntry { at: self.environment.now(), address, action: action.to_owned(), detail }
    }

    /// Updates the benchmark flag of a user in memory. The caller holds `administering`.
    pub(crate) fn note_benchmark(&self, profile: &UserProfile) {
        let mut benchmarks = self.benchmarks.write();
        if profile.is_benchmark {
            benchmarks.insert(profile.user_id.clone());
        } else {
            benchmarks.remove(&profile.user_id);
        }
    }

    async fn hide_public(&self, by: Administrator, index: u64) -> Result<Option<ContentHash>, EngineError> {
        let _posting = self.public.posting.lock().await;
        let hidden = self.hide_stored(by, None, Channel::Invites, index).await;
        // Drops the cached messages after a failure too, since the store always has the correct data.
        self.public.tail.write().forget();
        self.public.changed.send_modify(|count| *count += 1);
        hidden
    }

    async fn hide_in_session(
        &self,
        by: Administrator,
        live: &LiveRef,
        channel: Channel,
        index: u64,
    ) -> Result<Option<ContentHash>, EngineError> {
        let _deciding = live.deciding.lock().await;
        if live.committed.read().removed {
            return Err(EngineError::UnknownSession);
        }
        let id = live.committed.read().session.facts.id;
        loop {
            // The archive keeps no content that is erased.
            self.restore(None, live.no, id).await?;
            let hidden = self.hide_stored(by, Some(live), channel, index).await;
            live.forget_tails();
            // Another node may have archived the session in between.
            if !matches!(hidden, Ok(None)) || self.store.find_archive(live.no).await?.is_none() {
                return hidden;
            }
        }
    }

    async fn hide_stored(
        &self,
        by: Administrator,
        live: Option<&LiveRef>,
        channel: Channel,
        index: u64,
    ) -> Result<Option<ContentHash>, EngineError> {
        let entry = self.audit(by, "hide", Value::Null);
        let audit = move |hash: ContentHash| {
            let detail = json!({ "channel": channel.to_string(), "index": index, "contentSha256": hash.to_string() });
            AuditEntry { detail, ..entry.clone() }
        };
        let commit = self.commit.get().cloned();
        let commit = move |content: &str| {
            commit.as_ref().and_then(|commit| commit(ContentPlace::Message(channel, index), content))
        };
        let no = live.map(|live| live.no);
        self.store.hide_message(no, channel, index, commit, audit).await.map_err(unwritten)
    }
}
