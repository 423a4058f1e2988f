//! Careers in the database: read, written, and counted anew. What a game counts for is decided elsewhere.

use std::collections::BTreeMap;

use arena_model::{BoardId, GameResult, Scoring, Seat, UserId};
use tokio_postgres::{Client, Error};

use super::derived::WHOLE_TABLES;
use super::session_columns;
use crate::StoreError;
use crate::boards::{BoardRow, PLAYED_KINDS, row_of_kind};
use crate::rows::{Columns, SESSION_COLUMNS, to_json};
use crate::standings::{Career, PARTICIPANTS, games_of, read_or_pass_over, read_standings};

/// A user's career; one of nothing if there is none.
pub(crate) async fn read_career(client: &Client, user: i64) -> Result<Career, StoreError> {
    let sql = "SELECT session, standings FROM careers WHERE user_no = $1 AND n = 0";
    let Some(row) = client.query_opt(sql, &[&user]).await? else { return Ok(Career::default()) };
    Ok(Career { played: row.integer(0)?, standings: read_standings(user, row.text_or_null(1)?.unwrap_or_default()) })
}

/// Puts a career in the place of the stored one.
pub(crate) async fn write_career(client: &Client, user: i64, career: &Career) -> Result<(), StoreError> {
    let sql = "INSERT INTO careers (user_no, n, session, standings) VALUES ($1, 0, $2, $3)
         ON CONFLICT (user_no, n) DO UPDATE SET session = excluded.session, standings = excluded.standings";
    client.execute(sql, &[&user, &career.played, &to_json(&career.standings)]).await?;
    Ok(())
}

/// Counts a user's sessions anew, without changing anything.
pub(crate) async fn recount(client: &Client, scoring: &Scoring, user: i64) -> Result<Career, StoreError> {
    let sql = format!(
        "SELECT {}, u.id FROM careers c JOIN sessions s ON s.no = c.session JOIN users u ON u.no = c.user_no
         WHERE c.user_no = $1 AND c.n > $2 ORDER BY c.n LIMIT {PAGE}",
        session_columns()
    );
    let mut career = Career::default();
    loop {
        // Page by page: somebody may have played for years.
        let rows = client.query(&sql, &[&user, &career.played]).await?;
        for row in &rows {
            career.played += 1;
            let Some((_, session)) = read_or_pass_over(row)? else { continue };
            let id: UserId = row
                .prose(SESSION_COLUMNS.split(',').count())?
                .parse()
                .map_err(|error| StoreError::damaged(session.facts.id, error))?;
            let Some(result) = GameResult::of(&session) else { continue };
            if let Some(seat) = result.users.iter().position(|user| *user == Some(&id)) {
                let standing = career.standings.entry(result.board.to_string()).or_default();
                scoring.count(&result, Seat(seat), standing);
            }
        }
        if rows.len() < PAGE {
            return Ok(career);
        }
    }
}

/// Sessions that are read at a time.
const PAGE: usize = 500;

/// Users whose standings are counted anew in one transaction.
const AT_ONCE: i64 = 1000;

/// By which scoring the games were counted; none if none was.
pub(crate) async fn counted_by(client: &Client) -> Result<Option<String>, StoreError> {
    let found = client.query_opt("SELECT value FROM notes WHERE name = 'scoring'", &[]).await?;
    found.map(|row| Ok(row.text(0)?.to_owned())).transpose()
}

/// Counts the games of every user anew if the arena scores otherwise than when they were counted.
pub(crate) async fn follow_scoring(client: &Client, scoring: &Scoring) -> Result<(), StoreError> {
    let wanted = scoring.describe();
    if counted_by(client).await?.as_ref() == Some(&wanted) {
        return Ok(());
    }
    let last_user = client.query_one("SELECT coalesce(max(no), 0) FROM users", &[]).await?.integer(0)?;
    if last_user > 0 {
        tracing::info!("scoring has changed: the games of {last_user} users are counted anew");
    }
    for first in (1..=last_user).step_by(AT_ONCE as usize) {
        client.batch_execute("BEGIN").await?;
        for user in first..(first + AT_ONCE).min(last_user + 1) {
            write_career(client, user, &recount(client, scoring, user).await?).await?;
        }
        client.batch_execute("COMMIT").await?;
    }
    client.batch_execute(&format!("BEGIN; {WHOLE_TABLES}")).await?;
    mend_boards(client).await?;
    client.batch_execute("COMMIT").await?;
    let note = "INSERT INTO notes (name, value) VALUES ('scoring', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    client.execute(note, &[&wanted]).await?;
    Ok(())
}

/// The boards that the sessions make.
pub(crate) async fn boards_played(client: &Client) -> Result<BTreeMap<BoardId, BoardRow>, Error> {
    let rows = client.query(PLAYED_KINDS, &[]).await?;
    Ok(rows.iter().filter_map(row_of_kind).collect())
}

/// Makes the table of boards again.
pub(crate) async fn mend_boards(client: &Client) -> Result<(), Error> {
    let boards = boards_played(client).await?;
    client.execute("DELETE FROM boards", &[]).await?;
    for (id, [challenge, options, rated]) in &boards {
        let sql = "INSERT INTO boards (id, type, options, rated) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        client.execute(sql, &[&id.as_str(), challenge, options, rated]).await?;
    }
    Ok(())
}

/// The totals by name, as stored.
pub(crate) async fn read_totals(client: &Client) -> Result<BTreeMap<String, i64>, StoreError> {
    let rows = client.query("SELECT name, n FROM totals", &[]).await?;
    rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.integer(1)?))).collect()
}

/// The totals by name, from the sessions that have ended and the users who were in them.
pub(crate) async fn count_totals(client: &Client) -> Result<BTreeMap<String, i64>, StoreError> {
    let games = client
        .query(
            "SELECT s.type, count(*) FROM endings e JOIN sessions s ON s.no = e.session
             WHERE s.ending = 'completed' GROUP BY s.type",
            &[],
        )
        .await?;
    let mut totals = BTreeMap::new();
    for row in &games {
        totals.insert(games_of(row.text(0)?), row.integer(1)?);
    }
    let participants = client.query_one("SELECT count(*) FROM careers WHERE n = 1", &[]).await?.integer(0)?;
    totals.insert(PARTICIPANTS.to_owned(), participants);
    Ok(totals)
}
