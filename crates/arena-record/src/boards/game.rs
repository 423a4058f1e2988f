//! Recorded games, as leaderboards see them.

use std::collections::BTreeMap;

use arena_model::{Attribution, BoardTerms, Score, SessionId, UserId};
use serde_json::Value;

use crate::{EndKind, EventKind, Parsed, RecordedRules};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedPlayer {
    Unidentified,
    User(UserId),
    Withheld,
}

/// The part of a record that leaderboards need.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedGame {
    pub session: SessionId,
    pub challenge: String,
    /// All options of the session.
    pub options: Value,
    pub terms: BoardTerms,
    /// The players by seat. Seats that no player took are missing.
    pub players: Vec<RecordedPlayer>,
    /// The result; `None` if the record has no end.
    pub end: Option<RecordedEnd>,
    /// True if the session continues a part of another one.
    pub is_fork: bool,
    /// The sealed hash of the record, in hex.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEnd {
    /// True if the rules ended the game; false if it was abandoned.
    pub is_completed: bool,
    /// The time in milliseconds.
    pub at: i64,
    /// The scores by seat.
    pub scores: Vec<Score>,
    pub attributions: Vec<Attribution>,
}

impl RecordedGame {
    /// Returns the part of a record that leaderboards need. `prompts` has the SHA-256 of the prompt, in hex, of each
    /// version of a script, because a record names only the script.
    ///
    /// # Errors
    /// If an opened user id or the number of scores is invalid, as one sentence.
    pub fn of(parsed: &Parsed, prompts: &BTreeMap<String, String>) -> Result<RecordedGame, String> {
        let header = &parsed.header;
        let terms = match &header.rules {
            RecordedRules::Builtin { version, prompt } => {
                BoardTerms { rules: version.to_string(), prompt: Some(prompt.to_string()) }
            }
            RecordedRules::Script { script } => {
                let rules = script.to_string();
                BoardTerms { prompt: prompts.get(&rules).cloned(), rules }
            }
        };
        let mut players = Vec::new();
        // The reader has checked that players join in the order of their seats.
        for (seat, event) in parsed.events.iter().filter(|event| event.kind == EventKind::Join).enumerate() {
            players.push(match (event.user, parsed.openings.get(&format!("user/{seat}"))) {
                (None, _) => RecordedPlayer::Unidentified,
                (Some(_), None) => RecordedPlayer::Withheld,
                (Some(_), Some(opening)) => {
                    let user = opening.content.parse::<UserId>();
                    RecordedPlayer::User(user.map_err(|error| format!("the user id of seat {seat} is {error}"))?)
                }
            });
        }
        let end = parsed.end.as_ref().map(|end| RecordedEnd {
            is_completed: end.end == EndKind::Completed,
            at: end.at.0,
            scores: end.scores.clone(),
            attributions: end
                .attributions
                .iter()
                .map(|row| Attribution { from: row.0, to: row.1, kind: row.2.clone() })
                .collect(),
        });
        let seats = header.seats;
        if let Some(scores) = end.as_ref().map(|end| end.scores.len()).filter(|scores| *scores != seats) {
            return Err(format!("the record has {scores} scores for {seats} seats"));
        }
        if players.len() > seats {
            return Err(format!("the record has {} players for {seats} seats", players.len()));
        }
        Ok(RecordedGame {
            session: header.session,
            challenge: header.challenge.clone(),
            options: header.options.clone(),
            terms,
            players,
            end,
            is_fork: header.fork.is_some(),
            hash: parsed.hash.to_string(),
        })
    }
}

pub(super) fn user_of(player: &RecordedPlayer) -> Option<&UserId> {
    match player {
        RecordedPlayer::User(user) => Some(user),
        RecordedPlayer::Unidentified | RecordedPlayer::Withheld => None,
    }
}

pub(super) fn withheld(game: &RecordedGame) -> usize {
    game.players.iter().filter(|player| **player == RecordedPlayer::Withheld).count()
}
