//! The fingerprint of a match's moves, by which games that repeat each other are found.
//!
//! It is made of the game, its options, the states that the agents saw in the first epoch, the actions that were taken in each epoch,
//! disqualifications and scores, all in the order of the sides. Ids and names that come from the seed are replaced by the places of
//! their seats. So two games of chess with the same moves have the same fingerprint, and two games of snake only where they have the
//! same food, too.

use std::borrow::Cow;

use arena_model::{AnyGame, Moves, Seat};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::report::Disqualified;

/// A fingerprint while its match is played.
#[derive(Debug)]
pub(crate) struct MovesHash {
    hash: Sha256,
    first: usize,
    seats: usize,
    /// The ids as the list that each state has: it is by seat, and says nothing that isn't known.
    ids_json: String,
    /// Texts that come from the seed, by seat, several to a seat.
    aliases: Vec<(String, usize)>,
    has_state: bool,
}

impl MovesHash {
    /// Before the first epoch, with the agents' ids by seat.
    pub fn new<'a>(game: &dyn AnyGame, options: &Map<String, Value>, ids: impl Iterator<Item = &'a str>) -> MovesHash {
        let aliases: Vec<(String, usize)> = ids.enumerate().map(|(seat, id)| (id.to_owned(), seat)).collect();
        let seats = aliases.len();
        let ids: Vec<&str> = aliases.iter().map(|(id, _)| id.as_str()).collect();
        let ids_json = serde_json::to_string(&ids).expect("ids are texts");
        let first = (0..seats).find(|seat| game.side(Seat(*seat)) == Some("WHITE")).unwrap_or(0);
        let mut moves = MovesHash { hash: Sha256::new(), first, seats, ids_json, aliases, has_state: false };
        moves.add(game.game_type().name);
        moves.add(&Value::Object(options.clone()).to_string());
        moves
    }

    /// True until states were seen.
    pub fn wants_states(&self) -> bool {
        !self.has_state
    }

    /// Takes up the states of an epoch, as the text that a replay has: an object, or a list of objects by seat.
    pub fn see(&mut self, states: &str) {
        self.has_state = true;
        self.find_names(states);
        self.add_by_place(&states.replace(&self.ids_json, "[]"));
    }

    /// Takes up the actions of an epoch that were taken, a list by seat, and its disqualifications.
    pub fn play<'a>(&mut self, taken: Option<&str>, out: impl Iterator<Item = &'a Disqualified>) {
        self.add_by_place(taken.unwrap_or_default());
        for Disqualified { seat, verdict, .. } in out {
            self.add(&format!("{} {verdict}", self.place(*seat)));
        }
    }

    /// The fingerprint, at the end of a match with these scores by seat.
    pub fn finish(mut self, scores: &[f64]) -> Moves {
        for place in 0..scores.len() {
            self.hash.update(scores[(place + self.first) % scores.len()].to_be_bytes());
        }
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Moves { first: self.first, sha256 }
    }

    /// The place of a seat, counted from the first.
    fn place(&self, seat: usize) -> usize {
        (seat + self.seats - self.first) % self.seats.max(1)
    }

    /// In challenges, players have names that come from the seed.
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

    /// Adds a text; one that is a list by seat in the order of the places.
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

    /// Adds a text, so that no two lists of texts are alike.
    fn add(&mut self, text: &str) {
        let mut text = Cow::Borrowed(text);
        for (alias, seat) in &self.aliases {
            if text.contains(alias.as_str()) {
                text = text.replace(alias.as_str(), &format!("seat {}", self.place(*seat))).into();
            }
        }
        self.hash.update((text.len() as u64).to_be_bytes());
        self.hash.update(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{Events, Seed, Setup, agent_ids};

    use super::*;
    use crate::play::write_state;

    /// The moves of a game of chess with this seed, in which White and Black play these.
    fn chess(seed: u64, steps: [&str; 2]) -> Moves {
        let seed = Seed::from_number(seed);
        let ids = agent_ids(&seed, 2);
        let ids_json = serde_json::to_vec(&ids).unwrap();
        let chess = arena_games::game("chess").unwrap();
        let mut game = chess.start(&Map::new(), Setup { seed, agents: ids.clone() }).unwrap();
        let mut moves = MovesHash::new(&*game, &Map::new(), ids.iter().map(|id| id.as_str()));
        let white = moves.first;
        for (ply, step) in steps.iter().enumerate() {
            let mover = (white + ply) % 2;
            if moves.wants_states() {
                let mut state = Vec::new();
                write_state(&*game, mover, 1, &ids_json, &mut state);
                moves.see(&format!("{{{}}}", String::from_utf8(state).unwrap()));
            }
            let action = format!("[{{\"action\":\"move\",\"move\":\"{step}\"}}]");
            let mut replies = [None, None];
            replies[mover] = Some(action.as_str());
            let (mut taken, mut events) = (Vec::new(), Events::default());
            game.play(&replies, &mut taken, &mut events);
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
