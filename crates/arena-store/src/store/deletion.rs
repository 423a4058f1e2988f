//! Deletion of a user: the id and the profile are erased. The user's games stay, and count for the other players.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arena_model::{ContentHash, Occupant, Seat, Session, SessionId, Status, UserId};

use super::audit::record;
use crate::derived::standings::find_career;
use crate::derived::strategies::forget_player;
use crate::errors::{Failure, WriteError};
use crate::plan::PARTICIPANTS;
use crate::sql::{Db, Dialect, Value, columns};
use crate::tables::{ADMINISTRATION, STANDINGS, Sessions, players_text, read_session, to_json};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, Store};

pub struct UserDeletion {
    pub user: UserId,
    /// Replaces the user's id in the list of users, whose rows are never removed. No other user may have it.
    pub placeholder: UserId,
    /// A function that returns the commitment to the user's id in the record of a session, where the user had this seat.
    pub commit: Box<dyn Fn(SessionId, Seat) -> ContentHash + Send + Sync>,
    pub audit: AuditEntry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionOutcome {
    Unknown,
    /// The user has seats in these sessions, which haven't ended, so nothing was changed.
    Playing(Vec<SessionId>),
    /// The user's id was erased from these sessions, which have ended.
    Deleted(Vec<SessionId>),
}

/// The number of further attempts if games of the user end during the deletion.
const ATTEMPTS: usize = 5;

impl Store {
    /// Deletes a user who has no seat in a running session. The user's place in the list of users remains, without id
    /// and name. In each of its games, the commitment to its id takes the place of the id, so the records of the games
    /// keep their hashes. The games count for the other players as before. Bans and audit entries stay, and so do the
    /// answers to repeated requests, which are kept for a day.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if games of the user end all the time. Also if the store can't be read or write.
    pub async fn delete_user(&self, deletion: UserDeletion) -> Result<DeletionOutcome, CommitError> {
        let user = to_json(&deletion.user.as_str());
        let deletion = Arc::new(deletion);
        let mut attempts = 0..ATTEMPTS;
        loop {
            // All sessions are searched before the write, because other writes wait for it.
            let found = self.aside(user.clone(), |user, db| Box::pin(find_sessions(db, user, "1 = 1"))).await?;
            let written = self.write((Arc::clone(&deletion), found), |(deletion, found), writing| {
                Box::pin(async move {
                    writing.begin_to_erase()?;
                    let deleted = delete(writing, deletion, found).await;
                    writing.end_erasing()?;
                    let deleted = deleted?;
                    if let DeletionOutcome::Deleted(_) = deleted {
                        record(writing, &deletion.audit).await?;
                    }
                    Ok(deleted)
                })
            });
            match written.await {
                Err(CommitError::Conflict) if attempts.next().is_some() => {}
                written => return written,
            }
        }
    }
}

/// Returns the numbers of the sessions that meet a condition and contain the user, given as JSON text.
async fn find_sessions(db: &mut Db, user: &str, condition: &str) -> Result<Vec<i64>, Failure> {
    let sql = format!("SELECT no FROM sessions WHERE {condition} AND {}(players, $1) > 0", position(db.dialect()));
    db.list(&sql, &[user.into()], |row| row.integer(0)).await
}

/// Returns the function that finds a text in another one.
fn position(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "instr",
        Dialect::Postgres => "strpos",
    }
}

async fn delete(writing: &mut Writing, deletion: &UserDeletion, found: &[i64]) -> Result<DeletionOutcome, WriteError> {
    let UserDeletion { user, placeholder, commit, .. } = deletion;
    let text = to_json(&user.as_str());
    // The user may have joined sessions since the search. Sessions that can end by time have a wake-up.
    let mut sessions: BTreeSet<i64> = found.iter().copied().collect();
    sessions.extend(find_sessions(&mut writing.db, &text, "wake_at IS NOT NULL").await?);
    // Sessions are locked before users, as by a session's end, so that nodes can't deadlock.
    let mut locked = BTreeMap::new();
    let dialect = writing.db.dialect();
    let sql = format!("SELECT {} FROM sessions WHERE no = $1{}", columns::<Sessions>(""), dialect.for_update());
    for no in &sessions {
        locked.extend(writing.db.find(&sql, &[(*no).into()], |row| Ok((*no, read_session(row)?.1))).await?);
    }
    writing.lock_users([user.as_str()]).await?;
    let id = [Value::prose(user.as_str())];
    let no = writing.db.find("SELECT no FROM users WHERE id = $1", &id, |row| row.integer(0)).await?;
    if let Some(no) = no {
        // A wrong row of `careers` doesn't prevent the deletion.
        let played = format!(
            "SELECT c.session FROM careers c JOIN sessions s ON s.no = c.session
             WHERE c.user_no = $1 AND c.n > 0 AND {}(s.players, $2) > 0",
            position(dialect)
        );
        let played = writing.db.list(&played, &[no.into(), text.as_str().into()], |row| row.integer(0)).await?;
        if played.iter().any(|session| !sessions.contains(session)) {
            return Err(CommitError::Conflict.into());
        }
    }

    let (mut running, mut ended) = (Vec::new(), Vec::new());
    for (no, session) in locked {
        match session.status() {
            _ if session.seats.iter().all(|occupant| occupant.user.as_ref() != Some(user)) => {}
            Status::Ended => ended.push((no, session)),
            Status::Open | Status::Active => running.push(session.facts.id),
        }
    }
    if !running.is_empty() {
        return Ok(DeletionOutcome::Playing(running));
    }
    if no.is_none() && ended.is_empty() {
        return Ok(DeletionOutcome::Unknown);
    }
    for (no, session) in &ended {
        erase_from(writing, *no, session, user, commit).await?;
    }
    if let Some(no) = no {
        if find_career(&mut writing.db, no).await?.played > 0 {
            writing.effects.delta.add_total(PARTICIPANTS, -1);
        }
        writing.db.execute("DELETE FROM careers WHERE user_no = $1", &[no.into()]).await?;
        // Rows of strategies may also be of games that were removed since.
        let rows = writing.db.number("SELECT count(*) FROM strategy_rows WHERE player = $1", &id).await?;
        if rows > 0 || !ended.is_empty() {
            forget_player(writing, user).await?;
        }
        let sql = "UPDATE users SET id = $1, username = NULL, model = NULL, benchmark = 0 WHERE no = $2";
        writing.db.execute(sql, &[Value::prose(placeholder.as_str()), no.into()]).await?;
    }
    writing.effects.recounted = true;
    writing.changed.extend([ADMINISTRATION, STANDINGS]);
    Ok(DeletionOutcome::Deleted(ended.into_iter().map(|(_, session)| session.facts.id).collect()))
}

async fn erase_from(
    writing: &mut Writing,
    no: i64,
    session: &Session,
    user: &UserId,
    commit: &(dyn Fn(SessionId, Seat) -> ContentHash + Send + Sync),
) -> Result<(), WriteError> {
    let id = session.facts.id;
    let is_of_user = |occupant: &Occupant| occupant.user.as_ref() == Some(user);
    let erase = |(seat, occupant): (usize, &Occupant)| match is_of_user(occupant) {
        true => Occupant { user: None, deleted: Some(commit(id, Seat(seat))), invite: occupant.invite },
        false => occupant.clone(),
    };
    let seats: Vec<Occupant> = session.seats.iter().enumerate().map(erase).collect();
    // A game of a user against itself counts for nobody. Without the user's id, it would count for the others.
    let played_itself = session.seats.iter().filter(|occupant| is_of_user(occupant)).count() > 1;
    let rated = if played_itself { ", rated = ''" } else { "" };
    let sql = format!("UPDATE sessions SET players = $1{rated} WHERE no = $2");
    writing.db.execute(&sql, &[players_text(&seats).into(), no.into()]).await?;
    writing.count_edit(no).await?;
    Ok(())
}
