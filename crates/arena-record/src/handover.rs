//! Handovers: a new key replaces an old one, and both sign the change. Earlier releases made them; this one reads them.
//!
//! A verifier that trusts one of the two keys can trust the other one too. Handovers in a row connect all keys of an
//! arena, so it doesn't matter which of them a verifier knows.

use std::collections::BTreeSet;
use std::fmt;

use arena_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{RecordPublicKey, SealSignature};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    Record,
    Log,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyKind::Record => "record",
            KeyKind::Log => "log",
        })
    }
}

/// A change of a key. The signatures aren't verified yet; see [`KeyHandover::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyHandover {
    pub kind: KeyKind,
    pub old: RecordPublicKey,
    pub new: RecordPublicKey,
    /// The time of the change, by the arena's clock.
    pub at: Timestamp,
    /// The old key's signature of [`KeyHandover::text`].
    pub signed_by_old: SealSignature,
    /// The new key's signature of the same text. It shows that the new key's holder accepts the records of the old one.
    pub signed_by_new: SealSignature,
}

/// The error for a handover that one of its keys has not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handover of the {kind} key from {old} to {new} has no valid signature of the {by} key")]
pub struct HandoverError {
    kind: KeyKind,
    old: RecordPublicKey,
    new: RecordPublicKey,
    by: &'static str,
}

impl KeyHandover {
    /// Returns the text that both keys sign: a title, the purpose, the keys in hexadecimal digits, and the time in
    /// milliseconds, each on a line.
    pub fn text(&self) -> String {
        let KeyHandover { kind, old, new, at, .. } = self;
        format!("arena key handover\n{kind}\n{old}\n{new}\n{}\n", at.0)
    }

    /// Checks both signatures.
    ///
    /// # Errors
    /// [`HandoverError`] for a signature that doesn't match its key and the text.
    pub fn check(&self) -> Result<(), HandoverError> {
        let text = self.text();
        let error = |by| HandoverError { kind: self.kind, old: self.old, new: self.new, by };
        if !self.old.verifies(text.as_bytes(), &self.signed_by_old.0) {
            return Err(error("old"));
        }
        if !self.new.verifies(text.as_bytes(), &self.signed_by_new.0) {
            return Err(error("new"));
        }
        Ok(())
    }
}

/// Returns the trusted keys, followed by those that valid handovers of this kind connect with them, in either
/// direction. Invalid handovers connect nothing.
pub fn connected_keys(kind: KeyKind, trusted: &[RecordPublicKey], handovers: &[KeyHandover]) -> Vec<RecordPublicKey> {
    let mut open: Vec<&KeyHandover> =
        handovers.iter().filter(|handover| handover.kind == kind && handover.check().is_ok()).collect();
    let mut keys = trusted.to_vec();
    let mut known: BTreeSet<RecordPublicKey> = trusted.iter().copied().collect();
    loop {
        let before = open.len();
        open.retain(|handover| {
            let is_connected = known.contains(&handover.old) || known.contains(&handover.new);
            if is_connected {
                for key in [handover.old, handover.new] {
                    if known.insert(key) {
                        keys.push(key);
                    }
                }
            }
            !is_connected
        });
        if open.len() == before {
            return keys;
        }
    }
}

#[cfg(test)]
pub(crate) fn signed(kind: KeyKind, old: &crate::RecordKey, new: &crate::RecordKey, at: Timestamp) -> KeyHandover {
    let unsigned = SealSignature([0; 64]);
    let (old_key, new_key) = (old.public_key(), new.public_key());
    let handover =
        KeyHandover { kind, old: old_key, new: new_key, at, signed_by_old: unsigned, signed_by_new: unsigned };
    let sign = |key: &crate::RecordKey| SealSignature(key.sign(handover.text().as_bytes()));
    KeyHandover { signed_by_old: sign(old), signed_by_new: sign(new), ..handover }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordKey;

    fn key(seed: u8) -> RecordKey {
        RecordKey::from_random([seed; 32])
    }

    fn handover(kind: KeyKind, old: u8, new: u8) -> KeyHandover {
        signed(kind, &key(old), &key(new), Timestamp(1_790_000_000_000))
    }

    #[test]
    fn both_keys_sign_a_text_that_names_them() {
        let handover = handover(KeyKind::Record, 1, 2);
        assert_eq!(handover.check(), Ok(()));
        let expected =
            format!("arena key handover\nrecord\n{}\n{}\n1790000000000\n", key(1).public_key(), key(2).public_key());
        assert_eq!(handover.text(), expected);
        assert_eq!(handover.signed_by_old.0, key(1).sign(expected.as_bytes()));
        let line = serde_json::to_string(&handover).unwrap();
        assert!(line.starts_with("{\"kind\":\"record\",\"old\":\""), "{line}");
        assert_eq!(serde_json::from_str::<KeyHandover>(&line).unwrap(), handover);
    }

    #[test]
    fn a_changed_handover_is_invalid() {
        let valid = handover(KeyKind::Record, 1, 2);
        let other = handover(KeyKind::Record, 3, 4);
        let cases = [
            KeyHandover { kind: KeyKind::Log, ..valid },
            KeyHandover { old: other.old, ..valid },
            KeyHandover { new: other.new, ..valid },
            KeyHandover { at: Timestamp(valid.at.0 + 1), ..valid },
            KeyHandover { signed_by_old: other.signed_by_old, ..valid },
            KeyHandover { signed_by_new: other.signed_by_new, ..valid },
            KeyHandover { signed_by_old: valid.signed_by_new, signed_by_new: valid.signed_by_old, ..valid },
        ];
        for case in cases {
            assert!(case.check().is_err(), "{case:?}");
            assert_eq!(connected_keys(case.kind, &[key(1).public_key()], &[case]), [key(1).public_key()]);
        }
        let sentence = cases[4].check().unwrap_err().to_string();
        assert!(sentence.ends_with("has no valid signature of the old key"), "{sentence}");
    }

    #[test]
    fn handovers_connect_keys_in_both_directions() {
        let handovers = [
            handover(KeyKind::Record, 2, 3),
            handover(KeyKind::Record, 1, 2),
            handover(KeyKind::Log, 3, 4),
            handover(KeyKind::Record, 8, 9),
        ];
        let cases: [(&[u8], &[u8]); 5] =
            [(&[1], &[1, 2, 3]), (&[3], &[3, 2, 1]), (&[2], &[2, 3, 1]), (&[7], &[7]), (&[], &[])];
        for (trusted, expected) in cases {
            let keys = |seeds: &[u8]| seeds.iter().map(|seed| key(*seed).public_key()).collect::<Vec<_>>();
            assert_eq!(connected_keys(KeyKind::Record, &keys(trusted), &handovers), keys(expected), "{trusted:?}");
        }
    }
}
