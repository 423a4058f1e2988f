//! Connections to read with: a pool of a few, each with the statements that it has prepared.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
    TimeoutType,
};
use parking_lot::RwLock;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::{ANSWER_WITHIN, READING, failed, set, silent, unreachable};
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

/// The same for a look at the journal, which takes a millisecond, and for which every request waits.
const PATIENCE_FOR_LOOKS: Duration = Duration::from_secs(5);

/// A pool of connections. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Readers {
    pool: Pool,
    patience: Duration,
    database: DatabaseUrl,
    ended: Arc<RwLock<Option<StoreError>>>,
}

impl Readers {
    /// Connections are made as they are needed.
    pub(crate) fn of(database: &DatabaseUrl, ended: Arc<RwLock<Option<StoreError>>>) -> Result<Readers, StoreError> {
        Readers::with(database, ended, CONNECTIONS, PATIENCE)
    }

    /// One connection for looks at the journal, so that they never wait for long reads.
    pub(crate) fn for_looks(
        database: &DatabaseUrl,
        ended: Arc<RwLock<Option<StoreError>>>,
    ) -> Result<Readers, StoreError> {
        Readers::with(database, ended, 1, PATIENCE_FOR_LOOKS)
    }

    fn with(
        database: &DatabaseUrl,
        ended: Arc<RwLock<Option<StoreError>>>,
        connections: usize,
        patience: Duration,
    ) -> Result<Readers, StoreError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(database.config(), database.tls()?, config);
        let set_by = database.clone();
        let settle = Hook::async_fn(move |client: &mut ClientWrapper, _| {
            let database = set_by.clone();
            Box::pin(async move {
                set(&database, client, READING).await.map_err(|error| HookError::message(error.to_string()))
            })
        });
        let pool = Pool::builder(manager)
            .post_create(settle)
            .max_size(connections)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(ANSWER_WITHIN))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Database(error.to_string()))?;
        Ok(Readers { pool, patience, database: database.clone(), ended })
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
                let all = self.pool.status().max_size;
                StoreError::Database(format!("all {all} connections for reading are in use"))
            }
            PoolError::PostCreateHook(HookError::Message(reason)) => StoreError::Database(reason.into_owned()),
            error => StoreError::Database(error.to_string()),
        })
    }

    /// What a statement finds. A connection that turns out to be gone is replaced once: reading again does no harm.
    pub(crate) async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut tries = 0;
        loop {
            let connection = self.connection().await?;
            let found = async { connection.query(&connection.prepare_cached(sql).await?, values).await };
            match tokio::time::timeout(self.patience, found).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(_)) if connection.is_closed() && tries == 0 => tries += 1,
                Ok(Err(error)) => return Err(failed(&error)),
                Err(_) => {
                    // Not back into the pool: the next one would wait as long.
                    drop(Object::take(connection));
                    return Err(StoreError::Database(format!("no answer within {} s", self.patience.as_secs())));
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
