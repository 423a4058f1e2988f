//! Users: profiles, histories, leaderboards, totals.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use arena_model::{Board, Order, ProfileText, Scoring, ScoringEntry, Session, Standings, UserId, UserProfile};
use futures_util::{FutureExt, TryStreamExt};
use tokio_postgres::Client;

use super::administration::record;
use super::batch::read_answer;
use super::standings::{count_totals, read_career, read_totals, recount, write_career};
use super::text::encode;
use super::writer::{WriteError, Writing};
use super::{PostgresStore, number, place, session_columns};
use crate::audit::AuditEntry;
use crate::boards::{BOARDS_OF, BoardFacts, read_board};
use crate::ranking::{Ranked, RankingPage};
use crate::rows::{Columns, read_session};
use crate::standings::read_standings;
use crate::users::{PROFILE_COLUMNS, ProfileWrite, Recount, Totals, read_profile};
use crate::{CommitError, Page, StoreError};

/// A user with its number, if it is known.
pub(super) async fn find_user(client: &Client, user: &UserId) -> Result<Option<(i64, UserProfile)>, StoreError> {
    let sql = format!("SELECT {PROFILE_COLUMNS}, no FROM users WHERE id = $1");
    let Some(row) = client.query_opt(&sql, &[&encode(user.as_str())]).await? else { return Ok(None) };
    Ok(Some((row.integer(4)?, read_profile(&row)?)))
}

/// The number of a user, who is entered if it wasn't known.
pub(super) async fn user_no(writing: &mut Writing, user: &UserId) -> Result<i64, WriteError> {
    let id = encode(user.as_str());
    let find = "SELECT no FROM users WHERE id = $1";
    if let Some(row) = writing.client().query_opt(find, &[&id]).await? {
        return Ok(row.integer(0)?);
    }
    writing.number_user(&id).await?;
    Ok(writing.client().query_one(find, &[&id]).await?.integer(0)?)
}

/// The same, with nobody else changing it until this is committed.
async fn lock_user(writing: &mut Writing, user: &UserId) -> Result<i64, WriteError> {
    let no = user_no(writing, user).await?;
    writing.lock_users(&[encode(user.as_str()).into_owned()]).await?;
    Ok(no)
}

/// Stores what a user says of itself.
pub(super) async fn write_profile(client: &Client, no: i64, profile: &UserProfile) -> Result<(), WriteError> {
    let text = |text: &Option<ProfileText>| text.as_ref().map(|text| encode(text.as_str()).into_owned());
    let (username, model) = (text(&profile.username), text(&profile.model));
    client.execute("UPDATE users SET username = $2, model = $3 WHERE no = $1", &[&no, &username, &model]).await?;
    Ok(())
}

impl PostgresStore {
    pub(crate) fn scoring(&self) -> &Scoring {
        &self.mirror.scoring
    }

    pub(crate) async fn find_profiles<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<BTreeMap<UserId, UserProfile>, StoreError> {
        let ids: Vec<String> = users.into_iter().map(|user| encode(user.as_str()).into_owned()).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE id = ANY($1)");
        let rows = self.readers.query(&sql, &[&ids]).await?;
        rows.iter().map(|row| read_profile(row).map(|profile| (profile.user_id.clone(), profile))).collect()
    }

    pub(crate) async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, StoreError> {
        // Users are numbered from 1 without gaps.
        let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE no > $1 ORDER BY no LIMIT $2");
        let rows = self.readers.query(&sql, &[&place(offset), &number(limit)]).await?;
        let total = self.readers.number("SELECT coalesce(max(no), 0) FROM users", &[]).await?;
        let items = rows.iter().map(read_profile).collect::<Result<_, _>>()?;
        Ok(Page { items, total: total.unsigned_abs() })
    }

    pub(crate) async fn list_benchmarks(&self) -> Result<BTreeSet<UserId>, StoreError> {
        let sql = format!("SELECT {PROFILE_COLUMNS} FROM users WHERE benchmark <> 0");
        let rows = self.readers.query(&sql, &[]).await?;
        rows.iter().map(|row| read_profile(row).map(|profile| profile.user_id)).collect()
    }

    pub(crate) async fn change_profile(&self, write: ProfileWrite) -> Result<String, CommitError> {
        self.writer
            .write(move |writing| {
                async move {
                    let ProfileWrite { user, change, respond, once, at } = write;
                    let no = lock_user(writing, &user).await?;
                    let client = writing.client();
                    let found = find_user(client, &user).await?;
                    let mut profile = found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile);
                    change.apply(&mut profile);
                    let body = respond(&profile);
                    for (key, _) in &once {
                        let sql = "SELECT request, body FROM answers WHERE key = $1";
                        if let Some(row) = client.query_opt(sql, &[&&key[..]]).await? {
                            return Err(CommitError::Answered(read_answer(&row, 0)?).into());
                        }
                    }
                    for (key, request) in &once {
                        let sql = "INSERT INTO answers (key, request, body, at) VALUES ($1, $2, $3, $4)";
                        client.execute(sql, &[&&key[..], &&request[..], &body, &at.0]).await?;
                    }
                    write_profile(client, no, &profile).await?;
                    Ok(body)
                }
                .boxed()
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
                async move {
                    let no = lock_user(writing, &user).await?;
                    let sql = "UPDATE users SET benchmark = $2 WHERE no = $1";
                    writing.client().execute(sql, &[&no, &i64::from(benchmark)]).await?;
                    writing.news.administration = true;
                    let found = find_user(writing.client(), &user).await?;
                    record(writing, &audit).await?;
                    Ok(found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile))
                }
                .boxed()
            })
            .await
    }

    pub(crate) async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, StoreError> {
        let sql = "SELECT u.no, coalesce(c.session, 0) FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = $1";
        let found = self.readers.query(sql, &[&encode(user.as_str())]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let (no, total) = (row.integer(0)?, row.integer(1)?.max(0));
        let newest = total.saturating_sub(place(offset));
        let sql = format!(
            "SELECT {} FROM careers c JOIN sessions s ON s.no = c.session
             WHERE c.user_no = $1 AND c.n BETWEEN 1 AND $2 ORDER BY c.n DESC LIMIT $3",
            session_columns()
        );
        let rows = self.readers.query(&sql, &[&no, &newest, &number(limit)]).await?;
        let items = rows.iter().map(|row| Ok(read_session(row)?.1)).collect::<Result<_, StoreError>>()?;
        Ok(Some(Page { items, total: total.unsigned_abs() }))
    }

    pub(crate) async fn find_standings(&self, user: &UserId) -> Result<Option<Standings>, StoreError> {
        let sql = "SELECT u.no, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = $1";
        let found = self.readers.query(sql, &[&encode(user.as_str())]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let no = row.integer(0)?;
        Ok(Some(row.text_or_null(1)?.map(|text| read_standings(no, text)).unwrap_or_default()))
    }

    pub(crate) async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, StoreError> {
        let ranked = Ranked { board: board.clone(), order };
        let page = match self.mirror.rankings.page(&ranked, offset, limit) {
            Some(page) => page,
            None => self.load_page(&ranked, offset, limit).await?,
        };
        let sql = format!(
            "SELECT {PROFILE_COLUMNS}, u.no, c.standings FROM unnest($1::int8[]) WITH ORDINALITY AS p (user_no, place)
             JOIN users u ON u.no = p.user_no LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 ORDER BY p.place"
        );
        let rows = if page.users.is_empty() { Vec::new() } else { self.readers.query(&sql, &[&page.users]).await? };
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            let no = row.integer(4)?;
            let standings = row.text_or_null(5)?.map(|text| read_standings(no, text)).unwrap_or_default();
            let entry = self.mirror.scoring.entry(board, &standings);
            let profile = read_profile(row)?;
            items.extend(entry.map(|entry| (profile, entry)));
        }
        Ok(Page { items, total: page.total })
    }

    /// A page of a board that isn't in memory. Boards are read one at a time: who waits finds what the one before has read.
    async fn load_page(&self, ranked: &Ranked, offset: u64, limit: usize) -> Result<RankingPage, StoreError> {
        let _loading = self.loading.lock().await;
        // Again if it was forgotten before it was read from.
        loop {
            match self.mirror.rankings.page(ranked, offset, limit) {
                Some(page) => return Ok(page),
                None => self.load_ranking(ranked).await?,
            }
        }
    }

    async fn load_ranking(&self, ranked: &Ranked) -> Result<(), StoreError> {
        let beginning = self.mirror.rankings.begin(ranked);
        if self.nodes().is_none() {
            // Whatever is committed after this one knows that moves are wanted; what was before is seen by the read below. Where
            // others write too, who moves is read from the journal, in its order.
            let passed = self.writer.write(|writing| {
                writing.effects.nothing = true;
                async { Ok(()) }.boxed()
            });
            passed.await.map_err(|error| match error {
                CommitError::Unavailable(error) => error,
                error => StoreError::Database(error.to_string()),
            })?;
        }
        let connection = self.readers.connection().await?;
        // One statement is one snapshot; its rows are looked at as they come.
        let none: [i64; 0] = [];
        let rows = connection.query_raw("SELECT user_no, standings FROM careers WHERE n = 0", none).await?;
        let mut rows = pin!(rows);
        let mut keys = Vec::new();
        while let Some(row) = rows.try_next().await? {
            let user = row.integer(0)?;
            let standings = read_standings(user, row.text_or_null(1)?.unwrap_or_default());
            keys.extend(ranked.key(&self.mirror.scoring, &standings).map(|key| (key, user)));
        }
        self.mirror.rankings.finish(ranked, beginning, keys);
        Ok(())
    }

    /// Where these users stand now on the boards that are in memory.
    pub(super) async fn read_moves(&self, users: BTreeSet<i64>) -> Result<Vec<(Ranked, i64, Option<f64>)>, StoreError> {
        let ranked = self.mirror.rankings.in_use();
        if users.is_empty() || ranked.is_empty() {
            return Ok(Vec::new());
        }
        let users: Vec<i64> = users.into_iter().collect();
        let sql = "SELECT w.user_no, c.standings FROM unnest($1::int8[]) AS w (user_no)
             LEFT JOIN careers c ON c.user_no = w.user_no AND c.n = 0";
        let mut places = Vec::new();
        for row in self.readers.query(sql, &[&users]).await? {
            let user = row.integer(0)?;
            let standings = row.text_or_null(1)?.map(|text| read_standings(user, text)).unwrap_or_default();
            for ranked in &ranked {
                places.push((ranked.clone(), user, ranked.key(&self.mirror.scoring, &standings)));
            }
        }
        Ok(places)
    }

    pub(crate) async fn list_boards(&self, challenge: &str) -> Result<Vec<BoardFacts>, StoreError> {
        let rows = self.readers.query(&format!("{BOARDS_OF}$1"), &[&challenge]).await?;
        Ok(rows.iter().filter_map(|row| read_board(challenge, row)).collect())
    }

    pub(crate) fn forget_idle_boards(&self) {
        self.mirror.rankings.forget_idle();
    }

    pub(crate) async fn read_totals(&self) -> Result<Totals, StoreError> {
        Ok(Totals::of(read_totals(&*self.readers.connection().await?).await?))
    }

    pub(crate) async fn recount(&self, audit: impl Fn(&UserId) -> AuditEntry) -> Result<Recount, CommitError> {
        let last_user = self.list_users(0, 0).await?.total;
        let mut all = Recount::default();
        for user in 1..=place(last_user) {
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

    /// Counts a user's games, and says whether the stored career is what they make it.
    pub(super) async fn compare(&self, user: i64) -> Result<(u64, UserId, bool), StoreError> {
        let mut connection = self.readers.connection().await?;
        // One snapshot for the games and for what was made of them.
        let snapshot = connection.build_transaction().isolation_level(SNAPSHOT).read_only(true).start().await?;
        let client = snapshot.client();
        let counted = recount(client, &self.mirror.scoring, user).await?;
        let same = read_career(client, user).await? == counted;
        let row = client.query_one("SELECT id FROM users WHERE no = $1", &[&user]).await?;
        let id = row.prose(0)?;
        let id: UserId = id.parse().map_err(|error| StoreError::damaged(&id, error))?;
        snapshot.commit().await?;
        Ok((counted.played.unsigned_abs(), id, same))
    }

    /// Counts the totals anew, and adds what is missing from those that are stored. In one snapshot both are of the same
    /// games, so what they differ in is right whatever ends meanwhile.
    async fn mend_totals(&self) -> Result<(), CommitError> {
        let missing = self.missing_totals().await?;
        if missing.is_empty() {
            return Ok(());
        }
        tracing::warn!("totals weren't what the games make them, and are mended by {missing:?}");
        self.writer
            .write(move |writing| {
                async move {
                    for (name, n) in &missing {
                        writing.effects.delta.add_total(name, *n);
                    }
                    Ok(())
                }
                .boxed()
            })
            .await
    }

    async fn missing_totals(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let mut connection = self.readers.connection().await?;
        let snapshot = connection.build_transaction().isolation_level(SNAPSHOT).read_only(true).start().await?;
        let mut missing = count_totals(snapshot.client()).await?;
        for (name, n) in read_totals(snapshot.client()).await? {
            *missing.entry(name).or_default() -= n;
        }
        snapshot.commit().await?;
        missing.retain(|_, n| *n != 0);
        Ok(missing)
    }

    pub(super) async fn mend_standings(&self, user: i64, audit: Option<AuditEntry>) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                async move {
                    let id = writing.client().query_one("SELECT id FROM users WHERE no = $1", &[&user]).await?;
                    writing.lock_users(&[id.text(0)?.to_owned()]).await?;
                    let career = recount(writing.client(), &writing.scoring, user).await?;
                    write_career(writing.client(), user, &career).await?;
                    writing.effects.recounted = true;
                    writing.news.users.insert(user);
                    match &audit {
                        Some(audit) => record(writing, audit).await.map(drop),
                        None => Ok(()),
                    }
                }
                .boxed()
            })
            .await
    }
}

/// Reads that see one state of the database, however many they are.
pub(super) const SNAPSHOT: tokio_postgres::IsolationLevel = tokio_postgres::IsolationLevel::RepeatableRead;
