//! Derived tables (counts, totals, endings, histories, standings): comparison with the sessions that they are made of, and repair.
//!
//! Play never trusts a derived table; an impossible value raises a [`Suspicion`] (docs/decisions/0012). The statements here run on
//! both backends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_model::{Scoring, UserId};
use rusqlite::{Connection, params};
use tokio::sync::Notify;

use crate::boards;
use crate::standings::{read_career, recount, user_no, write_career};
use crate::users::{count_totals, read_totals};
use crate::{CommitError, SqliteStore, StoreError};

/// The number of ended sessions without a place in the order of endings, and of places that no ended session has, or has twice.
pub(crate) const WRONG_ENDINGS: &str = "SELECT
     (SELECT count(*) FROM sessions s WHERE s.status = 'ended' AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.session = s.no))
     + (SELECT count(*) FROM endings e WHERE e.session <> 0
         AND (NOT EXISTS (SELECT 1 FROM sessions s WHERE s.no = e.session AND s.status = 'ended')
             OR EXISTS (SELECT 1 FROM endings f WHERE f.session = e.session AND f.n < e.n)))";

/// Takes the session from each place that is wrong. The place stays, so that its number isn't given twice.
pub(crate) const CLEAR_ENDINGS: &str = "UPDATE endings AS e SET session = 0 WHERE e.session <> 0
     AND (NOT EXISTS (SELECT 1 FROM sessions s WHERE s.no = e.session AND s.status = 'ended')
         OR EXISTS (SELECT 1 FROM endings f WHERE f.session = e.session AND f.n < e.n))";

/// Adds the ended sessions without a place behind number `$1`, by the times at which they ended. A reader that pages by numbers skips none.
pub(crate) const ADD_ENDINGS: &str = "INSERT INTO endings (n, session)
     SELECT $1 + row_number() OVER (ORDER BY s.ended_at, s.no), s.no FROM sessions s
     WHERE s.status = 'ended' AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.session = s.no)";

/// Ended sessions with their players, in the order in which they count.
pub(crate) const ENDED_PLAYERS: &str =
    "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session ORDER BY e.n";

/// [`ENDED_PLAYERS`] behind ending `$1`: the sessions that have ended since histories were read.
pub(crate) const ENDED_SINCE: &str =
    "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 ORDER BY e.n";

/// The greatest number of an ending.
pub(crate) const LAST_ENDING: &str = "SELECT coalesce(max(n), 0) FROM endings";

/// The same as [`ENDED_PLAYERS`] in any order, whatever the endings say.
pub(crate) const PLAYERS: &str = "SELECT no, players FROM sessions WHERE status = 'ended'";

/// A sign that a derived table is wrong, raised by the writer and seen to by the engine.
#[derive(Default)]
pub(crate) struct Suspicion {
    raised: AtomicBool,
    told: Notify,
}

impl Suspicion {
    /// Raises it; told in the log once, until it is seen to.
    pub(crate) fn raise(&self, what: &str) {
        if !self.raised.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "{what} is not what the sessions make it; derived tables are compared with the sessions now"
            );
        }
        self.told.notify_one();
    }

    /// Returns when it has been raised, and takes it down.
    pub(crate) async fn wait(&self) {
        while !self.raised.swap(false, Ordering::SeqCst) {
            self.told.notified().await;
        }
    }
}

/// The derived tables that disagree with the sessions.
#[derive(Debug, Default, Clone)]
pub(crate) struct Wrong {
    pub(crate) counts: bool,
    pub(crate) totals: bool,
    pub(crate) endings: bool,
    pub(crate) boards: bool,
    /// Users whose history isn't the list of their ended sessions, by [`key_of`].
    pub(crate) users: HashSet<u64>,
}

impl Wrong {
    pub(crate) fn is_empty(&self) -> bool {
        !self.counts && !self.totals && !self.endings && !self.boards && self.users.is_empty()
    }

    /// Totals follow from endings and histories.
    pub(crate) fn with_totals(mut self) -> Wrong {
        self.totals |= self.endings || !self.users.is_empty();
        self
    }

    /// The writes that make tables again before histories, which follow from the endings.
    pub(crate) fn first(&self) -> Vec<Mend> {
        let all = [(self.counts, Mend::Counts), (self.endings, Mend::Endings), (self.boards, Mend::Boards)];
        all.into_iter().filter(|(wrong, _)| *wrong).map(|(_, mend)| mend).collect()
    }

    /// Tells the log what was made again.
    pub(crate) fn tell(&self) {
        let users = self.users.len();
        let mut tables = Vec::new();
        tables.extend(self.counts.then(|| "session_counts".to_owned()));
        tables.extend(self.endings.then(|| "endings".to_owned()));
        tables.extend(self.boards.then(|| "boards".to_owned()));
        tables.extend((users > 0).then(|| format!("careers of {users} users")));
        tables.extend(self.totals.then(|| "totals".to_owned()));
        let tables = tables.join(", ");
        tracing::warn!("derived tables disagreed with the sessions and were made again: {tables}");
    }
}

/// One write of a repair. Each is a transaction of its own, so that play goes on between them and a failure keeps what was done before.
#[derive(Debug, Clone)]
pub(crate) enum Mend {
    Counts,
    Endings,
    Boards,
    Histories(Arc<Piece>),
    /// Follows from endings and histories, and so comes last.
    Totals,
}

/// The histories of some users, as read before the write that makes them again.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The ended sessions of each user, in their order.
    pub(crate) histories: BTreeMap<String, Vec<i64>>,
    /// The last ending that was read. The write adds those behind it.
    pub(crate) last: i64,
}

/// Users whose histories are read from the sessions at a time.
pub(crate) const USERS_AT_ONCE: usize = 1024;

/// Most users of a [`Piece`].
const MOST_USERS: usize = 64;

/// Sessions of a [`Piece`] after which it is large enough: each is read and counted in the write.
const ENOUGH_SESSIONS: usize = 10_000;

impl Piece {
    /// An empty history for each of these users.
    pub(crate) fn of(users: &[String]) -> Piece {
        Piece { histories: users.iter().map(|user| (user.clone(), Vec::new())).collect(), last: 0 }
    }

    /// Adds an ended session to the histories of those of its players that are in this piece.
    pub(crate) fn add(&mut self, no: i64, players: &str) {
        for user in users_in(players) {
            if let Some(history) = self.histories.get_mut(&user) {
                history.push(no);
            }
        }
    }

    /// The same in pieces of which each is a short write.
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

/// A user's id in few bytes.
pub(crate) fn key_of(user: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    hasher.finish()
}

/// The users among a session's players, each once. None if the column can't be read.
pub(crate) fn users_in(players: &str) -> Vec<String> {
    let players: Vec<(String, Option<String>)> = serde_json::from_str(players).unwrap_or_default();
    let mut users: Vec<String> = Vec::new();
    for user in players.into_iter().filter_map(|(_, user)| user) {
        // The same check as when a session is read: what is no id plays nowhere.
        if user.parse::<UserId>().is_ok() && !users.contains(&user) {
            users.push(user);
        }
    }
    users
}

/// Sums over the sessions of each user, by which two lists are compared without holding either.
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
    /// The greatest place in the history.
    last: i64,
    /// The number of sessions that row 0 states.
    stated: i64,
}

/// Spreads session numbers, so that sums of different sets differ.
fn spread(no: i64) -> u64 {
    let mut bits = no.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Histories {
    /// A session that has ended.
    pub(crate) fn add_session(&mut self, no: i64, players: &str) {
        for user in users_in(players) {
            let compared = self.by_user.entry(key_of(&user)).or_default();
            compared.played += 1;
            compared.played_sum = compared.played_sum.wrapping_add(spread(no));
        }
    }

    /// A row of `careers`.
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

    /// Users whose rows aren't their sessions, numbered without gaps.
    pub(crate) fn wrong(self) -> HashSet<u64> {
        let differs = |Compared { played, played_sum, listed, listed_sum, last, stated }: &Compared| {
            (played, played_sum) != (listed, listed_sum) || last != listed || stated != listed
        };
        self.by_user.into_iter().filter(|(_, compared)| differs(compared)).map(|(user, _)| user).collect()
    }
}

/// Keeps a comparison in the background to half of a core's time.
pub(crate) async fn pause_after(begun: Instant) {
    tokio::time::sleep(begun.elapsed().min(Duration::from_secs(1))).await;
}

impl SqliteStore {
    pub(crate) async fn check_derived(&self) -> Result<(), CommitError> {
        let found = self.read_aside(find_wrong).await?;
        if !found.is_empty() {
            for mend in found.first() {
                self.mend(mend).await?;
            }
            let users = found.users.clone();
            let names = self.read_aside(move |connection| find_names(connection, &users)).await?;
            for users in names.chunks(USERS_AT_ONCE) {
                let users = users.to_vec();
                let read = self.read_aside(move |connection| read_histories(connection, &users)).await?;
                for piece in read.split() {
                    self.mend(Mend::Histories(Arc::new(piece))).await?;
                }
            }
            if found.totals {
                self.mend(Mend::Totals).await?;
            }
            found.tell();
        }
        let last_user = self.list_users(0, 0).await?.total;
        for user in 1..=i64::try_from(last_user).unwrap_or(i64::MAX) {
            let begun = Instant::now();
            let (_, id, same) = self.compare(user).await?;
            if !same {
                self.mend_standings(user, None).await?;
                tracing::warn!(user = %id, "the standings of user {id} weren't what its games make them, and were counted again");
            }
            pause_after(begun).await;
        }
        Ok(())
    }

    pub(crate) fn suspicion(&self) -> &Arc<Suspicion> {
        &self.suspicion
    }

    async fn mend(&self, mend: Mend) -> Result<(), CommitError> {
        let mended = self.writer.write(move |writing| {
            writing.effects.mend = Some(mend.clone());
            Ok(())
        });
        mended.await
    }

    /// A long read, on a thread for blocking work.
    async fn read_aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.readers.clone();
        tokio::task::spawn_blocking(move || readers.read(read)).await.map_err(|_| StoreError::Closed)?
    }
}

/// Compares the derived tables with the sessions, in one snapshot.
fn find_wrong(connection: &Connection) -> Result<Wrong, StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    let mut histories = Histories::default();
    each_session(&snapshot, PLAYERS, |no, players| histories.add_session(no, players))?;
    let mut statement = snapshot.prepare("SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        histories.add_row(row.get_ref(0)?.as_str().unwrap_or_default(), row.get(1)?, row.get(2).unwrap_or(-1));
    }
    let wrong = Wrong {
        counts: are_counts_wrong(&snapshot)?,
        totals: are_totals_wrong(&snapshot)?,
        endings: snapshot.query_row(WRONG_ENDINGS, [], |row| row.get::<_, i64>(0))? != 0,
        boards: boards::are_wrong(&snapshot)?,
        users: histories.wrong(),
    };
    Ok(wrong.with_totals())
}

/// Hands over number and players of each session that a statement finds.
fn each_session(connection: &Connection, sql: &str, mut see: impl FnMut(i64, &str)) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        see(row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
    }
    Ok(())
}

/// The ids of these users, by [`key_of`], in no order.
fn find_names(connection: &Connection, users: &HashSet<u64>) -> Result<Vec<String>, StoreError> {
    let mut names = HashSet::new();
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare("SELECT id FROM users")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let user = row.get_ref(0)?.as_str().unwrap_or_default();
        if users.contains(&key_of(user)) {
            names.insert(user.to_owned());
        }
    }
    // The others aren't known as users yet.
    if names.len() < users.len() {
        each_session(connection, PLAYERS, |_, players| {
            names.extend(users_in(players).into_iter().filter(|user| users.contains(&key_of(user))));
        })?;
    }
    Ok(names.into_iter().collect())
}

/// The histories of these users, from the sessions.
fn read_histories(connection: &Connection, users: &[String]) -> Result<Piece, StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    let mut piece = Piece::of(users);
    piece.last = snapshot.query_row(LAST_ENDING, [], |row| row.get(0))?;
    each_session(&snapshot, ENDED_PLAYERS, |no, players| piece.add(no, players))?;
    Ok(piece)
}

/// The number of sessions by block, type and status. The sessions are read in their order and counted here: SQLite would sort all of them in
/// memory to group them.
fn count_sessions(connection: &Connection) -> Result<Vec<(i64, String, String, i64)>, rusqlite::Error> {
    let mut statement = connection.prepare(
        "SELECT no / 256, type, status FROM sessions WHERE status IN ('open', 'active', 'ended') ORDER BY no",
    )?;
    let mut rows = statement.query([])?;
    let mut counts: Vec<(i64, String, String, i64)> = Vec::new();
    // The counts of the last block begin here.
    let mut first = 0;
    while let Some(row) = rows.next()? {
        let block: i64 = row.get(0)?;
        let (challenge, status) =
            (row.get_ref(1)?.as_str().unwrap_or_default(), row.get_ref(2)?.as_str().unwrap_or_default());
        if counts.get(first).is_some_and(|count| count.0 != block) {
            first = counts.len();
        }
        match counts[first..].iter_mut().find(|count| count.1 == challenge && count.2 == status) {
            Some(count) => count.3 += 1,
            None => counts.push((block, challenge.to_owned(), status.to_owned(), 1)),
        }
    }
    Ok(counts)
}

fn are_counts_wrong(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let counted = count_sessions(connection)?;
    let mut counted: HashMap<(i64, String, String), i64> =
        counted.into_iter().map(|(block, challenge, status, n)| ((block, challenge, status), n)).collect();
    let mut statement = connection.prepare("SELECT block, type, status, n FROM session_counts")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let read = || Some(((row.get(0).ok()?, row.get(1).ok()?, row.get(2).ok()?), row.get::<_, i64>(3).ok()?));
        let Some((key, n)) = read() else { return Ok(true) };
        if counted.remove(&key).unwrap_or(0) != n {
            return Ok(true);
        }
    }
    Ok(!counted.is_empty())
}

fn are_totals_wrong(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let mut missing = count_totals(connection)?;
    for (name, n) in read_totals(connection)? {
        let missing = missing.entry(name).or_default();
        *missing = missing.saturating_sub(n);
    }
    Ok(missing.values().any(|n| *n != 0))
}

/// Makes a table again, in the transaction of the caller, which holds the state that the table is to follow.
pub(crate) fn mend(connection: &Connection, scoring: &Scoring, mend: &Mend) -> Result<(), rusqlite::Error> {
    match mend {
        Mend::Counts => {
            connection.execute("DELETE FROM session_counts", [])?;
            let mut insert =
                connection.prepare("INSERT INTO session_counts (block, type, status, n) VALUES (?1, ?2, ?3, ?4)")?;
            for (block, challenge, status, n) in count_sessions(connection)? {
                insert.execute(params![block, challenge, status, n])?;
            }
        }
        Mend::Endings => {
            connection.execute(CLEAR_ENDINGS, [])?;
            let last: i64 = connection.query_row(LAST_ENDING, [], |row| row.get(0))?;
            connection.execute(ADD_ENDINGS, [last])?;
        }
        Mend::Boards => boards::mend(connection)?,
        Mend::Histories(piece) => mend_histories(connection, scoring, piece)?,
        Mend::Totals => {
            connection.execute("DELETE FROM totals", [])?;
            for (name, n) in count_totals(connection)? {
                connection.execute("INSERT INTO totals (name, n) VALUES (?1, ?2)", params![name, n])?;
            }
        }
    }
    Ok(())
}

fn mend_histories(connection: &Connection, scoring: &Scoring, piece: &Piece) -> Result<(), rusqlite::Error> {
    let users: Vec<String> = piece.histories.keys().cloned().collect();
    let mut since = Piece::of(&users);
    let mut statement = connection.prepare(ENDED_SINCE)?;
    let mut rows = statement.query([piece.last])?;
    while let Some(row) = rows.next()? {
        since.add(row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
    }
    // One that has been removed since has no place any more.
    let mut has_place = connection.prepare("SELECT 1 FROM endings WHERE session = ?1")?;
    let mut insert = connection.prepare("INSERT INTO careers (user, n, session) VALUES (?1, ?2, ?3)")?;
    for (user, history) in &piece.histories {
        let Ok(id) = user.parse::<UserId>() else { continue };
        let no = user_no(connection, &id)?;
        connection.execute("DELETE FROM careers WHERE user = ?1", [no])?;
        let mut n = 0;
        for session in history.iter().chain(since.histories.get(user).into_iter().flatten()) {
            if has_place.exists([session])? {
                n += 1;
                insert.execute(params![no, n, session])?;
            }
        }
        let career = recount(connection, scoring, no).map_err(as_sql)?;
        write_career(connection, no, &career)?;
    }
    Ok(())
}

/// A failure inside a transaction as the driver would tell it, so that the transaction is rolled back.
fn as_sql(error: StoreError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

impl SqliteStore {
    /// Counts a user's games, and says if the stored career is what they make it.
    pub(crate) async fn compare(&self, user: i64) -> Result<(u64, UserId, bool), StoreError> {
        let (readers, scoring) = (self.readers.clone(), Arc::clone(&self.scoring));
        let counted = tokio::task::spawn_blocking(move || {
            readers.read(|connection| {
                // One snapshot for the games and for what was made of them.
                let snapshot = connection.unchecked_transaction()?;
                let counted = recount(&snapshot, &scoring, user)?;
                let same = read_career(&snapshot, user)? == counted;
                let id: String = snapshot.query_row("SELECT id FROM users WHERE no = ?1", [user], |row| row.get(0))?;
                let id: UserId = id.parse().map_err(|error| StoreError::damaged(&id, error))?;
                Ok((counted.played.unsigned_abs(), id, same))
            })
        });
        counted.await.map_err(|_| StoreError::Closed)?
    }
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
