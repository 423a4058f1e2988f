//! A small pool of connections for reading, for each server of the database. Each connection has its own prepared statements.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
    TimeoutType,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::{ANSWER_WITHIN, BY_KEY, READING, Reach, Settings, set, silent, unreachable};
use super::url::DatabaseServer;
use crate::sql::{Columns, Value, parameters};
use crate::{DatabaseUrl, StoreError};

/// One connection handles thousands of short reads per second; the others allow long reads at the same time.
const CONNECTIONS: usize = 16;

/// The time for which a reader waits for a connection.
const WAIT: Duration = Duration::from_secs(5);

/// The time limit for a result. It is longer than the database's own time limit for statements. If a connection exceeds
/// it, the connection is lost.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

/// The time limit for a read of marks. Most requests wait for such a read, which takes about a millisecond.
const MARKS_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates a pool, which connects on demand.
fn pool_of(server: &DatabaseServer, connections: usize, settings: &Settings) -> Result<Pool, StoreError> {
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(server.config(), server.tls()?, config);
    let (set_by, settings) = (server.clone(), [READING, settings].concat());
    let settle = Hook::async_fn(move |client: &mut ClientWrapper, _| {
        let (server, settings) = (set_by.clone(), settings.clone());
        Box::pin(
            async move { set(&server, client, &settings).await.map_err(|error| HookError::message(error.to_string())) },
        )
    });
    Pool::builder(manager)
        .post_create(settle)
        .max_size(connections)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(ANSWER_WITHIN))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| StoreError::Database(error.to_string()))
}

/// Pools of connections, of which the pool of the writer's server is used. So readers follow the writer to a promoted
/// standby, and don't read from a former primary. Clones share the pools.
#[derive(Clone)]
pub(crate) struct PostgresReaders {
    pools: Arc<[(DatabaseServer, Pool)]>,
    timeout: Duration,
    reach: Reach,
}

impl PostgresReaders {
    /// Creates the pools, which connect on demand.
    pub(crate) fn of(database: &DatabaseUrl, reach: &Reach) -> Result<PostgresReaders, StoreError> {
        PostgresReaders::with(database, reach, CONNECTIONS, READ_TIMEOUT, &[("plan_cache_mode", "auto")])
    }

    /// With one connection of their own, reads of marks never wait for long reads.
    pub(crate) fn for_marks(database: &DatabaseUrl, reach: &Reach) -> Result<PostgresReaders, StoreError> {
        let settings = [BY_KEY, &[("enable_memoize", "off")]].concat();
        PostgresReaders::with(database, reach, 1, MARKS_TIMEOUT, &settings)
    }

    fn with(
        database: &DatabaseUrl,
        reach: &Reach,
        connections: usize,
        timeout: Duration,
        settings: &Settings,
    ) -> Result<PostgresReaders, StoreError> {
        let pool = |server: &DatabaseServer| Ok((server.clone(), pool_of(server, connections, settings)?));
        let pools = database.servers().iter().map(pool).collect::<Result<_, StoreError>>()?;
        Ok(PostgresReaders { pools, timeout, reach: reach.clone() })
    }

    /// Returns a connection for a series of reads that belong together.
    pub(crate) async fn connection(&self) -> Result<Object, StoreError> {
        if let Some(error) = &*self.reach.ended.read() {
            return Err(error.clone());
        }
        let (server, pool) = &self.pools[self.reach.server.load(Ordering::SeqCst)];
        pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => unreachable(server, &error),
            PoolError::Timeout(TimeoutType::Create) => silent(server),
            PoolError::Timeout(_) => {
                let all = pool.status().max_size;
                StoreError::Database(format!("all {all} connections for reading are in use"))
            }
            PoolError::PostCreateHook(HookError::Message(reason)) => StoreError::Database(reason.into_owned()),
            error => StoreError::Database(error.to_string()),
        })
    }

    /// If the connection is lost, the read is repeated once on a new connection.
    pub(crate) async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut tries = 0;
        loop {
            let connection = self.connection().await?;
            let found = async { connection.query(&connection.prepare_cached(sql).await?, values).await };
            match tokio::time::timeout(self.timeout, found).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(_)) if connection.is_closed() && tries == 0 => tries += 1,
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    // The connection doesn't return to the pool, because the next reader might wait just as long.
                    drop(Object::take(connection));
                    return Err(StoreError::Database(format!("no result within {} s", self.timeout.as_secs())));
                }
            }
        }
    }

    pub(crate) async fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.query(sql, &parameters(values)).await?;
        rows.iter().map(|row| read(row)).collect()
    }
}
