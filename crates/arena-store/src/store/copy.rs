//! Copies of a whole store into an empty one, between SQLite and Postgres in any direction.
//!
//! Rows are copied as they are, with the tables that are derived from others. Only the numbers that order the messages
//! of all sessions are new.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

use crate::errors::WriteError;
use crate::sql::{Columns, Dialect, INSERTED, Value, tuples};
use crate::tables::SQLITE;
use crate::writing::Writing;
use crate::{CommitError, DatabaseUrl, PostgresStore, SqliteStore, Store, StoreError};

/// The number of rows in one read and one commit, and the size of their texts at which a commit ends.
const ROWS: i64 = 1000;
const BYTES: usize = 4 * 1024 * 1024;

/// The row of `notes` that a store has while it is the target of a copy.
const COPYING: &str = "copying";

#[derive(Debug, Clone)]
pub enum StorePlace {
    Folder(PathBuf),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopiedRows {
    pub sessions: u64,
    pub users: u64,
    /// The number of messages, with inputs.
    pub messages: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} has no store to copy")]
    NoStore(String),
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
    let tables: Vec<Arc<CopiedTable>> = tables()?.into_iter().map(Arc::new).collect();
    for table in &tables {
        let sql =
            format!("SELECT count(*) FROM (SELECT 1 FROM {} {} LIMIT 1) rows", table.name, table.condition("WHERE"));
        if target.number(&sql, &[]).await? > 0 {
            return Err(CopyError::NotEmpty(to.to_string()));
        }
    }
    note(&target, "INSERT INTO notes (name, value) VALUES ($1, '1')").await?;
    let mut copied = CopiedRows::default();
    for table in &tables {
        if table.name == "messages" {
            copy_messages(&source, &target, table, |rows| {
                copied.messages += rows;
                progress(copied);
            })
            .await?;
            continue;
        }
        copy_table(&source, &target, table, |rows| {
            match table.name.as_str() {
                "sessions" => copied.sessions += rows,
                "users" => copied.users += rows,
                _ => return,
            }
            progress(copied);
        })
        .await?;
    }
    target.write(tables, |tables, writing| Box::pin(set_sequences(writing, tables))).await?;
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

/// The columns with texts from users.
const PROSE: &[(&str, &[&str])] = &[
    ("audit", &["address", "action"]),
    ("bans", &["subject", "reason"]),
    ("league_agents", &["name", "version", "path"]),
    ("league_games", &["winner"]),
    ("league_seats", &["detail"]),
    ("leagues", &["name"]),
    ("messages", &["sender", "recipient", "method", "content"]),
    ("reports", &["reason"]),
    ("strategy_rows", &["player"]),
    ("strategy_runs", &["error"]),
    ("users", &["id", "username", "model"]),
];

struct CopiedTable {
    name: String,
    columns: Vec<(String, Content)>,
    /// The columns of the primary key.
    key: Vec<usize>,
}

/// Returns all tables, as the migrations of SQLite create them. Postgres has the same columns, and further tables for
/// its nodes.
fn tables() -> Result<Vec<CopiedTable>, StoreError> {
    let database = rusqlite::Connection::open_in_memory()?;
    SQLITE.iter().try_for_each(|migration| database.execute_batch(migration))?;
    // Commits number the messages.
    let sql = "SELECT t.name, c.name, c.type, c.pk FROM sqlite_schema t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND NOT (t.name = 'messages' AND c.name = 'no')
        ORDER BY t.name, c.cid";
    let mut statement = database.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut tables: Vec<CopiedTable> = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, column, kind): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let place_in_key = row.get::<_, u32>(3)? as usize;
        let is_prose = PROSE.iter().any(|(table, columns)| *table == name && columns.contains(&column.as_str()));
        let content = match kind.as_str() {
            "INTEGER" | "BIGINT" => Content::Integer,
            "REAL" => Content::Real,
            "BLOB" => Content::Bytes,
            _ if is_prose => Content::Prose,
            _ => Content::Text,
        };
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(CopiedTable { name, columns: Vec::new(), key: Vec::new() });
        }
        let Some(table) = tables.last_mut() else { continue };
        if place_in_key > 0 {
            table.key.resize(table.key.len().max(place_in_key), 0);
            table.key[place_in_key - 1] = table.columns.len();
        }
        // `user` is a keyword in Postgres.
        table.columns.push((if column == "user" { "user_no".to_owned() } else { column }, content));
    }
    Ok(tables)
}

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
            Content::Integer => Cell::Integer(row.integer_or_null(column)?),
            Content::Real => Cell::Real(row.real(column)?),
            Content::Text => Cell::Text(row.text_or_null(column)?.map(str::to_owned)),
            Content::Prose => Cell::Prose(row.prose_or_null(column)?.map(Cow::into_owned)),
            Content::Bytes => Cell::Bytes(row.bytes(column)?.to_owned()),
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
    /// Returns the condition of the rows to copy, after a keyword.
    fn condition(&self, keyword: &str) -> String {
        match self.name.as_str() {
            "notes" => format!("{keyword} name IN ('scoring', 'log')"),
            _ => String::new(),
        }
    }

    fn names(&self, columns: impl IntoIterator<Item = usize>) -> String {
        let names: Vec<&str> = columns.into_iter().map(|at| self.columns[at].0.as_str()).collect();
        names.join(", ")
    }

    /// Returns the statement that reads all columns, without its end.
    fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.names(0..self.columns.len()), self.name)
    }

    async fn read(&self, source: &Store, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let read = |row: &dyn Columns| {
            self.columns.iter().enumerate().map(|(at, (_, content))| Cell::read(row, at, *content)).collect()
        };
        source.list(sql, values, read).await
    }
}

async fn copy_table(
    source: &Store,
    target: &Store,
    table: &Arc<CopiedTable>,
    mut progress: impl FnMut(u64),
) -> Result<(), CopyError> {
    let (select, keys) = (table.select(), table.names(table.key.iter().copied()));
    let mut last: Option<Row> = None;
    loop {
        let (condition, mut values) = match &last {
            None => (table.condition("WHERE"), Vec::new()),
            Some(last) => {
                let parameters: Vec<String> = (1..=table.key.len()).map(|n| format!("${n}")).collect();
                let condition = format!("WHERE ({keys}) > ({}) {}", parameters.join(", "), table.condition("AND"));
                (condition, table.key.iter().map(|at| last[*at].value()).collect())
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
async fn copy_messages(
    source: &Store,
    target: &Store,
    messages: &Arc<CopiedTable>,
    mut progress: impl FnMut(u64),
) -> Result<(), CopyError> {
    let index = messages.columns.iter().position(|(name, _)| name == "idx").unwrap_or_default();
    // The public channel counts as session 0 and has an order of its own.
    let (public, mut after) =
        (format!("{} WHERE session = 0 AND idx > $1 ORDER BY idx LIMIT $2", messages.select()), 0);
    loop {
        let rows = messages.read(source, &public, &[Value::from(after), ROWS.into()]).await?;
        let Some(Cell::Integer(Some(last))) = rows.last().map(|row| &row[index]) else { break };
        after = *last;
        progress(write_rows(target, messages, rows).await?);
    }
    let of_session = format!(
        "{} WHERE session = $1 ORDER BY coalesce(no, 0), at, channel, idx LIMIT $2 OFFSET $3",
        messages.select()
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
                let rows = messages.read(source, &of_session, &[session, limit, read].map(Value::from)).await?;
                let found = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                read += found;
                bytes += rows.iter().flatten().map(Cell::bytes).sum::<usize>();
                waiting.extend(rows);
                if bytes > BYTES || waiting.len() > ROWS as usize {
                    bytes = 0;
                    progress(write_rows(target, messages, std::mem::take(&mut waiting)).await?);
                }
                if found < limit {
                    break;
                }
            }
        }
    }
    progress(write_rows(target, messages, waiting).await?);
    Ok(())
}

/// Inserts rows in one commit, and returns their number.
async fn write_rows(target: &Store, table: &Arc<CopiedTable>, rows: Vec<Row>) -> Result<u64, CommitError> {
    let number = rows.len() as u64;
    let inserted = (Arc::clone(table), rows);
    target.write(inserted, |(table, rows), writing| Box::pin(insert_rows(writing, table, rows))).await?;
    Ok(number)
}

async fn insert_rows(writing: &mut Writing, table: &CopiedTable, rows: &[Row]) -> Result<(), WriteError> {
    let dialect = writing.db.dialect();
    // Postgres derives this column, and numbers the rows of some tables by itself.
    let is_written = |at: &usize| dialect == Dialect::Sqlite || table.columns[*at].0 != "made";
    let written: Vec<usize> = (0..table.columns.len()).filter(is_written).collect();
    let names = table.names(written.iter().copied());
    let overriding = if dialect == Dialect::Postgres { "OVERRIDING SYSTEM VALUE" } else { "" };
    for part in rows.chunks(INSERTED) {
        let tuples = tuples(part.len(), written.len());
        let sql = format!("INSERT INTO {} ({names}) {overriding} VALUES {tuples}", table.name);
        let values: Vec<Value<'_>> = part.iter().flat_map(|row| written.iter().map(|at| row[*at].value())).collect();
        writing.db.execute(&sql, &values).await?;
    }
    Ok(())
}

/// Lets Postgres number the next rows after the copied ones. An arena sets all other sequences when it starts.
async fn set_sequences(writing: &mut Writing, tables: &[Arc<CopiedTable>]) -> Result<(), WriteError> {
    if writing.db.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    for table in tables {
        let &[key] = table.key.as_slice() else { continue };
        let (name, column) = (&table.name, &table.columns[key].0);
        // The number of a table without such numbers is null.
        let sql = format!(
            "SELECT count(*) FROM (SELECT setval(pg_get_serial_sequence('{name}', '{column}'), coalesce(max({column}), 0) + 1, false) FROM {name}) numbered"
        );
        if table.columns[key].1 == Content::Integer {
            writing.db.number(&sql, &[]).await?;
        }
    }
    Ok(())
}
