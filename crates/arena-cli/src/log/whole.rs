//! A log that was read completely: its hash tree is that of its checkpoint, and its leaves are in a possible order.

use std::collections::BTreeMap;
use std::time::Instant;

use arena_model::SessionId;
use arena_record::log::{Leaf, LogAudit, LogReader, TlogProof, Tree, leaf_hash};
use arena_record::{Hash, KeyHandover, RecordPublicKey};

use super::head::LogHead;
use super::source::{LogKeyArgs, LogSource};
use crate::exit::Failure;

/// The leaves of one session.
#[derive(Debug, Clone, Default)]
pub struct LoggedSession {
    /// The challenge and the commitment to the seed, from the leaf of the creation.
    pub created: Option<(String, Option<Hash>)>,
    /// The hash of the record, from the leaf of the end.
    pub ended: Option<Hash>,
    /// The hash of the leaf of the end.
    pub end_leaf: Option<Hash>,
    /// The reason of the removal.
    pub removed: Option<String>,
    /// The reason of the last exclusion.
    pub excluded: Option<String>,
    /// The records from before a removal, if the session was imported after it.
    pub former: Vec<FormerRecord>,
}

/// A record from before the removal of its session.
#[derive(Debug, Clone)]
pub struct FormerRecord {
    pub hash: Hash,
    /// The hash of the leaf of the end.
    pub end_leaf: Option<Hash>,
    /// The challenge and the commitment to the seed, from the leaf of the creation.
    pub created: Option<(String, Option<Hash>)>,
}

/// The number of leaves of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeafCounts {
    pub created: u64,
    pub ended: u64,
    pub removed: u64,
    pub excluded: u64,
    /// Record keys.
    pub keys: u64,
}

pub struct WholeLog {
    pub source: LogSource,
    /// The time of the reading.
    pub read_at: Instant,
    /// The checkpoint.
    pub head: LogHead,
    pub sessions: BTreeMap<SessionId, LoggedSession>,
    pub counts: LeafCounts,
    /// The handovers in the leaves, and those that the log's owner publishes.
    pub handovers: Vec<KeyHandover>,
    tree: Tree,
    audit: LogAudit,
}

impl WholeLog {
    /// Reads all leaves, and compares their hash tree with the tiles and the checkpoint.
    ///
    /// # Errors
    /// If a file or key can't be read, or the log is false.
    pub fn read(source: LogSource, keys: &LogKeyArgs) -> Result<WholeLog, Failure> {
        WholeLog::read_each(source, keys, |_| {})
    }

    /// Reads a log like [`WholeLog::read`], and calls `on_leaf` with each leaf in order.
    ///
    /// # Errors
    /// As [`WholeLog::read`].
    pub fn read_each(
        source: LogSource,
        keys: &LogKeyArgs,
        mut on_leaf: impl FnMut(&Leaf),
    ) -> Result<WholeLog, Failure> {
        let head = LogHead::read(&source, keys)?;
        let (size, root) = (head.checkpoint.unverified().size, head.checkpoint.unverified().root);
        let mut sessions: BTreeMap<SessionId, LoggedSession> = BTreeMap::new();
        let mut counts = LeafCounts::default();
        let (mut tree, mut audit) = (Tree::new(), LogAudit::new());
        let mut handovers = head.handovers.clone();
        let mut reader = LogReader::new(size, |path: &str| source.fetch(path));
        let checked = reader.check(&root, |index, bytes| {
            let leaf = audit.add(index, bytes)?;
            tree.append(leaf_hash(bytes));
            on_leaf(&leaf);
            let logged = leaf.session().map(|session| sessions.entry(session).or_default());
            match (leaf, logged) {
                (Leaf::Created { challenge, seed_commitment, .. }, Some(logged)) => {
                    counts.created += 1;
                    if logged.removed.is_some() {
                        let mut former = std::mem::take(&mut logged.former);
                        let created = logged.created.take();
                        let end_leaf = logged.end_leaf;
                        former.extend(logged.ended.map(|hash| FormerRecord { hash, end_leaf, created }));
                        *logged = LoggedSession { former, ..LoggedSession::default() };
                    }
                    logged.created = Some((challenge, seed_commitment));
                }
                (Leaf::Ended { record, .. }, Some(logged)) => {
                    counts.ended += 1;
                    logged.ended = Some(record);
                    logged.end_leaf = Some(leaf_hash(bytes));
                }
                (Leaf::Removed { reason, .. }, Some(logged)) => {
                    counts.removed += 1;
                    logged.removed = Some(reason);
                }
                (Leaf::Excluded { reason, .. }, Some(logged)) => {
                    counts.excluded += 1;
                    logged.excluded = Some(reason);
                }
                (Leaf::Key { handover, .. }, _) => {
                    counts.keys += 1;
                    handovers.extend(handover);
                }
                // All other leaves are about a session.
                _ => {}
            }
            Ok(())
        });
        checked.map_err(|error| source.explain(error))?;
        Ok(WholeLog { source, read_at: Instant::now(), head, sessions, counts, handovers, tree, audit })
    }

    /// Returns the log's name.
    pub fn origin(&self) -> &str {
        &self.head.checkpoint.unverified().origin
    }

    /// Returns the number of leaves.
    pub fn size(&self) -> u64 {
        self.tree.size()
    }

    /// Returns the record keys of the arena, oldest first.
    pub fn record_keys(&self) -> impl Iterator<Item = RecordPublicKey> {
        self.audit.keys().iter().map(|(_, key)| *key)
    }

    /// Returns the number of sessions that were created and have neither ended nor been removed.
    pub fn unfinished(&self) -> u64 {
        self.audit.unfinished().count() as u64
    }

    /// Returns the sessions whose end is in the log and that weren't removed.
    pub fn ended(&self) -> impl Iterator<Item = SessionId> {
        let is_kept = |logged: &LoggedSession| logged.ended.is_some() && logged.removed.is_none();
        self.sessions.iter().filter(move |(_, logged)| is_kept(logged)).map(|(session, _)| *session)
    }

    /// Returns the hash of a leaf, or `None` if the log is shorter.
    pub fn leaf_hash(&self, index: u64) -> Option<Hash> {
        self.tree.leaf(index)
    }

    /// Returns the number of the leaf of a session's creation or end.
    pub fn find_leaf(&self, session: SessionId, is_creation: bool) -> Option<u64> {
        let leaves = self.audit.sessions().get(&session)?;
        if is_creation { leaves.created } else { leaves.ended }
    }

    pub fn prove(&self, leaf: u64) -> Option<TlogProof> {
        let path = self.tree.inclusion_path(leaf, self.size())?;
        Some(TlogProof { extra: Vec::new(), index: leaf, path, checkpoint: self.head.checkpoint.clone() })
    }

    /// Returns true if the log begins with all leaves of an older checkpoint, and `None` if the log is shorter.
    pub fn continues(&self, size: u64, root: Hash) -> Option<bool> {
        self.tree.root_at(size).map(|own| own == root)
    }
}
