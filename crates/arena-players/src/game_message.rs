//! Messages of the operator in challenges that are games of the Colosseum protocol. Pure.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A message of a game's operator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum GameMessage {
    /// The start message to each seat: the agent's id and the game's constants.
    Start {
        set_agent_id: String,
        /// The game's constants.
        config: Map<String, Value>,
        /// The seat's side, if the game names its sides.
        #[serde(default)]
        side: Option<String>,
    },
    /// A state of the game.
    State(GameState),
    /// A disqualification.
    Disqualified {
        /// The agent's id.
        disqualified: String,
        /// The reason, as a code of the protocol.
        reason: String,
        #[serde(default)]
        detail: String,
    },
    /// The end of the game.
    Result { result: GameOutcome },
    /// The rejected parts of an answer.
    Rejected { epoch: u64, rejected: Vec<RejectedPart> },
    /// The public state, in games in which the players to move receive more than the public state.
    Public {
        public_state: Map<String, Value>,
        /// The ids of the agents to move, which receive a more detailed state.
        #[serde(default)]
        asked: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GameOutcome {
    /// The reason why the game ended, such as `CHECKMATE`; `TAINTED` if disqualifications left too few players.
    #[serde(default)]
    pub termination: String,
    #[serde(default)]
    pub epochs: u64,
    /// The points of each agent, by id.
    #[serde(default)]
    pub scores: Map<String, Value>,
    /// The ids of the winners.
    #[serde(default)]
    pub winners: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RejectedPart {
    /// The index of the action in the answer's list; `None` if the whole list was rejected.
    #[serde(default)]
    pub index: Option<usize>,
    pub reason: String,
}

/// A state, and the players to move.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GameState {
    pub world_state: Map<String, Value>,
    /// The ids of the players to move.
    #[serde(default)]
    pub asked: Vec<String>,
    /// The deadline by the server's clock, in epoch milliseconds.
    #[serde(default)]
    pub deadline: Option<i64>,
}

impl GameMessage {
    /// Parses a text of the operator. Returns `None` if it isn't a message of a game.
    pub fn parse(content: &str) -> Option<GameMessage> {
        if content.starts_with('{') { serde_json::from_str(content).ok() } else { None }
    }
}

impl GameState {
    /// Returns true if the agent with this id is to move.
    pub fn asks(&self, id: &str) -> bool {
        self.asked.iter().any(|asked| asked == id)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn messages_of_a_games_operator_are_told_apart() {
        let lines: String = [
            r#"{"set_agent_id": "a", "config": {"n_epochs": 3}}"#,
            r#"{"world_state": {"epoch": 1}, "asked": ["a"], "deadline": 1792627202250}"#,
            r#"{"disqualified": "b", "reason": "TIMEOUT", "detail": "no answer"}"#,
            r#"{"result": {"termination": "GAME_ENDED"}}"#,
            r#"{"result": {"termination": "CHECKMATE"}, "public_state": {}}"#,
            r#"{"epoch": 2, "rejected": [{"index": 0, "reason": "too far"}]}"#,
            r#"{"public_state": {"epoch": 1}, "asked": ["a"], "deadline": 1}"#,
            r#"{"weather": "fine"}"#,
            "Your private set is: {1, 2}.",
        ]
        .iter()
        .map(|content| format!("{:?}\n", GameMessage::parse(content)))
        .collect();
        expect![[r#"
            Some(Start { set_agent_id: "a", config: {"n_epochs": Number(3)}, side: None })
            Some(State(GameState { world_state: {"epoch": Number(1)}, asked: ["a"], deadline: Some(1792627202250) }))
            Some(Disqualified { disqualified: "b", reason: "TIMEOUT", detail: "no answer" })
            Some(Result { result: GameOutcome { termination: "GAME_ENDED", epochs: 0, scores: {}, winners: [] } })
            Some(Result { result: GameOutcome { termination: "CHECKMATE", epochs: 0, scores: {}, winners: [] } })
            Some(Rejected { epoch: 2, rejected: [RejectedPart { index: Some(0), reason: "too far" }] })
            Some(Public { public_state: {"epoch": Number(1)}, asked: ["a"] })
            None
            None
        "#]]
        .assert_eq(&lines);
    }
}
