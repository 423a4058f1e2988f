//! The boards with counted games, in the table `boards`.

use std::collections::BTreeMap;

use arena_model::BoardId;
use serde_json::Value as Json;

use crate::errors::Failure;
use crate::sql::{Columns, Db};
use crate::tables::{BoardRow, Boards, rated_text, read_rated};

/// Selects each combination of type, options and terms for which a game has counted, as stored in `sessions`.
const PLAYED_KINDS: &str = "SELECT DISTINCT type, options, rated, script FROM sessions
     WHERE ending = 'completed' AND (rated IS NULL OR rated <> '')";

const ALL_BOARDS: &str = "SELECT id, type, options, rated FROM boards";

/// The row has a session's columns type, options, rated and script. Returns `None` if a column is invalid.
fn row_of_kind(row: &dyn Columns) -> Option<(BoardId, BoardRow)> {
    let challenge = row.text(0).ok()?.to_owned();
    let options: Json = serde_json::from_str(row.text(1).ok()?).ok()?;
    let terms = read_rated(row.text_or_null(2).ok()?, row.text_or_null(3).ok()?).ok()??;
    let id = BoardId::of(&challenge, &options, &terms);
    Some((id, [challenge, options.to_string(), rated_text(Some(&terms))]))
}

async fn boards_played(db: &mut Db) -> Result<BTreeMap<BoardId, BoardRow>, Failure> {
    let boards = db.list(PLAYED_KINDS, &[], |row| Ok(row_of_kind(row))).await?;
    Ok(boards.into_iter().flatten().collect())
}

/// Returns true if the table `boards` lacks a board of the sessions, or contains an invalid row.
pub(crate) async fn are_wrong(db: &mut Db) -> Result<bool, Failure> {
    let mut played = boards_played(db).await?;
    let right = db.list(ALL_BOARDS, &[], |row| Ok(is_right(row, &mut played))).await?;
    Ok(right.contains(&false) || !played.is_empty())
}

/// Checks a row of [`ALL_BOARDS`] against `played`, the boards of the sessions, and removes the row's board from
/// `played`. A board without sessions is valid too, because its sessions may have been removed.
fn is_right(row: &dyn Columns, played: &mut BTreeMap<BoardId, BoardRow>) -> bool {
    let text = |column: usize| row.text(column).unwrap_or_default();
    let stored = [text(1), text(2), text(3)].map(str::to_owned);
    let Ok(id) = text(0).parse::<BoardId>() else { return false };
    match played.remove(&id) {
        Some(board) => board == stored,
        None => {
            let options = serde_json::from_str::<Json>(&stored[1]).ok();
            let terms = read_rated(Some(&stored[2]), None).ok().flatten();
            options.zip(terms).is_some_and(|(options, terms)| BoardId::of(&stored[0], &options, &terms) == id)
        }
    }
}

/// Replaces invalid rows with the boards of the sessions. Every valid row stays, because other nodes may have added
/// boards since the sessions were read.
pub(crate) async fn mend(db: &mut Db) -> Result<(), Failure> {
    let played = boards_played(db).await?;
    let mut missing = played.clone();
    let wrong = db.list(ALL_BOARDS, &[], |row| {
        Ok(if is_right(row, &mut missing) { None } else { Some(row.text(0).unwrap_or_default().to_owned()) })
    });
    for id in wrong.await?.into_iter().flatten() {
        db.execute("DELETE FROM boards WHERE id = $1", &[id.into()]).await?;
    }
    let rows: Vec<_> = played.iter().collect();
    db.insert::<Boards>(&rows, "ON CONFLICT DO NOTHING").await.map(drop)
}
