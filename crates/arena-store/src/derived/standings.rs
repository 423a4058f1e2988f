//! The standings of users, in the table `careers`. They are written in the commit that ends a game.

use arena_model::{GameResult, Scoring, Seat};

use super::boards;
use crate::errors::Failure;
use crate::sql::{Db, Table, columns};
use crate::tables::{Career, CareerRow, Careers, Sessions, read_career, read_or_pass_over};

pub(crate) async fn find_career(db: &mut Db, user: i64) -> Result<Career, Failure> {
    let sql = "SELECT session, standings FROM careers WHERE user_no = $1 AND n = 0";
    Ok(db.find(sql, &[user.into()], |row| Ok(read_career(user, row, 0))).await?.unwrap_or_default())
}

pub(crate) async fn write_career(db: &mut Db, user: i64, career: &Career) -> Result<(), Failure> {
    db.insert::<Careers>(&[CareerRow::Career(user, career)], Careers::REPLACE).await.map(drop)
}

/// The number of sessions in one read. Reads are limited because a user may have played for years.
const PAGE: usize = 500;

/// Computes a career from the user's sessions, without changing anything.
pub(crate) async fn recount(db: &mut Db, scoring: &Scoring, user: i64) -> Result<Career, Failure> {
    let sql = format!(
        "SELECT {}, u.id, c.n FROM careers c JOIN sessions s ON s.no = c.session JOIN users u ON u.no = c.user_no
         WHERE c.user_no = $1 AND c.n > $2 ORDER BY c.n LIMIT {PAGE}",
        columns::<Sessions>("s.")
    );
    let (mut career, mut last, behind) = (Career::default(), 0, Sessions::COLUMNS.len());
    loop {
        let mut rows = 0;
        db.each(&sql, &[user.into(), last.into()], |row| {
            rows += 1;
            last = row.integer(behind + 1)?;
            career.played += 1;
            let Some((_, session)) = read_or_pass_over(row)? else { return Ok(()) };
            let id = row.prose(behind)?;
            let Some(result) = GameResult::of(&session) else { return Ok(()) };
            let seat = result.users.iter().position(|user| user.is_some_and(|user| user.as_str() == id));
            if let Some(seat) = seat {
                let standing = career.standings.entry(result.board.to_string()).or_default();
                scoring.count(&result, Seat(seat), standing);
            }
            Ok(())
        })
        .await?;
        if rows < PAGE {
            return Ok(career);
        }
    }
}

/// Returns the description of the scoring of the stored standings; `None` if no games were counted.
pub(crate) async fn counted_by(db: &mut Db) -> Result<Option<String>, Failure> {
    db.find("SELECT value FROM notes WHERE name = 'scoring'", &[], |row| Ok(row.text(0)?.to_owned())).await
}

pub(crate) async fn note_scoring(db: &mut Db, scoring: &Scoring) -> Result<(), Failure> {
    let sql = "INSERT INTO notes (name, value) VALUES ('scoring', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    db.execute(sql, &[scoring.describe().into()]).await.map(drop)
}

/// The number of users whose standings are recounted in one transaction.
const AT_ONCE: i64 = 1000;

/// Recounts the games of every user if the stored standings have another scoring than the arena.
pub(crate) async fn follow_scoring(db: &mut Db, scoring: &Scoring) -> Result<(), Failure> {
    if counted_by(db).await?.as_ref() == Some(&scoring.describe()) {
        return Ok(());
    }
    let last_user = db.number("SELECT coalesce(max(no), 0) FROM users", &[]).await?;
    if last_user > 0 {
        tracing::info!("scoring has changed: recounting the games of all users ({last_user})");
    }
    for first in (1..=last_user).step_by(AT_ONCE as usize) {
        db.batch("BEGIN").await?;
        for user in first..(first + AT_ONCE).min(last_user + 1) {
            let career = recount(db, scoring, user).await?;
            write_career(db, user, &career).await?;
        }
        db.batch("COMMIT").await?;
    }
    db.batch("BEGIN").await?;
    db.read_whole_tables().await?;
    boards::mend(db).await?;
    db.batch("COMMIT").await?;
    note_scoring(db, scoring).await
}
