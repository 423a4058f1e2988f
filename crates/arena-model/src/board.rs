//! Boards: games count on the same board if their challenge, options, rules and prompt are equal.
//!
//! A session that is created with the arena's own options stores its [`BoardTerms`]: the rules version and the hash
//! of the prompt. A session with other options has no `BoardTerms`. Such a session counts on no board, but is played
//! and shown like any other.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{ChallengeType, Script, SessionFacts, hex};

/// The number of hexadecimal digits of a [`BoardId`]: the first eight bytes of a hash.
const DIGITS: usize = 16;

/// The rules version of sessions that were stored before rules had versions.
const FIRST_RULES: &str = "1";

/// The id of a board: a hash of challenge, options, rules and prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a board id ({DIGITS} hexadecimal digits)")]
pub struct BoardIdError;

impl BoardId {
    /// Returns the id of the board for games of `challenge` with these options, rules version and prompt.
    pub fn of(challenge: &str, options: &Value, terms: &BoardTerms) -> BoardId {
        // serde_json writes the keys of objects in sorted order, so equal values give equal texts.
        let canonical = json!([challenge, options, terms.rules, terms.prompt]).to_string();
        let mut digits = hex::encode(&Sha256::digest(canonical));
        digits.truncate(DIGITS);
        BoardId(digits)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BoardId {
    type Err = BoardIdError;

    fn from_str(text: &str) -> Result<BoardId, BoardIdError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let fits = text.len() == DIGITS && text.bytes().all(is_digit);
        fits.then(|| BoardId(text.to_owned())).ok_or(BoardIdError)
    }
}

/// The rules version and the prompt of a session that counts on a board.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoardTerms {
    /// The version of the rules: a number, or the hash of a script's files.
    pub rules: String,
    /// SHA-256 of the prompt, as hexadecimal digits. `None` for sessions that are older than this field.
    pub prompt: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid terms of a board: {0}")]
pub struct BoardTermsError(&'static str);

impl BoardTerms {
    /// Returns the rules version and the prompt's hash of a new session of `challenge`.
    pub fn of(challenge: &dyn ChallengeType) -> BoardTerms {
        let rules = match challenge.script().map(Script::version) {
            Some(version) => version.to_string(),
            None => challenge.rules_version().to_string(),
        };
        BoardTerms { rules, prompt: Some(hex::encode(&Sha256::digest(&challenge.metadata().prompt))) }
    }

    /// Returns the [`BoardTerms`] of a session that an older version of the program stored without them.
    pub fn of_before(script: Option<&impl ToString>) -> BoardTerms {
        let rules = script.map_or_else(|| FIRST_RULES.to_owned(), ToString::to_string);
        BoardTerms { rules, prompt: None }
    }

    /// Creates the [`BoardTerms`] from their stored form.
    ///
    /// # Errors
    /// If the rules version isn't 1 to 64 letters and digits, or `prompt` isn't 64 lower-case hexadecimal digits.
    pub fn read(rules: &str, prompt: Option<&str>) -> Result<BoardTerms, BoardTermsError> {
        if rules.is_empty() || rules.len() > 64 || !rules.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(BoardTermsError("the version of the rules must be 1 to 64 letters and digits"));
        }
        if prompt.is_some_and(|prompt| hex::decode_canonical(prompt).is_none()) {
            return Err(BoardTermsError("the hash of the prompt must be 64 lower-case hexadecimal digits"));
        }
        Ok(BoardTerms { rules: rules.to_owned(), prompt: prompt.map(str::to_owned) })
    }
}

impl SessionFacts {
    /// Returns the session's board, or `None` if its options aren't the arena's own.
    pub fn board(&self) -> Option<BoardId> {
        self.rated.as_ref().map(|terms| BoardId::of(&self.challenge, &self.options, terms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(rules: &str, prompt: Option<&str>) -> BoardTerms {
        BoardTerms { rules: rules.to_owned(), prompt: prompt.map(str::to_owned) }
    }

    #[test]
    fn a_board_is_one_challenge_with_one_set_of_options_rules_and_prompt() {
        let options = json!({ "setSize": 5, "range": [1, 9] });
        let same: Value = serde_json::from_str(r#"{"range":[1,9],"setSize":5}"#).expect("JSON");
        let board = BoardId::of("psi", &options, &terms("1", Some("a")));
        assert_eq!(board, BoardId::of("psi", &same, &terms("1", Some("a"))));
        // The id is stored in databases, so it must not change.
        assert_eq!(board.as_str(), "39c0f6e253653724");
        assert_eq!(board.to_string().parse(), Ok(board.clone()));
        let others = [
            BoardId::of("chess", &options, &terms("1", Some("a"))),
            BoardId::of("psi", &json!({ "setSize": 4, "range": [1, 9] }), &terms("1", Some("a"))),
            BoardId::of("psi", &options, &terms("2", Some("a"))),
            BoardId::of("psi", &options, &terms("1", Some("b"))),
            BoardId::of("psi", &options, &terms("1", None)),
        ];
        assert!(others.iter().all(|other| *other != board), "{others:?}");
    }

    #[test]
    fn impossible_terms_are_refused() {
        let long = "1".repeat(65);
        for (rules, prompt) in [("", None), (long.as_str(), None), ("1 2", None), ("1", Some("abc")), ("1", Some(""))] {
            assert!(BoardTerms::read(rules, prompt).is_err(), "{rules:?} {prompt:?}");
        }
        assert_eq!(BoardTerms::read("2", Some(&"a".repeat(64))), Ok(terms("2", Some(&"a".repeat(64)))));
        assert!("psi".parse::<BoardId>().is_err() && "ABCDEF0123456789".parse::<BoardId>().is_err());
    }
}
