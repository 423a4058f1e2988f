//! The chain of a replay: each line after the header begins with the hash of the line before it, so a changed line is
//! found without the rules. A seal after the result signs the last hash.

use std::borrow::Cow;

use arena_record::{Hash, RecordKey, RecordPublicKey, SealSignature};
use serde::{Deserialize, Serialize};

/// The beginning of each line in the chain. The hash follows, as 64 hexadecimal digits.
const LINK: &str = "{\"previous\":\"";
/// The text between the hash and the other members.
const AFTER: &str = "\",";
const DIGITS: usize = 64;
/// The beginning of a seal.
pub(super) const SEAL: &str = "{\"seal\":";

/// A seal, the last line of a signed replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySeal {
    /// The hash of the result's line.
    pub seal: Hash,
    pub key: RecordPublicKey,
    /// The Ed25519 signature of the hash.
    pub signature: SealSignature,
}

impl ReplaySeal {
    /// Parses a seal without its line end. The seal must have its canonical form.
    pub(super) fn parse(line: &str) -> Result<ReplaySeal, String> {
        let seal: ReplaySeal = serde_json::from_str(line).map_err(|error| format!("the seal is malformed: {error}"))?;
        match seal.to_line() == line {
            true => Ok(seal),
            false => Err("the seal isn't in its canonical form".to_owned()),
        }
    }

    /// Checks the seal of a replay in which `last` is the hash of the result's line.
    pub(super) fn check(&self, last: Hash) -> Result<(), String> {
        if self.seal != last {
            return Err("the seal is of another replay, or the result was changed".to_owned());
        }
        match self.key.verifies(signed_text(self.seal).as_bytes(), &self.signature.0) {
            true => Ok(()),
            false => Err("the seal's signature is invalid".to_owned()),
        }
    }

    fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a seal is plain data")
    }
}

/// Returns the line that seals a replay, with its line end. `last` is the hash of the result's line: see
/// [`PlayedMatch::replay`](crate::PlayedMatch::replay) and [`replay_hash`].
pub fn seal_line(last: Hash, key: &RecordKey) -> String {
    let signature = SealSignature(key.sign(signed_text(last).as_bytes()));
    ReplaySeal { seal: last, key: key.public_key(), signature }.to_line() + "\n"
}

/// Returns the hash of the last line of a complete replay without a seal.
pub fn replay_hash(replay: &[u8]) -> Hash {
    let whole = replay.strip_suffix(b"\n").unwrap_or(replay);
    let begin = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Hash::of(&whole[begin..])
}

fn signed_text(last: Hash) -> String {
    format!("arena replay seal\n{last}\n")
}

/// Returns the beginning of a line that follows a line with the hash `last`.
pub(super) fn link(last: Hash) -> String {
    format!("{LINK}{last}{AFTER}")
}

/// Splits a line into the hash of the line before it and the other members, which begin with a quotation mark. `None`
/// if the line doesn't begin with such a hash.
pub(super) fn split(line: &str) -> Option<(Hash, &str)> {
    let (digits, rest) = line.strip_prefix(LINK)?.split_at_checked(DIGITS)?;
    Some((digits.parse().ok()?, rest.strip_prefix(AFTER)?))
}

/// Returns true if a line begins with `previous`, as no line of format 1 does.
pub(super) fn has_link(line: &str) -> bool {
    line.starts_with(LINK)
}

/// Repairs the chain of a replay in which the caller changes lines, for example to remove private paths.
#[derive(Debug, Default)]
pub struct ChainRepair {
    /// The hash of the last line, once a line differs from the original.
    last: Option<Hash>,
}

impl ChainRepair {
    /// Takes the next line, as it was and as it is to be, with its line end. Returns the line with the right hash of
    /// the line before it. Returns `None` for a seal that isn't valid anymore.
    pub fn repair<'l>(&mut self, original: &str, changed: Cow<'l, str>) -> Option<Cow<'l, str>> {
        let repaired = match self.last {
            Some(_) if original.starts_with(SEAL) => return None,
            Some(last) => match split(&changed) {
                Some((_, rest)) => Cow::Owned(link(last) + rest),
                None => changed,
            },
            None => changed,
        };
        if self.last.is_some() || *repaired != *original {
            self.last = Some(Hash::of(repaired.strip_suffix('\n').unwrap_or(&repaired).as_bytes()));
        }
        Some(repaired)
    }
}

#[cfg(test)]
mod tests {
    use arena_record::RecordKey;

    use super::*;

    #[test]
    fn a_seal_is_read_as_it_was_written() {
        let (key, hash) = (RecordKey::from_random([7; 32]), Hash::of(b"result"));
        let line = seal_line(hash, &key);
        let seal = ReplaySeal::parse(line.trim_end()).unwrap();
        assert_eq!((seal.seal, seal.key), (hash, key.public_key()));
        assert_eq!(seal.check(hash), Ok(()));
        assert_eq!(
            seal.check(Hash::of(b"other")).unwrap_err(),
            "the seal is of another replay, or the result was changed"
        );
        let other = ReplaySeal { key: RecordKey::from_random([8; 32]).public_key(), ..seal };
        assert_eq!(other.check(hash).unwrap_err(), "the seal's signature is invalid");
        let spaced = line.trim_end().replace(",\"key\"", ", \"key\"");
        assert_eq!(ReplaySeal::parse(&spaced).unwrap_err(), "the seal isn't in its canonical form");
    }

    #[test]
    fn a_line_is_split_at_its_hash() {
        let hash = Hash::of(b"before");
        assert_eq!(split(&format!("{}\"epoch\":1}}", link(hash))), Some((hash, "\"epoch\":1}")));
        let upper = format!("{LINK}{}{AFTER}\"epoch\":1}}", hash.to_string().to_uppercase());
        for line in ["", "{\"epoch\":1}", "{\"previous\":\"12\",\"epoch\":1}", &upper] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn a_repaired_chain_continues_from_the_changed_line() {
        let mut lines = vec!["{\"arena_replay\":2}\n".to_owned()];
        for number in 1..=3 {
            let last = replay_hash(lines.concat().as_bytes());
            lines.push(format!("{}\"epoch\":{number}}}\n", link(last)));
        }
        lines.push("{\"seal\":\"\"}\n".to_owned());
        let mut repair = ChainRepair::default();
        let repaired: Vec<String> = (lines.iter())
            .filter_map(|line| repair.repair(line, line.replace("\"epoch\":2", "\"epoch\":9").into()))
            .map(Cow::into_owned)
            .collect();
        assert_eq!(repaired[..2], lines[..2]);
        assert_eq!(repaired[2], lines[2].replace("\"epoch\":2", "\"epoch\":9"));
        assert_eq!(repaired[3], format!("{}\"epoch\":3}}\n", link(replay_hash(repaired[2].as_bytes()))));
        assert_eq!(repaired.len(), 4, "the seal was of the original");
        let mut same = ChainRepair::default();
        assert!(lines.iter().all(|line| same.repair(line, line.into()).as_deref() == Some(line.as_str())));
    }
}
