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
use crate::{CommitError, SqliteStore, StoreError};

/// The number of counts that aren't the number of sessions of their block, type and status.
pub(crate) const WRONG_COUNTS: &str = "SELECT count(*) FROM (SELECT block FROM (
         SELECT block, type, status, n FROM session_counts
         UNION ALL SELECT no / 256, type, status, -1 FROM sessions WHERE status IN ('open', 'active', 'ended')) both_sides
     GROUP BY block, type, status HAVING sum(n) <> 0) wrong";

/// Makes the counts again.
pub(crate) const MEND_COUNTS: [&str; 2] = [
    "DELETE FROM session_counts",
    "INSERT INTO session_counts (block, type, status, n)
         SELECT no / 256, type, status, count(*) FROM sessions WHERE status IN ('open', 'active', 'ended') GROUP BY 1, 2, 3",
];

/// The number of totals that aren't what endings and histories make them.
pub(crate) const WRONG_TOTALS: &str = "SELECT count(*) FROM (SELECT name FROM (
         SELECT name, n FROM totals
         UNION ALL SELECT 'games:' || s.type, -1 FROM endings e JOIN sessions s ON s.no = e.session WHERE s.ending = 'completed'
         UNION ALL SELECT 'participants', -1 FROM careers WHERE n = 1) both_sides
     GROUP BY name HAVING sum(n) <> 0) wrong";

/// Makes the totals again.
pub(crate) const MEND_TOTALS: [&str; 2] = [
    "DELETE FROM totals",
    "INSERT INTO totals (name, n)
         SELECT 'games:' || s.type, count(*) FROM endings e JOIN sessions s ON s.no = e.session
         WHERE s.ending = 'completed' GROUP BY s.type
         UNION ALL SELECT 'participants', count(*) FROM careers WHERE n = 1",
];

/// The number of ended sessions without a place in the order of endings, and of places that no ended session has, or has twice.
pub(crate) const WRONG_ENDINGS: &str = "SELECT
     (SELECT count(*) FROM sessions s WHERE s.status = 'ended' AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.session = s.no))
     + (SELECT count(*) FROM endings e WHERE e.session <> 0
         AND (NOT EXISTS (SELECT 1 FROM sessions s WHERE s.no = e.session AND s.status = 'ended')
             OR EXISTS (SELECT 1 FROM endings f WHERE f.session = e.session AND f.n < e.n)))";

/// Makes the order of endings again, by the times at which sessions ended.
pub(crate) const MEND_ENDINGS: [&str; 2] = [
    "DELETE FROM endings",
    "INSERT INTO endings (n, session)
         SELECT row_number() OVER (ORDER BY ended_at, no), no FROM sessions WHERE status = 'ended'",
];

/// Ended sessions with their players, in the order in which they count.
pub(crate) const ENDED_PLAYERS: &str =
    "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session ORDER BY e.n";

/// The same in any order, whatever the endings say.
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
        let readers = self.readers.clone();
        let found = tokio::task::spawn_blocking(move || readers.read(find_wrong));
        let found = found.await.map_err(|_| StoreError::Closed)??;
        if !found.is_empty() {
            let mend = found.clone();
            let mended = self.writer.write(move |writing| {
                writing.effects.mend = Some(mend.clone());
                Ok(())
            });
            mended.await?;
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
}

/// Compares the derived tables with the sessions, in one snapshot.
fn find_wrong(connection: &Connection) -> Result<Wrong, StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    let is_wrong =
        |sql: &str| -> Result<bool, StoreError> { Ok(snapshot.query_row(sql, [], |row| row.get::<_, i64>(0))? != 0) };
    let mut histories = Histories::default();
    let mut statement = snapshot.prepare(PLAYERS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        histories.add_session(row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
    }
    let mut statement = snapshot.prepare("SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        histories.add_row(row.get_ref(0)?.as_str().unwrap_or_default(), row.get(1)?, row.get(2).unwrap_or(-1));
    }
    let wrong = Wrong {
        counts: is_wrong(WRONG_COUNTS)?,
        totals: is_wrong(WRONG_TOTALS)?,
        endings: is_wrong(WRONG_ENDINGS)?,
        boards: boards::are_wrong(&snapshot)?,
        users: histories.wrong(),
    };
    Ok(wrong.with_totals())
}

/// Makes what is wrong again, in the transaction of the caller, which holds the state that the tables are to follow.
pub(crate) fn mend(connection: &Connection, scoring: &Scoring, wrong: &Wrong) -> Result<(), rusqlite::Error> {
    let run = |wanted: bool, steps: [&str; 2]| -> Result<(), rusqlite::Error> {
        for sql in steps.into_iter().filter(|_| wanted) {
            connection.execute(sql, [])?;
        }
        Ok(())
    };
    run(wrong.counts, MEND_COUNTS)?;
    run(wrong.endings, MEND_ENDINGS)?;
    if wrong.boards {
        boards::mend(connection)?;
    }
    if !wrong.users.is_empty() {
        mend_histories(connection, scoring, &wrong.users)?;
    }
    run(wrong.totals, MEND_TOTALS)
}

fn mend_histories(connection: &Connection, scoring: &Scoring, users: &HashSet<u64>) -> Result<(), rusqlite::Error> {
    let mut histories: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT id FROM users")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let user: String = row.get(0)?;
        if users.contains(&key_of(&user)) {
            histories.insert(user, Vec::new());
        }
    }
    let mut statement = connection.prepare(ENDED_PLAYERS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for user in users_in(row.get_ref(1)?.as_str().unwrap_or_default()) {
            if users.contains(&key_of(&user)) {
                histories.entry(user).or_default().push(row.get(0)?);
            }
        }
    }
    for (user, sessions) in histories {
        let Ok(id) = user.parse::<UserId>() else { continue };
        let no = user_no(connection, &id)?;
        connection.execute("DELETE FROM careers WHERE user = ?1", [no])?;
        for (n, session) in (1_i64..).zip(sessions) {
            connection
                .prepare_cached("INSERT INTO careers (user, n, session) VALUES (?1, ?2, ?3)")?
                .execute(params![no, n, session])?;
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
