//! Copies of a whole store into an empty one, between SQLite and Postgres in any direction.
//!
//! Rows are copied as they are, with the tables that are derived from others. Only the numbers that order the messages
//! of all sessions are new.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::PathBuf;

use crate::dialect::{Column, Dialect, INSERTED, Kind, Table, tuples};
use crate::job::{WriteError, Writing};
use crate::tables::Sessions;
use crate::value::{Columns, Value};
use crate::{CommitError, DatabaseUrl, PostgresStore, SqliteStore, Store, StoreError};

/// The number of rows in one read and one commit, and the size of their texts at which a commit ends.
const ROWS: i64 = 1000;
const BYTES: usize = 4 * 1024 * 1024;

/// The row of `notes` that a store has while it is the target of a copy.
const COPYING: &str = "copying";

/// The place of a store.
#[derive(Debug, Clone)]
pub enum StorePlace {
    /// A data folder.
    Folder(PathBuf),
    /// A Postgres database.
    Database(Box<DatabaseUrl>),
}

impl Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Folder(folder) => folder.display().fmt(f),
            StorePlace::Database(database) => database.fmt(f),
        }
    }
}

/// The rows that a copy has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopiedRows {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of users.
    pub users: u64,
    /// The number of messages, with inputs.
    pub messages: u64,
}

/// The reason why a store can't be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no store to copy.
    #[error("{0} has no store to copy")]
    NoStore(String),
    /// The target has data.
    #[error("{0} isn't empty; copy into a new folder or a new database")]
    NotEmpty(String),
}

impl From<CommitError> for CopyError {
    fn from(error: CommitError) -> CopyError {
        match error {
            CommitError::Unavailable(error) => CopyError::Store(error),
            CommitError::Conflict | CommitError::Answered(_) => {
                CopyError::Store(StoreError::Database("the target has rows of another program".to_owned()))
            }
        }
    }
}

/// Copies a store into an empty one. `progress` is called after each commit. No arena may use one of the stores. A copy
/// that doesn't finish leaves a target that no arena opens.
///
/// # Errors
/// If a store can't be opened, the target isn't empty, or reading or writing fails.
pub async fn copy_store(
    from: &StorePlace,
    to: &StorePlace,
    mut progress: impl FnMut(CopiedRows),
) -> Result<CopiedRows, CopyError> {
    if let StorePlace::Folder(folder) = from
        && !SqliteStore::is_in(folder)
    {
        return Err(CopyError::NoStore(from.to_string()));
    }
    let source = Store::open_as_counted(from).await?;
    let target = Store::open_as_counted(to).await?;
    for table in TABLES {
        let sql =
            format!("SELECT count(*) FROM (SELECT 1 FROM {} {} LIMIT 1) rows", table.name, table.condition("WHERE"));
        if target.number(&sql, &[]).await? > 0 {
            return Err(CopyError::NotEmpty(to.to_string()));
        }
    }
    note(&target, "INSERT INTO notes (name, value) VALUES ($1, '1')").await?;
    let mut copied = CopiedRows::default();
    for table in TABLES {
        copy_table(&source, &target, table, |rows| {
            match table.name {
                "sessions" => copied.sessions += rows,
                "users" => copied.users += rows,
                _ => return,
            }
            progress(copied);
        })
        .await?;
    }
    copy_messages(&source, &target, |rows| {
        copied.messages += rows;
        progress(copied);
    })
    .await?;
    target.write((), |(), writing| Box::pin(set_sequences(writing))).await?;
    note(&target, "DELETE FROM notes WHERE name = $1").await?;
    Ok(copied)
}

impl Store {
    /// Opens a store for exclusive use without a check of the scoring of the stored standings. This is for callers that
    /// neither end sessions nor read standings, and therefore have no scoring.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Store::connect`].
    pub async fn open_as_counted(place: &StorePlace) -> Result<Store, StoreError> {
        let store = match place {
            StorePlace::Folder(folder) => Store::Sqlite(SqliteStore::open_as_counted(folder)?),
            StorePlace::Database(database) => {
                Store::Postgres(Box::new(PostgresStore::connect_as_counted((**database).clone()).await?))
            }
        };
        store.check_whole(place.to_string()).await?;
        Ok(store)
    }

    /// Refuses a store that is the target of an unfinished copy.
    pub(crate) async fn check_whole(&self, place: String) -> Result<(), StoreError> {
        match self.number("SELECT count(*) FROM notes WHERE name = $1", &[COPYING.into()]).await? {
            0 => Ok(()),
            _ => Err(StoreError::Unfinished { place }),
        }
    }
}

async fn note(target: &Store, sql: &'static str) -> Result<(), CommitError> {
    target
        .write((), move |(), writing| {
            Box::pin(async move {
                writing.db.execute(sql, &[COPYING.into()]).await?;
                Ok(())
            })
        })
        .await
}

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Integer,
    Real,
    /// A text that this program creates.
    Text,
    /// A text from a user, which Postgres stores encoded.
    Prose,
    Bytes,
}

use Content::{Bytes, Integer, Prose, Real, Text};

/// A table to copy.
struct CopiedTable {
    name: &'static str,
    /// The number of columns at the beginning that are the primary key.
    key: usize,
    columns: &'static [(&'static str, Content)],
    /// The rows to copy; empty for all.
    only: &'static str,
    /// The column that Postgres numbers by itself, if there is one.
    numbered: Option<&'static str>,
}

const fn table(name: &'static str, key: usize, columns: &'static [(&'static str, Content)]) -> CopiedTable {
    CopiedTable { name, key, columns, only: "", numbered: None }
}

const TABLES: &[CopiedTable] = &[
    table("sessions", 1, &[]),
    table("invites", 2, &[("made", Text), ("code", Text), ("session", Integer)]),
    table("users", 1, &[("no", Integer), ("id", Prose), ("username", Prose), ("model", Prose), ("benchmark", Integer)]),
    table("careers", 2, &[("user_no", Integer), ("n", Integer), ("session", Integer), ("standings", Text)]),
    table("totals", 1, &[("name", Text), ("n", Integer)]),
    CopiedTable { only: "name IN ('scoring', 'log')", ..table("notes", 1, &[("name", Text), ("value", Text)]) },
    table("bans", 1, &[("subject", Prose), ("reason", Prose), ("at", Integer)]),
    table("audit", 1, &[("no", Integer), ("at", Integer), ("address", Prose), ("action", Prose), ("detail", Text)]),
    table("endings", 1, &[("n", Integer), ("session", Integer)]),
    table("boards", 1, &[("id", Text), ("type", Text), ("options", Text), ("rated", Text)]),
    table("session_counts", 3, &[("block", Integer), ("type", Text), ("status", Text), ("n", Integer)]),
    table("scripts", 1, &[("version", Text), ("source", Text)]),
    CopiedTable {
        numbered: Some("no"),
        ..table("answers", 1, &[("no", Integer), ("key", Bytes), ("request", Bytes), ("body", Text), ("at", Integer)])
    },
    table(
        "queue",
        1,
        &[
            ("ticket", Text),
            ("type", Text),
            ("network", Text),
            ("house_ms", Integer),
            ("at", Integer),
            ("seen_at", Integer),
        ],
    ),
    table("reports", 3, &[("channel", Text), ("idx", Integer), ("network", Text), ("reason", Prose), ("at", Integer)]),
    table(
        "archives",
        1,
        &[
            ("session", Integer),
            ("file", Text),
            ("at", Integer),
            ("chat_len", Integer),
            ("chat_at", Integer),
            ("operator_len", Integer),
            ("operator_at", Integer),
            ("sha256", Text),
        ],
    ),
    table("archive_files", 1, &[("file", Text), ("at", Integer)]),
    table("log_leaves", 1, &[("n", Integer), ("session", Text), ("kind", Text), ("data", Text), ("hash", Bytes)]),
    CopiedTable {
        numbered: Some("n"),
        ..table("removed_sessions", 1, &[("n", Integer), ("id", Text), ("at", Integer), ("reason", Text)])
    },
    CopiedTable {
        numbered: Some("no"),
        ..table(
            "leagues",
            1,
            &[
                ("no", Integer),
                ("name", Prose),
                ("game", Text),
                ("options", Text),
                ("seats", Integer),
                ("paired", Integer),
                ("step_ms", Integer),
                ("bank_ms", Integer),
                ("sandbox", Text),
                ("seed", Bytes),
                ("created_at", Integer),
            ],
        )
    },
    table(
        "league_seasons",
        2,
        &[
            ("league", Integer),
            ("number", Integer),
            ("began_at", Integer),
            ("ended_at", Integer),
            ("rules_version", Integer),
        ],
    ),
    CopiedTable {
        numbered: Some("no"),
        ..table(
            "league_agents",
            1,
            &[
                ("no", Integer),
                ("league", Integer),
                ("name", Prose),
                ("generation", Integer),
                ("version", Prose),
                ("path", Prose),
                ("dialect", Text),
                ("reach", Text),
                ("files", Text),
                ("sha256", Text),
                ("added_at", Integer),
                ("removed_at", Integer),
            ],
        )
    },
    CopiedTable {
        numbered: Some("no"),
        ..table(
            "league_games",
            1,
            &[
                ("no", Integer),
                ("league", Integer),
                ("number", Integer),
                ("season", Integer),
                ("meeting", Integer),
                ("leg", Integer),
                ("seed", Bytes),
                ("epochs", Integer),
                ("termination", Text),
                ("winner", Prose),
                ("ended_at", Integer),
                ("took_ms", Real),
            ],
        )
    },
    table(
        "league_seats",
        2,
        &[
            ("game", Integer),
            ("seat", Integer),
            ("agent", Integer),
            ("rank", Integer),
            ("score", Real),
            ("verdict", Text),
            ("detail", Prose),
            ("faults", Integer),
            ("waited_ms", Real),
            ("longest_step_ms", Real),
        ],
    ),
];

/// The messages of a session; the key is the place in a channel.
const MESSAGES: CopiedTable = table(
    "messages",
    3,
    &[
        ("session", Integer),
        ("channel", Integer),
        ("idx", Integer),
        ("at", Integer),
        ("sender", Prose),
        ("recipient", Prose),
        ("method", Prose),
        ("content", Prose),
        ("hidden", Text),
        ("commitment", Text),
    ],
);

/// A value of a row.
#[derive(Clone)]
enum Cell {
    Integer(Option<i64>),
    Real(f64),
    Text(Option<String>),
    Prose(Option<String>),
    Bytes(Vec<u8>),
}

impl Cell {
    fn read(row: &dyn Columns, column: usize, content: Content) -> Result<Cell, StoreError> {
        Ok(match content {
            Integer => Cell::Integer(row.integer_or_null(column)?),
            Real => Cell::Real(row.real(column)?),
            Text => Cell::Text(row.text_or_null(column)?.map(str::to_owned)),
            Prose => Cell::Prose(row.prose_or_null(column)?.map(Cow::into_owned)),
            Bytes => Cell::Bytes(row.bytes(column)?.to_owned()),
        })
    }

    fn value(&self) -> Value<'_> {
        match self {
            Cell::Integer(number) => Value::Integer(*number),
            Cell::Real(number) => Value::Real(*number),
            Cell::Text(text) => Value::Text(text.as_deref().map(Cow::Borrowed)),
            Cell::Prose(text) => Value::Prose(text.as_deref().map(Cow::Borrowed)),
            Cell::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Cell::Integer(_) | Cell::Real(_) => 8,
            Cell::Text(text) | Cell::Prose(text) => text.as_ref().map_or(0, String::len),
            Cell::Bytes(bytes) => bytes.len(),
        }
    }
}

type Row = Vec<Cell>;

impl CopiedTable {
    fn columns(&self) -> Vec<(&'static str, Content)> {
        // The table of sessions is described elsewhere.
        let of_session = |column: &Column| {
            let content = match column.kind {
                Kind::Integer | Kind::Small => Integer,
                Kind::Text => Text,
                Kind::Bytes => Bytes,
            };
            (column.name, content)
        };
        match self.columns {
            [] => Sessions::COLUMNS.iter().map(of_session).collect(),
            columns => columns.to_vec(),
        }
    }

    fn condition(&self, keyword: &str) -> String {
        if self.only.is_empty() { String::new() } else { format!("{keyword} {}", self.only) }
    }

    /// Returns the statement that reads all columns, without its end.
    fn select(&self) -> String {
        let names: Vec<&str> = self.columns().iter().map(|(name, _)| *name).collect();
        format!("SELECT {} FROM {}", names.join(", "), self.name)
    }

    async fn read(&self, source: &Store, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let columns = self.columns();
        let read = |row: &dyn Columns| {
            columns.iter().enumerate().map(|(at, (_, content))| Cell::read(row, at, *content)).collect()
        };
        source.list(sql, values, read).await
    }
}

async fn copy_table(
    source: &Store,
    target: &Store,
    table: &'static CopiedTable,
    mut progress: impl FnMut(u64),
) -> Result<(), CopyError> {
    let keys: Vec<&str> = table.columns().iter().take(table.key).map(|(name, _)| *name).collect();
    let (select, keys) = (table.select(), keys.join(", "));
    let mut last: Option<Row> = None;
    loop {
        let (condition, mut values) = match &last {
            None => (table.condition("WHERE"), Vec::new()),
            Some(last) => {
                let parameters: Vec<String> = (1..=table.key).map(|n| format!("${n}")).collect();
                let condition = format!("WHERE ({keys}) > ({}) {}", parameters.join(", "), table.condition("AND"));
                (condition, last[..table.key].iter().map(Cell::value).collect())
            }
        };
        values.push(ROWS.into());
        let sql = format!("{select} {condition} ORDER BY {keys} LIMIT ${}", values.len());
        let rows = table.read(source, &sql, &values).await?;
        let Some(row) = rows.last() else { return Ok(()) };
        last = Some(row.clone());
        progress(write_rows(target, table, rows).await?);
    }
}

/// Copies the messages of all sessions, each in the order of its commits.
async fn copy_messages(source: &Store, target: &Store, mut progress: impl FnMut(u64)) -> Result<(), CopyError> {
    // The public channel counts as session 0 and has an order of its own.
    let (public, mut after) =
        (format!("{} WHERE session = 0 AND idx > $1 ORDER BY idx LIMIT $2", MESSAGES.select()), 0);
    loop {
        let rows = MESSAGES.read(source, &public, &[Value::from(after), ROWS.into()]).await?;
        let Some(Cell::Integer(Some(last))) = rows.last().map(|row| &row[2]) else { break };
        after = *last;
        progress(write_rows(target, &MESSAGES, rows).await?);
    }
    let of_session = format!(
        "{} WHERE session = $1 ORDER BY coalesce(no, 0), at, channel, idx LIMIT $2 OFFSET $3",
        MESSAGES.select()
    );
    let (mut waiting, mut bytes, mut after) = (Vec::new(), 0, 0);
    loop {
        let sql = "SELECT no FROM sessions WHERE no > $1 ORDER BY no LIMIT $2";
        let sessions = source.list(sql, &[Value::from(after), ROWS.into()], |row| row.integer(0)).await?;
        let Some(last) = sessions.last() else { break };
        after = *last;
        for session in sessions {
            let mut read = 0;
            loop {
                // Each read sorts all messages of the session, so later reads double the number of messages.
                let limit = read.max(ROWS);
                let rows = MESSAGES.read(source, &of_session, &[session, limit, read].map(Value::from)).await?;
                let found = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                read += found;
                bytes += rows.iter().flatten().map(Cell::bytes).sum::<usize>();
                waiting.extend(rows);
                if bytes > BYTES || waiting.len() > ROWS as usize {
                    bytes = 0;
                    progress(write_rows(target, &MESSAGES, std::mem::take(&mut waiting)).await?);
                }
                if found < limit {
                    break;
                }
            }
        }
    }
    progress(write_rows(target, &MESSAGES, waiting).await?);
    Ok(())
}

/// Inserts rows in one commit, and returns their number.
async fn write_rows(target: &Store, table: &'static CopiedTable, rows: Vec<Row>) -> Result<u64, CommitError> {
    let number = rows.len() as u64;
    target.write(rows, move |rows, writing| Box::pin(insert_rows(writing, table, rows))).await?;
    Ok(number)
}

async fn insert_rows(writing: &mut Writing, table: &CopiedTable, rows: &[Row]) -> Result<(), WriteError> {
    let dialect = writing.db.dialect();
    let is_written = |name: &str| !(dialect == Dialect::Postgres && name == "made");
    let all = table.columns();
    let written: Vec<usize> = (0..all.len()).filter(|at| is_written(all[*at].0)).collect();
    let names: Vec<&str> = written.iter().map(|at| all[*at].0).collect();
    let overriding = match (dialect, table.numbered) {
        (Dialect::Postgres, Some(_)) => "OVERRIDING SYSTEM VALUE",
        _ => "",
    };
    for part in rows.chunks(INSERTED) {
        let tuples = tuples(part.len(), names.len());
        let sql = format!("INSERT INTO {} ({}) {overriding} VALUES {tuples}", table.name, names.join(", "));
        let values: Vec<Value<'_>> = part.iter().flat_map(|row| written.iter().map(|at| row[*at].value())).collect();
        writing.db.execute(&sql, &values).await?;
    }
    Ok(())
}

/// Lets Postgres number the next rows after the copied ones. An arena sets all other sequences when it starts.
async fn set_sequences(writing: &mut Writing) -> Result<(), WriteError> {
    if writing.db.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    for table in TABLES {
        let Some(column) = table.numbered else { continue };
        let name = table.name;
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{name}', '{column}'), coalesce(max({column}), 0) + 1, false) FROM {name}"
        );
        writing.db.number(&sql, &[]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tables::SQLITE;

    #[test]
    fn all_columns_are_copied() {
        let database = rusqlite::Connection::open_in_memory().expect("a database");
        SQLITE.iter().for_each(|migration| database.execute_batch(migration).expect("a migration"));
        let sql = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'";
        let mut statement = database.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
        let mut existing: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows.expect("rows") {
            let (table, column) = row.expect("a row");
            if (table.as_str(), column.as_str()) != ("messages", "no") {
                existing.entry(table).or_default().push(column);
            }
        }
        existing.values_mut().for_each(|columns| columns.sort());
        let mut copied: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for table in TABLES.iter().chain([&MESSAGES]) {
            let column = |(name, _): (&'static str, Content)| Dialect::Sqlite.column(name).to_owned();
            let mut columns: Vec<String> = table.columns().into_iter().map(column).collect();
            columns.sort();
            copied.insert(table.name.to_owned(), columns);
        }
        assert_eq!(copied, existing);
    }
}
