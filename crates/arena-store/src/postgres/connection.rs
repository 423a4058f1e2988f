//! Connections: what is set on them, what their failures mean, and the one that writes, which holds the lock on the database.

use std::time::{Duration, Instant};

use arena_model::Status;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use super::url::DatabaseUrl;
use crate::StoreError;
use crate::counts::{Counts, Delta};

/// Migrations in order; the schema version of a store is how many of them it has seen. Forwards only.
const MIGRATIONS: &[&str] = &[include_str!("../../migrations/postgres/0001_arena.sql")];

/// What arenas lock: this number, and with it the hash of the schema's name, so that two arenas can share a database.
const LOCK: i32 = 0x4152_454E;

/// How long a start waits for an arena that is ending, or whose end the database hasn't noticed yet.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// How long whatever listens there has for a first answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What is set on connections that read. A statement that takes longer than any should is broken off; transactions that
/// nobody goes on with don't keep others waiting.
pub(crate) const READING: &str = "-c statement_timeout=30s -c idle_in_transaction_session_timeout=60s -c default_transaction_read_only=on -c jit=off";

/// What is set on the one that writes. All that it runs finds its rows by keys, a batch of them at a time: plans that were
/// made while tables were small must not read them whole when they are large. So each plan is made once, and for indexes.
const WRITING: &str = "-c statement_timeout=20s -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s -c jit=off \
     -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off";

/// What a failure on a connection means.
pub(crate) fn failed(error: &tokio_postgres::Error) -> StoreError {
    StoreError::Database(reason(error))
}

/// What went wrong, in the words of whoever noticed.
fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// Whether a place is taken that two can't have.
pub(crate) fn is_constraint(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        failed(&error)
    }
}

/// Why a connection couldn't be made.
pub(crate) fn unreachable(database: &DatabaseUrl, error: &tokio_postgres::Error) -> StoreError {
    let database = database.to_string();
    let reason = reason(error);
    // Whatever the server itself says is a reason of its own; all else is that there is none, or something else than Postgres.
    match error.code() {
        Some(_) => StoreError::Refused { database, reason },
        None => StoreError::Unreachable { database, reason },
    }
}

/// What it means that nothing came back from a database that could be connected to.
pub(crate) fn silent(database: &DatabaseUrl) -> StoreError {
    let reason = "what listens there doesn't answer as Postgres does".to_owned();
    StoreError::Unreachable { database: database.to_string(), reason }
}

async fn connect(database: &DatabaseUrl, options: &str) -> Result<Client, StoreError> {
    let (config, tls) = (database.config(options), database.tls()?);
    let connected = tokio::time::timeout(ANSWER_WITHIN, config.connect(tls)).await;
    let connected = connected.map_err(|_| silent(database))?;
    let (client, connection) = connected.map_err(|error| unreachable(database, &error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(%error, "a connection to the database has ended: {}", reason(&error));
        }
    });
    Ok(client)
}

/// The connection that writes. As long as it lives, no other arena writes to the database: the lock is its own, so that a
/// write without the lock can't be.
pub(crate) struct Holder {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    /// Which start of an arena this is, as the store notes it.
    pub(crate) name: String,
}

impl Holder {
    /// Takes the database for this process and brings its schema up to date.
    ///
    /// # Errors
    /// If it can't be reached or used, another arena uses it, or a newer program made what is in it.
    pub(crate) async fn take(database: &DatabaseUrl) -> Result<Holder, StoreError> {
        let client = connect(database, WRITING).await?;
        check_server(database, &client).await?;
        lock(database, &client, WAIT_FOR_LOCK).await?;
        migrate(&client).await?;
        let name = client
            .query_one(
                "INSERT INTO notes (name, value) VALUES ('holder', gen_random_uuid()::text)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value",
                &[],
            )
            .await?
            .try_get(0)?;
        let statements = Statements::prepare(&client).await?;
        Ok(Holder { client, statements, name })
    }

    /// Takes the database again, after the connection was lost.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] if another arena has had it in between: what is in memory here isn't true any more.
    pub(crate) async fn take_again(database: &DatabaseUrl, name: &str) -> Result<Holder, StoreError> {
        let client = connect(database, WRITING).await?;
        let found = client.query_opt("SELECT value FROM notes WHERE name = 'holder'", &[]).await?;
        let is_ours = |found: Option<tokio_postgres::Row>| -> Result<bool, StoreError> {
            Ok(found.map(|row| row.try_get::<_, String>(0)).transpose()?.as_deref() == Some(name))
        };
        if !is_ours(found)? {
            return Err(StoreError::Superseded { database: database.to_string() });
        }
        // The database may not have noticed yet that the connection before this one is gone.
        lock(database, &client, WAIT_FOR_LOCK).await?;
        if !is_ours(client.query_opt("SELECT value FROM notes WHERE name = 'holder'", &[]).await?)? {
            return Err(StoreError::Superseded { database: database.to_string() });
        }
        let statements = Statements::prepare(&client).await?;
        Ok(Holder { client, statements, name: name.to_owned() })
    }
}

/// Looks whether what answers can hold a store, and whether it keeps what it says that it has committed.
async fn check_server(database: &DatabaseUrl, client: &Client) -> Result<(), StoreError> {
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
        return Err(refuse(format!("its encoding is {encoding}, and an arena needs UTF8")));
    }
    if row.try_get::<_, Option<String>>(3)?.is_none() {
        return Err(refuse("the schema that its search_path names doesn't exist".to_owned()));
    }
    if row.try_get::<_, String>(1)? == "off" {
        tracing::warn!("the database runs with fsync=off: a power cut may cost everything");
    }
    // What is acknowledged has to be durable, whatever the server's default is for others.
    if row.try_get::<_, String>(2)? == "off" {
        client.batch_execute("SET synchronous_commit = on").await?;
    }
    Ok(())
}

async fn lock(database: &DatabaseUrl, client: &Client, patience: Duration) -> Result<(), StoreError> {
    let until = Instant::now() + patience;
    loop {
        let row = client.query_one("SELECT pg_try_advisory_lock($1, hashtext(current_schema()))", &[&LOCK]).await?;
        if row.try_get(0)? {
            return Ok(());
        }
        if Instant::now() >= until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let holder = client
        .query_opt(
            "SELECT coalesce(host(a.client_addr), 'its own machine'), a.pid FROM pg_locks l
             JOIN pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.classid = $1::int4::bigint::oid AND l.granted
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid",
            &[&LOCK],
        )
        .await?;
    let holder = match holder {
        Some(row) => {
            format!("connected from {}, backend {}", row.try_get::<_, String>(0)?, row.try_get::<_, i32>(1)?)
        }
        None => "which ends just now".to_owned(),
    };
    Err(StoreError::Taken { database: database.to_string(), holder })
}

/// Brings the schema up to date. Only whoever holds the lock does.
async fn migrate(client: &Client) -> Result<(), StoreError> {
    let there: bool = client.query_one("SELECT to_regclass('arena_schema') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        client.batch_execute("CREATE TABLE arena_schema (version BIGINT NOT NULL)").await?;
    }
    let found: i64 = client.query_one("SELECT coalesce(max(version), 0) FROM arena_schema", &[]).await?.try_get(0)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (done, migration) in MIGRATIONS.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let version = done + 1;
        let step = format!(
            "BEGIN; SET LOCAL statement_timeout = 0; {migration}; DELETE FROM arena_schema;
             INSERT INTO arena_schema VALUES ({version}); COMMIT"
        );
        client.batch_execute(&step).await?;
    }
    Ok(())
}

/// The counts as stored.
pub(crate) async fn read_counts(client: &Client) -> Result<Counts, StoreError> {
    let mut delta = Delta::default();
    for row in client.query("SELECT block, type, status, n FROM session_counts WHERE n <> 0", &[]).await? {
        let status: String = row.try_get(2)?;
        let status = Status::from_wire(&status)
            .ok_or_else(|| StoreError::Database(format!("session_counts has an unknown status {status}")))?;
        delta.sessions.insert((row.try_get(0)?, row.try_get(1)?, status), row.try_get(3)?);
    }
    let mut counts = Counts::default();
    counts.apply(&delta);
    Ok(counts)
}

/// How many bytes the store takes.
pub(crate) async fn measure(client: &Client) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    Ok(client.query_one(sql, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The last numbers that were given: the next ones follow. Only the holder gives any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) session: i64,
    pub(crate) user: i64,
    pub(crate) ending: i64,
    pub(crate) audit: i64,
}

impl Numbers {
    pub(crate) async fn read(client: &Client) -> Result<Numbers, StoreError> {
        let row = client
            .query_one(
                "SELECT (SELECT coalesce(max(no), 0) FROM sessions), (SELECT coalesce(max(no), 0) FROM users),
                        (SELECT coalesce(max(n), 0) FROM endings), (SELECT coalesce(max(no), 0) FROM audit)",
                &[],
            )
            .await?;
        Ok(Numbers { session: row.try_get(0)?, user: row.try_get(1)?, ending: row.try_get(2)?, audit: row.try_get(3)? })
    }
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $sql:expr;)*) => {
        /// What batches run, prepared once for each connection.
        pub(crate) struct Statements {
            $($(#[$doc])* pub(crate) $name: Statement,)*
        }

        impl Statements {
            async fn prepare(client: &Client) -> Result<Statements, StoreError> {
                // One round trip for all.
                let ($($name,)*) = tokio::try_join!(biased; $(client.prepare($sql),)*)?;
                Ok(Statements { $($name,)* })
            }
        }
    };
}

statements! {
    /// Which of these keys have been answered.
    find_answers: "SELECT key, request, body FROM answers WHERE key = ANY($1)";
    /// How these sessions stand; nobody else changes them before the transaction is over.
    lock_sessions: "SELECT no, version, status FROM sessions WHERE no = ANY($1) ORDER BY no FOR UPDATE";
    /// What these users have done.
    find_careers: "SELECT u.id, u.no, c.session, c.standings FROM users u
         LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
    /// Which of these ids sessions have.
    find_ids: "SELECT id FROM sessions WHERE id = ANY($1)";
    /// Which of these invites sessions have.
    find_codes: "SELECT code FROM invites WHERE code = ANY($1)";
    insert_sessions: "INSERT INTO sessions (no, status, type, version, wake_at, created_at, ended_at, ending, category,
             deadline, id, seed, options, invites, announced, players, scores, attributions, state, imported, usage, script)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::text[],
             $9::text[], $10::int8[], $11::text[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::text[],
             $17::text[], $18::text[], $19::text[], $20::int8[], $21::text[], $22::text[])";
    update_sessions: "UPDATE sessions s SET status = u.status, version = u.version, wake_at = u.wake_at,
             ended_at = u.ended_at, ending = u.ending, category = u.category, deadline = u.deadline,
             announced = u.announced, players = u.players, scores = u.scores, attributions = u.attributions,
             state = u.state, usage = u.usage
         FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::text[], $8::text[],
             $9::int8[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
             AS u (no, before, status, version, wake_at, ended_at, ending, category, deadline, announced, players, scores,
                   attributions, state, usage)
         WHERE s.no = u.no AND s.version = u.before";
    insert_invites: "INSERT INTO invites (code, session) SELECT * FROM unnest($1::text[], $2::int8[])";
    insert_messages: "INSERT INTO messages (session, channel, idx, at, sender, recipient, method, content, hidden)
         SELECT * FROM unnest($1::int8[], $2::int2[], $3::int8[], $4::int8[], $5::text[], $6::text[], $7::text[], $8::text[],
             $9::text[])";
    insert_answers: "INSERT INTO answers (key, request, body, at)
         SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::int8[])";
    insert_users: "INSERT INTO users (no, id) SELECT * FROM unnest($1::int8[], $2::text[])";
    insert_played: "INSERT INTO careers (user_no, n, session) SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[])";
    write_careers: "INSERT INTO careers (user_no, n, session, standings)
         SELECT user_no, 0, session, standings FROM unnest($1::int8[], $2::int8[], $3::text[])
             AS u (user_no, session, standings)
         ON CONFLICT (user_no, n) DO UPDATE SET session = excluded.session, standings = excluded.standings";
    insert_endings: "INSERT INTO endings (n, session) SELECT * FROM unnest($1::int8[], $2::int8[])";
    delete_sessions: "DELETE FROM sessions WHERE no = ANY($1)";
    delete_messages: "DELETE FROM messages WHERE session = ANY($1)";
    delete_invites: "DELETE FROM invites WHERE code = ANY($1)";
    add_counts: "INSERT INTO session_counts AS c (block, type, status, n)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[])
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n";
    add_totals: "INSERT INTO totals AS t (name, n) SELECT * FROM unnest($1::text[], $2::int8[])
         ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n";
}
