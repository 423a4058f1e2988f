//! What the end of a game means for its players: their history, their standings, the totals. In the commit that ends it.

use arena_model::{Ending, GameResult, Phase, Scoring, Seat, Session, Standings, UserId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::boards;
use crate::counts::{Counts, Delta};
use crate::ranking::{Move, Ranked};
use crate::rows::{Columns, SESSION_COLUMNS, read_session, to_json};
use crate::writer::write_delta;
use crate::{SessionNo, StoreError};

/// By which rules an ended game is counted, and which rankings want to know.
pub(crate) struct Counting<'c> {
    pub(crate) scoring: &'c Scoring,
    pub(crate) ranked: &'c [Ranked],
}

impl Counting<'_> {
    /// Records that a session has ended.
    pub(crate) fn record_end(
        &self,
        connection: &Connection,
        no: SessionNo,
        session: &Session,
        delta: &mut Delta,
    ) -> Result<Ended, rusqlite::Error> {
        connection.prepare_cached("INSERT INTO endings (session) VALUES (?1)")?.execute([no.0])?;
        if let Phase::Ended { ending: Ending::Completed, .. } = session.phase {
            delta.add_total(&games_of(&session.facts.challenge), 1);
        }
        let result = GameResult::of(session);
        if let (Some(_), Some((id, row))) = (&result, boards::row_of(session)) {
            boards::enter(connection, &id, &row)?;
        }
        let mut end = Ended::default();
        for (seat, user) in players(session) {
            let user = user_no(connection, user)?;
            let mut career = read_career(connection, user)?;
            // The history says how long it is, so that the next place is free whatever row 0 states.
            let last = last_place(connection, user)?;
            if career.played != last {
                end.suspect = Some("a history");
            }
            career.played = last + 1;
            if career.played == 1 {
                delta.add_total(PARTICIPANTS, 1);
            }
            write_played(connection, user, career.played, no)?;
            if let Some(result) = &result {
                end.moves.extend(self.count(user, &mut career.standings, result, seat));
            }
            write_career(connection, user, &career)?;
        }
        Ok(end)
    }

    /// Adds a game to a player's standings.
    pub(crate) fn count(
        &self,
        user: i64,
        standings: &mut Standings,
        result: &GameResult<'_>,
        seat: Seat,
    ) -> Vec<(Ranked, Move)> {
        let keys = |standings: &Standings| -> Vec<Option<f64>> {
            self.ranked.iter().map(|ranked| ranked.key(self.scoring, standings)).collect()
        };
        let before = keys(standings);
        self.scoring.count(result, seat, standings.entry(result.board.to_string()).or_default());
        let after = keys(standings);
        let moved = self.ranked.iter().zip(before.into_iter().zip(after)).filter(|(_, (from, to))| from != to);
        moved.map(|(ranked, (from, to))| (ranked.clone(), Move { user, from, to })).collect()
    }
}

/// The end of a session as its players' standings show it.
#[derive(Default)]
pub(crate) struct Ended {
    /// The ranks that its players have moved to.
    pub(crate) moves: Vec<(Ranked, Move)>,
    /// A derived table that can't be right, if one was met.
    pub(crate) suspect: Option<&'static str>,
}

/// The players of a session that are known, each at its first seat: who holds two seats has played one session.
pub(crate) fn players(session: &Session) -> Vec<(Seat, &UserId)> {
    let mut players: Vec<(Seat, &UserId)> = Vec::new();
    for (seat, occupant) in session.seats.iter().enumerate() {
        if let Some(user) = &occupant.user
            && players.iter().all(|(_, other)| *other != user)
        {
            players.push((Seat(seat), user));
        }
    }
    players
}

/// What a user has done: row 0 of `careers`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Career {
    /// How many ended sessions it has.
    pub(crate) played: i64,
    /// What scoring remembers of it.
    pub(crate) standings: Standings,
}

/// A user's career; one of nothing if there is none. Standings that can't be read count as none: a recount mends them.
pub(crate) fn read_career(connection: &Connection, user: i64) -> Result<Career, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT session, standings FROM careers WHERE user = ?1 AND n = 0")?;
    let mut rows = statement.query([user])?;
    let Some(row) = rows.next()? else { return Ok(Career::default()) };
    // A column of another type is no better than text that can't be read.
    Ok(Career {
        played: row.get_ref(0)?.as_i64().unwrap_or(-1),
        standings: read_standings(user, row.get_ref(1)?.as_str().unwrap_or_default()),
    })
}

/// The standings of a user from their JSON; none if it can't be read.
pub(crate) fn read_standings(user: i64, text: &str) -> Standings {
    serde_json::from_str(text).unwrap_or_else(|error| {
        tracing::error!(user, %error, "the standings of user {user} can't be read; recompute them: {error}");
        Standings::new()
    })
}

/// Puts a career in the place of the stored one.
pub(crate) fn write_career(connection: &Connection, user: i64, career: &Career) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO careers (user, n, session, standings) VALUES (?1, 0, ?2, ?3)")?
        .execute(params![user, career.played, to_json(&career.standings)])?;
    Ok(())
}

/// The greatest place in a user's history; 0 if it has none.
fn last_place(connection: &Connection, user: i64) -> Result<i64, rusqlite::Error> {
    connection
        .prepare_cached("SELECT max(n) FROM careers WHERE user = ?1")?
        .query_row([user], |row| Ok(row.get::<_, Option<i64>>(0)?.unwrap_or(0).max(0)))
}

fn write_played(connection: &Connection, user: i64, n: i64, session: SessionNo) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT INTO careers (user, n, session) VALUES (?1, ?2, ?3)")?
        .execute(params![user, n, session.0])?;
    Ok(())
}

/// The name of the total of users who played.
pub(crate) const PARTICIPANTS: &str = "participants";

/// The name of the total of games of a challenge type.
pub(crate) fn games_of(challenge: &str) -> String {
    format!("games:{challenge}")
}

/// The number of a user, who is entered if it wasn't known.
pub(crate) fn user_no(connection: &Connection, user: &UserId) -> Result<i64, rusqlite::Error> {
    let find = "SELECT no FROM users WHERE id = ?1";
    if let Some(no) = connection.prepare_cached(find)?.query_row([user.as_str()], |row| row.get(0)).optional()? {
        return Ok(no);
    }
    connection.prepare_cached("INSERT INTO users (id) VALUES (?1)")?.execute([user.as_str()])?;
    Ok(connection.last_insert_rowid())
}

/// Counts a user's sessions anew, without changing anything.
pub(crate) fn recount(connection: &Connection, scoring: &Scoring, user: i64) -> Result<Career, StoreError> {
    let columns: Vec<String> = SESSION_COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect();
    let sql = format!(
        "SELECT {}, u.id FROM careers c JOIN sessions s ON s.no = c.session JOIN users u ON u.no = c.user
         WHERE c.user = ?1 AND c.n > 0 ORDER BY c.n",
        columns.join(", ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([user])?;
    let mut career = Career::default();
    while let Some(row) = rows.next()? {
        career.played += 1;
        let Some((_, session)) = read_or_pass_over(row)? else { continue };
        let id: String = row.get(columns.len())?;
        let Some(result) = GameResult::of(&session) else { continue };
        let seat = result.users.iter().position(|user| user.is_some_and(|user| user.as_str() == id));
        if let Some(seat) = seat {
            let standing = career.standings.entry(result.board.to_string()).or_default();
            scoring.count(&result, Seat(seat), standing);
        }
    }
    Ok(career)
}

/// A session, unless its row is damaged: one that can't be read counts for nothing, and keeps none from counting.
pub(crate) fn read_or_pass_over(row: &impl Columns) -> Result<Option<(SessionNo, Session)>, StoreError> {
    match read_session(row) {
        Ok(read) => Ok(Some(read)),
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::error!(%error, "passed over: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Users whose standings are counted anew in one transaction.
const AT_ONCE: i64 = 1000;

/// Counts everything anew if the arena scores otherwise than when the standings were counted, or if nothing has been
/// counted yet because the store is older than scoring.
pub(crate) fn follow_scoring(connection: &mut Connection, scoring: &Scoring) -> Result<(), StoreError> {
    let wanted = scoring.describe();
    let counted_by: Option<String> =
        connection.query_row("SELECT value FROM notes WHERE name = 'scoring'", [], |row| row.get(0)).optional()?;
    match counted_by {
        Some(counted_by) if counted_by == wanted => Ok(()),
        Some(_) => {
            count_careers(connection, scoring)?;
            boards::mend(connection)?;
            note_scoring(connection, &wanted)?;
            Ok(())
        }
        None => {
            let transaction = connection.transaction()?;
            count_sessions(&transaction, scoring)?;
            note_scoring(&transaction, &wanted)?;
            Ok(transaction.commit()?)
        }
    }
}

fn note_scoring(connection: &Connection, scoring: &str) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT INTO notes (name, value) VALUES ('scoring', ?1) ON CONFLICT DO UPDATE SET value = excluded.value",
        [scoring],
    )?;
    Ok(())
}

/// Records the end of every session that has ended, in their order. Nothing of it may have been recorded before.
fn count_sessions(connection: &Connection, scoring: &Scoring) -> Result<(), StoreError> {
    let counting = Counting { scoring, ranked: &[] };
    let sql = format!("SELECT {SESSION_COLUMNS} FROM sessions WHERE status = 'ended' ORDER BY ended_at, no");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut delta = Delta::default();
    while let Some(row) = rows.next()? {
        let Some((no, session)) = read_or_pass_over(row)? else { continue };
        counting.record_end(connection, no, &session, &mut delta)?;
    }
    // There was nothing before, in memory or in the tables, and what is counted of sessions stays.
    write_delta(connection, &delta, &Counts::default())?;
    Ok(())
}

/// Counts the games of every user anew.
fn count_careers(connection: &mut Connection, scoring: &Scoring) -> Result<(), StoreError> {
    let last_user: i64 = connection.query_row("SELECT coalesce(max(no), 0) FROM users", [], |row| row.get(0))?;
    tracing::info!("scoring has changed: the games of {last_user} users are counted anew");
    for first in (1..=last_user).step_by(AT_ONCE as usize) {
        let transaction = connection.transaction()?;
        for user in first..(first + AT_ONCE).min(last_user + 1) {
            write_career(&transaction, user, &recount(&transaction, scoring, user)?)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
