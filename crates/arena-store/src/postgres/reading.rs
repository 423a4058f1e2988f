//! Connections to read with: a pool of a few, each with the statements that it has prepared.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType};
use parking_lot::RwLock;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::{ANSWER_WITHIN, READING, failed, silent, unreachable};
use super::text::decode;
use super::url::DatabaseUrl;
use crate::StoreError;
use crate::rows::Columns;

/// Most connections that read at a time. One reads thousands of times a second, so these are for long reads beside short ones.
const CONNECTIONS: usize = 16;

/// How long a reader waits for one of them.
const WAIT: Duration = Duration::from_secs(5);

/// How long an answer may take until the connection counts as lost: longer than the database lets a statement run.
const PATIENCE: Duration = Duration::from_secs(40);

/// A pool of connections. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Readers {
    pool: Pool,
    database: DatabaseUrl,
    ended: Arc<RwLock<Option<StoreError>>>,
}

impl Readers {
    /// Connections are made as they are needed.
    pub(crate) fn of(database: &DatabaseUrl, ended: Arc<RwLock<Option<StoreError>>>) -> Result<Readers, StoreError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(database.config(READING), database.tls()?, config);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(ANSWER_WITHIN))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Database(error.to_string()))?;
        Ok(Readers { pool, database: database.clone(), ended })
    }

    /// A connection of one's own, for reads that belong together.
    pub(crate) async fn connection(&self) -> Result<Object, StoreError> {
        if let Some(error) = &*self.ended.read() {
            return Err(error.clone());
        }
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => unreachable(&self.database, &error),
            PoolError::Timeout(TimeoutType::Create) => silent(&self.database),
            PoolError::Timeout(_) => {
                StoreError::Database(format!("all {CONNECTIONS} connections for reading are in use"))
            }
            error => StoreError::Database(error.to_string()),
        })
    }

    /// What a statement finds. A connection that turns out to be gone is replaced once: reading again does no harm.
    pub(crate) async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut tries = 0;
        loop {
            let connection = self.connection().await?;
            let found = async { connection.query(&connection.prepare_cached(sql).await?, values).await };
            match tokio::time::timeout(PATIENCE, found).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(_)) if connection.is_closed() && tries == 0 => tries += 1,
                Ok(Err(error)) => return Err(failed(&error)),
                Err(_) => {
                    // Not back into the pool: the next one would wait as long.
                    drop(Object::take(connection));
                    return Err(StoreError::Database(format!("no answer within {} s", PATIENCE.as_secs())));
                }
            }
        }
    }

    /// The number that a statement finds.
    pub(crate) async fn number(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<i64, StoreError> {
        let rows = self.query(sql, values).await?;
        rows.first().ok_or_else(|| StoreError::Database("there is no row".to_owned()))?.integer(0)
    }
}

impl Columns for Row {
    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(self.try_get(column)?)
    }

    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        Ok(self.text_or_null(column)?.map(decode))
    }
}
