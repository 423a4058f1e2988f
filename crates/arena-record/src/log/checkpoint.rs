//! Checkpoints (C2SP tlog-checkpoint): the size and root of a log, signed by the log and cosigned by witnesses
//! (C2SP tlog-cosignature, version 1).

use std::fmt;
use std::str::FromStr;

use crate::log::base64;
use crate::log::note::{NoteError, NoteKey, NoteSignature, SignatureType, SignedNote};
use crate::log::reader::LogFault;
use crate::log::tree::{MOST_LEAVES, TreeFault, verify_consistency};
use crate::{Hash, Sign};

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
    /// If the origin can't be the name of a key, or the signer fails.
    pub fn sign(&self, signer: &dyn Sign) -> Result<SignedCheckpoint, NoteError> {
        let note = SignedNote::sign(self.text(), &self.origin, signer)?;
        Ok(SignedCheckpoint { checkpoint: self.clone(), note })
    }

    /// Checks that this checkpoint continues `older`: `path` proves that the leaves of `older` are its first leaves.
    ///
    /// # Errors
    /// [`LogFault::OtherOrigin`], [`LogFault::WentBack`], [`LogFault::Forked`] if both have the same size and other
    /// roots, or [`LogFault::Inconsistent`] if the path doesn't prove it.
    pub fn check_continues(&self, older: &Checkpoint, path: &[Hash]) -> Result<(), LogFault> {
        if self.origin != older.origin {
            return Err(LogFault::OtherOrigin { expected: older.origin.clone(), found: self.origin.clone() });
        }
        match verify_consistency(older.size, &older.root, self.size, &self.root, path) {
            Ok(()) => Ok(()),
            Err(TreeFault::SizesReversed { old, new }) => Err(LogFault::WentBack { old, new }),
            Err(_) if older.size == self.size && older.root != self.root => Err(LogFault::Forked { size: self.size }),
            Err(fault) => Err(LogFault::Inconsistent { old: older.size, new: self.size, fault }),
        }
    }
}

/// A cosignature by a witness: the witness saw this checkpoint continue all earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosignature {
    /// The witness.
    pub witness: NoteKey,
    /// The time of the witness's clock, in seconds since the Unix epoch.
    pub at: u64,
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

    /// Checks the cosignatures of the given witnesses. Witnesses that haven't cosigned are left out, and signatures of
    /// other keys are ignored.
    ///
    /// # Errors
    /// [`NoteError::Forged`] for a cosignature that doesn't match its witness.
    pub fn cosignatures(&self, witnesses: &[NoteKey]) -> Result<Vec<Cosignature>, NoteError> {
        let mut found = Vec::new();
        for witness in witnesses {
            let made = match self.note.made_by(witness) {
                Ok(made) => made,
                Err(NoteError::Unsigned(_)) => continue,
                Err(error) => return Err(error),
            };
            let mut latest: Option<u64> = None;
            for signature in made {
                let at = self.cosigned_at(witness, signature).ok_or_else(|| NoteError::Forged(witness.clone()))?;
                latest = latest.max(Some(at));
            }
            found.extend(latest.map(|at| Cosignature { witness: witness.clone(), at }));
        }
        Ok(found)
    }

    /// Makes the cosignature of a witness. `at` is in seconds since the Unix epoch. The caller has checked that the
    /// checkpoint continues all earlier ones.
    ///
    /// # Errors
    /// If the name can't be a key's, the time is after the year 292 billion, or the signer fails.
    pub fn cosign(&self, name: &str, signer: &dyn Sign, at: u64) -> Result<NoteSignature, NoteError> {
        let key = NoteKey::new(name, SignatureType::Cosignature, signer.public_key())?;
        if i64::try_from(at).is_err() {
            return Err(NoteError::Sign("the time is too late".to_owned()));
        }
        let signature = signer.sign(self.cosigned_text(at).as_bytes()).map_err(NoteError::Sign)?;
        let bytes = at.to_be_bytes().into_iter().chain(signature).collect();
        Ok(NoteSignature { name: name.to_owned(), id: key.id(), bytes })
    }

    /// Adds a cosignature after checking it.
    ///
    /// # Errors
    /// [`NoteError::Unsigned`] if it names another key, [`NoteError::Forged`] if it doesn't match, and
    /// [`NoteError::Note`] if there are too many.
    pub fn add_cosignature(&mut self, signature: NoteSignature, witness: &NoteKey) -> Result<(), NoteError> {
        if signature.name != witness.name() || signature.id != witness.id() {
            return Err(NoteError::Unsigned(witness.clone()));
        }
        if self.cosigned_at(witness, &signature).is_none() {
            return Err(NoteError::Forged(witness.clone()));
        }
        self.note.add(signature)
    }

    /// Returns the time of a cosignature, or `None` if it doesn't match.
    fn cosigned_at(&self, witness: &NoteKey, signature: &NoteSignature) -> Option<u64> {
        let (time, bytes) = signature.bytes.split_first_chunk::<8>()?;
        let bytes = <[u8; 64]>::try_from(bytes).ok()?;
        let at = u64::from_be_bytes(*time);
        let is_valid = witness.kind() == SignatureType::Cosignature
            && i64::try_from(at).is_ok()
            && witness.public_key().verifies(self.cosigned_text(at).as_bytes(), &bytes);
        is_valid.then_some(at)
    }

    fn cosigned_text(&self, at: u64) -> String {
        format!("cosignature/v1\ntime {at}\n{}", self.note.text())
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
