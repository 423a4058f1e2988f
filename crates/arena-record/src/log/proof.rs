//! Proofs for readers without the log (C2SP tlog-proof): a leaf's index, its inclusion path and a checkpoint.

use std::fmt;
use std::str::FromStr;

use crate::log::base64;
use crate::log::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::log::note::{NoteError, NoteKey};
use crate::log::reader::{LogError, LogFault};
use crate::log::tree::{MOST_HASHES, MOST_LEAVES, leaf_hash, verify_inclusion};
use crate::{Hash, LogProof};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";

/// A proof that a log contains a leaf. `Display` and `FromStr` use the form of a `.tlog-proof` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof {
    /// Data for the reader that nothing protects; empty if there is none.
    pub extra: Vec<u8>,
    /// The leaf's index, from 0.
    pub index: u64,
    /// The inclusion path, from the leaf's sibling up.
    pub path: Vec<Hash>,
    pub checkpoint: SignedCheckpoint,
}

impl TlogProof {
    /// Reads the proof of a record.
    ///
    /// # Errors
    /// [`NoteError`] if its checkpoint is malformed or has another size than the proof.
    pub fn of_record(proof: &LogProof) -> Result<TlogProof, NoteError> {
        let checkpoint: SignedCheckpoint = proof.checkpoint.parse()?;
        if checkpoint.unverified().size != proof.size {
            return Err(NoteError::Proof("its checkpoint has another size"));
        }
        Ok(TlogProof { extra: Vec::new(), index: proof.leaf, path: proof.path.clone(), checkpoint })
    }

    /// Checks the checkpoint's signature and that the log contains the leaf with these bytes. Returns the checkpoint.
    ///
    /// # Errors
    /// [`LogError::Note`] for the signature, and [`LogFault::NotIncluded`] for the path.
    pub fn verify(&self, leaf: &[u8], log: &NoteKey) -> Result<&Checkpoint, LogError> {
        let checkpoint = self.checkpoint.verify(log)?;
        let Checkpoint { size, root, .. } = checkpoint;
        verify_inclusion(&leaf_hash(leaf), self.index, *size, &self.path, root)
            .map_err(|fault| LogFault::NotIncluded { leaf: self.index, size: *size, fault })?;
        Ok(checkpoint)
    }
}

impl fmt::Display for TlogProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        if !self.extra.is_empty() {
            writeln!(f, "extra {}", base64::encode(&self.extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        self.path.iter().try_for_each(|hash| writeln!(f, "{}", base64::encode(&hash.0)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

impl FromStr for TlogProof {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let (head, checkpoint) = text.split_once("\n\n").ok_or(NoteError::Proof("it has no empty line"))?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(FIRST_LINE) {
            return Err(NoteError::Proof("its first line isn't c2sp.org/tlog-proof@v1"));
        }
        let mut extra = Vec::new();
        if let Some(data) = lines.peek().and_then(|line| line.strip_prefix("extra ")) {
            extra = base64::decode(data)
                .filter(|bytes| !bytes.is_empty())
                .ok_or(NoteError::Proof("its extra data isn't in base64"))?;
            lines.next();
        }
        let digits = lines.next().and_then(|line| line.strip_prefix("index "));
        let index = digits
            .and_then(|digits| digits.parse::<u64>().ok().filter(|index| index.to_string() == digits))
            .filter(|index| *index < MOST_LEAVES)
            .ok_or(NoteError::Proof("it has no index of a leaf"))?;
        let mut path = Vec::new();
        for line in lines {
            if path.len() >= MOST_HASHES {
                return Err(NoteError::Proof("it has too many hashes"));
            }
            let hash = base64::decode_hash(line).ok_or(NoteError::Proof("a hash isn't in base64"))?;
            path.push(Hash(hash));
        }
        Ok(TlogProof { extra, index, path, checkpoint: checkpoint.parse()? })
    }
}
