//! Connections: what is set on them, what their failures mean, and the one that writes, which holds the lock on the database.

use std::time::{Duration, Instant};

use arena_model::{Scoring, Status};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

use super::journal::{NOW_MS, Place};
use super::standings::{counted_by, follow_scoring};
use super::url::DatabaseUrl;
use crate::StoreError;
use crate::counts::{Counts, Delta};
use crate::derived::Suspicion;
use crate::nodes::Terms;

/// Migrations in order; the schema version of a store is how many of them it has seen. Forwards only.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_arena.sql"),
    include_str!("../../migrations/postgres/0002_nodes.sql"),
    include_str!("../../migrations/postgres/0003_unattended.sql"),
    include_str!("../../migrations/postgres/0004_ids.sql"),
    include_str!("../../migrations/postgres/0005_boards.sql"),
    include_str!("../../migrations/postgres/0006_journal_marks.sql"),
];

/// What arenas lock, together or alone: this number, and with it the hash of the schema's name, so that two arenas can be in one
/// database without having to do with each other.
const LOCK: i32 = 0x4152_454E;

/// What a node locks while it starts.
const START_LOCK: i32 = LOCK + 1;

/// What a node locks while it numbers users, until its commit.
pub(crate) const USERS_LOCK: i32 = LOCK + 2;

/// What a node locks from the last of its statements until its commit, so that commits are in the order of their numbers.
const TURN_LOCK: i32 = LOCK + 3;

/// How long a start waits for an arena that is ending, or whose end the database hasn't noticed yet.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// How long whatever listens there has for a first answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Settings of a connection, by name. They are set when it has been made, since poolers refuse or drop what a connection asks for
/// while it is made.
pub(crate) type Settings = [(&'static str, &'static str)];

/// What is set on connections that read. A statement that takes longer than any should is broken off; transactions that
/// nobody goes on with don't keep others waiting. All that is read is found by an index, whatever a table's size was when the
/// statement was planned: a look at the journal that read all of it took longer with each commit.
pub(crate) const READING: &Settings = &[
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("default_transaction_read_only", "on"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
];

/// What is set on the one that writes. All that it runs finds its rows by keys, a batch of them at a time: plans that were
/// made while tables were small must not read them whole when they are large. So each plan is made once, and for indexes.
const WRITING: &Settings = &[
    ("statement_timeout", "20s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// What is set on it besides where others write too. Each statement has to see what was committed before it; and a node that stands
/// still in the middle of a transaction is cut off before others have waited for its locks for long.
const WRITING_BESIDE_OTHERS: &Settings =
    &[("default_transaction_isolation", "read committed"), ("idle_in_transaction_session_timeout", "5s")];

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

/// Whether a place is taken that two can't have, or two transactions were in each other's way: nothing was done, and tried again it may be.
pub(crate) fn is_constraint(error: &tokio_postgres::Error) -> bool {
    const STATES: [SqlState; 3] =
        [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| STATES.contains(code))
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

async fn connect(database: &DatabaseUrl, settings: &Settings) -> Result<Client, StoreError> {
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

/// Sets what is to hold on a connection, and looks if it does.
///
/// # Errors
/// [`StoreError::Refused`] if the database, or a pooler in front of it, doesn't take a setting.
pub(crate) async fn set(database: &DatabaseUrl, client: &Client, settings: &Settings) -> Result<(), StoreError> {
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
        Some(((name, _), _)) => Err(refuse(format!("{name} doesn't stay as it is set: {POOLER}"))),
    }
}

/// The requirement on a pooler.
const POOLER: &str = "a pooler in front of the database has to keep sessions (PgBouncer: pool_mode = session)";

/// The values of the one row of an answer.
fn values(said: &[SimpleQueryMessage]) -> Vec<Option<String>> {
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.map(|row| (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()).unwrap_or_default()
}

/// Looks if each connection has a session of its own, by which locks are held: a second one has to be another process of the
/// database's.
async fn check_sessions(database: &DatabaseUrl, client: &Client) -> Result<(), StoreError> {
    let process = "SELECT pg_backend_pid()";
    let second = connect(database, READING).await?;
    // Plain queries, behind which nothing is on its way that would keep a session of the first busy.
    let own = values(&client.simple_query(process).await?);
    second.batch_execute("BEGIN").await?;
    let other = values(&second.simple_query(process).await?);
    second.batch_execute("COMMIT").await?;
    match own == other {
        false => Ok(()),
        true => Err(StoreError::Refused {
            database: database.to_string(),
            reason: format!("two connections are one session of it: {POOLER}"),
        }),
    }
}

/// The connection that writes. As long as it lives, nobody else has the database but those who share it: the lock is its own, so
/// that a write without the lock can't be.
pub(crate) struct Holder {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    /// What it runs besides, and who it is, if it shares the database.
    pub(crate) sharing: Option<Sharing>,
    /// Which start of an arena this is, as the store notes it; or whose start it was that it shares the database with.
    pub(crate) name: String,
}

/// Who is to have a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// One arena, and nobody else.
    Alone,
    /// As many as like, who know of each other.
    Shared,
}

impl Access {
    fn of(node: Option<&str>) -> Access {
        if node.is_some() { Access::Shared } else { Access::Alone }
    }

    /// What is set on the connection that writes.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let besides = if self == Access::Shared { WRITING_BESIDE_OTHERS } else { &[] };
        [WRITING, besides].concat()
    }
}

impl Holder {
    /// Takes the database for this process and brings its schema up to date.
    ///
    /// # Errors
    /// If it can't be reached or used, another arena uses it, or a newer program made what is in it.
    pub(crate) async fn take(database: &DatabaseUrl) -> Result<Holder, StoreError> {
        let client = connect(database, &Access::Alone.settings()).await?;
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
        Holder::of(client, name, None).await
    }

    /// Takes the database together with others. Where it is the first of them, it brings schema and scoring up to date, and its
    /// `terms` are those that hold; where others are there, they have to agree in all that. Returns which node this is, too: a random id.
    ///
    /// # Errors
    /// As [`Holder::take`], and if the others don't agree.
    pub(crate) async fn join(
        database: &DatabaseUrl,
        scoring: &Scoring,
        terms: &Terms,
    ) -> Result<(Holder, String), StoreError> {
        let client = connect(database, &Access::Shared.settings()).await?;
        check_server(database, &client).await?;
        check_sessions(database, &client).await?;
        // One at a time, so that who finds nobody else is the first.
        if !wait_for(&client, "pg_try_advisory_lock", START_LOCK, WAIT_FOR_LOCK).await? {
            return Err(StoreError::Refused {
                database: database.to_string(),
                reason: "another node has been starting for long".to_owned(),
            });
        }
        // In this order: who finds an arena of its own that is just ending waits for that, and is the first then.
        lock(database, &client, Access::Shared).await?;
        let is_first = wait_for(&client, "pg_try_advisory_lock", LOCK, Duration::ZERO).await?;
        if is_first {
            // Others may be cut off just now and come back: if everything is as it was, they may.
            let goes_on = check_terms(database, &client, scoring, terms).await.is_ok();
            migrate(&client).await?;
            follow_scoring(&client, scoring).await?;
            set_terms(&client, terms).await?;
            if !goes_on {
                client.execute("DELETE FROM notes WHERE name = 'holder'", &[]).await?;
            }
            client.batch_execute(FIRST_OF_NODES).await?;
            client.execute("SELECT pg_advisory_unlock($1, hashtext(current_schema()))", &[&LOCK]).await?;
        } else {
            check_terms(database, &client, scoring, terms).await?;
        }
        let name = holder_of(&client).await?.unwrap_or_default();
        client.execute("SELECT pg_advisory_unlock($1, hashtext(current_schema()))", &[&START_LOCK]).await?;
        let node: String = client.query_one("SELECT gen_random_uuid()::text", &[]).await?.try_get(0)?;
        Ok((Holder::of(client, name, Some(&node)).await?, node))
    }

    /// Takes the database again, after the connection was lost. `node` says who, if it is shared.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] if another arena has had it in between: what is in memory here isn't true any more.
    pub(crate) async fn take_again(
        database: &DatabaseUrl,
        name: &str,
        node: Option<&str>,
    ) -> Result<Holder, StoreError> {
        let access = Access::of(node);
        let client = connect(database, &access.settings()).await?;
        let superseded = || StoreError::Superseded { database: database.to_string() };
        if holder_of(&client).await?.as_deref() != Some(name) {
            return Err(superseded());
        }
        // The database may not have noticed yet that the connection before this one is gone.
        lock(database, &client, access).await?;
        if holder_of(&client).await?.as_deref() != Some(name) {
            return Err(superseded());
        }
        Holder::of(client, name.to_owned(), node).await
    }

    async fn of(client: Client, name: String, node: Option<&str>) -> Result<Holder, StoreError> {
        let statements = Statements::prepare(&client).await?;
        let sharing = match node {
            Some(node) => {
                Some(Sharing { node: node.to_owned(), statements: SharedStatements::prepare(&client).await? })
            }
            None => None,
        };
        Ok(Holder { client, statements, sharing, name })
    }
}

/// What the first of several nodes sets right: that the database is shared, and numbers that go on where they were.
const FIRST_OF_NODES: &str = "
    INSERT INTO notes (name, value) VALUES ('holder', 'shared ' || gen_random_uuid())
        ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE notes.value NOT LIKE 'shared %';
    SELECT setval('session_numbers', (SELECT coalesce(max(no), 0) + 1 FROM sessions), false),
           setval('ending_numbers', (SELECT coalesce(max(n), 0) + 1 FROM endings), false)";

/// Who has the database, or had it last.
async fn holder_of(client: &Client) -> Result<Option<String>, StoreError> {
    let found = client.query_opt("SELECT value FROM notes WHERE name = 'holder'", &[]).await?;
    Ok(found.map(|row| row.try_get(0)).transpose()?)
}

/// The name under which the store notes a term.
fn note_of(term: &str) -> String {
    format!("term: {term}")
}

/// Notes what other nodes have to agree in.
async fn set_terms(client: &Client, terms: &Terms) -> Result<(), StoreError> {
    let (names, values): (Vec<String>, Vec<&str>) =
        terms.iter().map(|(name, value)| (note_of(name), value.as_str())).unzip();
    let sql = "INSERT INTO notes (name, value) SELECT * FROM unnest($1::text[], $2::text[])
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    client.execute(sql, &[&names, &values]).await?;
    Ok(())
}

/// Looks whether this node agrees with those that are there.
async fn check_terms(
    database: &DatabaseUrl,
    client: &Client,
    scoring: &Scoring,
    terms: &Terms,
) -> Result<(), StoreError> {
    let (found, known) = (schema_version(client).await?, MIGRATIONS.len() as i64);
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let differs = |what: &str| StoreError::Differs { database: database.to_string(), what: what.to_owned() };
    if found < known {
        return Err(differs("program: this one is newer, and changes the tables"));
    }
    if counted_by(client).await?.as_deref() != Some(&*scoring.describe()) {
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

/// The name that the arena in a database has among those that share a message bus. Made when it is first asked for.
pub(crate) async fn arena_id(client: &Client) -> Result<String, StoreError> {
    let sql = "INSERT INTO notes (name, value) VALUES ('arena', gen_random_uuid()::text) ON CONFLICT DO NOTHING";
    client.execute(sql, &[]).await?;
    Ok(client.query_one("SELECT value FROM notes WHERE name = 'arena'", &[]).await?.try_get(0)?)
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

/// Tries to get a lock until it has it, or `patience` is over. Whether it has it.
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

async fn lock(database: &DatabaseUrl, client: &Client, access: Access) -> Result<(), StoreError> {
    let try_lock = match access {
        Access::Alone => "pg_try_advisory_lock",
        Access::Shared => "pg_try_advisory_lock_shared",
    };
    if wait_for(client, try_lock, LOCK, WAIT_FOR_LOCK).await? {
        return Ok(());
    }
    let holder = client
        .query_opt(
            "SELECT coalesce(host(a.client_addr), 'its own machine'), a.pid, l.mode FROM pg_locks l
             JOIN pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.classid = $1::int4::bigint::oid AND l.granted
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND l.objid = (hashtext(current_schema())::bigint & 4294967295)::oid LIMIT 1",
            &[&LOCK],
        )
        .await?;
    let database = database.to_string();
    let Some(row) = holder else {
        return Err(StoreError::Taken { database, holder: "which ends just now".to_owned() });
    };
    let holder = format!("connected from {}, backend {}", row.try_get::<_, String>(0)?, row.try_get::<_, i32>(1)?);
    let is_shared = row.try_get::<_, &str>(2)? == "ShareLock";
    Err(match access {
        Access::Alone if is_shared => StoreError::TakenByNodes { database, holder },
        Access::Alone => StoreError::Taken { database, holder },
        Access::Shared => StoreError::TakenAlone { database, holder },
    })
}

/// Which schema the database has; 0 if none.
async fn schema_version(client: &Client) -> Result<i64, StoreError> {
    let there: bool = client.query_one("SELECT to_regclass('arena_schema') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        return Ok(0);
    }
    Ok(client.query_one("SELECT coalesce(max(version), 0) FROM arena_schema", &[]).await?.try_get(0)?)
}

/// Brings the schema up to date. Only whoever holds the lock alone does.
async fn migrate(client: &Client) -> Result<(), StoreError> {
    client.batch_execute("CREATE TABLE IF NOT EXISTS arena_schema (version BIGINT NOT NULL)").await?;
    let (found, known) = (schema_version(client).await?, MIGRATIONS.len() as i64);
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

/// The counts as stored, and up to where the journal tells of them. The suspicion is raised if some can't be counts.
pub(crate) async fn read_counts_and_place(
    client: &mut Client,
    suspicion: &Suspicion,
) -> Result<(Counts, Place), StoreError> {
    // One state of the database for both.
    let snapshot = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let last = snapshot.query_opt("SELECT n, mark FROM journal ORDER BY n DESC LIMIT 1", &[]).await?;
    let place = match last {
        Some(row) => Place { n: row.try_get(0)?, mark: Some(row.try_get(1)?) },
        None => Place::default(),
    };
    let counts = read_counts(snapshot.client(), suspicion).await?;
    snapshot.commit().await?;
    Ok((counts, place))
}

/// The counts as stored, as far as they can be counts. The suspicion is raised if some can't.
pub(crate) async fn read_counts(client: &Client, suspicion: &Suspicion) -> Result<Counts, StoreError> {
    let mut delta = Delta::default();
    let mut possible = true;
    for row in client.query("SELECT block, type, status, n FROM session_counts WHERE n <> 0", &[]).await? {
        match Status::from_wire(row.try_get(2)?) {
            Some(status) => drop(delta.sessions.insert((row.try_get(0)?, row.try_get(1)?, status), row.try_get(3)?)),
            None => possible = false,
        }
    }
    let mut counts = Counts::default();
    if !counts.apply(&delta) || !possible {
        suspicion.raise("a count of sessions");
    }
    Ok(counts)
}

/// How many bytes the store takes.
pub(crate) async fn measure(client: &Client) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    Ok(client.query_one(sql, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The last numbers that were given: the next ones follow. Only who has the database alone gives any; those who share it ask the
/// database for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) session: i64,
    pub(crate) user: i64,
    pub(crate) ending: i64,
}

impl Numbers {
    pub(crate) async fn read(client: &Client) -> Result<Numbers, StoreError> {
        let row = client
            .query_one(
                "SELECT (SELECT coalesce(max(no), 0) FROM sessions), (SELECT coalesce(max(no), 0) FROM users),
                        (SELECT coalesce(max(n), 0) FROM endings)",
                &[],
            )
            .await?;
        Ok(Numbers { session: row.try_get(0)?, user: row.try_get(1)?, ending: row.try_get(2)? })
    }
}

macro_rules! statements {
    ($(#[$about:meta])* $all:ident: $($(#[$doc:meta])* $name:ident: $sql:expr;)*) => {
        $(#[$about])*
        pub(crate) struct $all {
            $($(#[$doc])* pub(crate) $name: Statement,)*
        }

        impl $all {
            async fn prepare(client: &Client) -> Result<$all, StoreError> {
                // One round trip for all.
                let ($($name,)*) = tokio::try_join!(biased; $(async { client.prepare(&$sql).await },)*)?;
                Ok($all { $($name,)* })
            }
        }
    };
}

/// What a node that shares a database runs besides, and who it is.
pub(crate) struct Sharing {
    /// Its name in the journal.
    pub(crate) node: String,
    statements: SharedStatements,
}

impl std::ops::Deref for Sharing {
    type Target = SharedStatements;

    fn deref(&self) -> &SharedStatements {
        &self.statements
    }
}

statements! {
    /// What batches run besides where others write too, prepared once for each connection.
    SharedStatements:
    /// How these sessions stand, but for those that somebody else is just changing: what was decided of them is old anyway, and
    /// nobody has to wait for a node that stands still.
    lock_free_sessions: "SELECT no, version, status FROM sessions WHERE no = ANY($1) ORDER BY no FOR UPDATE SKIP LOCKED";
    /// How long these channels are. Of a session that is locked: nobody else adds to them then.
    find_lens: "SELECT w.session, w.channel, m.idx FROM unnest($1::int8[], $2::int2[]) AS w (session, channel)
         CROSS JOIN LATERAL (SELECT idx FROM messages
             WHERE messages.session = w.session AND messages.channel = w.channel ORDER BY idx DESC LIMIT 1) m";
    /// Nobody else changes what these users have done before the transaction is over. In one order for all, so that no two wait for
    /// each other.
    lock_users: "SELECT no FROM users WHERE id = ANY($1) ORDER BY no FOR NO KEY UPDATE";
    /// Numbers for so many new sessions.
    draw_numbers: "SELECT nextval('session_numbers') FROM generate_series(1, $1::int8)";
    lock_numbers_of_users: format!("SELECT pg_advisory_xact_lock({USERS_LOCK}, hashtext(current_schema()))");
    /// Numbers those of these users that have none.
    number_users: "INSERT INTO users (no, id)
         SELECT (SELECT coalesce(max(no), 0) FROM users) + row_number() OVER (ORDER BY w.place), w.id
         FROM unnest($1::text[]) WITH ORDINALITY AS w (id, place)
         WHERE NOT EXISTS (SELECT FROM users known WHERE known.id = w.id)";
    /// Tells how long it took, in microseconds: what stands in a row is worked out from left to right.
    take_turn: format!("SELECT pg_advisory_xact_lock({TURN_LOCK}, hashtext(current_schema()))::text,
         (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint");
    insert_numbered_endings: "INSERT INTO endings (n, session)
         SELECT nextval('ending_numbers'), w.session FROM unnest($1::int8[]) WITH ORDINALITY AS w (session, place)
         ORDER BY w.place";
    insert_journal: format!("INSERT INTO journal (n, at, node, changed, hidden, users, counts, administration)
         SELECT coalesce((SELECT max(n) FROM journal), 0) + 1, {NOW_MS}, $1::text, $2::text[], $3::text[], $4::int8[], $5::text,
             $6::bool");
}

/// Deletes invites by their codes. Each is looked up by the index, whatever the planner takes the table's size for.
pub(super) const DELETE_INVITES: &str = "DELETE FROM invites WHERE ctid = ANY (ARRAY(
         SELECT f.ctid FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT ctid FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f))";

statements! {
    /// What batches run, prepared once for each connection.
    Statements:
    /// Which of these keys have been answered.
    find_answers: "SELECT key, request, body FROM answers WHERE key = ANY($1)";
    /// How these sessions stand; nobody else changes them before the transaction is over.
    lock_sessions: "SELECT no, version, status FROM sessions WHERE no = ANY($1) ORDER BY no FOR UPDATE";
    /// What these users have done.
    find_careers: "SELECT u.id, u.no, c.session, c.standings,
             (SELECT coalesce(max(last.n), 0) FROM careers last WHERE last.user_no = u.no) FROM users u
         LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
    /// Which of these ids sessions have.
    find_ids: "SELECT f.id FROM unnest($1::text[]) AS w (id) CROSS JOIN LATERAL
         (SELECT id FROM sessions s WHERE right(s.id, 12) = right(w.id, 12) AND s.id = w.id LIMIT 1) f";
    /// Which of these invites sessions have.
    find_codes: "SELECT f.code FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT code FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f";
    insert_sessions: "INSERT INTO sessions (no, status, type, version, wake_at, created_at, ended_at, ending, category,
             deadline, id, seed, options, invites, announced, players, scores, attributions, state, imported, usage, script,
             unattended, rated)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::text[],
             $9::text[], $10::int8[], $11::text[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::text[],
             $17::text[], $18::text[], $19::text[], $20::int8[], $21::text[], $22::text[], $23::int8[],
             $24::text[])";
    update_sessions: "UPDATE sessions s SET status = u.status, version = u.version, wake_at = u.wake_at,
             ended_at = u.ended_at, ending = u.ending, category = u.category, deadline = u.deadline,
             announced = u.announced, players = u.players, scores = u.scores, attributions = u.attributions,
             state = u.state, usage = u.usage, unattended = u.unattended
         FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::text[], $8::text[],
             $9::int8[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
             $16::int8[])
             AS u (no, before, status, version, wake_at, ended_at, ending, category, deadline, announced, players, scores,
                   attributions, state, usage, unattended)
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
    /// In one order for all, so that no two nodes wait for each other.
    enter_boards: "INSERT INTO boards (id, type, options, rated)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) ORDER BY 1 ON CONFLICT DO NOTHING";
    insert_endings: "INSERT INTO endings (n, session) SELECT * FROM unnest($1::int8[], $2::int8[])";
    delete_sessions: "DELETE FROM sessions WHERE no = ANY($1)";
    delete_messages: "DELETE FROM messages WHERE session = ANY($1)";
    delete_invites: DELETE_INVITES;
    add_counts: "INSERT INTO session_counts AS c (block, type, status, n)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[])
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n RETURNING block, type, status, n";
    add_totals: "INSERT INTO totals AS t (name, n) SELECT * FROM unnest($1::text[], $2::int8[])
         ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n RETURNING n";
}
