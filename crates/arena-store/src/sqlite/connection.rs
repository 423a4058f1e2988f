//! Connections to the database file: their settings, and the migrations.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::StoreError;
use crate::tables::SQLITE;

/// The time to wait for another program that uses the database.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn open_writable(file: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(file)?;
    configure(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -32 * 1024)?;
    Ok(connection)
}

pub(super) fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    // The query planner must ignore bound values. If it used them, SQLite would compile a statement for each binding,
    // which costs more than its execution (docs/decisions/0010).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Returns the number of migrations that were applied to a database.
fn read_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = read_version(connection)?;
    let known = SQLITE.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    // New indexes of large tables are sorted in files rather than in memory.
    connection.pragma_update(None, "temp_store", "FILE")?;
    for (done, migration) in SQLITE.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", done as i64 + 1)?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}
