//! Counts of games by scripted strategies. A count's rows and its place among the endings change in one transaction, so
//! each game counts once. A changed script gets a new count; leaderboards show the old one until the new one has all
//! games.

use std::collections::BTreeSet;

use arena_model::{PlayerStandings, StrategyRow, StrategyRows, UserId};

use crate::derived::strategies::{SHOWN, moves, read_entry, read_shown, write_rows};
use crate::sql::{Columns, Value};
use crate::tables::SCRIPTED;
use crate::{CommitError, EndingNo, Store, StoreError};

/// The number of rows of an old count that one transaction removes.
const REMOVED_AT_ONCE: i64 = 2000;

/// A count of all ended games by one version of a strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyRun {
    pub id: i64,
    /// The hash of the script.
    pub version: String,
    /// The position of the last counted game.
    pub place: EndingNo,
    /// True if leaderboards show this count.
    pub is_shown: bool,
    /// True if the games must be counted again.
    pub is_stale: bool,
    /// The reason why the next game can't be counted.
    pub error: Option<String>,
}

/// A step of a count.
#[derive(Debug, Clone)]
pub struct RunStep {
    /// The changed rows.
    pub rows: StrategyRows,
    /// The position of the last counted game.
    pub place: EndingNo,
    /// The reason why the next game can't be counted.
    pub error: Option<String>,
    /// True if the count has all games, so that leaderboards show it from now on.
    pub is_whole: bool,
}

/// The state of a strategy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StrategyState {
    /// The counts, oldest first.
    pub runs: Vec<StrategyRun>,
    /// The position of the last ended session.
    pub last: EndingNo,
}

impl StrategyState {
    /// Returns the newest count.
    pub fn newest(&self) -> Option<&StrategyRun> {
        self.runs.last()
    }

    /// Returns the reason why the newest count can't process the next game.
    pub fn error(&self) -> Option<&str> {
        self.newest().filter(|run| !run.is_stale)?.error.as_deref()
    }

    /// Returns the number of endings that the newest count hasn't processed.
    pub fn behind(&self) -> u64 {
        let place = self.newest().map_or(0, |run| run.place.0);
        self.last.0.saturating_sub(place).unsigned_abs()
    }

    /// Returns the percentage of endings that a new count has processed; `None` if leaderboards show the newest count.
    pub fn percent(&self) -> Option<u64> {
        let run = self.newest().filter(|run| !run.is_shown || run.is_stale)?;
        let place = if run.is_stale { 0 } else { run.place.0.max(0).unsigned_abs() };
        Some(place * 100 / self.last.0.max(1).unsigned_abs())
    }
}

impl Store {
    /// Returns the counts of a strategy, and the position of the last ending.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_strategy(&self, strategy: &str) -> Result<StrategyState, StoreError> {
        let sql = "SELECT id, version, place, shown, stale, error FROM strategy_runs WHERE strategy = $1 ORDER BY id";
        let read = |row: &dyn Columns| {
            Ok(StrategyRun {
                id: row.integer(0)?,
                version: row.text(1)?.to_owned(),
                place: EndingNo(row.integer(2)?),
                is_shown: row.integer(3)? != 0,
                is_stale: row.integer(4)? != 0,
                error: row.prose_or_null(5)?.map(|error| error.into_owned()),
            })
        };
        let runs = self.list(sql, &[strategy.into()], read).await?;
        let last = EndingNo(self.number("SELECT coalesce(max(n), 0) FROM endings", &[]).await?);
        Ok(StrategyState { runs, last })
    }

    /// Begins a count without games.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn begin_run(&self, strategy: &str, version: &str) -> Result<(), CommitError> {
        self.write((strategy.to_owned(), version.to_owned()), |(strategy, version), writing| {
            Box::pin(async move {
                let sql = "INSERT INTO strategy_runs (id, strategy, version, place, shown, stale)
                     SELECT coalesce(max(id), 0) + 1, $1, $2, 0, 0, 0 FROM strategy_runs";
                Ok(writing.db.execute(sql, &[strategy.as_str().into(), version.as_str().into()]).await.map(drop)?)
            })
        })
        .await
    }

    /// Returns the stored rows of a count with these keys.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_rows(&self, run: i64, keys: &BTreeSet<(String, String)>) -> Result<StrategyRows, StoreError> {
        let dialect = self.dialect();
        let sql = format!(
            "SELECT board, player, games, metrics, state FROM strategy_rows
             WHERE run = $1 AND board {} AND player {}",
            dialect.any("$2"),
            dialect.any("$3")
        );
        let boards: BTreeSet<&str> = keys.iter().map(|(board, _)| board.as_str()).collect();
        let players: BTreeSet<&str> = keys.iter().map(|(_, player)| player.as_str()).collect();
        let boards = Value::List(boards.into_iter().map(Value::from).collect());
        let players = Value::List(players.into_iter().map(Value::prose).collect());
        let read = |row: &dyn Columns| {
            let key = (row.text(0)?.to_owned(), row.prose(1)?.into_owned());
            let state = row.text_or_null(4)?.map(str::to_owned);
            Ok((key, StrategyRow { entry: read_entry(row, 2)?, state }))
        };
        Ok(self.list(&sql, &[run.into(), boards, players], read).await?.into_iter().collect())
    }

    /// Stores a step of a count, in one transaction.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the count isn't as in `run`: another node has changed it, or a game was removed. Also
    /// if the store can't write.
    pub async fn advance_run(&self, strategy: &str, run: StrategyRun, step: RunStep) -> Result<(), CommitError> {
        let mirror = self.mirror().clone();
        let context = (strategy.to_owned(), run, step);
        self.write(context, move |(strategy, run, step), writing| {
            let mirror = mirror.clone();
            Box::pin(async move {
                let sql = "UPDATE strategy_runs SET place = $1, error = $2 WHERE id = $3 AND place = $4 AND stale = 0";
                let error = Value::Prose(step.error.as_deref().map(Into::into));
                let values = [step.place.0.into(), error, run.id.into(), run.place.0.into()];
                if writing.db.execute(sql, &values).await? == 0 {
                    return Err(CommitError::Conflict.into());
                }
                // In a shared database, readers load the leaderboards again.
                let mut ranked = if writing.is_shared() { Vec::new() } else { mirror.rankings.in_use() };
                ranked.retain(|ranked| run.is_shown && ranked.is_of(strategy));
                let scoring = mirror.scoring();
                if let (Some(strategy), false) = (scoring.find(strategy), ranked.is_empty() || step.rows.is_empty()) {
                    let moves = moves(&mut writing.db, &scoring, strategy, &step.rows, ranked).await?;
                    writing.effects.moves.extend(moves);
                }
                write_rows(&mut writing.db, run.id, &step.rows).await?;
                if step.is_whole && !run.is_shown {
                    let sql =
                        "UPDATE strategy_runs SET shown = CASE WHEN id = $1 THEN 1 ELSE 0 END WHERE strategy = $2";
                    writing.db.execute(sql, &[run.id.into(), strategy.as_str().into()]).await?;
                    writing.effects.recounted = true;
                }
                if run.is_shown || step.is_whole {
                    writing.changed.insert(SCRIPTED);
                }
                Ok(())
            })
        })
        .await
    }

    /// Removes a part of the rows of an old count, or the count without rows. Returns true if rows may be left.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn remove_run(&self, run: i64) -> Result<bool, CommitError> {
        self.write((), move |(), writing| {
            Box::pin(async move {
                let sql = "DELETE FROM strategy_rows WHERE run = $1 AND (board, player) IN
                     (SELECT board, player FROM strategy_rows WHERE run = $1 LIMIT $2)";
                let removed = writing.db.execute(sql, &[run.into(), REMOVED_AT_ONCE.into()]).await?;
                if removed == 0 {
                    writing.db.execute("DELETE FROM strategy_runs WHERE id = $1", &[run.into()]).await?;
                }
                Ok(removed > 0)
            })
        })
        .await
    }

    /// Marks the counts of a strategy as stale, so that its games are counted again.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn restart_strategy(&self, strategy: &str) -> Result<(), CommitError> {
        self.write(strategy.to_owned(), |strategy, writing| {
            Box::pin(async move {
                let sql = "UPDATE strategy_runs SET stale = 1 WHERE strategy = $1";
                Ok(writing.db.execute(sql, &[strategy.as_str().into()]).await.map(drop)?)
            })
        })
        .await
    }

    /// Adds a user's numbers by scripted strategies to the user's standings.
    pub(crate) async fn add_scripted(&self, user: &UserId, standings: &mut PlayerStandings) -> Result<(), StoreError> {
        for scripted in self.scoring().scripted() {
            let strategy = scripted.strategy;
            let sql = format!("SELECT r.board, r.games, r.metrics FROM {SHOWN} WHERE r.player = $2");
            let read = |row: &dyn Columns| Ok((row.text(0)?.to_owned(), read_shown(row, 1)?));
            for (board, entry) in self.list(&sql, &[strategy.name.into(), Value::prose(user.as_str())], read).await? {
                let Some(entry) = entry else { continue };
                standings.entry(board).or_default().insert(strategy.name.to_owned(), strategy.tally(&entry));
            }
        }
        Ok(())
    }
}
