//! Checkpoints (C2SP tlog-checkpoint): the size and root of a log, signed by the log. Signatures of others are ignored.

use std::fmt;
use std::str::FromStr;

use crate::log::base64;
use crate::log::note::{NoteError, NoteKey, SignedNote};
use crate::log::tree::MOST_LEAVES;
use crate::{Hash, RecordKey};

/// The state of a log at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name, which is also the name of its key.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root of the Merkle tree over the leaves.
    pub root: Hash,
}

impl Checkpoint {
    /// Returns the text that the log signs: origin, size and root in base64, each on a line.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, base64::encode(&self.root.0))
    }

    /// Signs the checkpoint with the log's key, under the name of the origin.
    ///
    /// # Errors
    /// If the origin can't be the name of a key.
    pub fn sign(&self, signer: &RecordKey) -> Result<SignedCheckpoint, NoteError> {
        let note = SignedNote::sign(self.text(), &self.origin, signer)?;
        Ok(SignedCheckpoint { checkpoint: self.clone(), note })
    }
}

/// A checkpoint with its signatures. `Display` and `FromStr` use the form of the file `checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: SignedNote,
}

impl SignedCheckpoint {
    /// Returns the claim, which isn't verified.
    pub fn unverified(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Returns the note, with all signatures.
    pub fn note(&self) -> &SignedNote {
        &self.note
    }

    /// Checks the log's signature, and returns the checkpoint.
    ///
    /// # Errors
    /// [`NoteError::OtherLog`] if the origin isn't the key's name, and [`NoteError::Unsigned`] or
    /// [`NoteError::Forged`] for the signature.
    pub fn verify(&self, log: &NoteKey) -> Result<&Checkpoint, NoteError> {
        if self.checkpoint.origin != log.name() {
            let (expected, found) = (log.name().to_owned(), self.checkpoint.origin.clone());
            return Err(NoteError::OtherLog { expected, found });
        }
        self.note.verify(log)?;
        Ok(&self.checkpoint)
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.note.fmt(f)
    }
}

impl FromStr for SignedCheckpoint {
    type Err = NoteError;

    /// Parses a checkpoint. Further lines of the text (extensions) are allowed, and signatures cover them.
    fn from_str(text: &str) -> Result<Self, NoteError> {
        let note: SignedNote = text.parse()?;
        let fault = NoteError::Checkpoint;
        let mut lines = note.text().strip_suffix('\n').unwrap_or_default().split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(fault("it has fewer than three lines"));
        };
        if origin.is_empty() || lines.any(str::is_empty) {
            return Err(fault("it has an empty line"));
        }
        let count = size.parse::<u64>().ok().filter(|count| count.to_string() == size);
        let size =
            count.filter(|size| *size <= MOST_LEAVES).ok_or(fault("the second line isn't a number of leaves"))?;
        let root = base64::decode_hash(root).ok_or(fault("the third line isn't a hash in base64"))?;
        let checkpoint = Checkpoint { origin: origin.to_owned(), size, root: Hash(root) };
        Ok(SignedCheckpoint { checkpoint, note })
    }
}
