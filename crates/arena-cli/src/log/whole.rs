//! A log that was read completely: its hash tree is that of its checkpoint, and its leaves are in a possible order.

use std::collections::BTreeMap;

use arena_model::SessionId;
use arena_record::log::{
    Leaf, LogAudit, LogError, LogReader, NoteError, NoteKey, SignedCheckpoint, TlogProof, Tree, leaf_hash,
    read_checkpoint, verify_inclusion,
};
use arena_record::{End, Hash, KeyHandover, Lie, LogProof, Parsed, RecordPublicKey};

use super::source::{LogSource, connected_log_keys, log_key};
use crate::args::LogKeyArgs;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::verify::check::{FilePart, SoundFile};

/// The newest checkpoint of a log, with its verified signatures.
#[derive(Debug, Clone)]
pub struct LogHead {
    pub checkpoint: SignedCheckpoint,
    /// The key whose signature was verified; `None` if no key is known.
    pub key: Option<NoteKey>,
    /// The keys that may have signed older checkpoints: the trusted key, and those that handovers connect with it.
    pub keys: Vec<NoteKey>,
    /// The handovers that the log's owner publishes.
    pub handovers: Vec<KeyHandover>,
    /// True if the key was given, false if the log itself publishes it.
    pub is_key_given: bool,
}

impl LogHead {
    /// Reads the newest checkpoint and verifies its signatures.
    ///
    /// # Errors
    /// If a file or key can't be read, a signature or handover is forged, or no trusted key has signed.
    pub fn read(source: &LogSource, keys: &LogKeyArgs) -> Result<LogHead, Failure> {
        let checkpoint =
            read_checkpoint(&mut |path: &str| source.fetch(path)).map_err(|error| source.explain(&error))?;
        let given = keys.log_key.as_deref().map(log_key).transpose()?;
        let published = match source.published() {
            // With a given key, only handovers are missing.
            Err(failure) if given.is_some() && failure.exit != Exit::BadReplay => None,
            published => published?,
        };
        let trusted = match (&given, &published) {
            (Some(given), _) => Some(given.key.clone()),
            (None, Some(published)) => published.log_key(&source.name())?,
            (None, None) => None,
        };
        let mut handovers = published.map(|published| published.handovers).unwrap_or_default();
        handovers.extend(given.map(|given| given.handovers).unwrap_or_default());
        let log_keys = trusted.map(|key| connected_log_keys(&key, &handovers)).unwrap_or_default();
        let signer = signer_of(&checkpoint, &log_keys).map_err(|error| source.explain(&LogError::Note(error)))?;
        let key = signer.cloned();
        let is_key_given = keys.log_key.is_some();
        Ok(LogHead { checkpoint, key, keys: log_keys, handovers, is_key_given })
    }

    /// Prints a note if no trusted key was given, because a forged log can publish a key of its own.
    pub fn note_key(&self) {
        match &self.key {
            _ if self.is_key_given => {}
            Some(key) => note(&format!(
                "the log itself publishes the key of its signature, {key}; if you know the arena's key, give --log-key"
            )),
            None => note("the signature of the log's checkpoint was not verified; give --log-key"),
        }
    }
}

/// Returns that one of the keys which has signed a checkpoint; `None` if no keys are given.
///
/// # Errors
/// If none of the keys has signed, or a signature is forged.
pub fn signer_of<'k>(checkpoint: &SignedCheckpoint, keys: &'k [NoteKey]) -> Result<Option<&'k NoteKey>, NoteError> {
    let mut unsigned = None;
    for key in keys {
        match checkpoint.verify(key) {
            Ok(_) => return Ok(Some(key)),
            Err(error @ NoteError::Unsigned(_)) => unsigned = unsigned.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    unsigned.map_or(Ok(None), Err)
}

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
    pub fn read(source: &LogSource, keys: &LogKeyArgs) -> Result<WholeLog, Failure> {
        WholeLog::read_each(source, keys, |_| {})
    }

    /// Reads a log like [`WholeLog::read`], and calls `on_leaf` with each leaf in order.
    ///
    /// # Errors
    /// As [`WholeLog::read`].
    pub fn read_each(
        source: &LogSource,
        keys: &LogKeyArgs,
        mut on_leaf: impl FnMut(&Leaf),
    ) -> Result<WholeLog, Failure> {
        let head = LogHead::read(source, keys)?;
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
        checked.map_err(|error| source.explain(&error))?;
        Ok(WholeLog { head, sessions, counts, handovers, tree, audit })
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

    /// Compares a record with the leaves of its session.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check_record(&self, record: &Parsed, found: &mut SoundFile) -> Result<(), Lie> {
        let header = &record.header;
        if let Some(reason) = self.check_proof(record)? {
            found.leave_out(FilePart::Log, reason);
            found.is_complete = false;
        }
        let Some(logged) = self.sessions.get(&header.session) else {
            found.leave_out(FilePart::Log, "the log has no leaf of the session; logs leave out unlisted sessions");
            found.is_complete = false;
            return Ok(());
        };
        let former = logged.former.iter().find(|former| record.end.is_some() && former.hash == record.hash);
        let (created, end_leaf) = match former {
            Some(former) => (&former.created, former.end_leaf),
            None => (&logged.created, logged.end_leaf),
        };
        if let Some((challenge, seed)) = created {
            if *challenge != header.challenge {
                return Err(false_header(format!("the log says that the session's challenge is {challenge}")));
            }
            if *seed != header.seed_commitment {
                return Err(false_header("the log has another commitment to the seed".to_owned()));
            }
        }
        // The hash of the record doesn't cover the kind and the time of the end in the leaf.
        let own_leaf = record.end.as_ref().map(|end| leaf_of(record, end).hash());
        let has_hash = former.is_some() || (record.end.is_some() && logged.ended == Some(record.hash));
        if has_hash && own_leaf != end_leaf {
            let what = "the log has another kind or time of the session's end".to_owned();
            return Err(Lie { line: end_line(record), event: None, what });
        }
        if former.is_some() {
            found.remarks.push("the log says that the session was removed, and imported later".to_owned());
            found.checked.push(FilePart::Log);
            return Ok(());
        }
        if let Some(reason) = &logged.removed {
            found.remarks.push(format!("the log says that the session was removed: {reason}"));
        }
        if let Some(reason) = &logged.excluded {
            found.remarks.push(format!("the log says that the session is excluded: {reason}"));
        }
        match (&record.end, logged.ended) {
            (Some(_), Some(hash)) if hash != record.hash => {
                let what = format!("the hash of the record is {}, but the log has {hash}", record.hash);
                Err(Lie { line: end_line(record), event: None, what })
            }
            (Some(_), Some(_)) | (None, None) => {
                found.checked.push(FilePart::Log);
                Ok(())
            }
            (Some(_), None) => {
                found.leave_out(FilePart::Log, "the log has the start of the session, but not its end");
                found.is_complete = false;
                Ok(())
            }
            (None, Some(_)) => {
                found.leave_out(FilePart::Log, "the log has the end of the session, but the record doesn't");
                found.is_complete = false;
                Ok(())
            }
        }
    }

    /// Checks the proof in a record, if it has one, and that the log continues the proof's checkpoint. So a log that was
    /// changed and signed again contradicts the records from before. Returns the reason if the proof is of another log,
    /// or no key of the log has signed it.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check_proof(&self, record: &Parsed) -> Result<Option<String>, Lie> {
        let Some(proof) = &record.proof else { return Ok(None) };
        let signed = check_proof(record, proof, &self.head.keys)?;
        let parsed = parse_proof(record, proof)?;
        let older = parsed.checkpoint.unverified();
        if older.origin != self.origin() {
            return Ok(Some(format!("the proof in the record is of the log {}", older.origin)));
        }
        if let Err(error) = signed {
            return Ok(Some(error.to_string()));
        }
        match self.continues(older.size, older.root) {
            Some(false) => Err(false_proof(
                record,
                format!("the log forked: its first {} leaves have another root than the proof", older.size),
            )),
            // The log was copied before the record was written.
            Some(true) | None => Ok(None),
        }
    }
}

/// Checks the proof in a record, without the log. Returns true if one of the log's keys is given and has signed the
/// proof's checkpoint. The inner error is the reason if keys are given and none has signed.
///
/// # Errors
/// The contradiction.
pub fn check_proof(record: &Parsed, proof: &LogProof, keys: &[NoteKey]) -> Result<Result<bool, NoteError>, Lie> {
    let proof = parse_proof(record, proof)?;
    let Some(end) = &record.end else {
        return Err(false_proof(record, "a session that hasn't ended has no proof".to_owned()));
    };
    let leaf = leaf_of(record, end);
    let checkpoint = proof.checkpoint.unverified();
    verify_inclusion(&leaf.hash(), proof.index, checkpoint.size, &proof.path, &checkpoint.root)
        .map_err(|error| false_proof(record, format!("the proof of the log doesn't hold: {error}")))?;
    match signer_of(&proof.checkpoint, keys) {
        Ok(signer) => Ok(Ok(signer.is_some())),
        Err(error) if error.is_lie() => Err(false_proof(record, error.to_string())),
        Err(error) => Ok(Err(error)),
    }
}

fn parse_proof(record: &Parsed, proof: &LogProof) -> Result<TlogProof, Lie> {
    TlogProof::of_record(proof).map_err(|error| false_proof(record, error.to_string()))
}

/// Returns the leaf of the end of a record's session.
fn leaf_of(record: &Parsed, end: &End) -> Leaf {
    Leaf::Ended { session: record.header.session, ending: end.end, record: record.hash, at: end.at }
}

/// Returns the number of the line of the end, after the header and the events.
fn end_line(record: &Parsed) -> usize {
    record.events.len() + 2
}

fn false_header(what: String) -> Lie {
    Lie { line: 1, event: None, what }
}

/// Returns the contradiction of a proof, which is on the last line: after the openings and the seal.
fn false_proof(record: &Parsed, what: String) -> Lie {
    let end = usize::from(record.end.is_some());
    Lie { line: 1 + record.events.len() + end + record.openings.len() + 2, event: None, what }
}
