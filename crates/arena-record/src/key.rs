//! Record keys: Ed25519 keys that sign the last hash of records.

use std::fmt;

use arena_model::{SessionId, hex};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::hash::{from_hex, hexadecimal};
use crate::{Hash, HexError};

/// The public half of a record key: the 32 bytes of an Ed25519 point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPublicKey(pub [u8; 32]);

hexadecimal!(RecordPublicKey);

impl RecordPublicKey {
    /// Returns true if this key's holder signed `text`. Weak keys and ambiguous signatures are invalid.
    pub fn verifies(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(text, &signature).is_ok())
    }
}

/// The 64 bytes of a seal's Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SealSignature(pub [u8; 64]);

hexadecimal!(SealSignature);

/// A record key. Its memory is wiped on drop, and `Debug` doesn't print the secret.
#[derive(Clone)]
pub struct RecordKey(SigningKey);

impl RecordKey {
    /// Creates a key from 32 random bytes, which are as secret as the key.
    pub fn from_random(bytes: [u8; 32]) -> RecordKey {
        RecordKey(SigningKey::from_bytes(&bytes))
    }

    /// Parses the output of [`RecordKey::to_hex`].
    ///
    /// # Errors
    /// If the text isn't 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<RecordKey, HexError> {
        from_hex(text).map(RecordKey::from_random)
    }

    /// Returns the secret key as 64 hexadecimal digits, for its file.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0.to_bytes())
    }

    pub fn public_key(&self) -> RecordPublicKey {
        RecordPublicKey(self.0.verifying_key().to_bytes())
    }

    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.0.sign(text).to_bytes()
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordKey({}, …)", self.public_key())
    }
}

pub(crate) fn seal_text(session: SessionId, hash: Hash) -> String {
    format!("arena record seal\n{session}\n{hash}\n")
}
