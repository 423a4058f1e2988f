//! Identifiers and other small values. New ids need randomness and a clock, so `arena-engine` makes them; this
//! module parses and prints them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

/// The error for a text that isn't the expected identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}")]
pub struct IdError {
    expected: &'static str,
}

impl IdError {
    pub(crate) fn expected(expected: &'static str) -> IdError {
        IdError { expected }
    }
}

/// Parses a UUID in lower case with hyphens, so that each id has one spelling.
fn canonical_uuid(text: &str, expected: &'static str) -> Result<Uuid, IdError> {
    let canonical = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if !canonical {
        return Err(IdError { expected });
    }
    Uuid::try_parse(text).map_err(|_| IdError { expected })
}

/// The id of a session: a UUID, `challengeId` on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, format = "uuid", example = "018f6b2e-0000-7000-8000-00000000abcd")]
pub struct SessionId(pub Uuid);

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        canonical_uuid(text, "a session id (a UUID)").map(SessionId)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The code for one seat: `inv_` and a UUID. After its player has joined, it is also the player's public name.
///
/// An unclaimed code is a secret, so `Debug` doesn't print it and `Serialize` isn't implemented. Codes reach a client
/// through [`crate::view`] or as a [`crate::Party`] of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InviteCode(pub Uuid);

impl FromStr for InviteCode {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        const EXPECTED: &str = "an invite (inv_ and a UUID)";
        let uuid = text.strip_prefix("inv_").ok_or(IdError { expected: EXPECTED })?;
        canonical_uuid(uuid, EXPECTED).map(InviteCode)
    }
}

impl fmt::Display for InviteCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inv_{}", self.0.hyphenated())
    }
}

impl fmt::Debug for InviteCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inv_…")
    }
}

/// A player's identity across sessions: a name of the player's choice or, in authentication mode, the hash of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, min_length = 1, max_length = 255, example = "ada")]
pub struct UserId(String);

impl UserId {
    /// The maximum length in bytes. The hash of a key has 64 bytes.
    pub const MAX_BYTES: usize = 255;

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = !text.is_empty() && text.len() <= UserId::MAX_BYTES && !text.chars().any(char::is_control);
        if fits {
            Ok(UserId(text.to_owned()))
        } else {
            Err(IdError { expected: "a user id (1 to 255 bytes without control characters)" })
        }
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The position of a player in a session, from 0, in the order of joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seat(pub usize);

impl Seat {
    /// Returns the number shown to people: seat 0 is "Player 1".
    pub fn number(self) -> usize {
        self.0 + 1
    }
}

/// A moment, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = i64, example = 1_700_000_000_000_i64)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the moment `ms` milliseconds later, or the last representable moment.
    pub fn plus_ms(self, ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let lower = "018f6b2e-0000-7000-8000-00000000abcd";
        assert_eq!(lower.parse::<SessionId>().expect("canonical").to_string(), lower);
        for other in [
            "018F6B2E-0000-7000-8000-00000000ABCD",
            "018f6b2e000070008000000000000abcd",
            "{018f6b2e-0000-7000-8000-00000000abcd}",
            "urn:uuid:018f6b2e-0000-7000-8000-00000000abcd",
            "018f6b2e-0000-7000-8000-00000000abcd ",
            "",
            "__proto__",
        ] {
            assert!(other.parse::<SessionId>().is_err(), "{other:?}");
            assert!(format!("inv_{other}").parse::<InviteCode>().is_err(), "inv_{other:?}");
        }
        assert!(lower.parse::<InviteCode>().is_err());
        assert!(format!("inv_{lower}").parse::<InviteCode>().is_ok());
    }

    #[test]
    fn an_invite_does_not_leak_through_debug() {
        let invite: InviteCode = "inv_018f6b2e-0000-7000-8000-00000000abcd".parse().expect("canonical");
        assert_eq!(format!("{invite:?}"), "inv_…");
    }

    #[test]
    fn user_ids_are_bounded_text() {
        assert!("ada".parse::<UserId>().is_ok());
        assert!("__proto__".parse::<UserId>().is_ok());
        assert!("".parse::<UserId>().is_err());
        assert!("a\u{0}b".parse::<UserId>().is_err());
        assert!("x".repeat(256).parse::<UserId>().is_err());
    }
}
