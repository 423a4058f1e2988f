//! Database connections: their settings, the conversion of their errors, and the writing connection, which holds the
//! lock on the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_model::Scoring;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

use super::url::DatabaseServer;
use crate::derived::standings::{counted_by, follow_scoring};
use crate::sql::db::Db;
use crate::sql::dialect::{Dialect, insert};
use crate::tables::boards::Boards;
use crate::tables::careers::Careers;
use crate::tables::messages::Messages;
use crate::tables::migrations::{COMPATIBLE, POSTGRES};
use crate::tables::sessions::{Sessions, update_sessions};
use crate::tables::{Answers, Endings, Invites, RemovedSessions, Users};
use crate::writing::Locks;
use crate::{DatabaseUrl, NodeTerms, StoreError};

/// The advisory lock of arenas, held exclusively or shared. Its key is this number with the hash of the schema's
/// name, so that arenas in two schemas of a database are independent.
const LOCK: i32 = 0x4152_454E;

/// The lock that a node holds during its start.
const START_LOCK: i32 = LOCK + 1;

/// The lock that a node holds from the moment when it assigns numbers to users until its commit.
pub(crate) const USERS_LOCK: i32 = LOCK + 2;

/// The lock of the node that writes the log, until its connection ends.
const LEADER_LOCK: i32 = LOCK + 3;

/// The SQL expression for the database's time, in milliseconds since the epoch.
pub(crate) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The SQL expression for the start of the database's server. After a failover, a crash or the restoration of a backup, it
/// differs.
pub(crate) const SERVER_START: &str = "extract(epoch FROM pg_postmaster_start_time())::text";

/// The time for which a starting arena waits for the lock of another arena, which may be stopping, or may have ended
/// without a notice to the database.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

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

/// Settings of the connection that writes.
const WRITING: &Settings = &[
    ("statement_timeout", "20s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("jit", "off"),
];

/// Additional settings of the writing connection in a shared database. Each statement must see all earlier commits, and
/// a node that stalls is disconnected: in a transaction before others wait long for its locks, and otherwise before its
/// part of the work waits long. An idle writer sends a statement each second.
const WRITING_BESIDE_OTHERS: &Settings = &[
    ("default_transaction_isolation", "read committed"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("idle_session_timeout", "10s"),
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
async fn check_sessions(database: &DatabaseServer, client: &Client) -> Result<(), StoreError> {
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

/// The connection that writes. The connection also holds the lock on the database, so a write without the lock is
/// impossible. While it exists, no other process writes, except nodes that share the database.
pub(crate) struct Holder {
    pub(crate) client: Arc<Client>,
    pub(crate) statements: Statements,
    /// The additional statements, if the database is shared.
    pub(crate) sharing: Option<Sharing>,
    /// The id of this start of the arena, as stored in the database. In a shared database, that of the first node.
    pub(crate) name: String,
    /// The server at the other end.
    pub(crate) primary: Primary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Exclusive use by one arena.
    Alone,
    /// Shared use by any number of nodes.
    Shared,
}

impl Access {
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let besides = if self == Access::Shared { WRITING_BESIDE_OTHERS } else { &[] };
        [WRITING, BY_KEY, besides].concat()
    }
}

impl Holder {
    pub(crate) fn db(&self) -> Db {
        Db::Postgres(Arc::clone(&self.client))
    }

    /// Locks the database for exclusive use and updates its schema.
    ///
    /// # Errors
    /// If the database can't be reached or used, another arena uses it, or a newer program created the store in it.
    pub(crate) async fn take(database: &DatabaseUrl) -> Result<Holder, StoreError> {
        let (client, database, primary) =
            connect_to_primary(database, &Access::Alone.settings(), Primary::default()).await?;
        check_server(database, &client).await?;
        check_sessions(database, &client).await?;
        lock(database, &client, Access::Alone).await?;
        migrate(&client).await?;
        let name = client
            .query_one(
                "INSERT INTO notes (name, value) VALUES ('holder', gen_random_uuid()::text)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value",
                &[],
            )
            .await?
            .try_get(0)?;
        Holder::of(Arc::new(client), name, Access::Alone, primary).await
    }

    /// Locks the database for shared use. The first node updates the schema and the scoring, and stores the `terms`.
    /// Later nodes must have the same scoring and `terms`, and a schema that suits the nodes that run. Returns the writing connection and the random id of
    /// this node.
    ///
    /// # Errors
    /// As [`Holder::take`], and if this node's `terms` differ from those of the others.
    pub(crate) async fn join(
        database: &DatabaseUrl,
        scoring: &Scoring,
        terms: &NodeTerms,
    ) -> Result<(Holder, String), StoreError> {
        let (client, database, primary) =
            connect_to_primary(database, &Access::Shared.settings(), Primary::default()).await?;
        let client = Arc::new(client);
        check_server(database, &client).await?;
        check_sessions(database, &client).await?;
        // Nodes start one at a time, so that a node that finds no other is the first.
        if !wait_for(&client, "pg_try_advisory_lock", START_LOCK, WAIT_FOR_LOCK).await? {
            return Err(StoreError::Refused {
                database: database.to_string(),
                reason: "another node has been starting for more than 10 s; try again".to_owned(),
            });
        }
        // The node gets the shared lock first, and waits if an arena with exclusive use is stopping. In that case this
        // node is the first one.
        lock(database, &client, Access::Shared).await?;
        let is_first = wait_for(&client, "pg_try_advisory_lock", LOCK, Duration::ZERO).await?;
        if is_first {
            // Other nodes may be disconnected for a while. With the same schema, scoring and `terms`, they may return.
            let terms_unchanged = check_terms(database, &client, scoring, terms).await.is_ok();
            migrate(&client).await?;
            follow_scoring(&mut Db::Postgres(Arc::clone(&client)), scoring).await?;
            set_terms(&client, terms).await?;
            if !terms_unchanged {
                client.execute("DELETE FROM notes WHERE name = 'holder'", &[]).await?;
            }
            client.batch_execute(FIRST_OF_NODES).await?;
            client.execute("SELECT pg_advisory_unlock($1, hashtext(current_schema()))", &[&LOCK]).await?;
        } else {
            check_terms(database, &client, scoring, terms).await?;
            migrate(&client).await?;
        }
        let name = holder_of(&client).await?.unwrap_or_default();
        client.execute("SELECT pg_advisory_unlock($1, hashtext(current_schema()))", &[&START_LOCK]).await?;
        let node: String = client.query_one("SELECT gen_random_uuid()::text", &[]).await?.try_get(0)?;
        Ok((Holder::of(client, name, Access::Shared, primary).await?, node))
    }

    /// Locks the database again after a lost connection. `last` is the primary of the lost connection.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] if another arena has used the database in between, so that this process's memory is
    /// outdated.
    pub(crate) async fn reconnect(
        database: &DatabaseUrl,
        name: &str,
        is_shared: bool,
        last: Primary,
    ) -> Result<Holder, StoreError> {
        let access = if is_shared { Access::Shared } else { Access::Alone };
        let (client, database, primary) = connect_to_primary(database, &access.settings(), last).await?;
        let superseded = || StoreError::Superseded { database: database.to_string() };
        if holder_of(&client).await?.as_deref() != Some(name) {
            return Err(superseded());
        }
        // The database may not have detected yet that the previous connection is closed.
        lock(database, &client, access).await?;
        if holder_of(&client).await?.as_deref() != Some(name) {
            return Err(superseded());
        }
        Holder::of(Arc::new(client), name.to_owned(), access, primary).await
    }

    async fn of(client: Arc<Client>, name: String, access: Access, primary: Primary) -> Result<Holder, StoreError> {
        let statements = Statements::prepare(&client).await?;
        let sharing = match access {
            Access::Shared => Some(Sharing::prepare(&client).await?),
            Access::Alone => None,
        };
        Ok(Holder { client, statements, sharing, name, primary })
    }
}

/// The statements that the first node runs: mark the database as shared, and set its numbers.
const FIRST_OF_NODES: &str = "
    INSERT INTO notes (name, value) VALUES ('holder', 'shared ' || gen_random_uuid())
        ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE notes.value NOT LIKE 'shared %';
    UPDATE numbers SET n = (SELECT coalesce(max(n), 0) FROM endings) WHERE kind = 'endings';
    SELECT setval('session_numbers', (SELECT coalesce(max(no), 0) + 1 FROM sessions), false)";

/// Returns the id of the arena or group of nodes that used the database last.
async fn holder_of(client: &Client) -> Result<Option<String>, StoreError> {
    let found = client.query_opt("SELECT value FROM notes WHERE name = 'holder'", &[]).await?;
    Ok(found.map(|row| row.try_get(0)).transpose()?)
}

/// Returns the name of the row in the table `notes` that stores a setting of [`NodeTerms`].
fn note_of(term: &str) -> String {
    format!("term: {term}")
}

/// Stores the settings that later nodes must share ([`NodeTerms`]).
async fn set_terms(client: &Client, terms: &NodeTerms) -> Result<(), StoreError> {
    let (names, values): (Vec<String>, Vec<&str>) =
        terms.iter().map(|(name, value)| (note_of(name), value.as_str())).unzip();
    let sql = "INSERT INTO notes (name, value) SELECT * FROM unnest($1::text[], $2::text[])
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    client.execute(sql, &[&names, &values]).await?;
    Ok(())
}

/// Checks that scoring and [`NodeTerms`] equal the stored ones, and that the schema suits nodes of the stored one.
async fn check_terms(
    database: &DatabaseServer,
    client: &Arc<Client>,
    scoring: &Scoring,
    terms: &NodeTerms,
) -> Result<(), StoreError> {
    let (found, known) = (schema_version(client).await?, POSTGRES.len() as i64);
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let differs = |what: &str| StoreError::Differs { database: database.to_string(), what: what.to_owned() };
    if found < known && found < COMPATIBLE {
        return Err(differs("program version (this one is newer and would change the tables)"));
    }
    if counted_by(&mut Db::Postgres(Arc::clone(client))).await?.as_deref() != Some(&*scoring.describe()) {
        return Err(differs("scoring"));
    }
    for (term, value) in terms {
        let sql = "SELECT value FROM notes WHERE name = $1";
        let found = client.query_opt(sql, &[&note_of(term)]).await?;
        if found.map(|row| row.try_get::<_, String>(0)).transpose()?.as_ref() != Some(value) {
            return Err(differs(term));
        }
    }
    Ok(())
}

/// The id distinguishes arenas on one message bus. The first call creates it.
pub(crate) async fn arena_id(client: &Client) -> Result<String, StoreError> {
    let sql = "INSERT INTO notes (name, value) VALUES ('arena', gen_random_uuid()::text) ON CONFLICT DO NOTHING";
    client.execute(sql, &[]).await?;
    Ok(client.query_one("SELECT value FROM notes WHERE name = 'arena'", &[]).await?.try_get(0)?)
}

/// Checks that the server can contain a store and that its commits are durable.
async fn check_server(database: &DatabaseServer, client: &Client) -> Result<(), StoreError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_encoding'), current_setting('fsync'), current_setting('synchronous_commit'),
                    current_schema()",
            &[],
        )
        .await?;
    let refuse = |reason: String| StoreError::Refused { database: database.to_string(), reason };
    let encoding: String = row.try_get(0)?;
    if encoding != "UTF8" {
        return Err(refuse(format!("its encoding is {encoding}, but the store requires UTF8")));
    }
    if row.try_get::<_, Option<String>>(3)?.is_none() {
        return Err(refuse("the schema in its search_path doesn't exist; create the schema first".to_owned()));
    }
    if row.try_get::<_, String>(1)? == "off" {
        tracing::warn!("the database runs with fsync=off: a power failure can destroy all data");
    }
    // Acknowledged commits must be durable regardless of the server's default.
    if row.try_get::<_, String>(2)? == "off" {
        client.batch_execute("SET synchronous_commit = on").await?;
    }
    Ok(())
}

/// Tries to get a lock for at most `patience`. Returns true if it got the lock.
async fn wait_for(client: &Client, try_lock: &str, lock: i32, patience: Duration) -> Result<bool, StoreError> {
    let until = Instant::now() + patience;
    let sql = format!("SELECT {try_lock}($1, hashtext(current_schema()))");
    loop {
        if client.query_one(&sql, &[&lock]).await?.try_get(0)? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn lock(database: &DatabaseServer, client: &Client, access: Access) -> Result<(), StoreError> {
    let try_lock = match access {
        Access::Alone => "pg_try_advisory_lock",
        Access::Shared => "pg_try_advisory_lock_shared",
    };
    if wait_for(client, try_lock, LOCK, WAIT_FOR_LOCK).await? {
        return Ok(());
    }
    let holder = client
        .query_opt(
            "SELECT coalesce(host(a.client_addr), 'the database''s machine'), a.pid, l.mode FROM pg_locks l
             JOIN pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.classid = $1::int4::bigint::oid AND l.granted
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid LIMIT 1",
            &[&LOCK],
        )
        .await?;
    let database = database.to_string();
    let Some(row) = holder else {
        return Err(StoreError::Taken { database, holder: "still stopping; try again".to_owned() });
    };
    let holder = format!("connected from {}, backend {}", row.try_get::<_, String>(0)?, row.try_get::<_, i32>(1)?);
    let is_shared = row.try_get::<_, &str>(2)? == "ShareLock";
    Err(match access {
        Access::Alone if is_shared => StoreError::TakenByNodes { database, holder },
        Access::Alone => StoreError::Taken { database, holder },
        Access::Shared => StoreError::TakenAlone { database, holder },
    })
}

/// Returns the version of the database's schema; 0 if it has none.
async fn schema_version(client: &Client) -> Result<i64, StoreError> {
    let there: bool = client.query_one("SELECT to_regclass('arena_schema') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        return Ok(0);
    }
    Ok(client.query_one("SELECT coalesce(max(version), 0) FROM arena_schema", &[]).await?.try_get(0)?)
}

/// Updates the schema. No other program starts meanwhile, because the caller holds a lock.
async fn migrate(client: &Client) -> Result<(), StoreError> {
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
pub(crate) async fn measure(client: &Client) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    Ok(client.query_one(sql, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}

/// Returns the start of the database's server.
pub(crate) async fn server_start(client: &Client) -> Result<String, StoreError> {
    Ok(client.query_one(&format!("SELECT {SERVER_START}"), &[]).await?.try_get(0)?)
}

macro_rules! statements {
    ($(#[$about:meta])* $all:ident: $($(#[$doc:meta])* $name:ident: $sql:expr;)*) => {
        $(#[$about])*
        pub(crate) struct $all {
            $($(#[$doc])* pub(crate) $name: Statement,)*
        }

        impl $all {
            async fn prepare(client: &Client) -> Result<$all, StoreError> {
                // All statements are prepared in one round trip.
                let ($($name,)*) = tokio::try_join!(biased; $(async { client.prepare(&$sql).await },)*)?;
                Ok($all { $($name,)* })
            }
        }
    };
}

statements! {
    /// The additional statements of batches in a shared database, prepared once for each connection.
    Sharing:
    /// Reads and locks these sessions, except those that another node is changing. A decision about such a session is
    /// outdated anyway, and this node doesn't wait for a node that stalls.
    lock_free_sessions: "SELECT no, version, status, wake_at FROM sessions WHERE no = ANY($1) ORDER BY no
         FOR UPDATE SKIP LOCKED";
    /// Reads the lengths of these channels. Their sessions are locked, so that no other node adds messages. A channel
    /// without messages may be one of an archived session.
    find_lens: "SELECT w.session, w.channel, m.idx FROM unnest($1::int8[], $2::int2[]) AS w (session, channel)
         CROSS JOIN LATERAL (SELECT coalesce((SELECT idx FROM messages
             WHERE messages.session = w.session AND messages.channel = w.channel ORDER BY idx DESC LIMIT 1),
             (SELECT CASE w.channel WHEN 0 THEN a.chat_len WHEN 1 THEN a.operator_len END FROM archives a
             WHERE a.session = w.session)) AS idx) m WHERE m.idx IS NOT NULL";
    /// Locks the careers of these users until the end of the transaction. All nodes lock in the same order, so that
    /// two nodes can't deadlock.
    lock_users: "SELECT no FROM users WHERE id = ANY($1) ORDER BY no FOR NO KEY UPDATE";
    /// Draws numbers for new sessions.
    draw_numbers: "SELECT nextval('session_numbers') FROM generate_series(1, $1::int8)";
    lock_numbers_of_users: format!("SELECT pg_advisory_xact_lock({USERS_LOCK}, hashtext(current_schema()))");
    /// Assigns numbers to those of these users that have none.
    number_users: "INSERT INTO users (no, id)
         SELECT (SELECT coalesce(max(no), 0) FROM users) + row_number() OVER (ORDER BY w.place), w.id
         FROM unnest($1::text[]) WITH ORDINALITY AS w (id, place)
         WHERE NOT EXISTS (SELECT FROM users known WHERE known.id = w.id)";
    /// Locks a number until the end of the transaction.
    lock_number: "SELECT n FROM numbers WHERE kind = $1 FOR UPDATE";
    note_change: "INSERT INTO changes AS c (kind, n) VALUES ($1, 1) ON CONFLICT (kind) DO UPDATE SET n = c.n + 1";
    /// Adds to counts, with the number of this change. The number stays locked until the commit, so that a node that has
    /// read a number has read all smaller ones.
    add_counts: "WITH last AS (UPDATE numbers SET n = n + 1 WHERE kind = 'counts' RETURNING n)
         INSERT INTO session_counts AS c (block, type, status, n, changed)
         SELECT w.*, last.n FROM last CROSS JOIN unnest($1::int8[], $2::text[], $3::text[], $4::int8[]) AS w (block, type, status, n)
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n, changed = excluded.changed
         RETURNING block, type, status, n";
    /// Numbers endings in the order of commits, without gaps.
    insert_numbered_endings: "WITH last AS (UPDATE numbers SET n = n + cardinality($1::int8[]) WHERE kind = 'endings' RETURNING n)
         INSERT INTO endings (n, session)
         SELECT last.n - cardinality($1::int8[]) + w.place, w.session
         FROM last CROSS JOIN unnest($1::int8[]) WITH ORDINALITY AS w (session, place)";
    try_to_lead: format!("SELECT pg_try_advisory_lock({LEADER_LOCK}, hashtext(current_schema()))");
}

impl Sharing {
    pub(crate) fn locks(&self) -> Locks {
        Locks {
            lock_number: self.lock_number.clone(),
            lock_users: self.lock_users.clone(),
            lock_numbers_of_users: self.lock_numbers_of_users.clone(),
            number_users: self.number_users.clone(),
        }
    }
}

/// Finds each invite with the index, regardless of the planner's estimate of the table's size.
const DELETE_INVITES: &str = "DELETE FROM invites WHERE ctid = ANY (ARRAY(
         SELECT f.ctid FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT ctid FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f))";

statements! {
    /// The statements of batches, prepared once for each connection.
    Statements:
    /// Finds the answers stored under these keys.
    find_answers: "SELECT key, request, body FROM answers WHERE key = ANY($1)";
    /// Reads and locks these sessions until the end of the transaction.
    lock_sessions: "SELECT no, version, status, wake_at FROM sessions WHERE no = ANY($1) ORDER BY no FOR UPDATE";
    /// Reads the careers of these users.
    find_careers: "SELECT u.id, u.no, c.session, c.standings,
             (SELECT coalesce(max(last.n), 0) FROM careers last WHERE last.user_no = u.no) FROM users u
         LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
    /// Returns the ids in the list that belong to stored sessions.
    find_ids: "SELECT f.id FROM unnest($1::text[]) AS w (id) CROSS JOIN LATERAL
         (SELECT id FROM sessions s WHERE right(s.id, 12) = right(w.id, 12) AND s.id = w.id LIMIT 1) f";
    /// Returns the invites in the list that belong to stored sessions.
    find_codes: "SELECT f.code FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT code FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f";
    insert_sessions: insert::<Sessions>(Dialect::Postgres, "");
    update_sessions: update_sessions(Dialect::Postgres, true);
    insert_invites: insert::<Invites>(Dialect::Postgres, "");
    insert_messages: insert::<Messages>(Dialect::Postgres, "");
    insert_answers: insert::<Answers>(Dialect::Postgres, "");
    insert_users: insert::<Users>(Dialect::Postgres, "");
    insert_played: insert::<Careers>(Dialect::Postgres, "");
    write_careers: insert::<Careers>(Dialect::Postgres, Careers::REPLACE);
    /// Adds boards. All nodes insert in the same order, so that two nodes can't deadlock.
    enter_boards: insert::<Boards>(Dialect::Postgres, "ORDER BY 1 ON CONFLICT DO NOTHING");
    insert_endings: insert::<Endings>(Dialect::Postgres, "");
    delete_sessions: "DELETE FROM sessions WHERE no = ANY($1)";
    delete_messages: "DELETE FROM messages WHERE session = ANY($1)";
    delete_invites: DELETE_INVITES;
    insert_removed: insert::<RemovedSessions>(Dialect::Postgres, "");
    add_counts: "INSERT INTO session_counts AS c (block, type, status, n)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[])
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n RETURNING block, type, status, n";
    add_totals: "INSERT INTO totals AS t (name, n) SELECT * FROM unnest($1::text[], $2::int8[])
         ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n RETURNING n";
}
