//! The writing connection, which holds the lock on the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_model::Scoring;
use tokio_postgres::Client;

use super::connection::{BY_KEY, Primary, Settings, check_sessions, connect_to_primary};
use super::schema::{migrate, schema_version};
use super::statements::{LOCK, START_LOCK, Sharing, Statements};
use super::url::DatabaseServer;
use crate::derived::standings::{counted_by, follow_scoring};
use crate::sql::Db;
use crate::tables::{COMPATIBLE, POSTGRES};
use crate::{DatabaseUrl, NodeTerms, StoreError};

/// The time for which a starting arena waits for the lock of another arena, which may be stopping, or may have ended
/// without a notice to the database.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

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
