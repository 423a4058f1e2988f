//! Boards on which games have counted: a table that follows from the sessions.

use std::collections::BTreeMap;

use arena_model::{BoardId, BoardTerms, Session};
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::rows::{Columns, rated_text, read_rated};
use crate::{SqliteStore, StoreError};

/// A board and the games that count on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardFacts {
    /// Its identity.
    pub id: BoardId,
    /// The options of its games.
    pub options: Value,
    /// The rules and the prompt of its games.
    pub terms: BoardTerms,
}

/// A row of `boards`: type, options and terms as the columns hold them.
pub(crate) type BoardRow = [String; 3];

/// Kinds of games that count, each once, as the columns of sessions hold them.
pub(crate) const PLAYED_KINDS: &str = "SELECT DISTINCT type, options, rated, script FROM sessions
     WHERE ending = 'completed' AND (rated IS NULL OR rated <> '')";

/// All boards as stored.
pub(crate) const ALL_BOARDS: &str = "SELECT id, type, options, rated FROM boards";

/// The boards of one challenge type.
pub(crate) const BOARDS_OF: &str = "SELECT options, rated FROM boards WHERE type = ";

/// The row of the board that a session counts on.
pub(crate) fn row_of(session: &Session) -> Option<(BoardId, BoardRow)> {
    let facts = &*session.facts;
    let row = [facts.challenge.clone(), facts.options.to_string(), rated_text(facts.rated.as_ref())];
    Some((facts.board()?, row))
}

/// The row of the board of sessions with these columns: type, options, rated, script. None if they can't be read.
pub(crate) fn row_of_kind(row: &impl Columns) -> Option<(BoardId, BoardRow)> {
    let challenge = row.text(0).ok()?.to_owned();
    let options: Value = serde_json::from_str(row.text(1).ok()?).ok()?;
    let terms = read_rated(row.text_or_null(2).ok()?, row.text_or_null(3).ok()?).ok()??;
    let id = BoardId::of(&challenge, &options, &terms);
    Some((id, [challenge, options.to_string(), rated_text(Some(&terms))]))
}

/// A board of a challenge type from its options and terms. None if they can't be read.
pub(crate) fn read_board(challenge: &str, row: &impl Columns) -> Option<BoardFacts> {
    let options: Value = serde_json::from_str(row.text(0).ok()?).ok()?;
    let terms = read_rated(Some(row.text(1).ok()?), None).ok()??;
    Some(BoardFacts { id: BoardId::of(challenge, &options, &terms), options, terms })
}

impl SqliteStore {
    pub(crate) async fn list_boards(&self, challenge: &str) -> Result<Vec<BoardFacts>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&format!("{BOARDS_OF}?1"))?;
            let mut rows = statement.query([challenge])?;
            let mut boards = Vec::new();
            while let Some(row) = rows.next()? {
                boards.extend(read_board(challenge, row));
            }
            Ok(boards)
        })
    }
}

/// Enters a board if it isn't known.
pub(crate) fn enter(connection: &Connection, id: &BoardId, row: &BoardRow) -> Result<(), rusqlite::Error> {
    let [challenge, options, rated] = row;
    connection
        .prepare_cached("INSERT INTO boards (id, type, options, rated) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute(params![id.as_str(), challenge, options, rated])?;
    Ok(())
}

/// The boards that the sessions make.
pub(crate) fn boards_played(connection: &Connection) -> Result<BTreeMap<BoardId, BoardRow>, rusqlite::Error> {
    let mut statement = connection.prepare(PLAYED_KINDS)?;
    let mut rows = statement.query([])?;
    let mut boards = BTreeMap::new();
    while let Some(row) = rows.next()? {
        boards.extend(row_of_kind(row));
    }
    Ok(boards)
}

/// True if a board that the sessions make isn't stored as it is, or a row is stored that is no board.
pub(crate) fn are_wrong(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let mut played = boards_played(connection)?;
    let mut statement = connection.prepare(ALL_BOARDS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !is_right(row, &mut played) {
            return Ok(true);
        }
    }
    Ok(!played.is_empty())
}

/// Compares a stored row of [`ALL_BOARDS`] with the boards that are played, and takes it out of them. A board without games is right as
/// well: they may have been removed.
pub(crate) fn is_right(row: &impl Columns, played: &mut BTreeMap<BoardId, BoardRow>) -> bool {
    let text = |column: usize| row.text(column).unwrap_or_default();
    let stored = [text(1), text(2), text(3)].map(str::to_owned);
    let Ok(id) = text(0).parse::<BoardId>() else { return false };
    match played.remove(&id) {
        Some(board) => board == stored,
        None => {
            let options = serde_json::from_str::<Value>(&stored[1]).ok();
            let terms = read_rated(Some(&stored[2]), None).ok().flatten();
            options.zip(terms).is_some_and(|(options, terms)| BoardId::of(&stored[0], &options, &terms) == id)
        }
    }
}

/// Makes the table again.
pub(crate) fn mend(connection: &Connection) -> Result<(), rusqlite::Error> {
    let boards = boards_played(connection)?;
    connection.execute("DELETE FROM boards", [])?;
    for (id, row) in &boards {
        enter(connection, id, row)?;
    }
    Ok(())
}
