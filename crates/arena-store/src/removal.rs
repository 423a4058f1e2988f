//! Removing sessions: with their messages and invites, and as if they had never counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{Ending, Phase, Session, UserId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::audit::record;
use crate::counts::Delta;
use crate::hiding::erase;
use crate::job::{WriteError, Writing};
use crate::sqlite::BY_CODE;
use crate::standings::{PARTICIPANTS, games_of, recount, user_no, write_career};
use crate::{AuditEntry, CommitError, SessionNo, SqliteStore};

impl SqliteStore {
    pub(crate) async fn remove_session(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                erase(writing, |writing| remove(writing, no, &session))?;
                record(writing.connection, &audit)?;
                Ok(())
            })
            .await
    }
}

fn remove(writing: &mut Writing<'_>, no: SessionNo, session: &Session) -> Result<(), WriteError> {
    if !delete_session(writing.connection, no, session, &mut writing.effects.delta)? {
        return Err(CommitError::Conflict.into());
    }
    let Phase::Ended { ending, .. } = session.phase else { return Ok(()) };
    writing.connection.execute("UPDATE endings SET session = 0 WHERE session = ?1", [no.0])?;
    if ending == Ending::Completed {
        writing.effects.delta.add_total(&games_of(&session.facts.challenge), -1);
    }
    let users: BTreeSet<&UserId> = session.seats.iter().filter_map(|occupant| occupant.user.as_ref()).collect();
    for user in users {
        let user = user_no(writing.connection, user)?;
        if !forget_played(writing.connection, user, no)? {
            continue;
        }
        let career = recount(writing.connection, writing.counting.scoring, user)?;
        write_career(writing.connection, user, &career)?;
        writing.effects.recounted = true;
        if career.played == 0 {
            writing.effects.delta.add_total(PARTICIPANTS, -1);
        }
    }
    Ok(())
}

/// Deletes a session that is at this version, with its messages and invites. Whether it was.
pub(crate) fn delete_session(
    connection: &Connection,
    no: SessionNo,
    session: &Session,
    delta: &mut Delta,
) -> Result<bool, rusqlite::Error> {
    let gone = connection
        .prepare_cached("DELETE FROM sessions WHERE no = ?1 AND version = ?2")?
        .execute(params![no.0, session.version.cast_signed()])?;
    if gone == 0 {
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM messages WHERE session = ?1")?.execute([no.0])?;
    let mut forget = connection.prepare_cached(&format!("DELETE FROM invites WHERE {BY_CODE}"))?;
    for invite in &session.facts.invites {
        forget.execute([invite.to_string()])?;
    }
    delta.add(no.0, &session.facts.challenge, session.status(), -1);
    Ok(true)
}

/// Takes a session out of a user's history and closes the gap. Whether it was there.
fn forget_played(connection: &Connection, user: i64, session: SessionNo) -> Result<bool, rusqlite::Error> {
    let n: Option<i64> = connection
        .query_row("SELECT n FROM careers WHERE user = ?1 AND n > 0 AND session = ?2", [user, session.0], |row| {
            row.get(0)
        })
        .optional()?;
    let Some(n) = n else { return Ok(false) };
    connection.execute("DELETE FROM careers WHERE user = ?1 AND n = ?2", [user, n])?;
    // By way of negative numbers, so that no two rows have the same one at any moment, in whatever order they are moved.
    connection.execute("UPDATE careers SET n = -n WHERE user = ?1 AND n > ?2", [user, n])?;
    connection.execute("UPDATE careers SET n = -n - 1 WHERE user = ?1 AND n < 0", [user])?;
    Ok(true)
}
