//! Rows of the counts by scripted strategies, and the leaderboards that show them.

use std::collections::HashMap;

use arena_model::{Board, PlayerStandings, Scoring, Strategy, StrategyEntry, StrategyRow, StrategyRows, UserId};

use crate::StoreError;
use crate::errors::Failure;
use crate::mirror::{Move, Ranked};
use crate::sql::{Columns, Db, Value, count, table};
use crate::tables::{SCRIPTED, pass_over, to_json};
use crate::writing::Writing;

table! {
    StrategyTable "strategy_rows", row: (i64, &'r (String, String), &'r StrategyRow), 'r {
        Run "run" Integer Once => row.0;
        Board "board" Text Once => row.1.0.as_str();
        Player "player" Text Once => Value::prose(row.1.1.as_str());
        Games "games" Integer Updated => row.2.entry.as_ref().map(|entry| count(entry.games));
        Metrics "metrics" Text Updated => row.2.entry.as_ref().map(|entry| to_json(&entry.metrics));
        State "state" Text Updated => row.2.state.as_deref();
    }
}

impl StrategyTable {
    const REPLACE: &str = "ON CONFLICT (run, board, player)
         DO UPDATE SET games = excluded.games, metrics = excluded.metrics, state = excluded.state";
}

/// Reads a player's numbers.
pub(crate) fn read_entry(row: &dyn Columns, first: usize) -> Result<Option<StrategyEntry>, StoreError> {
    let Some(games) = row.integer_or_null(first)? else { return Ok(None) };
    let metrics = serde_json::from_str(row.text(first + 1)?);
    let metrics = metrics.map_err(|error| StoreError::damaged("the numbers of a strategy", error))?;
    Ok(Some(StrategyEntry { games: games.unsigned_abs(), metrics }))
}

/// Reads a player's numbers for leaderboards and profiles, which damaged ones don't stop. The count stops at them.
pub(crate) fn read_shown(row: &dyn Columns, first: usize) -> Result<Option<StrategyEntry>, StoreError> {
    Ok(pass_over(read_entry(row, first))?.flatten())
}

/// The rows of the strategy `$1` that leaderboards show.
pub(crate) const SHOWN: &str =
    "strategy_rows r JOIN strategy_runs n ON n.id = r.run AND n.strategy = $1 AND n.shown = 1";

/// Returns the standings of players on the board of a scripted strategy, by user number: of these users, or of all.
async fn list_scripted(
    db: &mut Db,
    strategy: &Strategy,
    board: &str,
    users: Option<&[i64]>,
) -> Result<HashMap<i64, PlayerStandings>, Failure> {
    let is_wanted = users.map_or_else(String::new, |_| format!("AND u.no {}", db.dialect().any("$3")));
    let sql = format!(
        "SELECT u.no, r.games, r.metrics FROM {SHOWN} JOIN users u ON u.id = r.player
         WHERE r.board = $2 AND r.games IS NOT NULL {is_wanted}"
    );
    let mut values = vec![strategy.name.into(), board.into()];
    values.extend(users.map(|users| Value::List(users.iter().map(|user| Value::from(*user)).collect())));
    let read = |row: &dyn Columns| {
        let user = row.integer(0)?;
        Ok((user, standings_of(strategy, board, read_shown(row, 1)?.as_ref())))
    };
    Ok(db.list(&sql, &values, read).await?.into_iter().collect())
}

/// Returns the standings of players on a board of a scripted strategy; none if the strategy is gone.
pub(crate) async fn list_ranked(
    db: &mut Db,
    ranked: &Ranked,
    scoring: &Scoring,
    users: Option<&[i64]>,
) -> Result<HashMap<i64, PlayerStandings>, Failure> {
    match &ranked.board {
        Board::Of { strategy, id, .. } => match scoring.find(strategy) {
            Some(strategy) => list_scripted(db, strategy, id.as_str(), users).await,
            None => Ok(HashMap::new()),
        },
        Board::Global(_) => Ok(HashMap::new()),
    }
}

fn standings_of(strategy: &Strategy, board: &str, entry: Option<&StrategyEntry>) -> PlayerStandings {
    let tally = entry.map(|entry| (strategy.name.to_owned(), strategy.tally(entry)));
    PlayerStandings::from([(board.to_owned(), tally.into_iter().collect())])
}

/// Marks the counts of all strategies as stale, because a game that may be counted was removed or changed.
pub(crate) async fn mark_stale(writing: &mut Writing) -> Result<(), Failure> {
    writing.db.execute("UPDATE strategy_runs SET stale = 1", &[]).await.map(drop)
}

/// Removes the rows of a deleted user, and the states about all, which may name the user. The games are counted again.
pub(crate) async fn forget_player(writing: &mut Writing, user: &UserId) -> Result<(), Failure> {
    // Counts are changed before their rows, as by a batch of games, so that nodes can't deadlock.
    mark_stale(writing).await?;
    writing.changed.insert(SCRIPTED);
    let sql = "DELETE FROM strategy_rows WHERE player IN ($1, '')";
    writing.db.execute(sql, &[Value::prose(user.as_str())]).await.map(drop)
}

/// Writes rows of a count, which replace stored ones of the same board and player.
pub(crate) async fn write_rows(db: &mut Db, run: i64, rows: &StrategyRows) -> Result<(), Failure> {
    let rows: Vec<_> = rows.iter().map(|(key, row)| (run, key, row)).collect();
    db.insert::<StrategyTable>(&rows, StrategyTable::REPLACE).await.map(drop)
}

/// Returns the moves on leaderboards in memory by which `rows` replace the stored ones.
pub(crate) async fn moves(
    db: &mut Db,
    scoring: &Scoring,
    strategy: &'static Strategy,
    rows: &StrategyRows,
    ranked: Vec<Ranked>,
) -> Result<Vec<(Ranked, Move)>, Failure> {
    let players = rows.keys().map(|(_, player)| Value::prose(player.as_str())).collect();
    let sql = format!("SELECT id, no FROM users WHERE id {}", db.dialect().any("$1"));
    let read = |row: &dyn Columns| Ok((row.prose(0)?.into_owned(), row.integer(1)?));
    let users: HashMap<String, i64> = db.list(&sql, &[Value::List(players)], read).await?.into_iter().collect();
    let numbers: Vec<i64> = users.values().copied().collect();
    let mut moves = Vec::new();
    for ranked in ranked {
        let Board::Of { id, .. } = &ranked.board else { continue };
        if !rows.keys().any(|(board, _)| board == id.as_str()) {
            continue;
        }
        let before = list_scripted(db, strategy, id.as_str(), Some(&numbers)).await?;
        for ((board, player), row) in rows {
            let Some(&user) = users.get(player).filter(|_| board == id.as_str()) else { continue };
            let after = standings_of(strategy, board, row.entry.as_ref());
            let from = before.get(&user).and_then(|standings| ranked.key(scoring, standings));
            moves.push((ranked.clone(), Move { user, from, to: ranked.key(scoring, &after) }));
        }
    }
    Ok(moves)
}
