//! Derived tables: counts, totals, endings, histories, standings and boards. They are compared with the sessions, and
//! repaired.
//!
//! No game depends on a derived table. An impossible value in one raises a
//! [`Suspicion`](crate::mirror::Suspicion) (docs/decisions/0012).

pub(crate) mod boards;
pub(crate) mod counts;
mod histories;
pub(crate) mod standings;
pub(crate) mod strategies;
pub(crate) mod totals;

use self::counts::{COUNT_SESSIONS, WRONG_COUNTS};
use self::histories::{mend_histories, wrong_histories};
use self::strategies::mark_stale;
use self::totals::{count_totals, missing_totals};
use crate::errors::Failure;
use crate::sql::Db;
use crate::tables::{COUNTS, ENDINGS, RECOUNTS};
use crate::writing::Writing;

/// Counts the errors in `endings`: ended sessions without an entry, and entries whose session hasn't ended or has
/// another entry.
const WRONG_ENDINGS: &str = "SELECT
     (SELECT count(*) FROM sessions s WHERE s.status = 'ended' AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.session = s.no))
     + (SELECT count(*) FROM endings e WHERE e.session <> 0
         AND (NOT EXISTS (SELECT 1 FROM sessions s WHERE s.no = e.session AND s.status = 'ended')
             OR EXISTS (SELECT 1 FROM endings f WHERE f.session = e.session AND f.n < e.n)))";

/// Clears the session of each wrong entry. The entry itself is kept so that its number isn't reused.
const CLEAR_ENDINGS: &str = "UPDATE endings AS e SET session = 0 WHERE e.session <> 0
     AND (NOT EXISTS (SELECT 1 FROM sessions s WHERE s.no = e.session AND s.status = 'ended')
         OR EXISTS (SELECT 1 FROM endings f WHERE f.session = e.session AND f.n < e.n))";

/// Inserts the missing entries of ended sessions, with numbers greater than `$1`, in the order of their end times. The
/// numbers are new, so that readers that page by number miss no entry.
const ADD_ENDINGS: &str = "INSERT INTO endings (n, session)
     SELECT $1 + row_number() OVER (ORDER BY s.ended_at, s.no), s.no FROM sessions s
     WHERE s.status = 'ended' AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.session = s.no)";

const LAST_ENDING: &str = "SELECT coalesce(max(n), 0) FROM endings";

/// Compares the derived tables, except standings, with the sessions in one snapshot.
pub(crate) async fn are_wrong(db: &mut Db) -> Result<bool, Failure> {
    db.read_whole_tables().await?;
    Ok(db.number(WRONG_COUNTS, &[]).await? != 0
        || db.number(WRONG_ENDINGS, &[]).await? != 0
        || boards::are_wrong(db).await?
        || !wrong_histories(db).await?.is_empty()
        || !missing_totals(db).await?.is_empty())
}

/// Recomputes the derived tables that differ from the sessions, except standings. Locks on all users, and then on the
/// counts, keep sessions of other nodes from ending meanwhile. The locks are taken in the order of other transactions.
pub(crate) async fn mend(writing: &mut Writing) -> Result<(), Failure> {
    let mut mended = Vec::new();
    writing.db.read_whole_tables().await?;
    if writing.is_shared() {
        writing.db.execute("SELECT no FROM users ORDER BY no FOR NO KEY UPDATE", &[]).await?;
    }
    if boards::are_wrong(&mut writing.db).await? {
        boards::mend(&mut writing.db).await?;
        mended.push("boards".to_owned());
    }
    if writing.db.number(WRONG_ENDINGS, &[]).await? != 0 {
        // Strategies may have counted a game under a number that is lost.
        mark_stale(writing).await?;
    }
    writing.lock_number(COUNTS).await?;
    if writing.db.number(WRONG_COUNTS, &[]).await? != 0 {
        writing.db.batch(COUNT_SESSIONS).await?;
        writing.changed.insert(RECOUNTS);
        mended.push("session_counts".to_owned());
    }
    if writing.db.number(WRONG_ENDINGS, &[]).await? != 0 {
        mend_endings(writing).await?;
        mended.push("endings".to_owned());
    }
    let histories = wrong_histories(&mut writing.db).await?;
    if !histories.is_empty() {
        mended.push(format!("careers of {} users", histories.len()));
        mend_histories(writing, histories).await?;
    }
    if !missing_totals(&mut writing.db).await?.is_empty() {
        writing.db.execute("DELETE FROM totals", &[]).await?;
        for (name, n) in count_totals(&mut writing.db).await? {
            writing.db.execute("INSERT INTO totals (name, n) VALUES ($1, $2)", &[name.into(), n.into()]).await?;
        }
        mended.push("totals".to_owned());
    }
    if !mended.is_empty() {
        tracing::warn!("derived tables disagreed with the sessions and are recomputed: {}", mended.join(", "));
    }
    Ok(())
}

async fn mend_endings(writing: &mut Writing) -> Result<(), Failure> {
    writing.db.execute(CLEAR_ENDINGS, &[]).await?;
    // The numbers of deleted rows aren't reused.
    let mut last = writing.db.number(LAST_ENDING, &[]).await?.max(writing.numbers.ending);
    if writing.is_shared() {
        writing.lock_number(ENDINGS).await?;
        last = writing.db.number("SELECT n FROM numbers WHERE kind = 'endings'", &[]).await?;
    }
    let added = writing.db.execute(ADD_ENDINGS, &[last.into()]).await?;
    writing.numbers.ending = last.saturating_add_unsigned(added);
    if writing.is_shared() {
        let sql = "UPDATE numbers SET n = $1 WHERE kind = 'endings'";
        writing.db.execute(sql, &[writing.numbers.ending.into()]).await?;
    }
    Ok(())
}
