//! Derived tables in Postgres: compared with the sessions and made again, as `crate::derived` says.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use arena_model::UserId;
use futures_util::{FutureExt, TryStreamExt};
use tokio_postgres::Client;

use super::standings::{boards_played, mend_boards, recount, write_career};
use super::text::{decode, encode};
use super::users::{SNAPSHOT, user_no};
use super::writer::{WriteError, Writing};
use super::{PostgresStore, place};
use crate::boards::{ALL_BOARDS, is_right};
use crate::derived::{
    ENDED_PLAYERS, Histories, MEND_COUNTS, MEND_ENDINGS, MEND_TOTALS, PLAYERS, Suspicion, WRONG_COUNTS, WRONG_ENDINGS,
    WRONG_TOTALS, Wrong, key_of, pause_after, users_in,
};
use crate::rows::Columns;
use crate::{CommitError, StoreError};

/// Set for statements that read whole tables.
pub(super) const WHOLE_TABLES: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on;
     SET LOCAL enable_mergejoin = on; SET LOCAL plan_cache_mode = auto";

impl PostgresStore {
    pub(crate) fn suspicion(&self) -> &Arc<Suspicion> {
        &self.mirror.suspicion
    }

    pub(crate) async fn check_derived(&self) -> Result<(), CommitError> {
        let found = self.find_wrong().await?;
        if !found.is_empty() {
            let wrong = found.clone();
            self.writer.write(move |writing| async move { mend(writing, wrong).await }.boxed()).await?;
            found.tell();
        }
        let last_user = self.list_users(0, 0).await?.total;
        for user in 1..=place(last_user) {
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

    /// Compares the derived tables with the sessions, in one snapshot.
    async fn find_wrong(&self) -> Result<Wrong, StoreError> {
        let mut connection = self.readers.connection().await?;
        let snapshot = connection.build_transaction().isolation_level(SNAPSHOT).read_only(true).start().await?;
        let client = snapshot.client();
        client.batch_execute(WHOLE_TABLES).await?;
        let mut histories = Histories::default();
        let none: [i64; 0] = [];
        {
            let rows = client.query_raw(PLAYERS, none).await?;
            let mut rows = pin!(rows);
            while let Some(row) = rows.try_next().await? {
                histories.add_session(row.integer(0)?, row.text(1)?);
            }
        }
        {
            let sql = "SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user_no";
            let rows = client.query_raw(sql, none).await?;
            let mut rows = pin!(rows);
            while let Some(row) = rows.try_next().await? {
                histories.add_row(&row.prose(0)?, row.integer(1)?, row.integer(2)?);
            }
        }
        let wrong = Wrong {
            counts: is_wrong(client, WRONG_COUNTS).await?,
            totals: is_wrong(client, WRONG_TOTALS).await?,
            endings: is_wrong(client, WRONG_ENDINGS).await?,
            boards: are_boards_wrong(client).await?,
            users: histories.wrong(),
        };
        snapshot.commit().await?;
        Ok(wrong.with_totals())
    }
}

async fn is_wrong(client: &Client, sql: &str) -> Result<bool, StoreError> {
    Ok(client.query_one(sql, &[]).await?.integer(0)? != 0)
}

async fn are_boards_wrong(client: &Client) -> Result<bool, StoreError> {
    let mut played = boards_played(client).await?;
    let stored = client.query(ALL_BOARDS, &[]).await?;
    Ok(!stored.iter().all(|row| is_right(row, &mut played)) || !played.is_empty())
}

/// Makes what is wrong again.
async fn mend(writing: &mut Writing, wrong: Wrong) -> Result<(), WriteError> {
    writing.client().batch_execute(WHOLE_TABLES).await?;
    let histories = if wrong.users.is_empty() { BTreeMap::new() } else { users_of(writing, &wrong).await? };
    let locked: Vec<String> = histories.keys().map(|user| encode(user).into_owned()).collect();
    writing.lock_users(&locked).await?;
    // Nobody commits from here on, so all statements see one state.
    writing.take_turn().await?;
    run(writing, wrong.counts, MEND_COUNTS).await?;
    run(writing, wrong.endings, MEND_ENDINGS).await?;
    if wrong.boards {
        mend_boards(writing.client()).await?;
    }
    if wrong.endings && writing.is_shared() {
        let next = "SELECT setval('ending_numbers', (SELECT coalesce(max(n), 0) + 1 FROM endings), false)";
        writing.client().batch_execute(next).await?;
    }
    if !histories.is_empty() {
        mend_histories(writing, histories).await?;
    }
    run(writing, wrong.totals, MEND_TOTALS).await?;
    writing.effects.recounted = true;
    writing.effects.mend = Some(wrong);
    writing.news.derived = true;
    Ok(())
}

async fn run(writing: &Writing, wanted: bool, steps: [&str; 2]) -> Result<(), WriteError> {
    for sql in steps.into_iter().filter(|_| wanted) {
        writing.client().execute(sql, &[]).await?;
    }
    Ok(())
}

/// The users whose histories are wrong, entered if they weren't known.
async fn users_of(writing: &mut Writing, wrong: &Wrong) -> Result<BTreeMap<String, Vec<i64>>, WriteError> {
    let mut users = BTreeMap::new();
    for row in writing.client().query("SELECT id FROM users", &[]).await? {
        let user = decode(row.text(0)?).into_owned();
        if wrong.users.contains(&key_of(&user)) {
            users.insert(user, Vec::new());
        }
    }
    let mut unknown = Vec::new();
    for row in writing.client().query(ENDED_PLAYERS, &[]).await? {
        let wanted = |user: &String| wrong.users.contains(&key_of(user)) && !users.contains_key(user);
        unknown.extend(users_in(row.text(1)?).into_iter().filter(wanted));
    }
    for user in unknown {
        if let Ok(id) = user.parse::<UserId>() {
            user_no(writing, &id).await?;
            users.insert(user, Vec::new());
        }
    }
    Ok(users)
}

async fn mend_histories(writing: &mut Writing, mut histories: BTreeMap<String, Vec<i64>>) -> Result<(), WriteError> {
    for row in writing.client().query(ENDED_PLAYERS, &[]).await? {
        for user in users_in(row.text(1)?) {
            if let Some(sessions) = histories.get_mut(&user) {
                sessions.push(row.integer(0)?);
            }
        }
    }
    for (user, sessions) in histories {
        let Ok(id) = user.parse::<UserId>() else { continue };
        let no = user_no(writing, &id).await?;
        let client = writing.client();
        client.execute("DELETE FROM careers WHERE user_no = $1", &[&no]).await?;
        let sql = "INSERT INTO careers (user_no, n, session)
             SELECT $1, p.n, p.session FROM unnest($2::int8[]) WITH ORDINALITY AS p (session, n)";
        client.execute(sql, &[&no, &sessions]).await?;
        let career = recount(client, &writing.scoring, no).await?;
        write_career(client, no, &career).await?;
        writing.news.users.insert(no);
    }
    Ok(())
}
