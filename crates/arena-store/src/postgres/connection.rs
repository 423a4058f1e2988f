//! Connections to the database: their settings, their state, and the search for the server that accepts writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::url::DatabaseServer;
use crate::errors::reason;
use crate::{DatabaseUrl, StoreError};

/// The SQL expression for the database's time, in milliseconds since the epoch.
pub(crate) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The SQL expression for the start of the database's server. After a failover, a crash or the restoration of a backup, it
/// differs.
pub(crate) const SERVER_START: &str = "extract(epoch FROM pg_postmaster_start_time())::text";

/// The time limit for the first response of the database.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// By name. Applied after connecting, because poolers refuse or ignore settings in the startup packet.
pub(crate) type Settings = [(&'static str, &'static str)];

/// Settings of connections that read. They cancel slow statements and end abandoned transactions. They also make all
/// queries use an index, even if the table was small when the statement was planned. With full scans, reads
/// became slower with each commit.
pub(crate) const READING: &Settings = &[
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("default_transaction_read_only", "on"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
];

/// Settings of connections whose statements find rows by key, many at a time. Postgres plans each statement once, and for
/// indexes, so that a plan from the time of small tables doesn't scan large ones.
pub(crate) const BY_KEY: &Settings = &[
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// Returns the error for a failed attempt to connect.
pub(crate) fn unreachable(database: &DatabaseServer, error: &tokio_postgres::Error) -> StoreError {
    let database = database.to_string();
    let reason = reason(error);
    // An error code comes from a Postgres server that refuses. Without a code, no server answered, or it isn't
    // Postgres.
    match error.code() {
        Some(_) => StoreError::Refused { database, reason },
        None => StoreError::Unreachable { database, reason },
    }
}

/// Returns the error for a server that accepts connections but doesn't answer.
pub(crate) fn silent(database: &DatabaseServer) -> StoreError {
    let reason = "the server at this address doesn't answer as Postgres does".to_owned();
    StoreError::Unreachable { database: database.to_string(), reason }
}

async fn connect(database: &DatabaseServer, settings: &Settings) -> Result<Client, StoreError> {
    let (config, tls) = (database.config(), database.tls()?);
    let connected = tokio::time::timeout(ANSWER_WITHIN, config.connect(tls)).await;
    let connected = connected.map_err(|_| silent(database))?;
    let (client, connection) = connected.map_err(|error| unreachable(database, &error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(%error, "a connection to the database has ended: {}", reason(&error));
        }
    });
    set(database, &client, settings).await?;
    Ok(client)
}

/// The server of a database that accepts writes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Primary {
    /// The server's place in the URL.
    pub(crate) server: usize,
    /// The number of the server's timeline, which grows with each promotion of a standby; 0 if the URL has one host.
    timeline: i64,
}

/// Connects to the first server that accepts writes. A server whose timeline is older than that of the `last` primary
/// is refused: it is a former primary, which lacks the commits since a promotion.
pub(crate) async fn connect_to_primary<'d>(
    database: &'d DatabaseUrl,
    settings: &Settings,
    last: Primary,
) -> Result<(Client, &'d DatabaseServer, Primary), StoreError> {
    if let [only] = database.servers() {
        return Ok((connect(only, settings).await?, only, Primary::default()));
    }
    let mut failures = Vec::new();
    for (place, server) in database.servers().iter().enumerate() {
        let found = async {
            let client = connect(server, settings).await?;
            let timeline = client.query_one(TIMELINE, &[]).await?.try_get(0)?;
            Ok((client, Primary { server: place, timeline }))
        };
        let failure = match found.await {
            Ok((client, primary)) if primary.timeline >= last.timeline => {
                if !failures.is_empty() {
                    tracing::info!("the primary is {}; {}", server.host(), failures.join("; "));
                }
                return Ok((client, server, primary));
            }
            Ok(_) => "it isn't the primary any more, but accepts writes; stop it, and make it a standby".to_owned(),
            Err(StoreError::Unreachable { reason, .. } | StoreError::Refused { reason, .. }) => reason,
            Err(error) => error.to_string(),
        };
        failures.push(format!("{}: {failure}", server.host()));
    }
    Err(StoreError::Unreachable { database: database.to_string(), reason: failures.join("; ") })
}

/// Reads the server's timeline, which is the beginning of the name of the current file of its write-ahead log.
const TIMELINE: &str = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint";

/// Applies settings to a connection and verifies them.
///
/// # Errors
/// [`StoreError::Refused`] if the database, or a pooler in front of it, doesn't apply a setting.
pub(crate) async fn set(database: &DatabaseServer, client: &Client, settings: &Settings) -> Result<(), StoreError> {
    let wanted = database.settings(settings);
    if wanted.is_empty() {
        return Ok(());
    }
    let refuse = |reason: String| StoreError::Refused { database: database.to_string(), reason };
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let set = |(name, value): &(String, String)| format!("set_config({}, {}, false)", quoted(name), quoted(value));
    let show = |(name, _): &(String, String)| format!("current_setting({})", quoted(name));
    let all = |each: &dyn Fn(&(String, String)) -> String| -> String {
        format!("SELECT {}", wanted.iter().map(each).collect::<Vec<_>>().join(", "))
    };
    let ask = async |sql: String| match tokio::time::timeout(ANSWER_WITHIN, client.simple_query(&sql)).await {
        Ok(Ok(said)) => Ok(values(&said)),
        Ok(Err(error)) if error.as_db_error().is_some() => {
            Err(refuse(format!("a setting is refused: {}", reason(&error))))
        }
        Ok(Err(error)) => Err(unreachable(database, &error)),
        Err(_) => Err(silent(database)),
    };
    let (stated, held) = (ask(all(&set)).await?, ask(all(&show)).await?);
    match wanted.iter().zip(stated.iter().zip(&held)).find(|(_, (stated, held))| stated != held) {
        None => Ok(()),
        Some(((name, _), _)) => Err(refuse(format!("the setting {name} isn't kept: {POOLER}"))),
    }
}

/// The requirement for poolers, as part of error messages.
const POOLER: &str = "a pooler in front of the database has to keep sessions (PgBouncer: pool_mode = session)";

/// Returns the values of the only row of a result.
fn values(said: &[SimpleQueryMessage]) -> Vec<Option<String>> {
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.map(|row| (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()).unwrap_or_default()
}

/// Locks belong to sessions, so a second connection must be served by another server process.
pub(super) async fn check_sessions(database: &DatabaseServer, client: &Client) -> Result<(), StoreError> {
    let process = "SELECT pg_backend_pid()";
    let second = connect(database, READING).await?;
    // A simple query leaves nothing in progress, so a pooler without sessions can give the first connection's server
    // process to the second.
    let own = values(&client.simple_query(process).await?);
    second.batch_execute("BEGIN").await?;
    let other = values(&second.simple_query(process).await?);
    second.batch_execute("COMMIT").await?;
    match own == other {
        false => Ok(()),
        true => Err(StoreError::Refused {
            database: database.to_string(),
            reason: format!("two connections share one session: {POOLER}"),
        }),
    }
}

/// Returns the start of the database's server.
pub(crate) async fn server_start(client: &Client) -> Result<String, StoreError> {
    Ok(client.query_one(&format!("SELECT {SERVER_START}"), &[]).await?.try_get(0)?)
}

/// The state of the connection to the database.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    /// The number of times that the database may have lost commits, which memory then still shows.
    pub(crate) losses: Arc<AtomicU64>,
    /// The error that closed this store; `None` while the store is open.
    pub(crate) ended: Arc<RwLock<Option<StoreError>>>,
    /// The size of the store in bytes, as last measured.
    pub(crate) bytes: Arc<AtomicU64>,
    /// The place of the writer's server in the URL.
    pub(crate) server: Arc<AtomicUsize>,
}

impl Reach {
    /// Returns the state after the first connection, to the server at this place in the URL.
    pub(super) fn of(server: usize) -> Reach {
        Reach { server: Arc::new(server.into()), ..Reach::default() }
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }
}
