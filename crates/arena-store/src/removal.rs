//! Removal of sessions with their messages and invites. A removed session no longer counts for its players.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{Ending, Phase, Session, UserId};

use crate::audit::record;
use crate::db::Failure;
use crate::hiding::{begin_to_erase, end_erasing};
use crate::job::{WriteError, Writing};
use crate::standings::{PARTICIPANTS, games_of, recount, write_career};
use crate::value::Value;
use crate::{AuditEntry, CommitError, SessionNo, Store};

impl Store {
    /// Removes a session in any state. If it has ended, the histories, standings and totals of its players are
    /// recomputed without it, which reads all their other games.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the session has a newer version. Also if the store can't write.
    pub async fn remove_session(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        self.write((session, audit), move |(session, audit), writing| {
            Box::pin(async move {
                begin_to_erase(writing)?;
                let removed = remove(writing, no, session).await;
                end_erasing(writing)?;
                removed?;
                record(writing, audit).await.map(drop)
            })
        })
        .await
    }
}

async fn remove(writing: &mut Writing, no: SessionNo, session: &Session) -> Result<(), WriteError> {
    let (key, version) = (Value::from(no.0), session.version.cast_signed().into());
    let sql = "DELETE FROM sessions WHERE no = $1 AND version = $2";
    if writing.db.execute(sql, &[key.clone(), version]).await? == 0 {
        return Err(CommitError::Conflict.into());
    }
    let key = [key];
    writing.db.execute("DELETE FROM messages WHERE session = $1", &key).await?;
    let forget = format!("DELETE FROM invites AS i WHERE {}", writing.db.dialect().by_code());
    for invite in &session.facts.invites {
        writing.db.execute(&forget, &[invite.to_string().into()]).await?;
    }
    writing.effects.delta.add_session(no.0, &session.facts, session.status(), -1);
    writing.journal_entry.add_session(session.facts.id);
    let Phase::Ended { ending, .. } = session.phase else { return Ok(()) };
    writing.db.execute("UPDATE endings SET session = 0 WHERE session = $1", &key).await?;
    if session.facts.is_unlisted {
        return Ok(());
    }
    if ending == Ending::Completed {
        writing.effects.delta.add_total(&games_of(&session.facts.challenge), -1);
    }
    let users: BTreeSet<&UserId> = session.seats.iter().filter_map(|occupant| occupant.user.as_ref()).collect();
    writing.lock_users(users.iter().map(|user| user.as_str())).await?;
    for user in users {
        let user = writing.user_no(user.as_str()).await?;
        if !forget_played(writing, user, no).await? {
            continue;
        }
        let career = recount(&mut writing.db, &writing.scoring, user).await?;
        write_career(&mut writing.db, user, &career).await?;
        writing.effects.recounted = true;
        writing.journal_entry.users.insert(user);
        if career.played == 0 {
            writing.effects.delta.add_total(PARTICIPANTS, -1);
        }
    }
    Ok(())
}

/// Removes a session from a user's history and closes the gap. Returns true if the history contained it.
async fn forget_played(writing: &mut Writing, user: i64, session: SessionNo) -> Result<bool, Failure> {
    let sql = "DELETE FROM careers WHERE user_no = $1 AND n > 0 AND session = $2 RETURNING n";
    let removed = writing.db.find(sql, &[user.into(), session.0.into()], |row| row.integer(0)).await?;
    let Some(n) = removed else { return Ok(false) };
    // Positions temporarily become negative, so that no two rows ever have the same position, regardless of the order
    // of updates.
    let sql = "UPDATE careers SET n = -n WHERE user_no = $1 AND n > $2";
    writing.db.execute(sql, &[user.into(), n.into()]).await?;
    writing.db.execute("UPDATE careers SET n = -n - 1 WHERE user_no = $1 AND n < 0", &[user.into()]).await?;
    Ok(true)
}
