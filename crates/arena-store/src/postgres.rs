//! The Postgres store: a database that an arena writes to on one connection, which holds a lock, and reads from on several.
//!
//! A transition is a transaction with the row of its session locked and its version compared; a unique index on the places of
//! messages holds the line besides. Counts and leaderboards are mirrored in memory. Where one arena has the database alone, that is
//! right because nobody else writes: the lock belongs to the connection that writes, and a connection that comes after it first
//! looks whether anybody else has had the database in between. Where several share it, the mirrors follow the journal (`journal.rs`).

mod administration;
mod batch;
mod connection;
mod derived;
mod journal;
mod plan;
mod reading;
mod standings;
mod text;
mod url;
mod users;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arena_model::{
    Channel, ChatMessage, InviteCode, Scoring, Script, ScriptVersion, Session, SessionId, Status, Timestamp,
    UserProfile,
};
use futures_util::FutureExt;

use self::batch::read_answer;
use self::connection::{Holder, Numbers, arena_id, read_counts, read_counts_and_place};
pub use self::journal::Changes;
use self::journal::{Look, Place, look};
use self::reading::Readers;
use self::text::encode;
pub use self::url::{DatabaseUrl, DatabaseUrlError};
use self::users::{find_user, user_no, write_profile};
use self::writer::{Mirror, Writer};
use crate::derived::Suspicion;
use crate::export::EndingNo;
use crate::import::{ImportedSession, Taken};
use crate::nodes::{Nodes, Terms};
use crate::ranking::Rankings;
use crate::rows::{Columns, SESSION_COLUMNS, channel_number, read_message, read_session};
use crate::scripts::{FORGET, read_script};
use crate::standings::read_or_pass_over;
use crate::{Commit, CommitError, Due, Page, SessionFilter, SessionNo, StoreError, StoredAnswer, StoredSession};

/// The store in one schema of a database. One process has it alone, or several share it.
pub struct PostgresStore {
    readers: Readers,
    writer: Writer,
    mirror: Mirror,
    /// What there is where others write too.
    shared: Option<Shared>,
    /// Held by whoever reads a leaderboard into memory.
    loading: tokio::sync::Mutex<()>,
}

/// What a store needs whose database others write to as well.
struct Shared {
    nodes: Arc<Nodes>,
    /// Who has the database: as long as it is these nodes, all that is written stands in the journal.
    holder: String,
    database: DatabaseUrl,
    /// Looks at the journal.
    looks: Readers,
    followed: tokio::sync::Mutex<Followed>,
}

/// How far the journal has been read.
struct Followed {
    /// The last entry.
    place: Place,
    /// What has been read but not been told, because reading broke off.
    untold: Changes,
}

/// The columns of a session in the table that is called `s`.
fn session_columns() -> String {
    let columns: Vec<String> = SESSION_COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect();
    columns.join(", ")
}

/// A number as the database takes it.
fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The same of a number that is as large as clients like.
fn place(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

impl PostgresStore {
    /// Takes the database for this process, and makes the tables in it if need be. `scoring` says what ended games count for;
    /// if it isn't the one that they were counted by, they are counted anew first. Must be called on a runtime, on which the
    /// store does its work from then on.
    ///
    /// # Errors
    /// If the database can't be reached or used, another arena uses it, or a newer program made what is in it.
    pub async fn connect(database: DatabaseUrl, scoring: Scoring) -> Result<PostgresStore, StoreError> {
        let holder = Holder::take(&database).await?;
        standings::follow_scoring(&holder.client, &scoring).await?;
        let suspicion = Arc::<Suspicion>::default();
        let counts = read_counts(&holder.client, &suspicion).await?;
        let mirror = Mirror::of(counts, scoring, Rankings::default(), suspicion);
        let numbers = Numbers::read(&holder.client).await?;
        let readers = Readers::of(&database, Arc::clone(&mirror.ended))?;
        let writer = Writer::start(database, holder, numbers, mirror.clone(), None);
        Ok(PostgresStore { readers, writer, mirror, shared: None, loading: tokio::sync::Mutex::new(()) })
    }

    /// Takes the database together with others that are started so, and makes the tables in it if need be. The first of them says by
    /// its `terms` and its scoring what the others have to agree in. Must be called on a runtime, as [`PostgresStore::connect`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect`]; and if an arena has the database for itself, or the others don't agree.
    pub async fn join(database: DatabaseUrl, scoring: Scoring, terms: &Terms) -> Result<PostgresStore, StoreError> {
        let (mut holder, node) = Holder::join(&database, &scoring, terms).await?;
        let suspicion = Arc::<Suspicion>::default();
        let (counts, place) = read_counts_and_place(&mut holder.client, &suspicion).await?;
        let mirror = Mirror::of(counts, scoring, Rankings::that_others_move(), suspicion);
        let nodes = Arc::new(Nodes::new(arena_id(&holder.client).await?, node));
        let numbers = Numbers::read(&holder.client).await?;
        let readers = Readers::of(&database, Arc::clone(&mirror.ended))?;
        let shared = Shared {
            nodes: Arc::clone(&nodes),
            holder: holder.name.clone(),
            looks: Readers::for_looks(&database, Arc::clone(&mirror.ended))?,
            database: database.clone(),
            followed: tokio::sync::Mutex::new(Followed { place, untold: Changes::default() }),
        };
        let writer = Writer::start(database, holder, numbers, mirror.clone(), Some(nodes));
        let loading = tokio::sync::Mutex::new(());
        let store = PostgresStore { readers, writer, mirror, shared: Some(shared), loading };
        // So that it is known what time it is.
        store.follow().await?;
        Ok(store)
    }

    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.shared.as_ref().map(|shared| &shared.nodes)
    }

    /// Reads what others have changed since the last call, and makes counts and leaderboards follow.
    pub(crate) async fn follow(&self) -> Result<Changes, StoreError> {
        let Some(shared) = &self.shared else {
            // What is in memory was read before the connection was lost, from a database that may have lost commits since.
            let everything = self.mirror.taken_again.swap(false, Ordering::SeqCst);
            return Ok(Changes { everything, ..Changes::default() });
        };
        let mut followed = shared.followed.lock().await;
        loop {
            let sent = Instant::now();
            let rows = shared.looks.query(&look(), &[&followed.place.n]).await?;
            let look = Look::read(&rows)?;
            shared.nodes.clock.read(sent, Instant::now(), look.now_ms);
            if look.holder.as_deref() != Some(&*shared.holder) {
                let error = StoreError::Superseded { database: shared.database.to_string() };
                *self.mirror.ended.write() = Some(error.clone());
                return Err(error);
            }
            let is_rewound = look.is_rewound(&followed.place);
            let is_recounted = look.entries.iter().any(|entry| entry.news.derived);
            if is_rewound || is_recounted || look.is_forgotten(&followed.place) {
                let mut connection = self.readers.connection().await?;
                let (counts, place) = read_counts_and_place(&mut connection, &self.mirror.suspicion).await?;
                if is_rewound {
                    let (before, now) = (followed.place.n, place.n);
                    tracing::error!(
                        before,
                        now,
                        "the database has lost commits: entry {before} of its journal isn't the one that was read, and the last is {now} \
                         now; everything in memory is dropped and read again"
                    );
                }
                followed.place = place;
                *self.mirror.counts.write() = counts;
                self.mirror.rankings.forget_all();
                followed.untold.everything = true;
                return Ok(std::mem::take(&mut followed.untold));
            }
            let Look { entries, is_full, .. } = look;
            let moved = entries.iter().flat_map(|entry| entry.news.users.iter().copied()).collect();
            let moved = self.read_moves(moved).await?;
            // From here to the next look nothing is waited for, so that whoever is broken off has done all or nothing.
            self.mirror.rankings.place(&moved);
            for entry in entries {
                followed.place = Place { n: entry.n, mark: Some(entry.mark) };
                if !self.mirror.counts.write().apply(&entry.delta) {
                    self.mirror.suspicion.raise("a count of sessions");
                }
                // What this node has changed itself, it knows.
                if entry.node != shared.nodes.node() {
                    followed.untold.add(&entry.news);
                }
            }
            if !is_full {
                return Ok(std::mem::take(&mut followed.untold));
            }
        }
    }

    /// True if what is in memory may be of a state that the database has lost.
    pub(crate) fn is_behind(&self) -> bool {
        self.mirror.taken_again.load(Ordering::SeqCst)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.mirror.bytes.load(Ordering::Relaxed)
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        self.writer.commit(commit).await
    }

    pub(crate) async fn check_writing(&self) -> Result<(), CommitError> {
        self.writer.check().await
    }

    pub(crate) async fn forget_answers(&self, before: Timestamp) -> Result<(), CommitError> {
        // The oldest, a bounded number at a time, so that play hardly waits.
        let forget = "DELETE FROM answers WHERE no <= (SELECT max(no) FROM
             (SELECT no, at FROM answers ORDER BY no LIMIT 1000) oldest WHERE at < $1)";
        let forget = || {
            self.writer
                .write(move |writing| async move { Ok(writing.client().execute(forget, &[&before.0]).await?) }.boxed())
        };
        while forget().await? > 0 {}
        Ok(())
    }

    pub(crate) async fn find_answer(&self, key: &[u8; 32]) -> Result<Option<StoredAnswer>, StoreError> {
        let found = self.readers.query("SELECT request, body FROM answers WHERE key = $1", &[&&key[..]]).await?;
        found.first().map(|row| read_answer(row, 0)).transpose()
    }

    pub(crate) async fn find_session(&self, id: SessionId) -> Result<Option<StoredSession>, StoreError> {
        let last = |channel: Channel| {
            let number = channel_number(channel);
            format!(
                "LATERAL (SELECT idx, at FROM messages WHERE session = s.no AND channel = {number} ORDER BY idx DESC LIMIT 1)"
            )
        };
        let sql = format!(
            "SELECT {}, chat.idx, chat.at, operator.idx, operator.at FROM sessions s
             LEFT JOIN {} chat ON true LEFT JOIN {} operator ON true
             WHERE right(s.id, 12) = right($1, 12) AND s.id = $1",
            session_columns(),
            last(Channel::Chat(id)),
            last(Channel::Operator(id)),
        );
        let found = self.readers.query(&sql, &[&id.to_string()]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let (no, session) = read_session(row)?;
        let after = SESSION_COLUMNS.split(',').count();
        let last = |column: usize| row.integer_or_null(after + column);
        let len = |column: usize| -> Result<u64, StoreError> { Ok(last(column)?.unwrap_or(0).unsigned_abs()) };
        let (chat_len, operator_len) = (len(0)?, len(2)?);
        let last_activity = [last(1)?, last(3)?].into_iter().flatten().map(Timestamp).max();
        let last_activity = last_activity.map_or(session.facts.created_at, |at| at.max(session.facts.created_at));
        Ok(Some(StoredSession { no, session, chat_len, operator_len, last_activity }))
    }

    pub(crate) async fn find_invite(&self, invite: InviteCode) -> Result<Option<SessionId>, StoreError> {
        let sql = "SELECT s.id FROM invites i JOIN sessions s ON s.no = i.session
             WHERE i.made = right($1, 12) AND i.code = $1";
        let found = self.readers.query(sql, &[&invite.to_string()]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let id = row.text(0)?;
        id.parse().map(Some).map_err(|error| StoreError::damaged(id, error))
    }

    pub(crate) async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        // As many as fit, and at least one: each knows how long those before it are together.
        let sql = "SELECT idx, at, sender, recipient, method, content, hidden FROM (
                 SELECT *, sum(octet_length(content)) OVER (ORDER BY idx) - octet_length(content) AS before
                 FROM messages WHERE session = $1 AND channel = $2 AND idx >= $3 ORDER BY idx LIMIT $4) page
             WHERE before < $5 ORDER BY idx";
        let (no, channel_no) = (no.map_or(0, |no| no.0), channel_number(channel) as i16);
        let found =
            self.readers.query(sql, &[&no, &channel_no, &place(from), &number(limit), &number(most_bytes)]).await?;
        found.iter().map(|row| read_message(row, channel)).collect()
    }

    pub(crate) async fn public_len(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(idx), 0) FROM messages WHERE session = 0 AND channel = $1";
        Ok(self.readers.number(sql, &[&(channel_number(Channel::Invites) as i16)]).await?.unsigned_abs())
    }

    pub(crate) async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, StoreError> {
        let plan = self.mirror.counts.read().find_page(filter, offset, limit);
        let sql = format!(
            "SELECT {} FROM unnest($1::int8[], $2::int8[]) AS r (first, last)
             JOIN sessions s ON s.no BETWEEN r.first AND r.last
             WHERE ($5::text IS NULL OR s.type = $5) AND ($6::text IS NULL OR s.status = $6)
             ORDER BY s.no DESC LIMIT $3 OFFSET $4",
            session_columns()
        );
        let (first, last): (Vec<i64>, Vec<i64>) = plan.ranges.iter().map(|range| (range.start(), range.end())).unzip();
        let status = filter.status.map(Status::as_str);
        let rows = match plan.ranges.is_empty() {
            true => Vec::new(),
            false => {
                let page = (number(limit), place(plan.skip));
                self.readers.query(&sql, &[&first, &last, &page.0, &page.1, &filter.challenge, &status]).await?
            }
        };
        let items = rows.iter().map(|row| Ok(read_session(row)?.1)).collect::<Result<_, StoreError>>()?;
        Ok(Page { items, total: plan.total })
    }

    pub(crate) fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        self.mirror.counts.read().find_page(filter, 0, 0).total
    }

    pub(crate) async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
        let sql =
            "SELECT id, wake_at FROM sessions WHERE wake_at IS NOT NULL AND wake_at <= $1 ORDER BY wake_at LIMIT $2";
        let found = self.readers.query(sql, &[&now.0, &number(limit)]).await?;
        let due = found.iter().map(|row| {
            let id = row.text(0)?;
            let id = id.parse().map_err(|error| StoreError::damaged(id, error))?;
            Ok(Due { id, at: Timestamp(row.integer(1)?) })
        });
        due.collect()
    }

    pub(crate) async fn find_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL";
        let found = self.readers.query(sql, &[]).await?;
        Ok(found.first().map(|row| row.integer_or_null(0)).transpose()?.flatten().map(Timestamp))
    }

    pub(crate) async fn list_ended(
        &self,
        after: EndingNo,
        limit: usize,
    ) -> Result<Vec<(EndingNo, SessionNo, Session)>, StoreError> {
        let sql = format!(
            "SELECT {}, e.n FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 ORDER BY e.n LIMIT $2",
            session_columns()
        );
        let mut after = after.0;
        let mut sessions = Vec::new();
        // Again if some were passed over: what is damaged mustn't look like the end.
        while sessions.len() < limit {
            let rows = self.readers.query(&sql, &[&after, &number(limit - sessions.len())]).await?;
            let Some(last) = rows.last() else { break };
            let column = SESSION_COLUMNS.split(',').count();
            after = last.integer(column)?;
            for row in &rows {
                if let Some((no, session)) = read_or_pass_over(row)? {
                    sessions.push((EndingNo(row.integer(column)?), no, session));
                }
            }
        }
        Ok(sessions)
    }

    pub(crate) async fn list_running(&self, after: Option<SessionNo>) -> Result<Vec<(SessionNo, Session)>, StoreError> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE no BETWEEN $1 AND $2 AND status <> 'ended' ORDER BY no"
        );
        let mut next = after.map_or(1, |after| after.0 + 1);
        loop {
            // A block may have none left behind `after`, or have lost those that it was counted for.
            let Some(block) = self.mirror.counts.read().find_running(next) else { return Ok(Vec::new()) };
            let rows = self.readers.query(&sql, &[&next.max(*block.start()), block.end()]).await?;
            if !rows.is_empty() {
                return rows.iter().map(read_session).collect();
            }
            next = block.end() + 1;
        }
    }

    pub(crate) async fn keep_script(&self, script: &Script) -> Result<(), CommitError> {
        let (version, source) = (script.version().to_string(), script.source().to_owned());
        let sql = "INSERT INTO scripts (version, source) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let keep = self.writer.write(move |writing| {
            async move { Ok(writing.client().execute(sql, &[&version, &source]).await.map(drop)?) }.boxed()
        });
        keep.await
    }

    pub(crate) async fn forget_scripts(&self) -> Result<u64, CommitError> {
        self.writer.write(|writing| async move { Ok(writing.client().execute(FORGET, &[]).await?) }.boxed()).await
    }

    pub(crate) async fn find_script(&self, version: ScriptVersion) -> Result<Option<Script>, StoreError> {
        let sql = "SELECT source FROM scripts WHERE version = $1";
        let found = self.readers.query(sql, &[&version.to_string()]).await?;
        found.first().map(|row| read_script(version, row.text(0)?.to_owned())).transpose()
    }

    pub(crate) fn import_session(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        self.writer.import(imported)
    }

    pub(crate) fn import_user(
        &self,
        profile: Arc<UserProfile>,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        self.writer.write(move |writing| {
            async move {
                let locked = [encode(profile.user_id.as_str()).into_owned()];
                writing.lock_users(&locked).await?;
                let known = find_user(writing.client(), &profile.user_id).await?;
                // A user who is only known for having played may still be told of.
                let blank = UserProfile::of(profile.user_id.clone());
                let is_blank = known.as_ref().is_none_or(|(_, known)| *known == blank);
                let same = known.as_ref().is_some_and(|(_, known)| *known == *profile);
                if same || !is_blank {
                    return Ok(Taken::Known);
                }
                let no = user_no(writing, &profile.user_id).await?;
                write_profile(writing.client(), no, &profile).await?;
                let benchmark = i64::from(profile.is_benchmark);
                let sql = "UPDATE users SET benchmark = $2 WHERE no = $1";
                writing.client().execute(sql, &[&no, &benchmark]).await?;
                writing.news.administration = profile.is_benchmark;
                Ok(Taken::New)
            }
            .boxed()
        })
    }
}
