//! The fingerprint of a match's moves, which detects repeated games.
//!
//! The fingerprint covers the game, its options, the states of the first epoch, the accepted actions of each epoch,
//! disqualifications and scores, all in the order of the sides. Ids and names depend on the seed, so each of them is
//! replaced by the number of its side. Two games of chess with the same moves therefore have the same fingerprint. Two
//! games of snake have the same fingerprint only if their food was the same too.

use std::borrow::Cow;

use arena_model::{Disqualified, Match, Moves, first_seat, hex};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The fingerprint of a match in progress. Its methods add the parts of the match in order.
#[derive(Debug)]
pub(crate) struct MovesHash {
    hash: Sha256,
    first: usize,
    seats: usize,
    /// The JSON list of the agents' ids. Every state contains this list, and the fingerprint omits it.
    ids_json: String,
    /// Ids and names that depend on the seed, each with its seat.
    aliases: Vec<(String, usize)>,
    has_state: bool,
}

impl MovesHash {
    /// Starts the fingerprint of a match that has played no epoch yet.
    pub fn new(play: &Match, options: &Map<String, Value>) -> MovesHash {
        let (game, ids) = (play.game(), play.agents());
        let mut moves = MovesHash {
            hash: Sha256::new(),
            first: first_seat(game, ids.len()),
            seats: ids.len(),
            ids_json: json!(ids).to_string(),
            // A name as an id may be a part of other words, so only the whole JSON text is replaced.
            aliases: (ids.iter().enumerate())
                .map(|(seat, id)| (if id.is_uuid() { id.to_string() } else { json!(id).to_string() }, seat))
                .collect(),
            has_state: false,
        };
        moves.add(game.game_type().name);
        moves.add(&Value::Object(options.clone()).to_string());
        moves
    }

    /// Returns true if the fingerprint contains no states yet.
    pub fn wants_states(&self) -> bool {
        !self.has_state
    }

    /// Adds the states of an epoch, in the format of a replay: an object, or a list of objects by seat.
    pub fn see(&mut self, states: &str) {
        self.has_state = true;
        self.find_names(states);
        self.add_by_place(&states.replace(&self.ids_json, "[]"));
    }

    /// Adds an epoch: the accepted actions, as a JSON list by seat, and the disqualifications.
    pub fn play<'a>(&mut self, taken: Option<&str>, out: impl Iterator<Item = &'a Disqualified>) {
        self.add_by_place(taken.unwrap_or_default());
        for Disqualified { seat, verdict, .. } in out {
            self.add(&format!("{} {verdict}", self.place(*seat)));
        }
    }

    /// Adds the final scores, by seat, and returns the fingerprint.
    pub fn finish(mut self, scores: &[f64]) -> Moves {
        for place in 0..scores.len() {
            self.hash.update(scores[(place + self.first) % scores.len()].to_be_bytes());
        }
        let sha256 = hex::encode(&self.hash.finalize());
        Moves { first: self.first, sha256 }
    }

    /// Returns the number of a seat's side, counted from 0.
    fn place(&self, seat: usize) -> usize {
        (seat + self.seats - self.first) % self.seats.max(1)
    }

    /// Finds the players' names in the states of a challenge. These names depend on the seed.
    fn find_names(&mut self, states: &str) {
        #[derive(Deserialize)]
        struct Players {
            players: Vec<Option<String>>,
        }
        let first = match serde_json::from_str::<Vec<Value>>(states) {
            Ok(states) => states.into_iter().next(),
            Err(_) => serde_json::from_str(states).ok(),
        };
        let Some(Ok(Players { players })) = first.map(serde_json::from_value) else { return };
        let names = players.into_iter().enumerate().filter_map(|(seat, name)| Some((name?, seat)));
        self.aliases.extend(names.filter(|(name, _)| !name.is_empty()));
    }

    /// Adds a text. If the text is a JSON list with an entry per seat, reorders the list by side first.
    fn add_by_place(&mut self, text: &str) {
        if self.first == 0 {
            return self.add(text);
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(list) => {
                let places = (0..list.len()).map(|place| list[(place + self.first) % list.len()].get());
                let text = format!("[{}]", places.collect::<Vec<_>>().join(","));
                self.add(&text);
            }
            Err(_) => self.add(text),
        }
    }

    /// Adds a text with its length, so that different lists of texts have different hashes.
    fn add(&mut self, text: &str) {
        let mut text = Cow::Borrowed(text);
        for (alias, seat) in &self.aliases {
            if text.contains(alias.as_str()) {
                let quote = if alias.starts_with('"') { "\"" } else { "" };
                text = text.replace(alias.as_str(), &format!("{quote}seat {}{quote}", self.place(*seat))).into();
            }
        }
        self.hash.update((text.len() as u64).to_be_bytes());
        self.hash.update(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{Seat, Seed, Setup, agent_ids};

    use super::*;

    /// Returns the fingerprint of a game of chess with these moves of White and Black.
    fn chess(seed: u64, steps: [&str; 2]) -> Moves {
        let seed = Seed::from_number(seed);
        let ids = agent_ids(&seed, 2);
        let chess = arena_games::game("chess").unwrap();
        let game = chess.start(&Map::new(), Setup { seed, agents: ids.clone() }).unwrap();
        let mut play = Match::new(game, ids);
        let mut moves = MovesHash::new(&play, &Map::new());
        let white = moves.first;
        for (ply, step) in steps.iter().enumerate() {
            let mover = (white + ply) % 2;
            if moves.wants_states() {
                let mut state = Vec::new();
                play.write_state(Seat(mover), &mut state);
                moves.see(&format!("{{{}}}", String::from_utf8(state).unwrap()));
            }
            let action = format!("[{{\"action\":\"move\",\"move\":\"{step}\"}}]");
            let mut replies = [None, None];
            replies[mover] = Some(action.as_str());
            let mut taken = Vec::new();
            play.play(|game, events| game.play(&replies, &mut taken, events));
            moves.play(Some(str::from_utf8(&taken).unwrap()), [].iter());
        }
        moves.finish(&[0.5, 0.5])
    }

    #[test]
    fn games_with_the_same_moves_are_alike_whatever_seed_and_seat() {
        let games: Vec<Moves> = (0..8).map(|seed| chess(seed, ["e2e4", "e7e5"])).collect();
        assert!([0, 1].iter().all(|first| games.iter().any(|game| game.first == *first)), "{games:?}");
        assert!(games.iter().all(|game| game.sha256 == games[0].sha256), "{games:?}");
        assert_ne!(chess(0, ["e2e4", "e7e6"]).sha256, games[0].sha256);
    }
}
