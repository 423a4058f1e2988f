//! Removal of sessions with their messages and invites. A removed session no longer counts for its players.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{Channel, ChatMessage, Ending, Phase, Session, UserId};

use super::archives::note_removed_file;
use super::audit::record;
use crate::derived::standings::{recount, write_career};
use crate::derived::strategies::mark_stale;
use crate::errors::{Failure, WriteError};
use crate::plan::{PARTICIPANTS, games_of};
use crate::sql::{Value, count};
use crate::tables::{REMOVED, STANDINGS, channel_number};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, RemovedSession, SessionNo, Store};

impl Store {
    /// Removes a session in any state for an administrator, as [`Store::remove_session_for`] does.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the session has a newer version. Also if the store can't write.
    pub async fn remove_session(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        self.remove_session_for(no, session, RemovedSession::ADMINISTRATOR, audit).await.map(drop)
    }

    /// Removes a session in any state, for a reason such as [`RemovedSession::CREATOR`]. If it has ended, the histories,
    /// standings and totals of its players are recomputed without it, which reads all their other games. Returns the file
    /// with its messages if it was archived.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the session has a newer version. Also if the store can't write.
    pub async fn remove_session_for(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        reason: &'static str,
        audit: AuditEntry,
    ) -> Result<Option<String>, CommitError> {
        self.write((session, audit), move |(session, audit), writing| {
            Box::pin(async move {
                writing.begin_to_erase()?;
                let removed = remove(writing, no, session).await;
                writing.end_erasing()?;
                let archived = removed?;
                record(writing, audit).await?;
                writing.lock_number(REMOVED).await?;
                let sql = "INSERT INTO removed_sessions (id, at, reason) VALUES ($1, $2, $3)";
                let values = [session.facts.id.to_string().into(), audit.at.0.into(), reason.into()];
                writing.db.execute(sql, &values).await?;
                Ok(archived)
            })
        })
        .await
    }

    /// Takes a session that hasn't ended from all lists and boards: stores `after`, which differs from `before` in its
    /// version and these facts only, with the input of the change.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the session has a newer version. Also if the store can't write.
    pub async fn unlist_session(
        &self,
        no: SessionNo,
        before: Arc<Session>,
        after: Arc<Session>,
        input: ChatMessage,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        self.write((before, after, input, audit), move |(before, after, input, audit), writing| {
            Box::pin(async move {
                unlist(writing, no, before, after, input).await?;
                record(writing, audit).await?;
                Ok(())
            })
        })
        .await
    }
}

async fn unlist(
    writing: &mut Writing,
    no: SessionNo,
    before: &Session,
    after: &Session,
    input: &ChatMessage,
) -> Result<(), WriteError> {
    let sql = "UPDATE sessions SET unlisted = 1, rated = '', version = $1 WHERE no = $2 AND version = $3";
    let values = [count(after.version), no.0, count(before.version)].map(Value::from);
    if writing.db.execute(sql, &values).await? == 0 {
        return Err(CommitError::Conflict.into());
    }
    let sql = "INSERT INTO messages (session, channel, idx, at, sender, method, content)
         VALUES ($1, $2, $3, $4, $5, $6, '')";
    let values = [
        no.0.into(),
        channel_number(input.channel).into(),
        count(input.index).into(),
        input.at.0.into(),
        Value::prose(input.from.to_string()),
        Value::prose(input.method.as_deref().unwrap_or_default()),
    ];
    writing.db.execute(sql, &values).await?;
    writing.effects.delta.add_session(no.0, &before.facts, before.status(), -1);
    writing.effects.delta.add_session(no.0, &after.facts, after.status(), 1);
    Ok(())
}

async fn remove(writing: &mut Writing, no: SessionNo, session: &Session) -> Result<Option<String>, WriteError> {
    let (key, version) = (Value::from(no.0), session.version.cast_signed().into());
    let sql = "DELETE FROM sessions WHERE no = $1 AND version = $2";
    if writing.db.execute(sql, &[key.clone(), version]).await? == 0 {
        return Err(CommitError::Conflict.into());
    }
    let key = [key];
    writing.db.execute("DELETE FROM messages WHERE session = $1", &key).await?;
    let sql = "DELETE FROM archives WHERE session = $1 RETURNING file";
    let archived = writing.db.find(sql, &key, |row| Ok(row.text(0)?.to_owned())).await?;
    if let Some(file) = &archived {
        note_removed_file(writing, file).await?;
    }
    // Earlier versions stored reports by readers, which may quote messages.
    let id = session.facts.id;
    let channels = [Channel::Chat(id), Channel::Operator(id)].map(|channel| channel.to_string().into());
    writing.db.execute("DELETE FROM reports WHERE channel IN ($1, $2)", &channels).await?;
    let forget = format!("DELETE FROM invites AS i WHERE {}", writing.db.dialect().by_code());
    for invite in &session.facts.invites {
        writing.db.execute(&forget, &[invite.to_string().into()]).await?;
    }
    writing.effects.delta.add_session(no.0, &session.facts, session.status(), -1);
    let Phase::Ended { ending, .. } = session.phase else { return Ok(archived) };
    writing.db.execute("UPDATE endings SET session = 0 WHERE session = $1", &key).await?;
    if session.facts.is_unlisted {
        return Ok(archived);
    }
    if ending == Ending::Completed {
        writing.effects.delta.add_total(&games_of(&session.facts.challenge), -1);
    }
    let users: BTreeSet<&UserId> = session.seats.iter().filter_map(|occupant| occupant.user.as_ref()).collect();
    writing.lock_users(users.iter().map(|user| user.as_str())).await?;
    if ending == Ending::Completed && session.facts.board().is_some() {
        mark_stale(writing).await?;
    }
    for user in users {
        let user = writing.user_no(user.as_str()).await?;
        if !forget_played(writing, user, no).await? {
            continue;
        }
        let career = recount(&mut writing.db, &writing.scoring, user).await?;
        write_career(&mut writing.db, user, &career).await?;
        writing.effects.recounted = true;
        writing.changed.insert(STANDINGS);
        if career.played == 0 {
            writing.effects.delta.add_total(PARTICIPANTS, -1);
        }
    }
    Ok(archived)
}

/// Removes a session from a user's history and closes the gap. Returns true if the history contained it.
async fn forget_played(writing: &mut Writing, user: i64, session: SessionNo) -> Result<bool, Failure> {
    let sql = "DELETE FROM careers WHERE user_no = $1 AND n > 0 AND session = $2 RETURNING n";
    let removed = writing.db.find(sql, &[user.into(), session.0.into()], |row| row.integer(0)).await?;
    let Some(n) = removed else { return Ok(false) };
    // Positions temporarily become negative, so that no two rows have the same one, whatever the order of updates.
    let sql = "UPDATE careers SET n = -n WHERE user_no = $1 AND n > $2";
    writing.db.execute(sql, &[user.into(), n.into()]).await?;
    writing.db.execute("UPDATE careers SET n = -n - 1 WHERE user_no = $1 AND n < 0", &[user.into()]).await?;
    Ok(true)
}
