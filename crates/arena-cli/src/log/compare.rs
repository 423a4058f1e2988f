//! The comparison of a record with the leaves of its session in a log, and with the proof in the record.

use std::thread;
use std::time::Duration;

use arena_model::SessionId;
use arena_record::log::{Leaf, NoteError, NoteKey, TlogProof, read_checkpoint, verify_inclusion};
use arena_record::{End, Lie, LogProof, Parsed};

use super::head::signer_of;
use super::whole::{FormerRecord, LoggedSession, WholeLog};
use crate::verify::result::{FilePart, SoundFile};

/// The time after which caches have no older checkpoint of a server.
const FRESH: Duration = Duration::from_secs(2);

impl WholeLog {
    /// Compares a record with the leaves of its session.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check_record(&self, record: &Parsed, found: &mut SoundFile) -> Result<(), Lie> {
        if let Some(reason) = self.check_proof(record)? {
            found.leave_incomplete(FilePart::Log, reason);
        }
        let Some(logged) = self.sessions.get(&record.header.session) else {
            let reason = "the log has no leaf of the session; logs leave out unlisted sessions";
            found.leave_incomplete(FilePart::Log, reason);
            return Ok(());
        };
        let former = logged.former.iter().find(|former| record.end.is_some() && former.hash == record.hash);
        check_leaves(record, logged, former)?;
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
                return Err(false_end(
                    record,
                    format!("the hash of the record is {}, but the log has {hash}", record.hash),
                ));
            }
            (Some(_), Some(_)) | (None, None) => found.checked.push(FilePart::Log),
            (Some(_), None) => {
                found.leave_incomplete(FilePart::Log, "the log has the start of the session, but not its end");
            }
            (None, Some(_)) => {
                found.leave_incomplete(FilePart::Log, "the log has the end of the session, but the record doesn't");
            }
        }
        Ok(())
    }

    /// Checks the proof in a record, if it has one, and that the log continues the proof's checkpoint. So a log that was
    /// changed and signed again contradicts the records from before. Returns the reason if the proof is of another log
    /// or newer than this one, or no key of the log has signed it.
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
        let is_signed = match signed {
            Ok(is_signed) => is_signed,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let own = record.end.as_ref().map(|end| leaf_of(record, end));
        let replaced = own.filter(|own| self.leaf_hash(proof.leaf).is_some_and(|logged| logged != own.hash()));
        let found = match (replaced, self.continues(older.size, older.root)) {
            (Some(own), _) => Err(self.other_leaf(record.header.session, proof.leaf, &own)),
            (None, Some(true)) => Ok(None),
            (None, Some(false)) => {
                Err(format!("the log forked: its first {} leaves have another root than the proof", older.size))
            }
            (None, None) => self.check_longer(older.size, is_signed).map(Some),
        };
        found.map_err(|what| false_proof(record, what))
    }

    /// Describes the leaf of the log in the place of a record's `own` one.
    fn other_leaf(&self, session: SessionId, index: u64, own: &Leaf) -> String {
        let logged = match self.source.leaf(index, self.size(), &self.head.checkpoint.unverified().root) {
            Ok((leaf, _)) => String::from_utf8_lossy(&leaf).into_owned(),
            Err(_) => self.leaf_hash(index).map(|hash| hash.to_string()).unwrap_or_default(),
        };
        format!(
            "the log forked: its leaf {index} is {logged}, but by the record's proof it is the end of session {session}: \
             {own}"
        )
    }

    /// Compares the log with the greater size of a proof. Returns the reason if that doesn't show that the log lost leaves.
    ///
    /// # Errors
    /// If the server's log, whose key has signed the proof, still has fewer leaves.
    fn check_longer(&self, size: u64, is_signed: bool) -> Result<String, String> {
        let here = self.size();
        if !self.source.is_server() {
            return Ok(format!(
                "the log has {here} leaves, fewer than the {size} of the record's proof: the copy is older than the record; \
                 save the log again"
            ));
        }
        if !is_signed {
            return Ok(format!(
                "the log has {here} leaves, and its key may have signed {size}; give the key with --log-key"
            ));
        }
        // The record may be newer than the checkpoint, and a cache may keep that for a second.
        thread::sleep(FRESH.saturating_sub(self.read_at.elapsed()));
        match read_checkpoint(&mut |path: &str| self.source.fetch(path)) {
            Err(error) => Ok(self.source.explain(error).sentence().to_owned()),
            Ok(newest) if newest.unverified().size >= size => {
                Ok("the log has grown since it was read; verify the record again".to_owned())
            }
            Ok(_) => Err(format!(
                "the log went back from {size} leaves, which the record's proof has, to {here}: both checkpoints are \
                 signed, which proves it"
            )),
        }
    }
}

/// Compares the data in a session's leaves that the hash of the record doesn't cover. `former` is the record from before
/// the session's removal.
fn check_leaves(record: &Parsed, logged: &LoggedSession, former: Option<&FormerRecord>) -> Result<(), Lie> {
    let header = &record.header;
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
    let own_leaf = record.end.as_ref().map(|end| leaf_of(record, end).hash());
    let has_hash = former.is_some() || (record.end.is_some() && logged.ended == Some(record.hash));
    match has_hash && own_leaf != end_leaf {
        true => Err(false_end(record, "the log has another kind or time of the session's end".to_owned())),
        false => Ok(()),
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

/// Returns the contradiction of a session's end, which is on the line after the header and the events.
fn false_end(record: &Parsed, what: String) -> Lie {
    Lie { line: record.events.len() + 2, event: None, what }
}

fn false_header(what: String) -> Lie {
    Lie { line: 1, event: None, what }
}

/// Returns the contradiction of a proof, which is on the last line: after the openings and the seal.
fn false_proof(record: &Parsed, what: String) -> Lie {
    let end = usize::from(record.end.is_some());
    Lie { line: 1 + record.events.len() + end + record.openings.len() + 2, event: None, what }
}
