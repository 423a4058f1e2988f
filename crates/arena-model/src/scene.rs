//! Pictures of sessions, and the secrets of ended sessions. All input is public data of the session.

use serde_json::Value;

use crate::{EndedGame, Seat};

/// The public data of a session, from which its picture is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'s> {
    /// The players' names by seat.
    pub names: &'s [String],
    /// The players' ids by seat, as the operator's texts name them.
    pub players: &'s [String],
    pub options: &'s Value,
    /// The result; `None` until the end.
    pub ended: Option<EndedGame<'s>>,
    /// The operator's latest texts to all players, oldest first. They may be empty after the end.
    pub texts: &'s [String],
}

impl Scene<'_> {
    pub fn name(&self, seat: Seat) -> &str {
        self.names.get(seat.0).map_or("a player", String::as_str)
    }

    /// Returns the seat of the player with this id.
    pub fn seat_of(&self, player: &str) -> Option<Seat> {
        self.players.iter().position(|other| other == player).map(Seat)
    }

    /// Returns the latest state of a game that the operator sent to all players.
    pub fn latest_state(&self) -> Option<Value> {
        self.texts.iter().rev().find_map(|text| {
            let beginnings = ["{\"world_state\"", "{\"public_state\"", "{\"result\""];
            beginnings.iter().find(|beginning| text.starts_with(**beginning))?;
            let mut update: Value = serde_json::from_str(text).ok()?;
            ["public_state", "world_state"].iter().find_map(|key| Some(update.get_mut(*key)?.take()))
        })
    }
}

/// The secrets of one player, as the page of the ended session lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name of the secret, such as `Ada's set`.
    pub title: String,
    /// The parts of the secret, such as numbers.
    pub parts: Vec<SecretPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPart {
    /// The text, such as a number.
    pub text: String,
    /// The part's state at the end of the session.
    pub knowledge: Knowledge,
}

/// The state of a part of a secret at the end of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// No attribution says that another player learned the part.
    Kept,
    /// The players were meant to find the part.
    Common,
    /// Another player learned the part.
    Learned,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_public_state_is_found_among_the_operators_texts() {
        let check = |texts: &[&str], expected: Option<Value>| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let scene = Scene { names: &[], players: &[], options: &json!({}), ended: None, texts: &texts };
            assert_eq!(scene.latest_state(), expected);
        };
        check(&[], None);
        check(&["Hello", "{\"disqualified\":\"a\"}"], None);
        check(&["{\"world_state\":{\"n\":1}}", "{\"world_state\":{\"n\":2}}", "Bye"], Some(json!({ "n": 2 })));
        check(&["{\"public_state\":{\"n\":1}}", "{\"result\":{\"epochs\":3}}"], Some(json!({ "n": 1 })));
        check(&["{\"result\":{\"epochs\":3},\"public_state\":{\"n\":2}}"], Some(json!({ "n": 2 })));
    }
}
