//! A pool of connections for reading.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::connection::configure;
use crate::StoreError;
use crate::sql::{Columns, Dialect, Value, each_of_sqlite};

/// The maximum number of idle connections kept for later readers. About that of readers at the highest load.
const IDLE_READERS: usize = 32;

/// A pool of connections for reading. Clones share the pool.
#[derive(Clone)]
pub(crate) struct SqliteReaders(Arc<Pool>);

struct Pool {
    idle: Mutex<Vec<Connection>>,
    file: PathBuf,
}

impl SqliteReaders {
    pub(super) fn of(file: PathBuf) -> SqliteReaders {
        SqliteReaders(Arc::new(Pool { idle: Mutex::new(Vec::new()), file }))
    }

    /// Returns the database file.
    pub(super) fn file(&self) -> &Path {
        &self.0.file
    }

    /// Runs a read on a connection of its own. Most reads are short (an index lookup and a page) and run on the
    /// calling thread; long reads belong on a thread for blocking work.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.take()?;
        let result = read(&connection);
        self.give_back(connection);
        result
    }

    pub(crate) fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut list = Vec::new();
        self.read(|connection| {
            Ok(each_of_sqlite(connection, &Dialect::Sqlite.sql(sql), values, &mut |row| {
                list.push(read(row)?);
                Ok(())
            })?)
        })?;
        Ok(list)
    }

    pub(super) fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.0.idle.lock().pop();
        idle.map_or_else(|| self.open(), Ok)
    }

    pub(super) fn give_back(&self, connection: Connection) {
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
    }

    fn open(&self) -> Result<Connection, StoreError> {
        // The connection needs no mutex: only one caller at a time uses it, after taking it from the list.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0.file, flags)?;
        configure(&connection)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }
}
