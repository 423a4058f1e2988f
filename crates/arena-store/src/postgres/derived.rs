//! Derived tables in Postgres: compared with the sessions and made again, as `crate::derived` describes.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use arena_model::{BoardId, UserId};
use futures_util::{FutureExt, TryStreamExt};
use tokio_postgres::{Client, Error, Row};

use super::standings::{boards_played, recount, write_career};
use super::text::encode;
use super::users::{SNAPSHOT, user_no};
use super::writer::{WriteError, Writing};
use super::{PostgresStore, place};
use crate::boards::{ALL_BOARDS, BoardRow, is_right};
use crate::derived::{
    ADD_ENDINGS, CLEAR_ENDINGS, ENDED_PLAYERS, ENDED_SINCE, Histories, LAST_ENDING, Mend, PLAYERS, Piece, Suspicion,
    USERS_AT_ONCE, WRONG_ENDINGS, Wrong, key_of, pause_after, users_in,
};
use crate::rows::Columns;
use crate::{CommitError, StoreError};

/// The number of counts that aren't the number of sessions of their block, type and status.
const WRONG_COUNTS: &str = "SELECT count(*) FROM (SELECT block FROM (
         SELECT block, type, status, n FROM session_counts
         UNION ALL SELECT no / 256, type, status, -1 FROM sessions WHERE status IN ('open', 'active', 'ended')) both_sides
     GROUP BY block, type, status HAVING sum(n) <> 0) wrong";

/// Makes the counts again.
const MEND_COUNTS: [&str; 2] = [
    "DELETE FROM session_counts",
    "INSERT INTO session_counts (block, type, status, n)
         SELECT no / 256, type, status, count(*) FROM sessions WHERE status IN ('open', 'active', 'ended') GROUP BY 1, 2, 3",
];

/// The number of totals that aren't what endings and histories make them.
const WRONG_TOTALS: &str = "SELECT count(*) FROM (SELECT name FROM (
         SELECT name, n FROM totals
         UNION ALL SELECT 'games:' || s.type, -1 FROM endings e JOIN sessions s ON s.no = e.session WHERE s.ending = 'completed'
         UNION ALL SELECT 'participants', -1 FROM careers WHERE n = 1) both_sides
     GROUP BY name HAVING sum(n) <> 0) wrong";

/// Makes the totals again.
const MEND_TOTALS: [&str; 2] = [
    "DELETE FROM totals",
    "INSERT INTO totals (name, n)
         SELECT 'games:' || s.type, count(*) FROM endings e JOIN sessions s ON s.no = e.session
         WHERE s.ending = 'completed' GROUP BY s.type
         UNION ALL SELECT 'participants', count(*) FROM careers WHERE n = 1",
];

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
            for mend in found.first() {
                self.mend(mend).await?;
            }
            let names = self.find_names(&found.users).await?;
            for users in names.chunks(USERS_AT_ONCE) {
                for piece in self.read_histories(users).await?.split() {
                    self.mend(Mend::Histories(Arc::new(piece))).await?;
                }
            }
            if found.totals {
                self.mend(Mend::Totals).await?;
            }
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
        each_row(client, PLAYERS, |row| {
            histories.add_session(row.integer(0)?, row.text(1)?);
            Ok(())
        })
        .await?;
        let sql = "SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user_no";
        each_row(client, sql, |row| {
            histories.add_row(&row.prose(0)?, row.integer(1)?, row.integer(2)?);
            Ok(())
        })
        .await?;
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

    async fn mend(&self, step: Mend) -> Result<(), CommitError> {
        self.writer.write(move |writing| async move { mend(writing, step).await }.boxed()).await
    }

    /// The ids of these users, by [`key_of`], in no order.
    async fn find_names(&self, users: &HashSet<u64>) -> Result<Vec<String>, StoreError> {
        let mut names = HashSet::new();
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.readers.connection().await?;
        let snapshot = connection.build_transaction().isolation_level(SNAPSHOT).read_only(true).start().await?;
        let client = snapshot.client();
        client.batch_execute(WHOLE_TABLES).await?;
        each_row(client, "SELECT id FROM users", |row| {
            names.extend(Some(row.prose(0)?.into_owned()).filter(|user| users.contains(&key_of(user))));
            Ok(())
        })
        .await?;
        // The others aren't known as users yet.
        if names.len() < users.len() {
            each_row(client, PLAYERS, |row| {
                names.extend(users_in(row.text(1)?).into_iter().filter(|user| users.contains(&key_of(user))));
                Ok(())
            })
            .await?;
        }
        snapshot.commit().await?;
        Ok(names.into_iter().collect())
    }

    /// The histories of these users, from the sessions.
    async fn read_histories(&self, users: &[String]) -> Result<Piece, StoreError> {
        let mut connection = self.readers.connection().await?;
        let snapshot = connection.build_transaction().isolation_level(SNAPSHOT).read_only(true).start().await?;
        let client = snapshot.client();
        client.batch_execute(WHOLE_TABLES).await?;
        let mut piece = Piece::of(users);
        piece.last = client.query_one(LAST_ENDING, &[]).await?.integer(0)?;
        each_row(client, ENDED_PLAYERS, |row| {
            piece.add(row.integer(0)?, row.text(1)?);
            Ok(())
        })
        .await?;
        snapshot.commit().await?;
        Ok(piece)
    }
}

/// Hands over the rows that a statement finds as they come.
async fn each_row(
    client: &Client,
    sql: &str,
    mut see: impl FnMut(&Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let none: [i64; 0] = [];
    let rows = client.query_raw(sql, none).await?;
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await? {
        see(&row)?;
    }
    Ok(())
}

async fn is_wrong(client: &Client, sql: &str) -> Result<bool, StoreError> {
    Ok(client.query_one(sql, &[]).await?.integer(0)? != 0)
}

async fn are_boards_wrong(client: &Client) -> Result<bool, StoreError> {
    let mut played = boards_played(client).await?;
    let stored = client.query(ALL_BOARDS, &[]).await?;
    Ok(!stored.iter().all(|row| is_right(row, &mut played)) || !played.is_empty())
}

/// Makes a table again. Whole tables are read behind the turn, behind which nobody commits, so that all statements see one state; the
/// histories of some users are made behind locks on these users alone.
async fn mend(writing: &mut Writing, mend: Mend) -> Result<(), WriteError> {
    match &mend {
        Mend::Counts => {
            run(writing, MEND_COUNTS).await?;
            writing.news.derived = true;
        }
        Mend::Endings => mend_endings(writing).await?,
        Mend::Boards => {
            writing.client().batch_execute(WHOLE_TABLES).await?;
            let played = boards_played(writing.client()).await?;
            writing.take_turn().await?;
            return Ok(write_boards(writing.client(), &played).await?);
        }
        Mend::Histories(piece) => return mend_histories(writing, piece).await,
        Mend::Totals => return run(writing, MEND_TOTALS).await,
    }
    writing.effects.mend = Some(mend);
    Ok(())
}

async fn run(writing: &Writing, steps: [&str; 2]) -> Result<(), WriteError> {
    writing.client().batch_execute(WHOLE_TABLES).await?;
    writing.take_turn().await?;
    for sql in steps {
        writing.client().execute(sql, &[]).await?;
    }
    Ok(())
}

async fn mend_endings(writing: &Writing) -> Result<(), WriteError> {
    let client = writing.client();
    client.batch_execute(WHOLE_TABLES).await?;
    writing.take_turn().await?;
    client.execute(CLEAR_ENDINGS, &[]).await?;
    // Behind each number that was ever given, though its row is gone.
    let mut last = client.query_one(LAST_ENDING, &[]).await?.integer(0)?.max(writing.numbers.ending);
    if writing.is_shared() {
        last = last.max(client.query_one("SELECT last_value FROM ending_numbers", &[]).await?.integer(0)?);
    }
    let added = client.execute(ADD_ENDINGS, &[&last]).await?;
    if writing.is_shared() {
        let next = last.saturating_add_unsigned(added).saturating_add(1);
        client.execute("SELECT setval('ending_numbers', $1, false)", &[&next]).await?;
    }
    Ok(())
}

/// Puts the boards that are played in the place of the rows that are wrong. Others may have entered boards since those were read: a row that is right
/// by itself stays.
async fn write_boards(client: &Client, played: &BTreeMap<BoardId, BoardRow>) -> Result<(), Error> {
    let mut missing = played.clone();
    for row in client.query(ALL_BOARDS, &[]).await? {
        if !is_right(&row, &mut missing) {
            let id: String = row.try_get(0)?;
            client.execute("DELETE FROM boards WHERE id = $1", &[&id]).await?;
        }
    }
    for (id, [challenge, options, rated]) in played {
        let sql = "INSERT INTO boards (id, type, options, rated) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        client.execute(sql, &[&id.as_str(), challenge, options, rated]).await?;
    }
    Ok(())
}

/// Makes the histories of some users again. Nobody ends a session of theirs between the locks and the commit, so that the endings behind those
/// that were read are all there are.
async fn mend_histories(writing: &mut Writing, piece: &Piece) -> Result<(), WriteError> {
    let mut users = Vec::new();
    for user in piece.histories.keys() {
        if let Ok(id) = user.parse::<UserId>() {
            users.push((user.clone(), user_no(writing, &id).await?));
        }
    }
    let locked: Vec<String> = users.iter().map(|(user, _)| encode(user).into_owned()).collect();
    writing.lock_users(&locked).await?;
    let names: Vec<String> = piece.histories.keys().cloned().collect();
    let mut since = Piece::of(&names);
    for row in writing.client().query(ENDED_SINCE, &[&piece.last]).await? {
        since.add(row.integer(0)?, row.text(1)?);
    }
    for (user, no) in users {
        let mut sessions = piece.histories.get(&user).cloned().unwrap_or_default();
        sessions.extend(since.histories.get(&user).into_iter().flatten());
        let client = writing.client();
        client.execute("DELETE FROM careers WHERE user_no = $1", &[&no]).await?;
        // One that has been removed since has no place any more.
        let sql = "INSERT INTO careers (user_no, n, session)
             SELECT $1, row_number() OVER (ORDER BY e.n), e.session FROM endings e WHERE e.session = ANY($2)";
        client.execute(sql, &[&no, &sessions]).await?;
        let career = recount(client, &writing.scoring, no).await?;
        write_career(client, no, &career).await?;
        writing.news.users.insert(no);
    }
    writing.effects.recounted = true;
    Ok(())
}
