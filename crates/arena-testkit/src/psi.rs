//! Games of PSI over HTTP, as most tests of the server need them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{Answer, Client};

impl Answer {
    /// Returns the messages of a channel; the status must be 200.
    #[track_caller]
    pub fn messages(&self) -> Vec<Value> {
        self.ok()["messages"].as_array().expect("a list").clone()
    }

    /// Returns the reader's numbers in the messages of the operator.
    #[track_caller]
    pub fn set(&self) -> Vec<u64> {
        let messages = self.messages();
        let mut texts = messages.iter().filter_map(|message| message["content"].as_str());
        let set = texts.find_map(|text| text.strip_prefix("Your private set is: ")).expect("the reader's set");
        set.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    }
}

impl Client {
    /// Returns a player's numbers, in the order of the operator's message.
    #[track_caller]
    pub fn set_of(&self, session: &str, player: &str) -> Vec<u64> {
        self.get(&format!("/api/arena/sync?channel={session}&from={player}")).set()
    }

    pub fn guess<'n>(&self, session: &str, player: &str, numbers: impl IntoIterator<Item = &'n u64>) -> Answer {
        let numbers: Vec<String> = numbers.into_iter().map(u64::to_string).collect();
        self.act(session, player, "guess", &numbers.join(", "))
    }

    /// Lets both players guess right. Checks that the game ends with the best scores.
    #[track_caller]
    pub fn ends_well(&self, session: &str, players: &[String]) {
        self.guesses_right(session, players);
        self.ended_well(session);
    }

    #[track_caller]
    fn guesses_right(&self, session: &str, players: &[String]) {
        let sets = [0, 1].map(|seat| self.set_of(session, &players[seat]).into_iter().collect::<BTreeSet<u64>>());
        let common = &sets[0] & &sets[1];
        for player in players {
            self.guess(session, player, &common).ok();
        }
    }

    /// Returns the listed state of a game, which must have ended with the best scores.
    #[track_caller]
    pub fn ended_well(&self, session: &str) -> Value {
        let page = self.get("/api/challenges?limit=100").ok();
        let mut listed = page["challenges"].as_array().expect("a list").iter();
        let state = &listed.find(|listed| listed["id"] == session).expect("the session is listed")["state"];
        assert_eq!(state["status"], "ended");
        assert_eq!(state["scores"], json!([{"security": 1, "utility": 1}, {"security": 1, "utility": 1}]));
        state.clone()
    }

    /// Plays a new game with chat and right guesses to its end, and reads the stream of the chat.
    #[track_caller]
    pub fn plays_a_game(&self) {
        let (session, players) = self.seated("psi");
        for player in &players {
            self.chat(&session, player, "good luck").ok();
        }
        self.guesses_right(&session, &players);
        let mut stream = self.stream(&format!("/api/chat/ws/{session}"), None);
        let (_, said) = stream.next_event().expect("an event");
        assert_eq!(said["messages"].as_array().map(Vec::len), Some(2), "{said}");
        let (_, ended) = stream.next_event().expect("the end");
        assert_eq!(ended["type"], "game_ended");
        assert_eq!(ended["data"]["scores"], json!([{"security": 1, "utility": 1}, {"security": 1, "utility": 1}]));
    }
}
