//! What the end of a game means for its players: their history, their standings, the totals. In the commit that ends it.

use std::collections::BTreeMap;

use arena_model::{Ending, GameResult, Phase, Scoring, Seat, Session, Standing, Standings, UserId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::counts::Delta;
use crate::ranking::{Move, Ranked};
use crate::rows::{SESSION_COLUMNS, read_session, to_json};
use crate::{SessionNo, StoreError};

/// By which rules an ended game is counted, and which rankings want to know.
pub(crate) struct Counting<'c> {
    pub(crate) scoring: &'c Scoring,
    pub(crate) ranked: &'c [Ranked],
}

impl Counting<'_> {
    /// Records that a session has ended. Returns where its players have moved to.
    pub(crate) fn record_end(
        &self,
        connection: &Connection,
        no: SessionNo,
        session: &Session,
        delta: &mut Delta,
    ) -> Result<Vec<(Ranked, Move)>, rusqlite::Error> {
        let mut users: BTreeMap<&UserId, i64> = BTreeMap::new();
        for user in session.seats.iter().filter_map(|occupant| occupant.user.as_ref()) {
            if !users.contains_key(user) {
                let user_no = user_no(connection, user)?;
                if record_played(connection, user_no, no)? == 1 {
                    delta.add_total("participants", 1);
                }
                users.insert(user, user_no);
            }
        }
        if let Phase::Ended { ending: Ending::Completed, .. } = session.phase {
            delta.add_total(&format!("games:{}", session.facts.challenge), 1);
        }
        let Some(result) = GameResult::of(session) else { return Ok(Vec::new()) };
        let mut moves = Vec::new();
        for (seat, user) in result.users.iter().enumerate() {
            let Some(user_no) = user.and_then(|user| users.get(user)) else { continue };
            moves.extend(self.count(connection, *user_no, &result, Seat(seat))?);
        }
        Ok(moves)
    }

    /// Adds a game to a player's standing.
    fn count(
        &self,
        connection: &Connection,
        user: i64,
        result: &GameResult<'_>,
        seat: Seat,
    ) -> Result<Vec<(Ranked, Move)>, rusqlite::Error> {
        let mut standings = read_standings(connection, user)?;
        let keys = |standings: &Standings| -> Vec<Option<f64>> {
            self.ranked.iter().map(|ranked| ranked.key(self.scoring, standings)).collect()
        };
        let before = keys(&standings);
        let standing = standings.entry(result.challenge.to_owned()).or_default();
        self.scoring.count(result, seat, standing);
        write_standing(connection, user, result.challenge, standing)?;
        let after = keys(&standings);
        let moved = self.ranked.iter().zip(before.into_iter().zip(after)).filter(|(_, (from, to))| from != to);
        Ok(moved.map(|(ranked, (from, to))| (ranked.clone(), Move { user, from, to })).collect())
    }
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

/// Adds a session to a user's history; how many it holds now.
pub(crate) fn record_played(connection: &Connection, user: i64, session: SessionNo) -> Result<i64, rusqlite::Error> {
    let n = count_played(connection, user)? + 1;
    connection
        .prepare_cached("INSERT INTO played (user, n, session) VALUES (?1, ?2, ?3)")?
        .execute(params![user, n, session.0])?;
    Ok(n)
}

/// How many sessions a user's history holds.
pub(crate) fn count_played(connection: &Connection, user: i64) -> Result<i64, rusqlite::Error> {
    let last: Option<i64> =
        connection.prepare_cached("SELECT max(n) FROM played WHERE user = ?1")?.query_row([user], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

/// What scoring remembers of a user. A standing that can't be read counts as none: it is rebuilt by a recount.
pub(crate) fn read_standings(connection: &Connection, user: i64) -> Result<Standings, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT type, tallies FROM standings WHERE user = ?1")?;
    let mut rows = statement.query([user])?;
    let mut standings = Standings::new();
    while let Some(row) = rows.next()? {
        let challenge: String = row.get(0)?;
        match serde_json::from_str::<Standing>(row.get_ref(1)?.as_str()?) {
            Ok(standing) => drop(standings.insert(challenge, standing)),
            Err(error) => {
                tracing::error!(user, challenge, %error, "a standing in {challenge} can't be read; recompute: {error}");
            }
        }
    }
    Ok(standings)
}

fn write_standing(
    connection: &Connection,
    user: i64,
    challenge: &str,
    standing: &Standing,
) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached(
            "INSERT INTO standings (user, type, tallies) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET tallies = excluded.tallies",
        )?
        .execute(params![user, challenge, to_json(standing)])?;
    Ok(())
}

/// A user's standings, counted from its history.
pub(crate) struct Recounted {
    pub(crate) standings: Standings,
    pub(crate) games: u64,
}

/// Counts a user's history anew, without changing anything.
pub(crate) fn recount(connection: &Connection, scoring: &Scoring, user: i64) -> Result<Recounted, StoreError> {
    let columns: Vec<String> = SESSION_COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect();
    let sql = format!(
        "SELECT {}, u.id FROM played p JOIN sessions s ON s.no = p.session JOIN users u ON u.no = p.user
         WHERE p.user = ?1 ORDER BY p.n",
        columns.join(", ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([user])?;
    let (mut standings, mut games) = (Standings::new(), 0);
    while let Some(row) = rows.next()? {
        let (_, session) = read_session(row)?;
        let id: String = row.get(columns.len())?;
        games += 1;
        let Some(result) = GameResult::of(&session) else { continue };
        let seat = result.users.iter().position(|user| user.is_some_and(|user| user.as_str() == id));
        if let Some(seat) = seat {
            let standing = standings.entry(result.challenge.to_owned()).or_default();
            scoring.count(&result, Seat(seat), standing);
        }
    }
    Ok(Recounted { standings, games })
}

/// Puts counted standings in the place of the stored ones.
pub(crate) fn replace_standings(
    connection: &Connection,
    user: i64,
    standings: &Standings,
) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("DELETE FROM standings WHERE user = ?1")?.execute([user])?;
    for (challenge, standing) in standings {
        write_standing(connection, user, challenge, standing)?;
    }
    Ok(())
}

/// Users whose standings are counted anew in one transaction.
const AT_ONCE: i64 = 1000;

/// Counts everything anew if the arena scores otherwise than when the standings were counted.
pub(crate) fn follow_scoring(connection: &mut Connection, scoring: &Scoring) -> Result<(), StoreError> {
    let wanted = scoring.describe();
    let counted_by: Option<String> =
        connection.query_row("SELECT value FROM notes WHERE name = 'scoring'", [], |row| row.get(0)).optional()?;
    let last_user: i64 = connection.query_row("SELECT coalesce(max(no), 0) FROM users", [], |row| row.get(0))?;
    if counted_by.as_ref() == Some(&wanted) {
        return Ok(());
    }
    if last_user > 0 {
        tracing::info!("scoring has changed: the games of {last_user} users are counted anew");
    }
    for first in (1..=last_user).step_by(AT_ONCE as usize) {
        let transaction = connection.transaction()?;
        for user in first..(first + AT_ONCE).min(last_user + 1) {
            let recounted = recount(&transaction, scoring, user)?;
            replace_standings(&transaction, user, &recounted.standings)?;
        }
        transaction.commit()?;
    }
    connection.execute(
        "INSERT INTO notes (name, value) VALUES ('scoring', ?1) ON CONFLICT DO UPDATE SET value = excluded.value",
        [wanted],
    )?;
    Ok(())
}
