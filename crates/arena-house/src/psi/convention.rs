//! The chat convention of the house bots: the kinds of line, with their format and parser. See the documentation of
//! [`super::psi`].

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The range of the numbers, as in the prompt of `psi` with default options.
pub const RANGE: RangeInclusive<u64> = 100..=900;

/// The numbers of a player's set or guess.
pub type Numbers = BTreeSet<u64>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatLine {
    /// The speaker's whole set.
    Plain(Numbers),
    /// A [`digest`] for each number of the speaker, sorted so that the order reveals nothing.
    Digests { salt: String, digests: BTreeSet<String> },
    /// The speaker reveals nothing.
    Pass,
}

impl ChatLine {
    pub fn digests(numbers: &Numbers, salt: &str) -> ChatLine {
        let digests = numbers.iter().map(|number| digest(salt, *number)).collect();
        ChatLine::Digests { salt: salt.to_owned(), digests }
    }
}

/// Returns the first 64 bits of the SHA-256 of `salt:number`: short enough to read, and long enough to avoid collisions
/// in a set.
pub fn digest(salt: &str, number: u64) -> String {
    let hash = Sha256::digest(format!("{salt}:{number}"));
    arena_model::hex::encode(&hash[..8])
}

pub fn numbers_in(text: &str) -> Numbers {
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

impl fmt::Display for ChatLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChatLine::Plain(numbers) => {
                f.write_str("PLAIN")?;
                numbers.iter().try_for_each(|number| write!(f, " {number}"))
            }
            ChatLine::Digests { salt, digests } => {
                write!(f, "DIGESTS salt={salt}")?;
                digests.iter().try_for_each(|digest| write!(f, " {digest}"))
            }
            ChatLine::Pass => f.write_str("PASS"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct NotALine;

impl FromStr for ChatLine {
    type Err = NotALine;

    fn from_str(text: &str) -> Result<ChatLine, NotALine> {
        let mut words = text.split_whitespace();
        match words.next() {
            Some("PLAIN") => Ok(ChatLine::Plain(numbers_in(text))),
            Some("DIGESTS") => {
                let salt = words.next().and_then(|word| word.strip_prefix("salt=")).ok_or(NotALine)?;
                Ok(ChatLine::Digests { salt: salt.to_owned(), digests: words.map(str::to_owned).collect() })
            }
            Some("PASS") => Ok(ChatLine::Pass),
            _ => Err(NotALine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let set = Numbers::from([101, 205, 880]);
        let lines = [ChatLine::Plain(set.clone()), ChatLine::digests(&set, "5f0c"), ChatLine::Pass];
        for line in lines {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
        assert_eq!(ChatLine::Plain(set).to_string(), "PLAIN 101 205 880");
        assert_eq!("let us talk".parse::<ChatLine>(), Err(NotALine));
        assert_eq!("DIGESTS 00".parse::<ChatLine>(), Err(NotALine));
    }

    #[test]
    fn digest_is_the_start_of_sha256() {
        // printf '5f0c:101' | sha256sum
        assert_eq!(digest("5f0c", 101), "b12721c8e2649d38");
    }
}
