//! Salts of commitments, computed from one secret of the arena, so that none is stored.

use std::fmt;

use arena_model::{Channel, SessionId, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::hash::from_hex;
use crate::{Commitment, HexError, RecordedChannel};

/// The secret from which one arena computes the salts of all its records. `Debug` doesn't print it.
#[derive(Clone)]
pub struct SaltSecret([u8; 32]);

impl SaltSecret {
    /// Creates the secret from 32 random bytes.
    pub fn from_random(bytes: [u8; 32]) -> SaltSecret {
        SaltSecret(bytes)
    }

    /// Parses the output of [`SaltSecret::to_hex`].
    ///
    /// # Errors
    /// If the text isn't 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<SaltSecret, HexError> {
        from_hex(text).map(SaltSecret)
    }

    /// Returns the secret as 64 hexadecimal digits, for its file.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// Returns the salts of one session. They reveal nothing about the salts of other sessions.
    pub fn of_session(&self, session: SessionId) -> SessionSalts {
        // The key is hashed once for all salts of the session.
        SessionSalts(keyed(&mac(keyed(&self.0), &session.to_string())))
    }

    /// Returns the commitment as in the session's record, or `None` if no record contains the messages of the channel.
    pub fn commit(&self, channel: Channel, index: u64, content: &str) -> Option<Commitment> {
        let (session, name) = match channel {
            Channel::Chat(session) => (session, RecordedChannel::Chat),
            Channel::Operator(session) => (session, RecordedChannel::Operator),
            Channel::Invites | Channel::Inputs(_) => return None,
        };
        Some(self.of_session(session).commit(&format!("{}/{index}", name.as_str()), content))
    }
}

impl fmt::Debug for SaltSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaltSecret(…)")
    }
}

/// The salts of one session. An opening reveals one salt, and no other salt follows from it.
#[derive(Clone)]
pub struct SessionSalts(Hmac<Sha256>);

impl SessionSalts {
    /// Returns the salt of one content, such as `operator/7` or `user/0`.
    pub fn salt(&self, what: &str) -> [u8; 32] {
        mac(self.0.clone(), what)
    }

    pub fn commit(&self, what: &str, content: &str) -> Commitment {
        Commitment::of(&self.salt(what), content)
    }
}

impl fmt::Debug for SessionSalts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSalts(…)")
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length")
}

fn mac(mut mac: Hmac<Sha256>, text: &str) -> [u8; 32] {
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}
