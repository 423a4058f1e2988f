//! The state of the rows that other nodes of a shared database may have changed. Callers that wait at the same time share
//! one query, which begins after all of them have come (docs/decisions/0024).

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arena_model::{SessionId, Status};
use parking_lot::Mutex;
use tokio_postgres::Row;

use super::connection::{NOW_MS, SERVER_START};
use super::{PostgresReaders, PostgresStore, Reach};
use crate::counts::{Counts, Delta};
use crate::db::parameters;
use crate::derived::users_in;
use crate::dialect::Dialect;
use crate::nodes::Nodes;
use crate::ranking::Ranked;
use crate::standings::read_career;
use crate::store::{last_message, read_id};
use crate::value::{Columns, Value};
use crate::{DatabaseUrl, SessionNo, StoreError};

/// The maximum number of endings whose players a node moves on its leaderboards. After more, it reads the boards again.
const MAX_FOLLOWED: i64 = 1_000;

/// The pause after a failed query. All callers that need its result wait for it.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A kind of rare changes, as named in the table `changes`.
pub(crate) const ADMINISTRATION: &str = "administration";
pub(crate) const PUBLIC: &str = "public";
pub(crate) const RECOUNTS: &str = "recounts";
pub(crate) const SCRIPTED: &str = "scripted";
pub(crate) const STANDINGS: &str = "standings";

/// A row of `numbers` that a transaction locks to number its rows in the order of commits.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const COUNTS: &str = "counts";
pub(crate) const ENDINGS: &str = "endings";
pub(crate) const REMOVED: &str = "removed";

/// The stored state of a session. All numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark {
    pub no: SessionNo,
    pub version: u64,
    /// The number of changes that leave the version: hidden messages, deleted users.
    pub edits: u64,
    pub chat_len: u64,
    pub operator_len: u64,
}

/// The state of rows at the time of one query. If the store isn't shared, it has no sessions, and its numbers are 0.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Those of the wanted sessions that exist.
    pub sessions: HashMap<SessionId, SessionMark>,
    pub public_len: u64,
    /// The number of the last ending.
    endings: i64,
    changes: HashMap<String, i64>,
}

impl Marks {
    /// Returns the number of hidden messages of the public channel.
    pub fn public_edits(&self) -> i64 {
        self.change(PUBLIC)
    }

    /// Returns a number that grows with each change of bans and benchmark models.
    pub fn administration(&self) -> i64 {
        self.change(ADMINISTRATION)
    }

    fn change(&self, kind: &str) -> i64 {
        self.changes.get(kind).copied().unwrap_or_default()
    }
}

/// The sessions of callers that wait for the same query, and its result.
#[derive(Default)]
struct Batch {
    wanted: Mutex<BTreeSet<SessionId>>,
    found: OnceLock<Result<Arc<Marks>, StoreError>>,
}

/// The data of a node for reading the rows that other nodes have changed.
pub(super) struct Shared {
    pub(super) nodes: Arc<Nodes>,
    /// The id of the group of nodes. A database with another id has been used without this node.
    holder: String,
    database: DatabaseUrl,
    reader: PostgresReaders,
    sql: String,
    /// A lock that is held during a query.
    turn: tokio::sync::Mutex<()>,
    /// The number of the last ending in the last query.
    last_ending: AtomicI64,
    /// The batch for callers that come now.
    gathering: Mutex<Arc<Batch>>,
    /// The state of the database that the counts and the leaderboards in memory show.
    counted: tokio::sync::Mutex<Counted>,
    ranked: tokio::sync::Mutex<RankedState>,
}

/// The numbers of the last read of counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counted {
    counts: i64,
    recounts: i64,
    losses: u64,
}

/// The numbers up to which leaderboards in memory follow the database.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RankedState {
    endings: i64,
    standings: i64,
    scripted: i64,
    losses: u64,
}

impl Shared {
    pub(super) fn new(nodes: Arc<Nodes>, holder: String, database: DatabaseUrl, reader: PostgresReaders) -> Shared {
        let len = |channel: i64, archived: &str| format!("split_part({}, ' ', 1)", last_message(channel, archived));
        let sql = format!(
            "SELECT (SELECT value FROM notes WHERE name = 'holder'), {NOW_MS}, {SERVER_START},
                 (SELECT idx FROM messages WHERE session = 0 AND channel = 2 ORDER BY idx DESC LIMIT 1),
                 (SELECT n FROM endings ORDER BY n DESC LIMIT 1),
                 (SELECT string_agg(kind || ' ' || n, ' ') FROM changes), f.*
             FROM (VALUES (1)) AS once LEFT JOIN
                 (SELECT s.id, s.no, s.version, s.edits, {}, {} FROM sessions s WHERE {}) f ON true",
            len(0, "chat"),
            len(1, "operator"),
            Dialect::Postgres.by_ids(),
        );
        Shared {
            nodes,
            holder,
            database,
            reader,
            sql,
            turn: tokio::sync::Mutex::default(),
            last_ending: AtomicI64::new(0),
            gathering: Mutex::default(),
            counted: tokio::sync::Mutex::new(Counted { counts: -1, recounts: -1, losses: 0 }),
            ranked: tokio::sync::Mutex::new(RankedState { endings: 0, standings: -1, scripted: -1, losses: 0 }),
        }
    }

    /// Returns the state of these sessions at a time after the call.
    pub(super) async fn marks(&self, sessions: &[SessionId], reach: &Reach) -> Result<Arc<Marks>, StoreError> {
        let batch = {
            let gathering = self.gathering.lock();
            gathering.wanted.lock().extend(sessions);
            Arc::clone(&gathering)
        };
        let _turn = self.turn.lock().await;
        if batch.found.get().is_none() {
            // Later callers need a later query.
            {
                let mut gathering = self.gathering.lock();
                if Arc::ptr_eq(&gathering, &batch) {
                    *gathering = Arc::default();
                }
            }
            let wanted: Vec<SessionId> = batch.wanted.lock().iter().copied().collect();
            let found = self.read(&wanted, reach).await;
            if found.is_err() {
                // A pause protects a database that is starting up from repeated queries.
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            // Nobody else can have set it, because of the turn.
            let _ = batch.found.set(found.map(Arc::new));
        }
        batch.found.get().cloned().unwrap_or(Err(StoreError::Unsure))
    }

    async fn read(&self, wanted: &[SessionId], reach: &Reach) -> Result<Marks, StoreError> {
        let ids: Vec<String> = wanted.iter().map(SessionId::to_string).collect();
        let ends = Value::List(ids.iter().map(|id| Value::from(&id[id.len() - 12..])).collect());
        let values = [ends, Value::List(ids.iter().map(|id| Value::from(id.as_str())).collect())];
        let sent = Instant::now();
        let rows = self.reader.query(&self.sql, &parameters(&values)).await?;
        let first = rows.first().ok_or_else(|| StoreError::Database("a query returned no row".to_owned()))?;
        self.nodes.clock.read(sent, Instant::now(), first.integer(1)?);
        if first.text_or_null(0)? != Some(&*self.holder) {
            let error = StoreError::Superseded { database: self.database.to_string() };
            *reach.ended.write() = Some(error.clone());
            return Err(error);
        }
        self.nodes.checks.fetch_add(1, Ordering::Relaxed);
        let is_new_server = self.nodes.is_new_server(first.text(2)?);
        let public_len = first.integer_or_null(3)?.unwrap_or_default().unsigned_abs();
        let endings = first.integer_or_null(4)?.unwrap_or_default();
        let mut marks = Marks { public_len, endings, ..Marks::default() };
        let mut words = first.text_or_null(5)?.unwrap_or_default().split(' ');
        while let (Some(kind), Some(n)) = (words.next(), words.next()) {
            let damaged = |error| StoreError::damaged("the table changes", error);
            marks.changes.insert(kind.to_owned(), n.parse().map_err(damaged)?);
        }
        // A backup that was restored under a running arena has fewer endings.
        let has_fewer = self.last_ending.swap(endings, Ordering::SeqCst) > endings;
        if is_new_server || has_fewer {
            reach.losses.fetch_add(1, Ordering::SeqCst);
        }
        for row in &rows {
            if row.text_or_null(6)?.is_some() {
                marks.sessions.insert(read_id(row, 6)?, read_mark(row)?);
            }
        }
        Ok(marks)
    }
}

fn read_mark(row: &Row) -> Result<SessionMark, StoreError> {
    let len = |column: usize| -> Result<u64, StoreError> {
        let damaged = |error| StoreError::damaged("the length of a channel", error);
        row.text_or_null(column)?.map_or(Ok(0), |len| len.parse().map_err(damaged))
    };
    Ok(SessionMark {
        no: SessionNo(row.integer(7)?),
        version: row.integer(8)?.unsigned_abs(),
        edits: row.integer(9)?.unsigned_abs(),
        chat_len: len(10)?,
        operator_len: len(11)?,
    })
}

impl PostgresStore {
    /// Reads the counts that other nodes have changed. Does nothing if the database isn't shared.
    pub(crate) async fn refresh_counts(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let marks = shared.marks(&[], &self.reach).await?;
        let losses = self.reach.losses.load(Ordering::SeqCst);
        let mut counted = shared.counted.lock().await;
        let recounts = marks.change(RECOUNTS);
        let is_whole = counted.recounts < recounts || counted.losses != losses;
        let after = if is_whole { -1 } else { counted.counts };
        let sql = "SELECT block, type, status, n, changed FROM session_counts WHERE changed > $1";
        let rows = self.readers.query(sql, &[&after]).await?;
        let mut last = after;
        let mut counts = self.mirror.counts.write();
        if is_whole {
            *counts = Counts::default();
        }
        let (mut delta, mut possible) = (Delta::default(), true);
        for row in &rows {
            let (block, challenge, n) = (row.integer(0)?, row.text(1)?, row.integer(3)?);
            last = last.max(row.integer(4)?);
            match Status::from_wire(row.text(2)?) {
                Some(status) => {
                    let change = n - counts.count(block, challenge, status);
                    delta.sessions.insert((block, challenge.to_owned(), status), change);
                }
                None => possible &= n == 0,
            }
        }
        possible &= counts.apply(&delta);
        drop(counts);
        if !possible {
            self.mirror.suspicion.raise("a count of sessions");
        }
        *counted = Counted { counts: last, recounts, losses };
        Ok(())
    }

    /// Moves the players of other nodes' games on the leaderboards in memory. Does nothing if the database isn't shared.
    pub(crate) async fn refresh_rankings(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let marks = shared.marks(&[], &self.reach).await?;
        let losses = self.reach.losses.load(Ordering::SeqCst);
        let mut known = shared.ranked.lock().await;
        let (endings, standings, scripted) = (marks.endings, marks.change(STANDINGS), marks.change(SCRIPTED));
        if known.scripted < scripted {
            self.mirror.rankings.forget_scripted();
            known.scripted = scripted;
        }
        let ranked: Vec<Ranked> =
            self.mirror.rankings.in_use().into_iter().filter(|ranked| !ranked.is_scripted()).collect();
        if known.standings < standings || known.losses != losses || known.endings + MAX_FOLLOWED < endings {
            self.mirror.rankings.forget_all();
        } else if known.endings >= endings {
            return Ok(());
        } else if !ranked.is_empty() {
            let moves = self.read_moves(known.endings, endings, &ranked).await?;
            self.mirror.rankings.place(&moves);
        }
        *known = RankedState { endings, standings, scripted, losses };
        Ok(())
    }

    /// Reads the sort keys of the players of these endings on these boards.
    async fn read_moves(
        &self,
        after: i64,
        last: i64,
        ranked: &[Ranked],
    ) -> Result<Vec<(Ranked, i64, Option<f64>)>, StoreError> {
        let sql = "SELECT s.players FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 AND e.n <= $2";
        let read = |row: &dyn Columns| Ok(users_in(row.text(0)?));
        let players: BTreeSet<String> =
            self.list(sql, &[after.into(), last.into()], read).await?.into_iter().flatten().collect();
        let sql = "SELECT u.no, c.session, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
        let players = Value::List(players.iter().map(|user| Value::prose(user.as_str())).collect());
        let read = |row: &dyn Columns| {
            let user = row.integer(0)?;
            Ok((user, read_career(user, row, 1)))
        };
        let careers = self.list(sql, &[players], read).await?;
        let mut moves = Vec::new();
        let scoring = self.mirror.scoring();
        for (user, career) in &careers {
            let key = |ranked: &Ranked| ranked.key(&scoring, &career.standings);
            moves.extend(ranked.iter().map(|ranked| (ranked.clone(), *user, key(ranked))));
        }
        Ok(moves)
    }
}
