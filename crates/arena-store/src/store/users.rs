//! Users: profiles, histories, standings, leaderboards, totals.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arena_model::{
    Board, Order, PlayerStandings, ProfileChange, ProfileText, ScoringEntry, Session, Timestamp, UserId, UserProfile,
};

use super::audit::record;
use super::strategies::list_ranked;
use crate::derived::standings::{find_career, recount, write_career};
use crate::errors::Failure;
use crate::mirror::Mirror;
use crate::mirror::ranking::{Ranked, RankingPage};
use crate::plan::counting::{PARTICIPANTS, games_of};
use crate::sql::db::Db;
use crate::sql::dialect::{Dialect, Table, columns};
use crate::sql::value::{Columns, Value, count};
use crate::tables::careers::{Career, read_career};
use crate::tables::sessions::{Sessions, read_session};
use crate::tables::{ADMINISTRATION, Answers, STANDINGS, read_answer};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, NewAnswer, Page, Store, StoreError};

pub struct ProfileWrite {
    pub user: UserId,
    pub change: ProfileChange,
    /// A function that creates the answer from the profile after the change.
    pub respond: Box<dyn Fn(&UserProfile) -> String + Send>,
    /// The answer's keys, each with the hash of the request. If a key has an answer already, nothing changes.
    pub once: Vec<([u8; 32], [u8; 32])>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of completed games by challenge type.
    pub games: BTreeMap<String, u64>,
    /// The number of users with a game.
    pub participants: u64,
}

impl Totals {
    /// Creates the totals from the stored rows, by name.
    pub(crate) fn of(mut games: BTreeMap<String, i64>) -> Totals {
        // An invalid total is shown as 0 until its repair.
        let count = |n: i64| n.max(0).unsigned_abs();
        let participants = count(games.remove(PARTICIPANTS).unwrap_or(0));
        let of_type = |(name, n): (String, i64)| Some((name.strip_prefix("games:")?.to_owned(), count(n)));
        Totals { games: games.into_iter().filter_map(of_type).collect(), participants }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount {
    pub users: u64,
    /// The number of counted games. A game counts once for each of its users.
    pub games: u64,
    /// Users whose stored standings differed from their games.
    pub wrong: Vec<UserId>,
}

/// The columns of a profile, in the order in which [`read_profile`] reads them.
const PROFILE: &str = "u.id, u.username, u.model, u.benchmark";

fn read_profile(row: &dyn Columns) -> Result<UserProfile, StoreError> {
    let id = row.prose(0)?;
    let damaged = |reason: String| StoreError::damaged(format!("user {id}"), reason);
    let text = |column: usize| -> Result<_, StoreError> {
        row.prose_or_null(column)?
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: arena_model::ProfileTextError| damaged(format!("expected {error}")))
    };
    Ok(UserProfile {
        username: text(1)?,
        model: text(2)?,
        is_benchmark: row.integer(3)? != 0,
        user_id: id.parse().map_err(|error: arena_model::IdError| damaged(error.to_string()))?,
    })
}

/// Returns the number and the profile of a user, or `None` if the user is unknown.
pub(crate) async fn find_user(db: &mut Db, user: &UserId) -> Result<Option<(i64, UserProfile)>, Failure> {
    let sql = format!("SELECT {PROFILE}, u.no FROM users u WHERE u.id = $1");
    db.find(&sql, &[Value::prose(user.as_str())], |row| Ok((row.integer(4)?, read_profile(row)?))).await
}

pub(crate) async fn write_profile(db: &mut Db, no: i64, profile: &UserProfile) -> Result<(), Failure> {
    let text = |text: &Option<ProfileText>| Value::Prose(text.as_ref().map(|text| text.as_str().to_owned().into()));
    let sql = "UPDATE users SET username = $1, model = $2 WHERE no = $3";
    db.execute(sql, &[text(&profile.username), text(&profile.model), no.into()]).await.map(drop)
}

/// Adds a user if the user is unknown, locks the user until the commit, and returns the user's number.
async fn lock_user(writing: &mut Writing, user: &UserId) -> Result<i64, Failure> {
    let no = writing.user_no(user.as_str()).await?;
    writing.lock_users([user.as_str()]).await?;
    Ok(no)
}

impl Store {
    /// Returns the profiles of these users; unknown users have no entry.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_profiles<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<BTreeMap<UserId, UserProfile>, StoreError> {
        let ids: Vec<Value<'_>> = users.into_iter().map(|user| Value::prose(user.as_str())).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sql = format!("SELECT {PROFILE} FROM users u WHERE u.id {}", self.dialect().any("$1"));
        let found = self.list(&sql, &[Value::List(ids)], read_profile).await?;
        Ok(found.into_iter().map(|profile| (profile.user_id.clone(), profile)).collect())
    }

    /// Returns users in the order in which they became known: at most `limit` from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, StoreError> {
        // Users have numbers from 1 without gaps, so the offset is the number of the user before the page.
        let sql = format!("SELECT {PROFILE} FROM users u WHERE u.no > $1 ORDER BY u.no LIMIT $2");
        let items = self.list(&sql, &[count(offset).into(), count(limit as u64).into()], read_profile).await?;
        Ok(Page { items, total: self.last_user().await?.unsigned_abs() })
    }

    /// Returns the number of the last user, which equals the count of users.
    pub(crate) async fn last_user(&self) -> Result<i64, StoreError> {
        self.number("SELECT coalesce(max(no), 0) FROM users", &[]).await
    }

    /// Returns the users that are benchmark models.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_benchmarks(&self) -> Result<BTreeSet<UserId>, StoreError> {
        // These are the conditions of the partial indexes.
        let condition = match self.dialect() {
            Dialect::Sqlite => "u.benchmark",
            Dialect::Postgres => "u.benchmark <> 0",
        };
        let sql = format!("SELECT {PROFILE} FROM users u WHERE {condition}");
        Ok(self.list(&sql, &[], |row| Ok(read_profile(row)?.user_id)).await?.into_iter().collect())
    }

    /// Changes a profile, or creates it if the user has none. Returns the text from `respond`.
    ///
    /// # Errors
    /// [`CommitError::Answered`] if one of the keys has an answer already. Also if the store can't write.
    pub async fn change_profile(&self, write: ProfileWrite) -> Result<String, CommitError> {
        self.write(write, |ProfileWrite { user, change, respond, once, at }, writing| {
            Box::pin(async move {
                let no = lock_user(writing, user).await?;
                let found = find_user(&mut writing.db, user).await?;
                let mut profile = found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile);
                change.clone().apply(&mut profile);
                let body = respond(&profile);
                for (key, _) in &*once {
                    let sql = "SELECT request, body FROM answers WHERE key = $1";
                    if let Some(answer) = writing.db.find(sql, &[key[..].into()], |row| read_answer(row, 0)).await? {
                        return Err(CommitError::Answered(answer).into());
                    }
                }
                for (key, request) in &*once {
                    let sql = "INSERT INTO answers (key, request, body, at) VALUES ($1, $2, $3, $4)";
                    let answer = NewAnswer { key: *key, request: *request, body: body.clone(), at: *at };
                    let values: Vec<Value<'_>> = Answers::values(&&answer).collect();
                    writing.db.execute(sql, &values).await?;
                }
                write_profile(&mut writing.db, no, &profile).await?;
                Ok(body)
            })
        })
        .await
    }

    /// Sets or clears the mark of a benchmark model. Returns the user's profile.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn set_benchmark(
        &self,
        user: UserId,
        benchmark: bool,
        audit: AuditEntry,
    ) -> Result<UserProfile, CommitError> {
        self.write((user, audit), move |(user, audit), writing| {
            Box::pin(async move {
                let no = lock_user(writing, user).await?;
                let sql = "UPDATE users SET benchmark = $1 WHERE no = $2";
                writing.db.execute(sql, &[i64::from(benchmark).into(), no.into()]).await?;
                writing.changed.insert(ADMINISTRATION);
                let found = find_user(&mut writing.db, user).await?;
                record(writing, audit).await?;
                Ok(found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile))
            })
        })
        .await
    }

    /// Returns the number and the career of a user; `None` if the user is unknown.
    async fn find_known(&self, user: &UserId) -> Result<Option<(i64, Career)>, StoreError> {
        let sql = "SELECT u.no, c.session, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = $1";
        let read = |row: &dyn Columns| {
            let no = row.integer(0)?;
            Ok((no, read_career(no, row, 1)))
        };
        self.find(sql, &[Value::prose(user.as_str())], read).await
    }

    /// Returns the ended sessions of a user, newest first; `None` if the user is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, StoreError> {
        let Some((no, career)) = self.find_known(user).await? else { return Ok(None) };
        let total = career.played.max(0);
        let newest = total.saturating_sub(count(offset));
        let sql = format!(
            "SELECT {} FROM careers c JOIN sessions s ON s.no = c.session
             WHERE c.user_no = $1 AND c.n BETWEEN 1 AND $2 ORDER BY c.n DESC LIMIT $3",
            columns::<Sessions>("s.")
        );
        let values = [no.into(), newest.into(), count(limit as u64).into()];
        let items = self.list(&sql, &values, |row| Ok(read_session(row)?.1)).await?;
        Ok(Some(Page { items, total: total.unsigned_abs() }))
    }

    /// Returns the standings of a user; `None` if the user is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_standings(&self, user: &UserId) -> Result<Option<PlayerStandings>, StoreError> {
        let Some((_, Career { mut standings, .. })) = self.find_known(user).await? else { return Ok(None) };
        self.add_scripted(user, &mut standings).await?;
        Ok(Some(standings))
    }

    /// Returns a page of a leaderboard, in descending order. The first call for a board reads all of it; the board
    /// then stays in memory, sorted, while it is in use.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, StoreError> {
        let ranked = Ranked { board: board.clone(), order };
        let RankingPage { users, total } = self.find_page(&ranked, offset, limit).await?;
        if users.is_empty() {
            return Ok(Page { items: Vec::new(), total });
        }
        let sql = format!(
            "SELECT {PROFILE}, u.no, c.session, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.no {}",
            self.dialect().any("$1")
        );
        let numbers = users.iter().map(|user| Value::from(*user)).collect();
        let read = |row: &dyn Columns| {
            let no = row.integer(4)?;
            Ok((no, (read_profile(row)?, read_career(no, row, 5).standings)))
        };
        let found = self.list(&sql, &[Value::List(numbers)], read).await?;
        let mut found: HashMap<i64, (UserProfile, PlayerStandings)> = found.into_iter().collect();
        if ranked.is_scripted() {
            let context = (ranked, self.scoring(), users.clone());
            let scripted = self.aside(context, |(ranked, scoring, users), db| {
                Box::pin(list_ranked(db, ranked, scoring, Some(users.as_slice())))
            });
            let mut scripted = scripted.await?;
            for (user, (_, standings)) in &mut found {
                *standings = scripted.remove(user).unwrap_or_default();
            }
        }
        let scoring = self.scoring();
        let entry = |user: &i64| {
            let (profile, standings) = found.remove(user)?;
            Some((profile, scoring.entry(board, &standings)?))
        };
        Ok(Page { items: users.iter().filter_map(entry).collect(), total })
    }

    /// Returns a page of a board. Readers load boards into memory one at a time, so a second reader waits and then
    /// finds the board that the first reader has loaded.
    async fn find_page(&self, ranked: &Ranked, offset: u64, limit: usize) -> Result<RankingPage, StoreError> {
        let Mirror { rankings, loading, .. } = self.mirror();
        if let Store::Postgres(store) = self {
            store.refresh_rankings().await?;
        }
        if let Some(page) = rankings.page(ranked, offset, limit) {
            return Ok(page);
        }
        let _loading = loading.lock().await;
        // The loop repeats if the board was dropped before its page was read.
        loop {
            match rankings.page(ranked, offset, limit) {
                Some(page) => return Ok(page),
                None => self.load_ranking(ranked).await?,
            }
        }
    }

    async fn load_ranking(&self, ranked: &Ranked) -> Result<(), StoreError> {
        let beginning = self.mirror().rankings.begin(ranked);
        if self.nodes().is_none() {
            // After this empty write, all later commits record their moves, and the read below includes all earlier
            // commits. In a shared store this isn't necessary, because moves come from the endings.
            let passed = self.write((), |(), writing| {
                writing.effects.nothing = true;
                Box::pin(async { Ok(()) })
            });
            passed.await.map_err(|error| match error {
                CommitError::Unavailable(error) => error,
                error => StoreError::Database(error.to_string()),
            })?;
        }
        let context = (ranked.clone(), self.scoring());
        let keys = self.aside(context, |(ranked, scoring), db| {
            Box::pin(async move {
                if ranked.is_scripted() {
                    let all = list_ranked(db, ranked, scoring, None).await?;
                    let key = |(user, standings)| Some((ranked.key(scoring, &standings)?, user));
                    return Ok(all.into_iter().filter_map(key).collect());
                }
                // SQLite looks up row 0 of each user; Postgres has an index of these rows.
                let sql = match db.dialect() {
                    Dialect::Sqlite => {
                        "SELECT c.user_no, c.session, c.standings FROM users u CROSS JOIN careers c
                         WHERE c.user_no = u.no AND c.n = 0"
                    }
                    Dialect::Postgres => "SELECT user_no, session, standings FROM careers WHERE n = 0",
                };
                let mut keys = Vec::new();
                db.each(sql, &[], |row| {
                    let user = row.integer(0)?;
                    keys.extend(ranked.key(scoring, &read_career(user, row, 1).standings).map(|key| (key, user)));
                    Ok(())
                })
                .await?;
                Ok(keys)
            })
        });
        self.mirror().rankings.finish(ranked, beginning, keys.await?);
        Ok(())
    }

    /// Drops leaderboards that haven't been read since the last call.
    pub fn forget_idle_boards(&self) {
        self.mirror().rankings.forget_idle();
    }

    /// Returns the numbers of games and participants.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_totals(&self) -> Result<Totals, StoreError> {
        let totals = self.list(TOTALS, &[], |row| Ok(read_total(row))).await?;
        Ok(Totals::of(totals.into_iter().collect()))
    }

    /// Recounts all games of all users and compares the result with the stored standings. If they differ, the result
    /// replaces the stored standings of the user, and `audit` creates an audit entry for this user. Games continue
    /// during the recount.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn recount(&self, audit: impl Fn(&UserId) -> AuditEntry) -> Result<Recount, CommitError> {
        let mut all = Recount::default();
        match self.recount_into(&mut all, audit).await {
            Ok(()) => Ok(all),
            // Some standings have been stored already, so the error must not claim that nothing has changed.
            Err(error) if !all.wrong.is_empty() => {
                tracing::error!(%error, "the recount stopped after {} users: {error}", all.users);
                Err(StoreError::Unsure.into())
            }
            Err(error) => Err(error),
        }
    }

    async fn recount_into(&self, all: &mut Recount, audit: impl Fn(&UserId) -> AuditEntry) -> Result<(), CommitError> {
        for user in 1..=self.last_user().await? {
            let (games, id, same) = self.compare(user).await?;
            all.users += 1;
            all.games += games;
            if !same {
                self.mend_standings(user, Some(audit(&id))).await?;
                all.wrong.push(id);
            }
        }
        self.mend_totals().await
    }

    /// Counts a user's games. Returns their number, the user's id, and true if the stored career is correct.
    pub(crate) async fn compare(&self, user: i64) -> Result<(u64, UserId, bool), StoreError> {
        // Games and career must come from the same snapshot.
        let compared = self.aside(self.scoring(), move |scoring, db| {
            Box::pin(async move {
                let counted = recount(db, scoring, user).await?;
                let same = find_career(db, user).await? == counted;
                let sql = "SELECT id FROM users WHERE no = $1";
                let id = db.find(sql, &[user.into()], |row| Ok(row.prose(0)?.into_owned())).await?.unwrap_or_default();
                let what = format!("user {id}");
                let id: UserId = id.parse().map_err(|error: arena_model::IdError| StoreError::damaged(what, error))?;
                Ok((counted.played.unsigned_abs(), id, same))
            })
        });
        compared.await
    }

    /// Games and totals are read in one snapshot, so the difference is correct even if games end before the write.
    async fn mend_totals(&self) -> Result<(), CommitError> {
        let missing = self.aside((), |(), db| Box::pin(missing_totals(db))).await?;
        if missing.is_empty() {
            return Ok(());
        }
        tracing::warn!("totals disagreed with the games and were corrected by {missing:?}");
        self.write(missing, |missing, writing| {
            missing.iter().for_each(|(name, n)| writing.effects.delta.add_total(name, *n));
            Box::pin(async { Ok(()) })
        })
        .await
    }

    /// Recounts a user's games and stores the career.
    pub(crate) async fn mend_standings(&self, user: i64, audit: Option<AuditEntry>) -> Result<(), CommitError> {
        self.write(audit, move |audit, writing| {
            Box::pin(async move {
                let sql = "SELECT id FROM users WHERE no = $1";
                let id = writing.db.find(sql, &[user.into()], |row| Ok(row.prose(0)?.into_owned())).await?;
                writing.lock_users(id.as_deref()).await?;
                let career = recount(&mut writing.db, &writing.scoring, user).await?;
                write_career(&mut writing.db, user, &career).await?;
                writing.effects.recounted = true;
                writing.changed.insert(STANDINGS);
                match audit {
                    Some(audit) => record(writing, audit).await.map(drop),
                    None => Ok(()),
                }
            })
        })
        .await
    }
}

const TOTALS: &str = "SELECT name, n FROM totals";

/// Reads the name and the value of a total. A value that isn't an integer is read as -1, which no total can be.
fn read_total(row: &dyn Columns) -> (String, i64) {
    (row.text(0).unwrap_or_default().to_owned(), row.integer(1).unwrap_or(-1))
}

/// Counts the totals by name, from the listed sessions that have ended and their players.
pub(crate) async fn count_totals(db: &mut Db) -> Result<BTreeMap<String, i64>, Failure> {
    let sql = "SELECT s.type, count(*) FROM endings e JOIN sessions s ON s.no = e.session
         WHERE s.ending = 'completed' AND s.unlisted = 0 GROUP BY s.type";
    let games = db.list(sql, &[], |row| Ok((games_of(row.text(0).unwrap_or_default()), row.integer(1)?))).await?;
    let mut totals: BTreeMap<String, i64> = games.into_iter().collect();
    let participants = db.number("SELECT count(*) FROM careers WHERE n = 1", &[]).await?;
    totals.insert(PARTICIPANTS.to_owned(), participants);
    Ok(totals)
}

/// Returns the differences between the correct totals and the stored ones, by name.
pub(crate) async fn missing_totals(db: &mut Db) -> Result<BTreeMap<String, i64>, Failure> {
    db.read_whole_tables().await?;
    let mut missing = count_totals(db).await?;
    for (name, n) in db.list(TOTALS, &[], |row| Ok(read_total(row))).await? {
        let missing = missing.entry(name).or_default();
        *missing = missing.saturating_sub(n);
    }
    missing.retain(|_, n| *n != 0);
    Ok(missing)
}
