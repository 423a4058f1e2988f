//! The schema of the database: its version, the migrations, its size.

use tokio_postgres::Client;

use crate::StoreError;
use crate::tables::POSTGRES;

/// Returns the version of the database's schema; 0 if it has none.
pub(super) async fn schema_version(client: &Client) -> Result<i64, StoreError> {
    let there: bool = client.query_one("SELECT to_regclass('arena_schema') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        return Ok(0);
    }
    Ok(client.query_one("SELECT coalesce(max(version), 0) FROM arena_schema", &[]).await?.try_get(0)?)
}

/// Updates the schema. No other program starts meanwhile, because the caller holds a lock.
pub(super) async fn migrate(client: &Client) -> Result<(), StoreError> {
    client.batch_execute("CREATE TABLE IF NOT EXISTS arena_schema (version BIGINT NOT NULL)").await?;
    let (found, known) = (schema_version(client).await?, POSTGRES.len() as i64);
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (done, migration) in POSTGRES.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let version = done + 1;
        let step = format!(
            "BEGIN; SET LOCAL statement_timeout = 0; {migration}; DELETE FROM arena_schema;
             INSERT INTO arena_schema VALUES ({version}); COMMIT"
        );
        client.batch_execute(&step).await?;
    }
    Ok(())
}

/// Returns the size of the store in bytes.
pub(super) async fn measure(client: &Client) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    Ok(client.query_one(sql, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}
