//! Comparison of the derived tables (counts, totals, endings, histories, standings) with the sessions, and their
//! repair.
//!
//! No game depends on a derived table. An impossible value in a derived table raises a [`Suspicion`]
//! (docs/decisions/0012).

pub(crate) mod boards;
pub(crate) mod standings;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_model::UserId;

use self::boards;
use self::standings::{recount, write_career};
use crate::errors::Failure;
use crate::sql::db::Db;
use crate::sql::value::Value;
use crate::store::strategies::mark_stale;
use crate::store::users::{count_totals, missing_totals};
use crate::tables::sessions::users_in;
use crate::tables::{COUNTS, ENDINGS, RECOUNTS, STANDINGS};
use crate::writing::Writing;
use crate::{CommitError, Store};

/// Selects block, type, status and number of sessions. Unlisted sessions have the type
/// [`UNLISTED`](crate::mirror::counts::UNLISTED), which is the empty text.
macro_rules! counted_sessions {
    () => {
        "SELECT no / 256, CASE WHEN unlisted = 0 THEN type ELSE '' END, status, count(*) FROM sessions
         WHERE status IN ('open', 'active', 'ended') GROUP BY 1, 2, 3"
    };
}

/// Counts the differences between the counts of sessions and the stored ones. A stored 0 is like no row.
const WRONG_COUNTS: &str = concat!(
    "WITH counted (block, type, status, n) AS (",
    counted_sessions!(),
    "), stored (block, type, status, n) AS (SELECT block, type, status, n FROM session_counts WHERE n <> 0)
     SELECT (SELECT count(*) FROM (SELECT * FROM counted EXCEPT SELECT * FROM stored) AS missing)
          + (SELECT count(*) FROM (SELECT * FROM stored EXCEPT SELECT * FROM counted) AS wrong)"
);

/// Recomputes the counts of sessions.
pub(crate) const COUNT_SESSIONS: &str =
    concat!("DELETE FROM session_counts; INSERT INTO session_counts (block, type, status, n) ", counted_sessions!());

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

/// Selects all listed sessions that have ended, with their players, in the order of their endings.
const ENDED_PLAYERS: &str = "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session
     WHERE s.unlisted = 0 ORDER BY e.n";

const LAST_ENDING: &str = "SELECT coalesce(max(n), 0) FROM endings";

/// Sleeps for the duration of the work since `begun`. This limits a background comparison to half of a CPU core.
async fn pause_after(begun: Instant) {
    tokio::time::sleep(begun.elapsed().min(Duration::from_secs(1))).await;
}

impl Store {
    /// Compares all derived tables (counts, totals, endings, histories, standings) with the sessions. Repairs and logs
    /// the tables that differ. Games continue during the comparison, but wait for a repair, which reads all sessions in
    /// one transaction.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn check_derived(&self) -> Result<(), CommitError> {
        if self.aside((), |(), db| Box::pin(are_wrong(db))).await? {
            self.write((), |(), writing| {
                writing.effects.mend = true;
                Box::pin(async { Ok(()) })
            })
            .await?;
        }
        for user in 1..=self.last_user().await? {
            let begun = Instant::now();
            let (_, id, same) = self.compare(user).await?;
            if !same {
                self.mend_standings(user, None).await?;
                tracing::warn!(user = %id, "the standings of user {id} disagreed with the user's games and were recomputed");
            }
            pause_after(begun).await;
        }
        Ok(())
    }

    /// Waits until the writer finds a wrong value in a derived table. The caller should then call
    /// [`Store::check_derived`].
    pub async fn suspected(&self) {
        self.mirror().suspicion.wait().await;
    }
}

/// Compares the derived tables, except standings, with the sessions in one snapshot.
async fn are_wrong(db: &mut Db) -> Result<bool, Failure> {
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
    // Strategies may have counted a game under its lost number.
    mark_stale(writing).await
}

/// Returns the correct history of each user whose stored one is wrong: the ended sessions in the order of their endings.
async fn wrong_histories(db: &mut Db) -> Result<BTreeMap<String, Vec<i64>>, Failure> {
    let mut histories = BTreeMap::<String, Vec<i64>>::new();
    db.each(ENDED_PLAYERS, &[], |row| {
        let no = row.integer(0)?;
        for user in users_in(row.text(1).unwrap_or_default()) {
            histories.entry(user).or_default().push(no);
        }
        Ok(())
    })
    .await?;
    let (mut wrong, mut stored) = (BTreeMap::new(), (String::new(), StoredHistory::default()));
    let mut compare = |user: String, stored: StoredHistory, histories: &mut BTreeMap<String, Vec<i64>>| {
        let sessions = histories.remove(&user).unwrap_or_default();
        // Nothing can repair the history of an invalid id.
        if user.parse::<UserId>().is_ok() && !stored.is(&sessions) {
            wrong.insert(user, sessions);
        }
    };
    let sql = "SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user_no ORDER BY c.user_no, c.n";
    db.each(sql, &[], |row| {
        let (n, session) = (row.integer(1)?, row.integer(2).unwrap_or(-1));
        let user = row.prose(0).unwrap_or_default();
        if user != stored.0 {
            let (user, history) = std::mem::replace(&mut stored, (user.into_owned(), StoredHistory::default()));
            compare(user, history, &mut histories);
        }
        stored.1.add(n, session);
        Ok(())
    })
    .await?;
    compare(stored.0, stored.1, &mut histories);
    // The remaining users have no stored history.
    wrong.extend(histories);
    Ok(wrong)
}

/// A user's history, as `careers` has it.
#[derive(Debug, Default)]
struct StoredHistory {
    sessions: Vec<i64>,
    /// The greatest position in the history.
    last: i64,
    /// The number of sessions that row 0 of the career states.
    stated: i64,
}

impl StoredHistory {
    fn add(&mut self, n: i64, session: i64) {
        if n == 0 {
            self.stated = session;
        } else {
            self.sessions.push(session);
            self.last = self.last.max(n);
        }
    }

    /// True if the history has exactly these sessions, without gaps between its positions.
    fn is(&self, sessions: &[i64]) -> bool {
        let sorted = |sessions: &[i64]| {
            let mut sessions = sessions.to_vec();
            sessions.sort_unstable();
            sessions
        };
        let count = sessions.len() as i64;
        self.last == count && self.stated == count && sorted(&self.sessions) == sorted(sessions)
    }
}

/// Replaces the histories and standings of some users.
async fn mend_histories(writing: &mut Writing, histories: BTreeMap<String, Vec<i64>>) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO careers (user_no, n, session)
         SELECT CAST($1 AS bigint), row_number() OVER (ORDER BY e.n), e.session FROM endings e WHERE e.session {}",
        writing.db.dialect().any("$2")
    );
    for (user, sessions) in histories {
        let no = writing.user_no(&user).await?;
        let db = &mut writing.db;
        db.execute("DELETE FROM careers WHERE user_no = $1", &[no.into()]).await?;
        let sessions = Value::List(sessions.into_iter().map(Value::from).collect());
        db.execute(&sql, &[no.into(), sessions]).await?;
        let career = recount(db, &writing.scoring, no).await?;
        write_career(db, no, &career).await?;
    }
    writing.changed.insert(STANDINGS);
    Ok(())
}
