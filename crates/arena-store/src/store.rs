//! The store as everybody else sees it: what it promises, whichever of the two backends keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arena_model::{
    Board, Channel, ChatMessage, ContentHash, InviteCode, Order, Scoring, ScoringEntry, Script, ScriptVersion, Session,
    SessionId, Standings, Timestamp, UserId, UserProfile,
};
use futures_util::future::Either;

use crate::{
    AuditEntry, AuditNo, Ban, BanSubject, BoardFacts, Changes, Commit, CommitError, DatabaseUrl, Due, EndingNo,
    ImportedSession, Nodes, Page, PostgresStore, ProfileWrite, Recount, SessionFilter, SessionNo, SqliteStore,
    StoreError, StoredAnswer, StoredSession, Taken, Terms, Totals,
};

/// Bytes of text after which a read of messages is long enough. Bounds what one reader can have in memory at a time.
const READ_BYTES: usize = 1024 * 1024;

/// Where an arena keeps everything that it remembers.
pub enum Store {
    /// In a file of a data folder.
    Sqlite(SqliteStore),
    /// In a database that runs elsewhere.
    Postgres(Box<PostgresStore>),
}

impl Store {
    /// Opens the store of a data folder, as [`SqliteStore::open`] does.
    ///
    /// # Errors
    /// If the folder can't be used, another process uses it, or a newer program made it.
    pub fn open(folder: &Path, scoring: Scoring) -> Result<Store, StoreError> {
        Ok(Store::Sqlite(SqliteStore::open(folder, scoring)?))
    }

    /// Opens the store in a Postgres database, as [`PostgresStore::connect`] does.
    ///
    /// # Errors
    /// If the database can't be reached or used, another arena uses it, or a newer program made what is in it.
    pub async fn connect(database: DatabaseUrl, scoring: Scoring) -> Result<Store, StoreError> {
        Ok(Store::Postgres(Box::new(PostgresStore::connect(database, scoring).await?)))
    }

    /// Opens the store in a Postgres database together with other arenas, as [`PostgresStore::join`] does.
    ///
    /// # Errors
    /// As [`Store::connect`]; and if an arena has the database for itself, or those that share it don't agree.
    pub async fn join(database: DatabaseUrl, scoring: Scoring, terms: &Terms) -> Result<Store, StoreError> {
        Ok(Store::Postgres(Box::new(PostgresStore::join(database, scoring, terms).await?)))
    }

    /// The nodes that the store is shared with, this one among them; `None` where it is this process's alone.
    pub fn nodes(&self) -> Option<&Arc<Nodes>> {
        match self {
            Store::Sqlite(_) => None,
            Store::Postgres(store) => store.nodes(),
        }
    }

    /// True if [`Store::follow`] has something to tell although the store isn't shared: the database was away, and may have come back
    /// without its last commits.
    pub fn is_behind(&self) -> bool {
        match self {
            Store::Sqlite(_) => false,
            Store::Postgres(store) => store.is_behind(),
        }
    }

    /// What other nodes have changed since the last call, of which there is nothing if the store isn't shared. Counts and leaderboards
    /// follow by themselves. On return, all is known that was committed before the call; it costs what has changed.
    ///
    /// # Errors
    /// If the store can't be read: then nothing is lost, and the next call tells.
    pub async fn follow(&self) -> Result<Changes, StoreError> {
        match self {
            Store::Sqlite(_) => Ok(Changes::default()),
            Store::Postgres(store) => store.follow().await,
        }
    }

    /// How many bytes the store takes on the disk: its log included for SQLite, for Postgres its tables and indexes, as of the last
    /// minute. What can't be looked at counts as nothing.
    pub fn bytes(&self) -> u64 {
        match self {
            Store::Sqlite(store) => store.bytes(),
            Store::Postgres(store) => store.bytes(),
        }
    }

    /// Compares all derived tables (counts, totals, endings, histories, standings) with the sessions, and makes again what disagrees, which
    /// is told in the log. Play goes on meanwhile. Reads everything, at half of a core's speed.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn check_derived(&self) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.check_derived().await,
            Store::Postgres(store) => store.check_derived().await,
        }
    }

    /// Waits until a derived table turns out to be wrong: time for [`Store::check_derived`].
    pub async fn suspected(&self) {
        match self {
            Store::Sqlite(store) => store.suspicion().wait().await,
            Store::Postgres(store) => store.suspicion().wait().await,
        }
    }

    /// Finds out if the store can write. While play writes, its own transactions say so, and a writer that is at one transaction for less than
    /// ten seconds is only busy. An idle store is asked to begin a transaction; if nothing has become durable for a minute or the last transaction
    /// failed, to make a small durable write.
    ///
    /// # Errors
    /// If it can't.
    pub async fn check_writing(&self) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.check_writing().await,
            Store::Postgres(store) => store.check_writing().await,
        }
    }

    /// Stores a commit, whole or not at all; on return it is durable. It is given back, for its content to be shown.
    ///
    /// # Errors
    /// [`CommitError`]; nothing is stored then.
    pub async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        match self {
            Store::Sqlite(store) => store.commit(commit).await,
            Store::Postgres(store) => store.commit(commit).await,
        }
    }

    /// Forgets answers to idempotent requests that were given before `before`.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_answers(&self, before: Timestamp) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.forget_answers(before).await,
            Store::Postgres(store) => store.forget_answers(before).await,
        }
    }

    /// The answer that was given under an idempotency key.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_answer(&self, key: &[u8; 32]) -> Result<Option<StoredAnswer>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_answer(key).await,
            Store::Postgres(store) => store.find_answer(key).await,
        }
    }

    /// A session by its id.
    ///
    /// # Errors
    /// If the store can't be read, or the session's row is damaged.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<StoredSession>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_session(id).await,
            Store::Postgres(store) => store.find_session(id).await,
        }
    }

    /// The session that an invite belongs to.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_invite(&self, invite: InviteCode) -> Result<Option<SessionId>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_invite(invite).await,
            Store::Postgres(store) => store.find_invite(invite).await,
        }
    }

    /// Messages of a channel from index `from` on, at most `limit`, in order; fewer if they are long, but at least one if
    /// there is one. `no` is the session's number; the public channel has none.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.list_messages_within(no, channel, from, limit, READ_BYTES).await
    }

    /// [`Store::list_messages`] up to the message with which their texts come to `most_bytes`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages_within(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
            Store::Postgres(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
        }
    }

    /// How many messages the public channel has.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn public_len(&self) -> Result<u64, StoreError> {
        match self {
            Store::Sqlite(store) => store.public_len().await,
            Store::Postgres(store) => store.public_len().await,
        }
    }

    /// Sessions that a filter lets through, newest first, from the `offset`th on, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_sessions(filter, offset, limit).await,
            Store::Postgres(store) => store.list_sessions(filter, offset, limit).await,
        }
    }

    /// How many sessions there are of each type and status.
    pub fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        match self {
            Store::Sqlite(store) => store.count_sessions(filter),
            Store::Postgres(store) => store.count_sessions(filter),
        }
    }

    /// Sessions whose `wake_at` has come, the longest due first, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_due(now, limit).await,
            Store::Postgres(store) => store.list_due(now, limit).await,
        }
    }

    /// When the next session is due.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_next_due().await,
            Store::Postgres(store) => store.find_next_due().await,
        }
    }

    /// Bans somebody; a ban that there is already gets the new reason and time.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn ban(&self, ban: Ban, audit: AuditEntry) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.ban(ban, audit).await,
            Store::Postgres(store) => store.ban(ban, audit).await,
        }
    }

    /// Lets somebody in again. Whether there was a ban; where there was none, nothing is recorded.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn lift_ban(&self, subject: BanSubject, audit: AuditEntry) -> Result<bool, CommitError> {
        match self {
            Store::Sqlite(store) => store.lift_ban(subject, audit).await,
            Store::Postgres(store) => store.lift_ban(subject, audit).await,
        }
    }

    /// All bans, in the order of their subjects' texts.
    ///
    /// # Errors
    /// If the store can't be read, or a ban is damaged.
    pub async fn list_bans(&self) -> Result<Vec<Ban>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_bans().await,
            Store::Postgres(store) => store.list_bans().await,
        }
    }

    /// Records something that an administrator did without changing anything that is stored.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn record(&self, entry: AuditEntry) -> Result<AuditNo, CommitError> {
        match self {
            Store::Sqlite(store) => store.record(entry).await,
            Store::Postgres(store) => store.record(entry).await,
        }
    }

    /// Entries with their numbers, newest first, from the `offset`th on, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_audit(&self, offset: u64, limit: usize) -> Result<Page<(AuditNo, AuditEntry)>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_audit(offset, limit).await,
            Store::Postgres(store) => store.list_audit(offset, limit).await,
        }
    }

    /// Takes the content of a message away, for good, and keeps its hash, which is returned; `None` if there is no such
    /// message. `no` is the session's number; the public channel has none. What was hidden before stays as it is, and isn't
    /// recorded again.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn hide_message(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        index: u64,
        audit: impl Fn(ContentHash) -> AuditEntry + Send + 'static,
    ) -> Result<Option<ContentHash>, CommitError> {
        match self {
            Store::Sqlite(store) => store.hide_message(no, channel, index, audit).await,
            Store::Postgres(store) => store.hide_message(no, channel, index, audit).await,
        }
    }

    /// Removes a session in any state. If it has ended, the histories, standings and totals of its players become what
    /// they would be without it; that takes a look at all their other games.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the session isn't at this version any more; or if the store can't write.
    pub async fn remove_session(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.remove_session(no, session, audit).await,
            Store::Postgres(store) => store.remove_session(no, session, audit).await,
        }
    }

    /// What ended games count for.
    pub fn scoring(&self) -> &Scoring {
        match self {
            Store::Sqlite(store) => store.scoring(),
            Store::Postgres(store) => store.scoring(),
        }
    }

    /// The profiles of those of these users that are known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_profiles<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<BTreeMap<UserId, UserProfile>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_profiles(users).await,
            Store::Postgres(store) => store.find_profiles(users).await,
        }
    }

    /// Users in the order in which they became known, from the `offset`th on, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_users(offset, limit).await,
            Store::Postgres(store) => store.list_users(offset, limit).await,
        }
    }

    /// The users that are benchmark models.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_benchmarks(&self) -> Result<BTreeSet<UserId>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_benchmarks().await,
            Store::Postgres(store) => store.list_benchmarks().await,
        }
    }

    /// Changes a profile, and makes one if there is none. The answer is what `respond` makes of it.
    ///
    /// # Errors
    /// [`CommitError::Answered`] if one of the keys was used before; otherwise if the store can't write.
    pub async fn change_profile(&self, write: ProfileWrite) -> Result<String, CommitError> {
        match self {
            Store::Sqlite(store) => store.change_profile(write).await,
            Store::Postgres(store) => store.change_profile(write).await,
        }
    }

    /// Says whether a user is a benchmark model. Returns its profile.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn set_benchmark(
        &self,
        user: UserId,
        benchmark: bool,
        audit: AuditEntry,
    ) -> Result<UserProfile, CommitError> {
        match self {
            Store::Sqlite(store) => store.set_benchmark(user, benchmark, audit).await,
            Store::Postgres(store) => store.set_benchmark(user, benchmark, audit).await,
        }
    }

    /// The ended sessions of a user, newest first; `None` if the user isn't known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_played(user, offset, limit).await,
            Store::Postgres(store) => store.list_played(user, offset, limit).await,
        }
    }

    /// What scoring remembers of a user; `None` if the user isn't known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_standings(&self, user: &UserId) -> Result<Option<Standings>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_standings(user).await,
            Store::Postgres(store) => store.find_standings(user).await,
        }
    }

    /// A page of a leaderboard, the largest first. The first look at a board reads all of it; after that it is kept in
    /// order until nobody has looked for a while.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_board(board, order, offset, limit).await,
            Store::Postgres(store) => store.list_board(board, order, offset, limit).await,
        }
    }

    /// The boards of a challenge type on which games have counted, in no order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_boards(&self, challenge: &str) -> Result<Vec<BoardFacts>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_boards(challenge).await,
            Store::Postgres(store) => store.list_boards(challenge).await,
        }
    }

    /// Forgets leaderboards that nobody has looked at since the last call.
    pub fn forget_idle_boards(&self) {
        match self {
            Store::Sqlite(store) => store.forget_idle_boards(),
            Store::Postgres(store) => store.forget_idle_boards(),
        }
    }

    /// How much has been played.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_totals(&self) -> Result<Totals, StoreError> {
        match self {
            Store::Sqlite(store) => store.read_totals().await,
            Store::Postgres(store) => store.read_totals().await,
        }
    }

    /// Counts all games of all users anew, and compares with what is stored. Where they differ, what was counted takes the
    /// place of what was stored, with an entry in the audit for each user that `audit` makes. Play goes on meanwhile.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn recount(&self, audit: impl Fn(&UserId) -> AuditEntry) -> Result<Recount, CommitError> {
        match self {
            Store::Sqlite(store) => store.recount(audit).await,
            Store::Postgres(store) => store.recount(audit).await,
        }
    }

    /// Ended sessions behind `after`, in the order in which they ended, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_ended(
        &self,
        after: EndingNo,
        limit: usize,
    ) -> Result<Vec<(EndingNo, SessionNo, Session)>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_ended(after, limit).await,
            Store::Postgres(store) => store.list_ended(after, limit).await,
        }
    }

    /// Sessions behind `after` that haven't ended, in the order of creation: those of the next block of numbers that has
    /// some. `None` stands before the first.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_running(&self, after: Option<SessionNo>) -> Result<Vec<(SessionNo, Session)>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_running(after).await,
            Store::Postgres(store) => store.list_running(after).await,
        }
    }

    /// Takes a session over, with its messages, and counts it, all in one commit. Of several calls the first counts first,
    /// whenever what they return is awaited.
    ///
    /// # Errors
    /// If the session hasn't ended, or the store can't write.
    pub fn import_session(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        match self {
            Store::Sqlite(store) => Either::Left(store.import_session(imported)),
            Store::Postgres(store) => Either::Right(store.import_session(imported)),
        }
    }

    /// Takes a user over. One of whom something is known already stays as it is. Ordered like
    /// [`Store::import_session`].
    ///
    /// # Errors
    /// If the store can't write.
    pub fn import_user(
        &self,
        profile: Arc<UserProfile>,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        match self {
            Store::Sqlite(store) => Either::Left(store.import_user(profile)),
            Store::Postgres(store) => Either::Right(store.import_user(profile)),
        }
    }

    /// Keeps a script, if it isn't kept yet; on return it is durable.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn keep_script(&self, script: &Script) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.keep_script(script).await,
            Store::Postgres(store) => store.keep_script(script).await,
        }
    }

    /// Removes the scripts that no session is played by any more, and says how many. A script is kept before its first session is there,
    /// so this is for the start of an arena, before sessions are created. Where the store is shared others may create some, and nothing
    /// is removed.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_scripts(&self) -> Result<u64, CommitError> {
        match self {
            _ if self.nodes().is_some() => Ok(0),
            Store::Sqlite(store) => store.forget_scripts().await,
            Store::Postgres(store) => store.forget_scripts().await,
        }
    }

    /// The script of this version, if it was kept.
    ///
    /// # Errors
    /// If the store can't be read, or the script isn't what it was.
    pub async fn find_script(&self, version: ScriptVersion) -> Result<Option<Script>, StoreError> {
        match self {
            Store::Sqlite(store) => store.find_script(version).await,
            Store::Postgres(store) => store.find_script(version).await,
        }
    }
}
