//! A database connection of either backend, for statements that both databases understand.

use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;

use deadpool_postgres::Object;
use futures_util::{FutureExt, TryStreamExt};
use rusqlite::params_from_iter;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::dialect::{Dialect, Table, insert};
use super::value::{Columns, Value};
use crate::StoreError;
use crate::errors::Failure;

/// A connection. Statements have the parameters `$1`, `$2` …. The first uses of the parameters must be in ascending
/// order, because SQLite numbers parameters by their first use. The column `user_no` is translated, see
/// [`Dialect::sql`].
pub(crate) enum Db {
    /// A connection to SQLite. SQLite blocks the thread instead of waiting asynchronously, so its futures are ready at
    /// the first poll: see [`at_once`].
    Sqlite(rusqlite::Connection),
    Postgres(Arc<Client>),
    Reader(PooledConnection),
}

/// With an open transaction. A connection that is dropped before its end doesn't return to the pool.
pub(crate) struct PooledConnection(pub(crate) Option<Object>);

impl Deref for PooledConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("the connection is returned only after its last use")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

/// Returns the result of a future that uses only SQLite.
///
/// # Panics
/// If the future isn't ready at the first poll.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("futures of SQLite are ready at the first poll")
}

pub(crate) fn parameters<'p>(values: &'p [Value<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

pub(crate) fn each_of_sqlite(
    connection: &rusqlite::Connection,
    sql: &str,
    values: &[Value<'_>],
    see: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        see(row)?;
    }
    Ok(())
}

impl Db {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Db::Sqlite(_) => Dialect::Sqlite,
            Db::Postgres(_) | Db::Reader(_) => Dialect::Postgres,
        }
    }

    /// Calls `see` with each row of a statement's result, as the rows arrive.
    pub(crate) async fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut see: impl FnMut(&dyn Columns) -> Result<(), StoreError> + Send,
    ) -> Result<(), Failure> {
        let client: &Client = match self {
            Db::Sqlite(connection) => {
                return each_of_sqlite(connection, &Dialect::Sqlite.sql(sql), values, &mut see);
            }
            Db::Postgres(client) => client,
            Db::Reader(client) => client,
        };
        let rows = client.query_raw(sql, parameters(values)).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            see(&row)?;
        }
        Ok(())
    }

    pub(crate) async fn list<T: Send>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, Failure> {
        let mut list = Vec::new();
        self.each(sql, values, |row| {
            list.push(read(row)?);
            Ok(())
        })
        .await?;
        Ok(list)
    }

    pub(crate) async fn find<T: Send>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, StoreError> + Send,
    ) -> Result<Option<T>, Failure> {
        Ok(self.list(sql, values, read).await?.into_iter().next())
    }

    /// Returns the number in the only row of a statement's result.
    pub(crate) async fn number(&mut self, sql: &str, values: &[Value<'_>]) -> Result<i64, Failure> {
        let found = self.find(sql, values, |row| row.integer(0)).await?;
        Ok(found.ok_or_else(|| StoreError::Database("a statement returned no row".to_owned()))?)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) async fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let client: &Client = match self {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(&Dialect::Sqlite.sql(sql))?;
                return Ok(statement.execute(params_from_iter(values))? as u64);
            }
            Db::Postgres(client) => client,
            Db::Reader(client) => client,
        };
        Ok(client.execute(sql, &parameters(values)).await?)
    }

    /// Inserts rows of a table: one at a time in SQLite, all at once in Postgres. Returns the number of rows that were
    /// inserted or replaced. `conflict` is the clause after the values.
    pub(crate) async fn insert<T: Table>(&mut self, rows: &[T::Row<'_>], conflict: &str) -> Result<u64, Failure> {
        if rows.is_empty() {
            return Ok(0);
        }
        let sql = insert::<T>(self.dialect(), conflict);
        if self.dialect() == Dialect::Postgres {
            let list = |column: usize| Value::List(rows.iter().map(|row| T::value(row, column)).collect());
            let lists: Vec<Value<'_>> = (0..T::COLUMNS.len()).map(list).collect();
            return self.execute(&sql, &lists).await;
        }
        let mut inserted = 0;
        for row in rows {
            let values: Vec<Value<'_>> = T::values(row).collect();
            inserted += self.execute(&sql, &values).await?;
        }
        Ok(inserted)
    }

    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        match self {
            Db::Sqlite(connection) => Ok(connection.execute_batch(&Dialect::Sqlite.sql(sql))?),
            Db::Postgres(client) => Ok(client.batch_execute(sql).await?),
            Db::Reader(client) => Ok(client.batch_execute(sql).await?),
        }
    }

    /// Only Postgres needs other settings for statements that read whole tables.
    pub(crate) async fn read_whole_tables(&mut self) -> Result<(), Failure> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.batch(WHOLE_TABLES).await,
        }
    }
}

const WHOLE_TABLES: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on;
     SET LOCAL enable_mergejoin = on; SET LOCAL plan_cache_mode = auto";
