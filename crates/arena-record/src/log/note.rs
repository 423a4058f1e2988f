//! Signed notes (C2SP signed-note): a text, and signatures by named keys below it.

use std::fmt;
use std::str::FromStr;

use arena_model::hex;
use sha2::{Digest, Sha256};

use crate::log::base64;
use crate::{RecordKey, RecordPublicKey};

/// The maximum number of signatures of a note.
pub const MOST_SIGNATURES: usize = 64;

/// The maximum length of a note, in bytes. A post-quantum signature of a witness has up to 5 kB.
const MOST_NOTE_BYTES: usize = 512 * 1024;

/// The beginning of a signature's line: an em dash and a space.
const DASH: &str = "\u{2014} ";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("not a signed note: {0}")]
    Note(&'static str),
    #[error("not a checkpoint: {0}")]
    Checkpoint(&'static str),
    #[error("not a verifier key: {0}; expected NAME+ID+KEY, as the log's operator publishes it")]
    Key(&'static str),
    #[error("not a proof of the log: {0}")]
    Proof(&'static str),
    #[error("the checkpoint is of the log {found} instead of {expected}")]
    OtherLog { expected: String, found: String },
    #[error("the note has no signature of {0}")]
    Unsigned(NoteKey),
    #[error("the signature of {0} doesn't match the note")]
    Forged(NoteKey),
}

impl NoteError {
    /// Returns true if the error shows a false claim, rather than a file of another format, log or key.
    pub fn is_lie(&self) -> bool {
        matches!(self, NoteError::Forged(_))
    }
}

/// The type of Ed25519 signatures over the text of a note, in keys and key ids.
const ED25519: u8 = 1;

/// The public key of a log, with its name. `Display` and `FromStr` use the form `NAME+ID+KEY`, in which
/// the id has eight hexadecimal digits and the key is in base64 after its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteKey {
    name: String,
    key: RecordPublicKey,
}

impl NoteKey {
    /// Returns the key with this name.
    ///
    /// # Errors
    /// [`NoteError::Key`] if the name is empty or contains white space, control characters or `+`.
    pub fn new(name: &str, key: RecordPublicKey) -> Result<NoteKey, NoteError> {
        if is_key_name(name) {
            Ok(NoteKey { name: name.to_owned(), key })
        } else {
            Err(NoteError::Key("the name is empty or has a space, a control character or a `+`"))
        }
    }

    /// Returns the name: the origin of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn public_key(&self) -> &RecordPublicKey {
        &self.key
    }

    /// Returns the key id: the first four bytes of the hash of name, type and key. It proves nothing.
    pub fn id(&self) -> [u8; 4] {
        let text = Sha256::new().chain_update(self.name.as_bytes()).chain_update([b'\n', ED25519]);
        let hash: [u8; 32] = text.chain_update(self.key.0).finalize().into();
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Returns true if the signature's line names this key.
    fn made(&self, signature: &NoteSignature) -> bool {
        signature.name == self.name && signature.id == self.id()
    }
}

impl fmt::Display for NoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: Vec<u8> = std::iter::once(ED25519).chain(self.key.0).collect();
        write!(f, "{}+{}+{}", self.name, hex::encode(&self.id()), base64::encode(&key))
    }
}

impl FromStr for NoteKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        // The base64 of the key may contain a `+`, but the name may not.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key("it has fewer than three parts"));
        };
        let bytes = base64::decode(key).ok_or(NoteError::Key("the key isn't in base64"))?;
        let Some((kind, key)) = bytes.split_first() else { return Err(NoteError::Key("the key is empty")) };
        if *kind != ED25519 {
            return Err(NoteError::Key("only the type 1 (Ed25519) is known"));
        }
        let key = <[u8; 32]>::try_from(key).map_err(|_| NoteError::Key("an Ed25519 key has 32 bytes"))?;
        let key = NoteKey::new(name, RecordPublicKey(key))?;
        if hex::encode(&key.id()) == id { Ok(key) } else { Err(NoteError::Key("the id doesn't match name and key")) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    pub name: String,
    pub id: [u8; 4],
    /// The signature in the form of its type: 64 bytes for a log.
    pub bytes: Vec<u8>,
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.id.iter().chain(&self.bytes).copied().collect();
        write!(f, "{DASH}{} {}", self.name, base64::encode(&bytes))
    }
}

/// A text with signatures, none of which is verified yet. `Display` gives the note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl SignedNote {
    /// Signs a text, which must end with a line end, as the key's owner.
    ///
    /// # Errors
    /// If the text or the name can't be in a note.
    pub fn sign(text: String, name: &str, signer: &RecordKey) -> Result<SignedNote, NoteError> {
        check_text(&text)?;
        let key = NoteKey::new(name, signer.public_key())?;
        let bytes = signer.sign(text.as_bytes()).to_vec();
        Ok(SignedNote { text, signatures: vec![NoteSignature { name: key.name.clone(), id: key.id(), bytes }] })
    }

    /// Returns the text, including its last line end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns all signatures, including those of unknown keys.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Checks that the holder of `key` signed the text itself. Every signature of the key must match.
    ///
    /// # Errors
    /// [`NoteError::Unsigned`] or [`NoteError::Forged`].
    pub fn verify(&self, key: &NoteKey) -> Result<(), NoteError> {
        let mut made = self.signatures.iter().filter(|signature| key.made(signature)).peekable();
        if made.peek().is_none() {
            return Err(NoteError::Unsigned(key.clone()));
        }
        let matches = |signature: &NoteSignature| {
            let bytes = <[u8; 64]>::try_from(signature.bytes.as_slice());
            bytes.is_ok_and(|bytes| key.key.verifies(self.text.as_bytes(), &bytes))
        };
        if made.all(matches) { Ok(()) } else { Err(NoteError::Forged(key.clone())) }
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

impl FromStr for SignedNote {
    type Err = NoteError;

    fn from_str(note: &str) -> Result<Self, NoteError> {
        if note.len() > MOST_NOTE_BYTES {
            return Err(NoteError::Note("it is too long"));
        }
        let (text, lines) = note.rsplit_once("\n\n").ok_or(NoteError::Note("it has no empty line"))?;
        let text = format!("{text}\n");
        check_text(&text)?;
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Note("it ends without a line end"))?;
        let mut signatures = Vec::new();
        for line in lines.split('\n') {
            if signatures.len() >= MOST_SIGNATURES {
                return Err(NoteError::Note("it has too many signatures"));
            }
            signatures.push(line.parse()?);
        }
        Ok(SignedNote { text, signatures })
    }
}

impl FromStr for NoteSignature {
    type Err = NoteError;

    /// Parses the line of a signature, without its line end.
    fn from_str(line: &str) -> Result<Self, NoteError> {
        const FAULT: NoteError = NoteError::Note("a signature's line isn't a dash, a name and base64");
        let (name, signature) = line.strip_prefix(DASH).and_then(|line| line.split_once(' ')).ok_or(FAULT)?;
        let bytes = base64::decode(signature).filter(|_| is_key_name(name)).ok_or(FAULT)?;
        match bytes.split_first_chunk::<4>() {
            Some((id, bytes)) if !bytes.is_empty() => {
                Ok(NoteSignature { name: name.to_owned(), id: *id, bytes: bytes.to_vec() })
            }
            _ => Err(NoteError::Note("a signature is too short")),
        }
    }
}

fn check_text(text: &str) -> Result<(), NoteError> {
    if text.chars().any(|char| char < ' ' && char != '\n') {
        return Err(NoteError::Note("it has a control character"));
    }
    if text.ends_with('\n') { Ok(()) } else { Err(NoteError::Note("its text ends without a line end")) }
}

fn is_key_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|char| char.is_whitespace() || char < ' ' || char == '+')
}
