//! Records of sessions for their readers, and the public log of all sessions.
//!
//! A record is derived from the store at each request. `records/sequencer.rs` appends to the log, and
//! `routes/records.rs` and `routes/log.rs` serve both.

pub(crate) mod deals;
mod forks;
mod handovers;
mod index;
mod keys;
mod sequencer;
mod shared_work;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_engine::{ContentPlace, Engine, EngineError, RecordSource};
use arena_identity::ServerSecret;
use arena_model::{Channel, ChatMessage, ContentHash, Party, Phase, Session, SessionId, hex};
use arena_record::log::{Leaf, LogOutcomes, NoteKey, OutcomeCounts, Tile, TileKind, bundle_bytes, tile_bytes};
use arena_record::{
    Commitment, Hash, KeyHandover, LogProof, RecordError, RecordInput, RecordKey, RecordPublicKey, RecordViewer,
    SessionSalts, is_refusal, last_hash, record_hash, write_record,
};
use axum::http::StatusCode;
use bytes::Bytes;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use crate::auth::SecretFileError;
use crate::blocking::blocking;
use crate::error::{ApiError, ApiResult};
use crate::limits::Reservation;
use crate::settings::RecordSettings;
use deals::LoggedDeals;
use index::{Block, TILE_WIDTH, TreeIndex};
use keys::RecordKeys;
use shared_work::SharedWork;

/// The release of this program.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The release in the headers of sessions that don't name the release of their creation.
const UNKNOWN_RELEASE: &str = "unknown";

#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("invalid key in {file}: {reason}")]
    Key { file: String, reason: String },
    #[error("invalid handovers in {file}: {reason}")]
    Handovers { file: String, reason: String },
    #[error("records.origin {origin:?} must be a name without spaces and `+`, such as arena.example/log")]
    Origin { origin: String },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordFailure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The reader's address has read too much, or has no memory left.
    #[error("the reader is at a limit")]
    Refused(ApiError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The server has started and not read the log yet, so the key of a logged record is unknown.
    #[error("the server is still reading its log")]
    Starting,
}

impl RecordFailure {
    /// Logs a failure of the program, and returns the response to the readers.
    fn refusal(self, session: SessionId) -> ApiError {
        match self {
            RecordFailure::Refused(refusal) => refusal,
            RecordFailure::Engine(error) => error.into(),
            RecordFailure::Starting => starting(),
            RecordFailure::Record(error) => {
                tracing::error!(%error, %session, "cannot write a record: {error}");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "cannot write the record")
            }
        }
    }
}

/// The log up to its last checkpoint.
#[derive(Clone, Default)]
pub(crate) struct PublishedLog {
    index: TreeIndex,
    /// The record keys of the log, each with the number of its leaf, in the order of the log.
    pub(crate) keys: Vec<(u64, RecordPublicKey)>,
    pub(crate) deals: Arc<LoggedDeals>,
    /// The signed checkpoint; empty before the first one.
    pub(crate) checkpoint: Bytes,
    /// The numbers of games that count, and of those that don't.
    pub(crate) counts: OutcomeCounts,
}

impl PublishedLog {
    pub(crate) fn size(&self) -> u64 {
        self.index.size()
    }

    /// Returns the root hash of the last checkpoint.
    pub(crate) fn root(&self) -> Hash {
        self.index.root()
    }
}

/// The log as far as it was read, which may be more than its last checkpoint covers.
#[derive(Default)]
struct GrowingLog {
    index: TreeIndex,
    /// The record keys, as in [`PublishedLog`].
    keys: Vec<(u64, RecordPublicKey)>,
    deals: Arc<LoggedDeals>,
    outcomes: LogOutcomes,
}

pub(crate) struct Records {
    keys: RecordKeys,
    /// The log's name in checkpoints.
    pub(crate) origin: String,
    note_key: NoteKey,
    keeps_log: bool,
    log: RwLock<Arc<PublishedLog>>,
    /// The lock is held during reading and signing, so that an older log never replaces a newer.
    growing: Mutex<GrowingLog>,
    /// True after an error of the sequencer, until it succeeds again. Each outage is logged once.
    is_stuck: AtomicBool,
    writing: Arc<SharedWork<RecordRead, WrittenFor>>,
}

/// The readers that may share a record: those of one session with the same rights. `alone` has the address of a reader
/// that shares with its own address only.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RecordRead {
    session: SessionId,
    viewer: RecordViewer,
    alone: Option<Option<IpAddr>>,
}

/// The result of writing a record for the readers that waited for it.
#[derive(Clone)]
struct WrittenFor {
    /// The address whose limits applied; unknown only in tests.
    address: Option<IpAddr>,
    /// `None` if there is no such session.
    record: ApiResult<Option<WrittenRecord>>,
}

/// A record, which its readers share.
#[derive(Clone)]
pub(crate) struct WrittenRecord {
    pub(crate) lines: Bytes,
    /// The size of the texts of its messages, in bytes.
    pub(crate) text_bytes: usize,
}

/// Returns the maximum number of records that are written at the same time, and of pages of transcripts. Anyone may ask
/// for those of any game, and a long one takes much time, so half of the processors are left for play.
pub(crate) fn half_of_processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| (count.get() / 2).max(1))
}

impl Records {
    /// Loads the keys, or generates them. `shared` is the secret of nodes with a shared database. The data folder must
    /// exist and be locked.
    ///
    /// # Errors
    /// If a key or the origin is unusable.
    pub(crate) fn start(
        settings: &RecordSettings,
        folder: &Path,
        shared: Option<&ServerSecret>,
    ) -> Result<Records, RecordsError> {
        let keys = RecordKeys::load(settings, folder, shared)?;
        let origin = match &settings.origin {
            Some(origin) => origin.clone(),
            // Earlier releases could replace the key of a log, which kept its name.
            None => {
                let first = handovers::first_key(&keys.handovers, keys.log.public_key());
                format!("arena/{}", &first.to_string()[..16])
            }
        };
        let note_key = NoteKey::new(&origin, keys.log.public_key())
            .map_err(|_| RecordsError::Origin { origin: origin.clone() })?;
        let (log, growing, is_stuck) = (RwLock::default(), Mutex::default(), AtomicBool::new(false));
        let writing = Arc::new(SharedWork::new(half_of_processors()));
        Ok(Records { keys, origin, note_key, keeps_log: settings.log, log, growing, is_stuck, writing })
    }

    pub(crate) fn record_key(&self) -> RecordPublicKey {
        self.keys.record.public_key()
    }

    /// Returns the key that signs the replays of tournaments, which is the record key.
    pub(crate) fn replay_key(&self) -> RecordKey {
        self.keys.record.clone()
    }

    pub(crate) fn handovers(&self) -> &[KeyHandover] {
        &self.keys.handovers
    }

    /// The answer to the creation contains the key. It is computed and never stored.
    pub(crate) fn creator_key(&self, session: SessionId) -> String {
        self.keys.creators.owner_key(&format!("session/{session}"))
    }

    pub(crate) fn is_creator(&self, key: &str, session: SessionId) -> bool {
        self.keys.creators.owns(key, &format!("session/{session}"))
    }

    /// Returns the log up to its last checkpoint.
    pub(crate) fn published(&self) -> Arc<PublishedLog> {
        Arc::clone(&self.log.read())
    }

    /// The commitment stays in the record after the content is deleted. Returns `None` for messages in no record.
    fn commit(&self, place: ContentPlace, content: &str) -> Option<ContentHash> {
        let (session, what) = match place {
            ContentPlace::Message(Channel::Chat(session), index) => (session, format!("chat/{index}")),
            ContentPlace::Message(Channel::Operator(session), index) => (session, format!("operator/{index}")),
            ContentPlace::Message(Channel::Invites | Channel::Inputs(_), _) => return None,
            ContentPlace::User(session, seat) => (session, format!("user/{}", seat.0)),
        };
        Some(ContentHash(self.keys.salts.of_session(session).commit(&what, content).0))
    }

    /// Lets the engine keep the commitments to contents that an administrator erases.
    pub(crate) fn keep_commitments(self: &Arc<Records>, engine: &Engine) {
        let records = Arc::clone(self);
        engine.set_commitments(Arc::new(move |place, content| records.commit(place, content)));
    }

    /// Returns the record of a session for a reader at `address`, with its proof if the log has the session's end. Readers
    /// that wait at the same time share one. Returns `None` if there is no such session. `admit` applies the limits of
    /// `address` to the size of the messages' texts, in bytes.
    ///
    /// # Errors
    /// If the session can't be read, or `admit` refuses.
    pub(crate) async fn write<A>(
        self: &Arc<Records>,
        engine: &Engine,
        session: SessionId,
        viewer: RecordViewer,
        address: Option<IpAddr>,
        admit: A,
    ) -> ApiResult<Option<WrittenRecord>>
    where
        A: Fn(usize) -> ApiResult<Option<Reservation>> + Clone + Send + Sync + 'static,
    {
        let write = |alone| {
            let (records, engine, admit) = (Arc::clone(self), engine.clone(), admit.clone());
            let read = RecordRead { session, viewer, alone };
            async move {
                let writer = Arc::clone(&records);
                let work = move |place: OwnedSemaphorePermit| async move {
                    let record = writer.write_in(place, &engine, session, viewer, admit).await;
                    WrittenFor { address, record: record.map_err(|failure| failure.refusal(session)) }
                };
                records.writing.run(&read, work).await
            }
        };
        let written = write(None).await;
        match written.record {
            // The limits of another address must not keep this reader from the record.
            Err(_) if written.address != address => write(Some(address)).await.record,
            record => record,
        }
    }

    async fn write_in(
        self: &Arc<Records>,
        place: OwnedSemaphorePermit,
        engine: &Engine,
        id: SessionId,
        viewer: RecordViewer,
        admit: impl Fn(usize) -> ApiResult<Option<Reservation>> + Sync,
    ) -> Result<Option<WrittenRecord>, RecordFailure> {
        let admit = |bytes| admit(bytes).map_err(RecordFailure::Refused);
        let (mut stored, mut memory) = (0, None);
        let admit_stored = |bytes| -> Result<(), RecordFailure> {
            stored = bytes;
            memory = if stored > 0 { admit(stored)? } else { None };
            Ok(())
        };
        let Some(source) = find_source(engine, id, admit_stored).await? else { return Ok(None) };
        let text_bytes: usize = source.messages.iter().map(|message| message.content.len()).sum();
        // The size of archived messages is only known after they are read.
        if stored == 0 {
            memory = admit(text_bytes)?;
        }
        let logged = self.find_ended(engine, id).await?;
        let records = Arc::clone(self);
        let written = move || {
            // The work continues if the clients close their connections, so it keeps the place until it is done.
            let _held = (place, memory);
            records.write_with(&source, viewer, logged.map(|(_, hash, key)| (hash, key)))
        };
        let (mut record, is_in_log) = blocking(written).await?;
        if let Some((leaf, ..)) = logged.filter(|_| is_in_log)
            && let Some(proof) = self.prove(engine, leaf).await?
        {
            record.push_str(&serde_json::to_string(&proof).expect("a proof is JSON"));
            record.push('\n');
        }
        Ok(Some(WrittenRecord { lines: Bytes::from(record), text_bytes }))
    }

    /// `logged` are the record's hash and record key in the log. Returns true if the record has that hash.
    fn write_with(
        &self,
        source: &RecordSource,
        viewer: RecordViewer,
        logged: Option<(Hash, RecordPublicKey)>,
    ) -> Result<(String, bool), RecordError> {
        let current = self.record_key();
        // If a key is lost, the arena can't seal its records anymore.
        let secret = |key: RecordPublicKey| {
            let mut keys = std::iter::once(&self.keys.record).chain(&self.keys.former);
            keys.find(|secret| secret.public_key() == key)
        };
        let write = |key: RecordPublicKey| {
            self.with_input(source, &key, |input, salts| write_record(input, salts, viewer, secret(key)))
        };
        let Some((hash, key)) = logged else { return Ok((write(current)?, false)) };
        let record = write(key)?;
        if last_hash(&record)? == hash {
            return Ok((record, true));
        }
        tracing::warn!(session = %source.session.facts.id, "a record differs from the hash in the log");
        // The log's proof doesn't fit, so the record needs a seal. Readers refuse a record that has neither.
        Ok((if secret(key).is_some() { record } else { write(current)? }, false))
    }

    /// Returns the hash of a session's record that names this key.
    fn hash(&self, source: &RecordSource, key: &RecordPublicKey) -> Result<Hash, RecordError> {
        self.with_input(source, key, record_hash)
    }

    fn with_input<T>(
        &self,
        source: &RecordSource,
        key: &RecordPublicKey,
        then: impl FnOnce(&RecordInput<'_>, &SessionSalts) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let salts = self.keys.salts.of_session(source.session.facts.id);
        let commitments = source.commitments.iter().map(|(message, hash)| (*message, Commitment(hash.0))).collect();
        // Sessions from before inputs were stored have no input of the creation. Only stored facts may be in the header,
        // so that all releases write the same one.
        let terms = source.session.facts.rated.as_ref();
        let input = RecordInput {
            session: &source.session,
            messages: played(source),
            commitments: &commitments,
            prompt_sha256: terms.and_then(|terms| terms.prompt.clone()).unwrap_or_else(|| digest("")),
            rules_version: terms.and_then(|terms| terms.rules.parse().ok()).unwrap_or_default(),
            release: UNKNOWN_RELEASE,
            record_key: Some(key),
            fork: forks::origin_of(source),
        };
        then(&input, &salts)
    }

    /// Returns the leaf of a session's end: its number, the record's hash, and the record key at that place of the log.
    /// Returns `None` if the log doesn't have it yet.
    ///
    /// # Errors
    /// If the store can't be read, or the log hasn't been read since the start.
    async fn find_ended(
        &self,
        engine: &Engine,
        id: SessionId,
    ) -> Result<Option<(u64, Hash, RecordPublicKey)>, RecordFailure> {
        let log = self.published();
        let Some(n) = engine.find_leaf(id, "ended").await? else { return Ok(None) };
        if self.keeps_log && log.checkpoint.is_empty() {
            return Err(RecordFailure::Starting);
        }
        if n >= log.size() {
            return Ok(None);
        }
        let Some(leaf) = engine.list_leaves(n, 1).await?.pop() else { return Ok(None) };
        let Ok(Leaf::Ended { record, .. }) = leaf.data.parse::<Leaf>() else { return Ok(None) };
        let key = log.keys.iter().rev().find(|(since, _)| *since < n).map(|(_, key)| *key);
        Ok(key.map(|key| (n, record, key)))
    }

    /// Returns the number of a session's leaf of this kind, if a checkpoint covers it.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(crate) async fn find_leaf(
        &self,
        engine: &Engine,
        id: SessionId,
        kind: &str,
    ) -> Result<Option<u64>, EngineError> {
        let size = self.published().size();
        Ok(engine.find_leaf(id, kind).await?.filter(|n| *n < size))
    }

    /// Returns the proof that the published log has a leaf; `None` if it doesn't.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(crate) async fn prove(&self, engine: &Engine, leaf: u64) -> Result<Option<LogProof>, EngineError> {
        let log = self.published();
        let first = leaf - leaf % TILE_WIDTH as u64;
        let hashes = engine.list_leaves(first, TILE_WIDTH).await?.iter().map(|leaf| Hash(leaf.hash)).collect();
        let path = log.index.inclusion_path(leaf, &Block { first, hashes });
        let checkpoint = String::from_utf8_lossy(&log.checkpoint).into_owned();
        Ok(path.map(|path| LogProof { leaf, size: log.size(), path, checkpoint }))
    }

    /// Returns the bytes of a tile or bundle; `None` if the published log doesn't have it.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(crate) async fn tile(&self, engine: &Engine, tile: Tile) -> Result<Option<Vec<u8>>, EngineError> {
        let log = self.published();
        if !tile.is_in(log.size()) {
            return Ok(None);
        }
        let Tile { kind, index, width } = tile;
        let width = usize::from(width);
        let in_memory = match kind {
            TileKind::Hashes { level: 0 } => log.index.tail_tile(index, width),
            TileKind::Hashes { level } => log.index.tile(level as usize, index, width),
            TileKind::Leaves => None,
        };
        if let Some(hashes) = in_memory {
            return Ok(Some(tile_bytes(hashes)));
        }
        let leaves = engine.list_leaves(index * TILE_WIDTH as u64, width).await?;
        let bytes = match kind {
            TileKind::Leaves => bundle_bytes(leaves.iter().map(|leaf| leaf.data.as_bytes())).ok(),
            TileKind::Hashes { .. } => Some(leaves.iter().flat_map(|leaf| leaf.hash).collect()),
        };
        Ok(bytes.filter(|_| leaves.len() == width))
    }

    /// Returns the public key of checkpoints with the origin, in the form of signed notes.
    pub(crate) fn note_key(&self) -> &NoteKey {
        &self.note_key
    }
}

/// Returns the messages of a session up to the end of its game: all, if it hasn't ended. Players may chat and try to
/// act after the end. Such messages aren't in the record, because its hash in the log never changes.
fn played(source: &RecordSource) -> &[ChatMessage] {
    let is_late = |message: &ChatMessage| match message.channel {
        Channel::Chat(_) => message.from != Party::Operator,
        _ => is_refusal(message),
    };
    let last = source.messages.iter().rposition(|message| !is_late(message)).filter(|_| has_ended(&source.session));
    match last {
        Some(last) => &source.messages[..=last],
        None => &source.messages,
    }
}

/// Returns the data for a session's record, after `admit` has accepted the size of its stored texts, in bytes. Returns
/// `None` if there is no such session.
async fn find_source<E: From<EngineError>>(
    engine: &Engine,
    id: SessionId,
    admit: impl FnOnce(usize) -> Result<(), E>,
) -> Result<Option<RecordSource>, E> {
    let bytes = match engine.record_bytes(id).await {
        Ok(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        Err(EngineError::UnknownSession) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    admit(bytes)?;
    match engine.record_source(id).await {
        Ok(source) => Ok(Some(forks::with_original_seed(source))),
        Err(EngineError::UnknownSession) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the response of a server that hasn't read its log since the start.
pub(crate) fn starting() -> ApiError {
    let text = "the server is still reading its log";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "LOG_NOT_READY", text).retry_after(Duration::from_secs(1))
}

/// Returns the SHA-256 of a text as hexadecimal digits.
fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text))
}

fn has_ended(session: &Session) -> bool {
    matches!(session.phase, Phase::Ended { .. })
}
