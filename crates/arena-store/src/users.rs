//! What the store knows of users: profiles, histories, standings, leaderboards, totals.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::{
    Board, Order, ProfileChange, ProfileText, Scoring, ScoringEntry, Session, Standings, Timestamp, UserId, UserProfile,
};
use rusqlite::{Connection, params};

use crate::audit::record;
use crate::ranking::{Ranked, RankingPage};
use crate::rows::{Columns, SESSION_COLUMNS, read_session};
use crate::standings::{PARTICIPANTS, games_of, read_career, recount, user_no, write_career};
use crate::writer::{find_answer, remember};
use crate::{AuditEntry, CommitError, NewAnswer, Page, SqliteStore, StoreError};

/// A change of a profile.
pub struct ProfileWrite {
    /// Whose.
    pub user: UserId,
    /// What changes.
    pub change: ProfileChange,
    /// Words the answer, of the profile as it is then.
    pub respond: Box<dyn Fn(&UserProfile) -> String + Send>,
    /// Keys under which the answer is remembered, each with what it answers. If there is an answer already, nothing
    /// happens.
    pub once: Vec<([u8; 32], [u8; 32])>,
    /// When.
    pub at: Timestamp,
}

/// How much has been played.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Games that came to their end, by challenge type.
    pub games: BTreeMap<String, u64>,
    /// Users who played.
    pub participants: u64,
}

impl Totals {
    /// Of the totals as they are stored, by name.
    pub(crate) fn of(mut games: BTreeMap<String, i64>) -> Totals {
        // A total that can't be is on its way to being made again.
        let count = |n: i64| n.max(0).unsigned_abs();
        let participants = count(games.remove(PARTICIPANTS).unwrap_or(0));
        let of_type = |(name, n): (String, i64)| Some((name.strip_prefix("games:")?.to_owned(), count(n)));
        Totals { games: games.into_iter().filter_map(of_type).collect(), participants }
    }
}

/// What came of counting all games anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount {
    /// Users whose games were counted.
    pub users: u64,
    /// Games, counted once for each of its users.
    pub games: u64,
    /// Users whose standing wasn't what their games make it.
    pub wrong: Vec<UserId>,
}

/// The columns that [`read_profile`] reads, in its order.
pub(crate) const PROFILE_COLUMNS: &str = "id, username, model, benchmark";

pub(crate) fn read_profile(row: &impl Columns) -> Result<UserProfile, StoreError> {
    let id = row.prose(0)?;
    let damaged = |reason: String| StoreError::Damaged { what: format!("user {id}"), reason };
    let text = |column: usize| -> Result<_, StoreError> {
        row.prose_or_null(column)?
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: arena_model::ProfileTextError| damaged(error.to_string()))
    };
    Ok(UserProfile {
        username: text(1)?,
        model: text(2)?,
        is_benchmark: row.integer(3)? != 0,
        user_id: id.parse().map_err(|error: arena_model::IdError| damaged(error.to_string()))?,
    })
}

pub(crate) fn find_user(connection: &Connection, user: &UserId) -> Result<Option<(i64, UserProfile)>, StoreError> {
    let sql = format!("SELECT {PROFILE_COLUMNS}, no FROM users WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([user.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((row.get(4)?, read_profile(row)?)))
}

/// Stores what a user says of itself.
pub(crate) fn write_profile(connection: &Connection, no: i64, profile: &UserProfile) -> Result<(), rusqlite::Error> {
    let text = |text: &Option<ProfileText>| text.as_ref().map(|text| text.as_str().to_owned());
    connection.prepare_cached("UPDATE users SET username = ?2, model = ?3 WHERE no = ?1")?.execute(params![
        no,
        text(&profile.username),
        text(&profile.model)
    ])?;
    Ok(())
}

impl SqliteStore {
    pub(crate) fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    pub(crate) async fn find_profiles<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<BTreeMap<UserId, UserProfile>, StoreError> {
        let mut users = users.into_iter().peekable();
        if users.peek().is_none() {
            return Ok(BTreeMap::new());
        }
        self.read(|connection| {
            let found = users.map(|user| Ok(find_user(connection, user)?.map(|(_, profile)| (user.clone(), profile))));
            found.filter_map(Result::transpose).collect()
        })
    }

    pub(crate) async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, StoreError> {
        self.read(|connection| {
            // Users are numbered from 1 without gaps.
            let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE no > ?1 ORDER BY no LIMIT ?2");
            let mut statement = connection.prepare_cached(&sql)?;
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![offset, i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut items = Vec::new();
            while let Some(row) = rows.next()? {
                items.push(read_profile(row)?);
            }
            let total: i64 =
                connection.prepare_cached("SELECT coalesce(max(no), 0) FROM users")?.query_row([], |row| row.get(0))?;
            Ok(Page { items, total: total.unsigned_abs() })
        })
    }

    pub(crate) async fn list_benchmarks(&self) -> Result<BTreeSet<UserId>, StoreError> {
        self.read(|connection| {
            let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE benchmark");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            let mut users = BTreeSet::new();
            while let Some(row) = rows.next()? {
                users.insert(read_profile(row)?.user_id);
            }
            Ok(users)
        })
    }

    pub(crate) async fn change_profile(&self, write: ProfileWrite) -> Result<String, CommitError> {
        let ProfileWrite { user, change, respond, once, at } = write;
        self.writer
            .write(move |writing| {
                let connection = writing.connection;
                let no = user_no(connection, &user)?;
                let found = find_user(connection, &user)?;
                let mut profile = found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile);
                change.clone().apply(&mut profile);
                let body = respond(&profile);
                for (key, _) in &once {
                    if let Some(stored) = find_answer(connection, key)? {
                        return Err(CommitError::Answered(stored).into());
                    }
                }
                for (key, request) in &once {
                    remember(connection, &NewAnswer { key: *key, request: *request, body: body.clone(), at })?;
                }
                write_profile(connection, no, &profile)?;
                Ok(body)
            })
            .await
    }

    pub(crate) async fn set_benchmark(
        &self,
        user: UserId,
        benchmark: bool,
        audit: AuditEntry,
    ) -> Result<UserProfile, CommitError> {
        self.writer
            .write(move |writing| {
                let connection = writing.connection;
                let no = user_no(connection, &user)?;
                connection.execute("UPDATE users SET benchmark = ?2 WHERE no = ?1", params![no, benchmark])?;
                record(connection, &audit)?;
                let found = find_user(connection, &user)?;
                Ok(found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile))
            })
            .await
    }

    pub(crate) async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, StoreError> {
        let columns: Vec<String> = SESSION_COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect();
        let sql = format!(
            "SELECT {} FROM careers c JOIN sessions s ON s.no = c.session WHERE c.user = ?1 AND c.n BETWEEN 1 AND ?2
             ORDER BY c.n DESC LIMIT ?3",
            columns.join(", ")
        );
        self.read(|connection| {
            let Some((no, _)) = find_user(connection, user)? else { return Ok(None) };
            let total = read_career(connection, no)?.played.max(0);
            let newest = total.saturating_sub(i64::try_from(offset).unwrap_or(i64::MAX));
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![no, newest, i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut items = Vec::new();
            while let Some(row) = rows.next()? {
                items.push(read_session(row)?.1);
            }
            Ok(Some(Page { items, total: total.unsigned_abs() }))
        })
    }

    pub(crate) async fn find_standings(&self, user: &UserId) -> Result<Option<Standings>, StoreError> {
        self.read(|connection| {
            let Some((no, _)) = find_user(connection, user)? else { return Ok(None) };
            Ok(Some(read_career(connection, no)?.standings))
        })
    }

    pub(crate) async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, StoreError> {
        let ranked = Ranked { board: board.clone(), order };
        let page = match self.rankings.page(&ranked, offset, limit) {
            Some(page) => page,
            None => self.load_page(&ranked, offset, limit).await?,
        };
        let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE no = ?1");
        self.read(|connection| {
            let mut items = Vec::with_capacity(page.users.len());
            for &user in &page.users {
                let mut statement = connection.prepare_cached(&sql)?;
                let mut rows = statement.query([user])?;
                let Some(row) = rows.next()? else { continue };
                let profile = read_profile(row)?;
                let entry = self.scoring.entry(board, &read_career(connection, user)?.standings);
                items.extend(entry.map(|entry| (profile, entry)));
            }
            Ok(Page { items, total: page.total })
        })
    }

    /// A page of a board that isn't in memory. Boards are read one at a time: who waits finds what the one before has read.
    async fn load_page(&self, ranked: &Ranked, offset: u64, limit: usize) -> Result<RankingPage, StoreError> {
        let _loading = self.loading.lock().await;
        // Again if it was forgotten before it was read from.
        loop {
            match self.rankings.page(ranked, offset, limit) {
                Some(page) => return Ok(page),
                None => self.load_ranking(ranked).await?,
            }
        }
    }

    async fn load_ranking(&self, ranked: &Ranked) -> Result<(), StoreError> {
        let beginning = self.rankings.begin(ranked);
        // Whatever is committed after this one knows that moves are wanted; what was before is seen by the read below.
        let passed = self.writer.write(|_| Ok(())).await;
        passed.map_err(|error| StoreError::Database(error.to_string()))?;
        let (readers, scoring, wanted) = (self.readers.clone(), self.scoring.clone(), ranked.clone());
        let read = tokio::task::spawn_blocking(move || {
            readers.read(|connection| {
                // One snapshot. Users are numbered from 1 without gaps.
                let snapshot = connection.unchecked_transaction()?;
                let last: i64 = snapshot.query_row("SELECT coalesce(max(no), 0) FROM users", [], |row| row.get(0))?;
                let mut keys = Vec::new();
                for user in 1..=last {
                    let career = read_career(&snapshot, user)?;
                    keys.extend(wanted.key(&scoring, &career.standings).map(|key| (key, user)));
                }
                Ok(keys)
            })
        });
        let keys = read.await.map_err(|_| StoreError::Closed)??;
        self.rankings.finish(ranked, beginning, keys);
        Ok(())
    }

    pub(crate) fn forget_idle_boards(&self) {
        self.rankings.forget_idle();
    }

    pub(crate) async fn read_totals(&self) -> Result<Totals, StoreError> {
        Ok(Totals::of(self.read(|connection| Ok(read_totals(connection)?))?))
    }

    pub(crate) async fn recount(&self, audit: impl Fn(&UserId) -> AuditEntry) -> Result<Recount, CommitError> {
        let last_user = self.list_users(0, 0).await.map_err(CommitError::Unavailable)?.total;
        let mut all = Recount::default();
        for user in 1..=i64::try_from(last_user).unwrap_or(i64::MAX) {
            let (games, id, same) = self.compare(user).await?;
            all.users += 1;
            all.games += games;
            if !same {
                self.mend_standings(user, Some(audit(&id))).await?;
                all.wrong.push(id);
            }
        }
        self.mend_totals().await?;
        Ok(all)
    }

    /// Counts the totals anew, and adds what is missing from those that are stored. In one snapshot both are of the same
    /// games, so what they differ in is right whatever ends meanwhile.
    async fn mend_totals(&self) -> Result<(), CommitError> {
        let readers = self.readers.clone();
        let missing = tokio::task::spawn_blocking(move || {
            readers.read(|connection| {
                let snapshot = connection.unchecked_transaction()?;
                let mut missing = count_totals(&snapshot)?;
                for (name, n) in read_totals(&snapshot)? {
                    *missing.entry(name).or_default() -= n;
                }
                missing.retain(|_, n| *n != 0);
                Ok(missing)
            })
        });
        let missing = missing.await.map_err(|_| CommitError::Unavailable(StoreError::Closed))??;
        if missing.is_empty() {
            return Ok(());
        }
        tracing::warn!("totals weren't what the games make them, and are mended by {missing:?}");
        self.writer
            .write(move |writing| {
                for (name, n) in &missing {
                    writing.effects.delta.add_total(name, *n);
                }
                Ok(())
            })
            .await
    }

    /// Counts a user's games anew and stores what comes out.
    pub(crate) async fn mend_standings(&self, user: i64, audit: Option<AuditEntry>) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                let career = recount(writing.connection, writing.counting.scoring, user)?;
                write_career(writing.connection, user, &career)?;
                writing.effects.recounted = true;
                if let Some(audit) = &audit {
                    record(writing.connection, audit)?;
                }
                Ok(())
            })
            .await
    }
}

/// The totals by name, as stored.
pub(crate) fn read_totals(connection: &Connection) -> Result<BTreeMap<String, i64>, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT name, n FROM totals")?;
    let mut rows = statement.query([])?;
    let mut totals = BTreeMap::new();
    while let Some(row) = rows.next()? {
        // A column of another type is no better than a total that can't be.
        let name = row.get_ref(0)?.as_str().unwrap_or_default();
        totals.insert(name.to_owned(), row.get_ref(1)?.as_i64().unwrap_or(-1));
    }
    Ok(totals)
}

/// The totals by name, from the sessions that have ended and the users who were in them. Counted here: SQLite would sort all sessions in memory to
/// group them.
pub(crate) fn count_totals(connection: &Connection) -> Result<BTreeMap<String, i64>, rusqlite::Error> {
    let mut statement = connection
        .prepare("SELECT s.type FROM endings e JOIN sessions s ON s.no = e.session WHERE s.ending = 'completed'")?;
    let mut rows = statement.query([])?;
    let mut games: BTreeMap<String, i64> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let challenge = row.get_ref(0)?.as_str().unwrap_or_default();
        match games.get_mut(challenge) {
            Some(n) => *n += 1,
            None => drop(games.insert(challenge.to_owned(), 1)),
        }
    }
    let mut totals: BTreeMap<String, i64> = games.into_iter().map(|(name, n)| (games_of(&name), n)).collect();
    let participants = connection.query_row("SELECT count(*) FROM careers WHERE n = 1", [], |row| row.get(0))?;
    totals.insert(PARTICIPANTS.to_owned(), participants);
    Ok(totals)
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        CommitError::Unavailable(error)
    }
}
