//! The counts and leaderboards in memory, as other nodes of a shared database change them (docs/decisions/0024).

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{Scoring, Status};
use tokio::sync::{mpsc, oneshot};

use super::connection::Reach;
use super::marks_reader::{Asking, MarksReader};
use super::readers::PostgresReaders;
use crate::mirror::{Counts, Delta, Mirror, Ranked};
use crate::sql::{Columns, Value};
use crate::tables::{RECOUNTS, SCRIPTED, STANDINGS, read_career, users_in};
use crate::{DatabaseUrl, Marks, Nodes, SessionMark, StoreError};

/// The maximum number of endings whose players a node moves on its leaderboards. After more, it reads the boards again.
const MAX_FOLLOWED: i64 = 1_000;

/// The data of a node for reading the rows that other nodes have changed.
pub(super) struct Shared {
    pub(super) nodes: Arc<Nodes>,
    asking: mpsc::UnboundedSender<Asking>,
    reach: Reach,
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
    /// Starts the task that reads marks. This must be called within a Tokio runtime.
    pub(super) fn start(
        nodes: &Arc<Nodes>,
        holder: &str,
        database: &DatabaseUrl,
        reach: &Reach,
    ) -> Result<Shared, StoreError> {
        let (asking, asked) = mpsc::unbounded_channel();
        tokio::spawn(MarksReader::new(nodes, holder, database, reach)?.run(asked));
        Ok(Shared {
            nodes: Arc::clone(nodes),
            asking,
            reach: reach.clone(),
            counted: tokio::sync::Mutex::new(Counted { counts: -1, recounts: -1, losses: 0 }),
            ranked: tokio::sync::Mutex::new(RankedState { endings: 0, standings: -1, scripted: -1, losses: 0 }),
        })
    }

    /// Returns the state of these sessions at a time after the call. `known` has the caller's state of each.
    pub(super) async fn marks(&self, known: &[SessionMark]) -> Result<Arc<Marks>, StoreError> {
        let (reply, found) = oneshot::channel();
        // The task ends only with this store.
        self.asking.send((known.to_vec(), reply)).map_err(|_| StoreError::Closed)?;
        found.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Reads the counts that other nodes have changed.
    pub(super) async fn refresh_counts(&self, readers: &PostgresReaders, mirror: &Mirror) -> Result<(), StoreError> {
        let marks = self.marks(&[]).await?;
        let losses = self.reach.losses();
        let mut counted = self.counted.lock().await;
        let recounts = marks.change(RECOUNTS);
        let is_whole = counted.recounts < recounts || counted.losses != losses;
        let after = if is_whole { -1 } else { counted.counts };
        let sql = "SELECT block, type, status, n, changed FROM session_counts WHERE changed > $1";
        let rows = readers.query(sql, &[&after]).await?;
        let mut last = after;
        let mut counts = mirror.counts.write();
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
            mirror.suspicion.raise("a count of sessions");
        }
        *counted = Counted { counts: last, recounts, losses };
        Ok(())
    }

    /// Moves the players of other nodes' games on the leaderboards in memory.
    pub(super) async fn refresh_rankings(&self, readers: &PostgresReaders, mirror: &Mirror) -> Result<(), StoreError> {
        let marks = self.marks(&[]).await?;
        let losses = self.reach.losses();
        let mut known = self.ranked.lock().await;
        let (endings, standings, scripted) = (marks.endings, marks.change(STANDINGS), marks.change(SCRIPTED));
        if known.scripted < scripted {
            mirror.rankings.forget_scripted();
            known.scripted = scripted;
        }
        let ranked: Vec<Ranked> = mirror.rankings.in_use().into_iter().filter(|ranked| !ranked.is_scripted()).collect();
        if known.standings < standings || known.losses != losses || known.endings + MAX_FOLLOWED < endings {
            mirror.rankings.forget_all();
        } else if known.endings >= endings {
            return Ok(());
        } else if !ranked.is_empty() {
            let moves = read_moves(readers, &mirror.scoring(), known.endings, endings, &ranked).await?;
            mirror.rankings.place(&moves);
        }
        *known = RankedState { endings, standings, scripted, losses };
        Ok(())
    }
}

/// Reads the sort keys on these boards of the players of the endings from `after` to `last`.
async fn read_moves(
    readers: &PostgresReaders,
    scoring: &Scoring,
    after: i64,
    last: i64,
    ranked: &[Ranked],
) -> Result<Vec<(Ranked, i64, Option<f64>)>, StoreError> {
    let sql = "SELECT s.players FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 AND e.n <= $2";
    let read = |row: &dyn Columns| Ok(users_in(row.text(0)?));
    let players: BTreeSet<String> =
        readers.list(sql, &[after.into(), last.into()], read).await?.into_iter().flatten().collect();
    let sql = "SELECT u.no, c.session, c.standings FROM users u
         LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
    let players = Value::List(players.iter().map(|user| Value::prose(user.as_str())).collect());
    let read = |row: &dyn Columns| {
        let user = row.integer(0)?;
        Ok((user, read_career(user, row, 1)))
    };
    let careers = readers.list(sql, &[players], read).await?;
    let mut moves = Vec::new();
    for (user, career) in &careers {
        let key = |ranked: &Ranked| ranked.key(scoring, &career.standings);
        moves.extend(ranked.iter().map(|ranked| (ranked.clone(), *user, key(ranked))));
    }
    Ok(moves)
}
