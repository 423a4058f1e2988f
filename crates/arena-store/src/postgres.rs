//! The Postgres store. An arena writes on one connection, which holds a lock on the database, and reads on several
//! others.
//!
//! A transition locks the row of its session and compares the version; in addition, a unique index protects the indexes
//! of messages. Counts and leaderboards are mirrored in memory. With exclusive use of the database, the mirrors stay
//! correct because no other program writes. The lock belongs to the writing connection, and a new writing connection
//! first checks if another arena has used the database in between. In a shared database, readers first update the mirrors
//! from the rows that have changed (`shared.rs`).

mod batch;
mod connection;
mod holder;
mod marks_reader;
pub(crate) mod nodes;
mod readers;
mod schema;
mod shared;
mod statements;
pub(crate) mod url;
mod writer;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena_model::{Channel, ChatMessage, Scoring, Session, Status};
use futures_util::future::BoxFuture;

use self::connection::{Reach, server_start};
use self::holder::{Holder, arena_id};
use self::readers::PostgresReaders;
use self::shared::Shared;
use self::writer::PostgresWriter;
use crate::derived::counts::read_counts;
use crate::derived::standings::follow_scoring;
use crate::errors::Failure;
use crate::mirror::{Mirror, PagePlan, Rankings};
use crate::sql::{Db, PooledConnection, Value, columns, count};
use crate::tables::{Messages, Sessions, channel_number, read_message, read_session};
use crate::writing::read_numbers;
use crate::{DatabaseUrl, Marks, NodeTerms, Nodes, SessionFilter, SessionMark, SessionNo, StoreError};

/// A schema of a database. Either one process uses it exclusively, or several nodes share it.
pub struct PostgresStore {
    pub(crate) readers: PostgresReaders,
    pub(crate) writer: PostgresWriter,
    pub(crate) mirror: Mirror,
    reach: Reach,
    /// The data for reading other nodes' commits, if the database is shared.
    shared: Option<Shared>,
}

impl PostgresStore {
    /// Opens the database for exclusive use by this process, and creates missing tables. `scoring` defines how ended
    /// games count. If the stored standings have another scoring, the store recounts all games first. This must be
    /// called within a Tokio runtime, which the store uses from then on.
    ///
    /// # Errors
    /// If the database can't be reached or used, another arena uses it, or a newer program created the store in it.
    pub async fn connect(database: DatabaseUrl, scoring: Scoring) -> Result<PostgresStore, StoreError> {
        let holder = Holder::take(&database).await?;
        follow_scoring(&mut holder.db(), &scoring).await?;
        PostgresStore::start(database, holder, scoring).await
    }

    /// Opens the database like [`PostgresStore::connect`], but doesn't check the scoring of the stored standings. This
    /// is for callers that neither end sessions nor read standings.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect_as_counted(database: DatabaseUrl) -> Result<PostgresStore, StoreError> {
        let holder = Holder::take(&database).await?;
        PostgresStore::start(database, holder, Scoring::default()).await
    }

    async fn start(database: DatabaseUrl, holder: Holder, scoring: Scoring) -> Result<PostgresStore, StoreError> {
        let mirror = Mirror::of(scoring, Rankings::default());
        mirror.set_counts(read_counts(&mut holder.db()).await?);
        let (numbers, reach) = (read_numbers(&mut holder.db()).await?, Reach::of(holder.primary.server));
        let readers = PostgresReaders::of(&database, &reach)?;
        let writer = PostgresWriter::start(database, holder, numbers, mirror.clone(), reach.clone(), None);
        Ok(PostgresStore { readers, writer, mirror, reach, shared: None })
    }

    /// Opens the database for shared use with other nodes, and creates missing tables. Later nodes must have the same
    /// `terms` and scoring as the first node. This must be called within a Tokio runtime, as
    /// [`PostgresStore::connect`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect`]; and if an arena uses the database exclusively, or this node's `terms` differ from
    /// those of the others.
    pub async fn join(database: DatabaseUrl, scoring: Scoring, terms: &NodeTerms) -> Result<PostgresStore, StoreError> {
        let (holder, node) = Holder::join(&database, &scoring, terms).await?;
        let reach = Reach::of(holder.primary.server);
        let readers = PostgresReaders::of(&database, &reach)?;
        let mirror = Mirror::of(scoring, Rankings::shared());
        let nodes = Arc::new(Nodes::new(arena_id(&holder.client).await?, node, server_start(&holder.client).await?));
        let numbers = read_numbers(&mut holder.db()).await?;
        let shared = Shared::start(&nodes, &holder.name, &database, &reach)?;
        let writer = PostgresWriter::start(database, holder, numbers, mirror.clone(), reach.clone(), Some(nodes));
        let store = PostgresStore { readers, writer, mirror, reach, shared: Some(shared) };
        // This also reads the database's clock.
        store.refresh_counts().await?;
        Ok(store)
    }

    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.shared.as_ref().map(|shared| &shared.nodes)
    }

    /// Returns the state of rows that other nodes may have changed, at a time after the call.
    pub(crate) async fn marks(&self, known: &[SessionMark]) -> Result<Arc<Marks>, StoreError> {
        match &self.shared {
            Some(shared) => shared.marks(known).await,
            None => Ok(Arc::default()),
        }
    }

    pub(crate) fn losses(&self) -> u64 {
        self.reach.losses()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.reach.bytes.load(Ordering::Relaxed)
    }

    /// Reads the counts that other nodes have changed. Does nothing if the database isn't shared.
    pub(crate) async fn refresh_counts(&self) -> Result<(), StoreError> {
        match &self.shared {
            Some(shared) => shared.refresh_counts(&self.readers, &self.mirror).await,
            None => Ok(()),
        }
    }

    /// Moves the players of other nodes' games on the leaderboards in memory. Does nothing if the database isn't shared.
    pub(crate) async fn refresh_rankings(&self) -> Result<(), StoreError> {
        match &self.shared {
            Some(shared) => shared.refresh_rankings(&self.readers, &self.mirror).await,
            None => Ok(()),
        }
    }

    /// Runs long reads in one snapshot, on a separate connection.
    pub(crate) async fn aside<C, T, F>(&self, mut context: C, read: F) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: for<'r> FnOnce(&'r mut C, &'r mut Db) -> BoxFuture<'r, Result<T, Failure>> + Send + 'static,
    {
        let mut db = Db::Reader(PooledConnection(Some(self.readers.connection().await?)));
        db.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let result = read(&mut context, &mut db).await?;
        db.batch("COMMIT").await?;
        if let Db::Reader(PooledConnection(connection)) = &mut db {
            drop(connection.take());
        }
        Ok(result)
    }

    pub(crate) async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        // Returns messages while the total size of those before them is below the limit, and so at least one.
        let sql = format!(
            "SELECT {} FROM (
                 SELECT *, sum(octet_length(content)) OVER (ORDER BY idx) - octet_length(content) AS before
                 FROM messages WHERE session = $1 AND channel = $2 AND idx >= $3 ORDER BY idx LIMIT $4) page
             WHERE before < $5 ORDER BY idx",
            columns::<Messages>("")
        );
        let (no, limit, most_bytes) = (no.map_or(0, |no| no.0), limit as u64, most_bytes as u64);
        let values = [no, channel_number(channel), count(from), count(limit), count(most_bytes)].map(Value::from);
        self.readers.list(&sql, &values, |row| read_message(row, channel)).await
    }

    pub(crate) async fn list_sessions(
        &self,
        filter: &SessionFilter,
        plan: &PagePlan,
        limit: usize,
    ) -> Result<Vec<Session>, StoreError> {
        if plan.ranges.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {} FROM unnest($1::int8[], $2::int8[]) AS r (first, last)
             JOIN sessions s ON s.no BETWEEN r.first AND r.last
             WHERE s.unlisted = 0 AND ($5::text IS NULL OR s.type = $5) AND ($6::text IS NULL OR s.status = $6)
             ORDER BY s.no DESC LIMIT $3 OFFSET $4",
            columns::<Sessions>("s.")
        );
        let of = |of: fn(&RangeInclusive<i64>) -> &i64| {
            Value::List(plan.ranges.iter().map(|range| Value::from(*of(range))).collect())
        };
        let values = [
            of(RangeInclusive::start),
            of(RangeInclusive::end),
            count(limit as u64).into(),
            count(plan.skip).into(),
            filter.challenge.as_deref().into(),
            filter.status.map(Status::as_str).into(),
        ];
        self.readers.list(&sql, &values, |row| Ok(read_session(row)?.1)).await
    }
}
