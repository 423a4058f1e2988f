//! Comparison of the derived tables (counts, totals, endings, histories, standings) with the sessions, and their
//! repair.
//!
//! No game depends on a derived table. An impossible value in a derived table raises a [`Suspicion`]
//! (docs/decisions/0012).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_model::UserId;
use tokio::sync::Notify;

use crate::boards;
use crate::db::{Db, Failure, each_of_sqlite};
use crate::dialect::Dialect;
use crate::job::{WriteError, Writing};
use crate::postgres::{COUNTS, ENDINGS, RECOUNTS, STANDINGS};
use crate::standings::{recount, write_career};
use crate::users::{count_totals, missing_totals};
use crate::value::{Columns, Value};
use crate::{CommitError, Store, StoreError};

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

/// Selects the [`ENDED_PLAYERS`] after ending `$1`: the sessions that have ended since the histories were read.
const ENDED_SINCE: &str = "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session
     WHERE e.n > $1 AND s.unlisted = 0 ORDER BY e.n";

const LAST_ENDING: &str = "SELECT coalesce(max(n), 0) FROM endings";

/// Selects the same columns as [`ENDED_PLAYERS`] in any order, without using `endings`.
const PLAYERS: &str = "SELECT no, players FROM sessions WHERE status = 'ended' AND unlisted = 0";

/// A signal that a derived table may be wrong. The writer raises the signal, and the engine then calls
/// [`Store::check_derived`].
#[derive(Default)]
pub(crate) struct Suspicion {
    raised: AtomicBool,
    raised_notify: Notify,
}

impl Suspicion {
    /// Raises the suspicion. Only the first call after a [`Suspicion::wait`] writes to the log.
    pub(crate) fn raise(&self, what: &str) {
        if !self.raised.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "{what} disagrees with the sessions; all derived tables are now compared with the sessions"
            );
        }
        self.raised_notify.notify_one();
    }

    /// Waits until the suspicion is raised, and clears it.
    pub(crate) async fn wait(&self) {
        while !self.raised.swap(false, Ordering::SeqCst) {
            self.raised_notify.notified().await;
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(crate) struct DerivedFaults {
    pub(crate) counts: bool,
    pub(crate) totals: bool,
    pub(crate) endings: bool,
    pub(crate) boards: bool,
    /// Users whose history differs from the list of their ended sessions, by [`key_of`].
    pub(crate) users: HashSet<u64>,
}

impl DerivedFaults {
    pub(crate) fn is_empty(&self) -> bool {
        !self.counts && !self.totals && !self.endings && !self.boards && self.users.is_empty()
    }

    /// Marks the totals as wrong if endings or histories are wrong, because totals are derived from both.
    pub(crate) fn with_totals(mut self) -> DerivedFaults {
        self.totals |= self.endings || !self.users.is_empty();
        self
    }

    /// Returns the repairs that come before the repairs of histories. Histories are derived from the endings, so
    /// endings must be correct first.
    pub(crate) fn first(&self) -> Vec<Mend> {
        let all = [(self.counts, Mend::Counts), (self.endings, Mend::Endings), (self.boards, Mend::Boards)];
        all.into_iter().filter(|(wrong, _)| *wrong).map(|(_, mend)| mend).collect()
    }

    pub(crate) fn log_repairs(&self) {
        let users = self.users.len();
        let mut tables = Vec::new();
        tables.extend(self.counts.then(|| "session_counts".to_owned()));
        tables.extend(self.endings.then(|| "endings".to_owned()));
        tables.extend(self.boards.then(|| "boards".to_owned()));
        tables.extend((users > 0).then(|| format!("careers of {users} users")));
        tables.extend(self.totals.then(|| "totals".to_owned()));
        let tables = tables.join(", ");
        tracing::warn!("derived tables disagreed with the sessions and were recomputed: {tables}");
    }
}

/// One step of a repair. Each step is a transaction of its own, so that games continue between steps, and finished
/// steps stay after a failure.
#[derive(Debug, Clone)]
pub(crate) enum Mend {
    Counts,
    Endings,
    Boards,
    Histories(Arc<Piece>),
    /// The totals. This step is the last one, because totals are derived from endings and histories.
    Totals,
}

/// The correct histories of some users, computed before the transaction that replaces the stored ones.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The ended sessions of each user, in the order in which they ended.
    pub(crate) histories: BTreeMap<String, Vec<i64>>,
    /// The number of the last ending that was read. The transaction adds later endings to the histories.
    pub(crate) last: i64,
}

/// The number of users whose histories one pass over the sessions computes.
const USERS_AT_ONCE: usize = 1024;

/// The maximum number of users in a [`Piece`].
const MOST_USERS: usize = 64;

/// The number of sessions at which a [`Piece`] is full. The repair reads and counts each of these sessions.
const ENOUGH_SESSIONS: usize = 10_000;

impl Piece {
    /// Creates an empty history for each of these users.
    pub(crate) fn of(users: &[String]) -> Piece {
        Piece { histories: users.iter().map(|user| (user.clone(), Vec::new())).collect(), last: 0 }
    }

    /// Adds an ended session to the histories of its players in this piece.
    pub(crate) fn add(&mut self, no: i64, players: &str) {
        for user in users_in(players) {
            if let Some(history) = self.histories.get_mut(&user) {
                history.push(no);
            }
        }
    }

    /// Splits the histories into pieces that each need only a short transaction.
    pub(crate) fn split(self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut piece = Piece { last: self.last, ..Piece::default() };
        let mut sessions = 0;
        for (user, history) in self.histories {
            if piece.histories.len() >= MOST_USERS || sessions >= ENOUGH_SESSIONS {
                pieces.push(std::mem::replace(&mut piece, Piece { last: self.last, ..Piece::default() }));
                sessions = 0;
            }
            sessions += history.len();
            piece.histories.insert(user, history);
        }
        pieces.push(piece);
        pieces
    }
}

/// Hashes a user's id. Hashes take less memory than ids.
pub(crate) fn key_of(user: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    hasher.finish()
}

/// Returns the user ids in a session's column `players`, each once. The list is empty if the column is invalid.
pub(crate) fn users_in(players: &str) -> Vec<String> {
    // Each player is a list of the invite, the user's id, and the commitment to the id of a deleted user.
    let players: Vec<Vec<Option<String>>> = serde_json::from_str(players).unwrap_or_default();
    let mut users: Vec<String> = Vec::new();
    for user in players.into_iter().filter_map(|player| player.into_iter().nth(1).flatten()) {
        // `read_session` also ignores invalid ids.
        if user.parse::<UserId>().is_ok() && !users.contains(&user) {
            users.push(user);
        }
    }
    users
}

/// Checksums of each user's sessions, to compare the stored histories with them without either list in memory.
#[derive(Default)]
pub(crate) struct Histories {
    by_user: HashMap<u64, Compared>,
}

#[derive(Default)]
struct Compared {
    played: i64,
    played_sum: u64,
    listed: i64,
    listed_sum: u64,
    /// The greatest position in the history.
    last: i64,
    /// The number of sessions that row 0 of the career states.
    stated: i64,
}

/// Hashes a session number, so that different sets of sessions have different sums.
fn spread(no: i64) -> u64 {
    let mut bits = no.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Histories {
    pub(crate) fn add_session(&mut self, no: i64, players: &str) {
        for user in users_in(players) {
            let compared = self.by_user.entry(key_of(&user)).or_default();
            compared.played += 1;
            compared.played_sum = compared.played_sum.wrapping_add(spread(no));
        }
    }

    /// Adds a row of `careers` to the checksums of its user.
    pub(crate) fn add_row(&mut self, user: &str, n: i64, session: i64) {
        let compared = self.by_user.entry(key_of(user)).or_default();
        if n == 0 {
            compared.stated = session;
        } else {
            compared.listed += 1;
            compared.listed_sum = compared.listed_sum.wrapping_add(spread(session));
            compared.last = compared.last.max(n);
        }
    }

    /// Returns the users whose stored history differs from their sessions, or has gaps between its positions.
    pub(crate) fn wrong(self) -> HashSet<u64> {
        let differs = |Compared { played, played_sum, listed, listed_sum, last, stated }: &Compared| {
            (played, played_sum) != (listed, listed_sum) || last != listed || stated != listed
        };
        self.by_user.into_iter().filter(|(_, compared)| differs(compared)).map(|(user, _)| user).collect()
    }
}

/// Sleeps for the duration of the work since `begun`. This limits a background comparison to half of a CPU core.
pub(crate) async fn pause_after(begun: Instant) {
    tokio::time::sleep(begun.elapsed().min(Duration::from_secs(1))).await;
}

impl Store {
    /// Compares all derived tables (counts, totals, endings, histories, standings) with the sessions. Repairs and logs
    /// the tables that differ. Games continue during the comparison. It reads the whole store and uses at most half of
    /// a CPU core.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn check_derived(&self) -> Result<(), CommitError> {
        let found = self.aside((), |(), db| Box::pin(find_wrong(db))).await?;
        if !found.is_empty() {
            for mend in found.first() {
                self.mend(mend).await?;
            }
            let users = found.users.clone();
            let names = self.aside(users, |users, db| Box::pin(find_names(db, users))).await?;
            for users in names.chunks(USERS_AT_ONCE) {
                let read = self.aside(users.to_vec(), |users, db| Box::pin(read_histories(db, users))).await?;
                for piece in read.split() {
                    self.mend(Mend::Histories(Arc::new(piece))).await?;
                }
            }
            if found.totals {
                self.mend(Mend::Totals).await?;
            }
            found.log_repairs();
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

    async fn mend(&self, mend: Mend) -> Result<(), CommitError> {
        self.write(mend, |mend, writing| {
            writing.effects.mend.push(mend.clone());
            Box::pin(async { Ok(()) })
        })
        .await
    }
}

/// Compares the derived tables with the sessions in one snapshot.
async fn find_wrong(db: &mut Db) -> Result<DerivedFaults, Failure> {
    db.read_whole_tables().await?;
    let mut histories = Histories::default();
    db.each(PLAYERS, &[], |row| {
        histories.add_session(row.integer(0)?, row.text(1).unwrap_or_default());
        Ok(())
    })
    .await?;
    let sql = "SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user_no";
    db.each(sql, &[], |row| {
        histories.add_row(&row.prose(0).unwrap_or_default(), row.integer(1)?, row.integer(2).unwrap_or(-1));
        Ok(())
    })
    .await?;
    let wrong = DerivedFaults {
        counts: are_counts_wrong(db).await?,
        totals: !missing_totals(db).await?.is_empty(),
        endings: db.number(WRONG_ENDINGS, &[]).await? != 0,
        boards: boards::are_wrong(db).await?,
        users: histories.wrong(),
    };
    Ok(wrong.with_totals())
}

/// Returns the ids of the users with these keys (see [`key_of`]), in no particular order.
async fn find_names(db: &mut Db, users: &HashSet<u64>) -> Result<Vec<String>, Failure> {
    let mut names = HashSet::new();
    if users.is_empty() {
        return Ok(Vec::new());
    }
    db.read_whole_tables().await?;
    db.each("SELECT id FROM users", &[], |row| {
        names.extend(row.prose(0).ok().map(Cow::into_owned).filter(|user| users.contains(&key_of(user))));
        Ok(())
    })
    .await?;
    // The remaining users have no row in `users` yet, so their ids come from the sessions.
    if names.len() < users.len() {
        db.each(PLAYERS, &[], |row| {
            let players = users_in(row.text(1).unwrap_or_default());
            names.extend(players.into_iter().filter(|user| users.contains(&key_of(user))));
            Ok(())
        })
        .await?;
    }
    Ok(names.into_iter().collect())
}

async fn read_histories(db: &mut Db, users: &[String]) -> Result<Piece, Failure> {
    db.read_whole_tables().await?;
    let mut piece = Piece::of(users);
    piece.last = db.number(LAST_ENDING, &[]).await?;
    db.each(ENDED_PLAYERS, &[], |row| {
        piece.add(row.integer(0)?, row.text(1).unwrap_or_default());
        Ok(())
    })
    .await?;
    Ok(piece)
}

/// Returns the statement that selects block, type, status and number of sessions, ordered by block. Unlisted sessions
/// have the type [`UNLISTED`](crate::counts::UNLISTED), which is the empty text. SQLite would group by sorting all
/// sessions in memory, so for SQLite the caller adds up the rows.
fn counted_sessions(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "SELECT no / 256, CASE WHEN unlisted = 0 THEN type ELSE '' END, status, 1 FROM sessions
             WHERE status IN ('open', 'active', 'ended') ORDER BY no"
        }
        Dialect::Postgres => {
            "SELECT no / 256, CASE WHEN unlisted = 0 THEN type ELSE '' END, status, count(*) FROM sessions
             WHERE status IN ('open', 'active', 'ended') GROUP BY 1, 2, 3 ORDER BY 1"
        }
    }
}

/// The number of sessions by block, type and status.
#[derive(Default)]
struct SessionCounts {
    rows: Vec<(i64, String, String, i64)>,
    /// The index of the first count of the last block.
    first: usize,
}

impl SessionCounts {
    fn add(&mut self, row: &dyn Columns) -> Result<(), StoreError> {
        let block = row.integer(0)?;
        let (challenge, status) = (row.text(1).unwrap_or_default(), row.text(2).unwrap_or_default());
        let n = row.integer(3)?;
        if self.rows.get(self.first).is_some_and(|count| count.0 != block) {
            self.first = self.rows.len();
        }
        match self.rows[self.first..].iter_mut().find(|count| count.1 == challenge && count.2 == status) {
            Some(count) => count.3 += n,
            None => self.rows.push((block, challenge.to_owned(), status.to_owned(), n)),
        }
        Ok(())
    }
}

async fn are_counts_wrong(db: &mut Db) -> Result<bool, Failure> {
    let mut counts = SessionCounts::default();
    db.each(counted_sessions(db.dialect()), &[], |row| counts.add(row)).await?;
    let mut counted: HashMap<(i64, String, String), i64> =
        counts.rows.into_iter().map(|(block, challenge, status, n)| ((block, challenge, status), n)).collect();
    let mut wrong = false;
    db.each("SELECT block, type, status, n FROM session_counts", &[], |row| {
        let read = || {
            Some((
                (row.integer(0).ok()?, row.text(1).ok()?.to_owned(), row.text(2).ok()?.to_owned()),
                row.integer(3).ok()?,
            ))
        };
        wrong |= read().is_none_or(|(key, n)| counted.remove(&key).unwrap_or(0) != n);
        Ok(())
    })
    .await?;
    Ok(wrong || !counted.is_empty())
}

/// Recomputes the counts in the caller's transaction.
pub(crate) fn count_sessions_again(connection: &rusqlite::Connection) -> Result<(), Failure> {
    let mut counts = SessionCounts::default();
    each_of_sqlite(connection, counted_sessions(Dialect::Sqlite), &[], &mut |row| counts.add(row))?;
    connection.execute("DELETE FROM session_counts", [])?;
    let mut insert =
        connection.prepare("INSERT INTO session_counts (block, type, status, n) VALUES (?1, ?2, ?3, ?4)")?;
    for (block, challenge, status, n) in counts.rows {
        insert.execute(rusqlite::params![block, challenge, status, n])?;
    }
    Ok(())
}

/// Executes one step of a repair. A step for counts, endings or totals first blocks such commits of other nodes, so
/// that all its statements see the same state. A step for histories only locks the users of these histories.
pub(crate) async fn mend(writing: &mut Writing, mend: &Mend) -> Result<(), WriteError> {
    if !matches!(mend, Mend::Histories(_)) {
        writing.db.read_whole_tables().await?;
    }
    if !matches!(mend, Mend::Histories(_) | Mend::Boards) {
        writing.lock_number(COUNTS).await?;
    }
    match mend {
        Mend::Counts => {
            writing.changed.insert(RECOUNTS);
            match &mut writing.db {
                Db::Sqlite(connection) => count_sessions_again(connection)?,
                db => {
                    db.execute("DELETE FROM session_counts", &[]).await?;
                    let count = counted_sessions(Dialect::Postgres);
                    db.execute(&format!("INSERT INTO session_counts (block, type, status, n) {count}"), &[]).await?;
                }
            }
        }
        Mend::Endings => mend_endings(writing).await?,
        Mend::Boards => boards::mend(writing).await?,
        Mend::Histories(piece) => mend_histories(writing, piece).await?,
        Mend::Totals => {
            writing.db.execute("DELETE FROM totals", &[]).await?;
            for (name, n) in count_totals(&mut writing.db).await? {
                writing.db.execute("INSERT INTO totals (name, n) VALUES ($1, $2)", &[name.into(), n.into()]).await?;
            }
        }
    }
    Ok(())
}

async fn mend_endings(writing: &mut Writing) -> Result<(), Failure> {
    writing.db.execute(CLEAR_ENDINGS, &[]).await?;
    // The numbers of deleted rows aren't reused.
    let mut last = writing.db.number(LAST_ENDING, &[]).await?.max(writing.numbers.ending);
    if writing.sharing.is_some() {
        writing.lock_number(ENDINGS).await?;
        last = writing.db.number("SELECT n FROM numbers WHERE kind = 'endings'", &[]).await?;
    }
    let added = writing.db.execute(ADD_ENDINGS, &[last.into()]).await?;
    writing.numbers.ending = last.saturating_add_unsigned(added);
    if writing.sharing.is_some() {
        let sql = "UPDATE numbers SET n = $1 WHERE kind = 'endings'";
        writing.db.execute(sql, &[writing.numbers.ending.into()]).await?;
    }
    Ok(())
}

/// Recomputes the histories of some users. Locks on the users prevent their sessions from ending before the commit. The
/// endings that this transaction reads are therefore complete.
async fn mend_histories(writing: &mut Writing, piece: &Piece) -> Result<(), WriteError> {
    let mut users = Vec::new();
    for user in piece.histories.keys().filter(|user| user.parse::<UserId>().is_ok()) {
        users.push((user, writing.user_no(user).await?));
    }
    writing.lock_users(users.iter().map(|(user, _)| user.as_str())).await?;
    let names: Vec<String> = piece.histories.keys().cloned().collect();
    let mut since = Piece::of(&names);
    let db = &mut writing.db;
    db.each(ENDED_SINCE, &[piece.last.into()], |row| {
        since.add(row.integer(0)?, row.text(1).unwrap_or_default());
        Ok(())
    })
    .await?;
    // The statement leaves out sessions that were removed after the histories were computed.
    let sql = format!(
        "INSERT INTO careers (user_no, n, session)
         SELECT CAST($1 AS bigint), row_number() OVER (ORDER BY e.n), e.session FROM endings e WHERE e.session {}",
        db.dialect().any("$2")
    );
    for (user, no) in users {
        let behind = since.histories.get(user).into_iter().flatten();
        let sessions = piece.histories[user].iter().chain(behind).map(|no| Value::from(*no)).collect();
        db.execute("DELETE FROM careers WHERE user_no = $1", &[no.into()]).await?;
        db.execute(&sql, &[no.into(), Value::List(sessions)]).await?;
        let career = recount(db, &writing.scoring, no).await?;
        write_career(db, no, &career).await?;
        writing.changed.insert(STANDINGS);
    }
    writing.effects.recounted = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_written_in_pieces_of_few_users_or_many_sessions() {
        let sizes = |users: usize, sessions: usize| -> Vec<usize> {
            let names: Vec<String> = (0..users).map(|user| format!("user-{user:04}")).collect();
            let mut piece = Piece::of(&names);
            piece.last = 7;
            piece.histories.values_mut().for_each(|history| history.extend(0..sessions as i64));
            let pieces = piece.split();
            assert!(pieces.iter().all(|piece| piece.last == 7));
            pieces.iter().map(|piece| piece.histories.len()).collect()
        };
        assert_eq!(sizes(130, 1), [64, 64, 2]);
        assert_eq!(sizes(5, 6_000), [2, 2, 1]);
        assert_eq!(sizes(2, 50_000), [1, 1]);
    }
}
