//! Parser for the operator's JSON messages in challenges that are games of the Colosseum protocol. Pure.

use std::time::{Duration, Instant};

use arena_players::http::{ChannelKind, InboxMessage};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A message of a game's operator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Said {
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

impl Said {
    /// Parses a message. Returns `None` if it isn't a message of a game's operator.
    pub fn read(message: &InboxMessage) -> Option<Said> {
        let is_of_the_game = message.channel == ChannelKind::Operator && message.from == "operator";
        if is_of_the_game { Said::parse(&message.content) } else { None }
    }

    /// Parses a text of the operator. Returns `None` if it isn't a message of a game.
    pub fn parse(content: &str) -> Option<Said> {
        if content.starts_with('{') { serde_json::from_str(content).ok() } else { None }
    }
}

impl GameOutcome {
    /// Formats the outcome as a sentence. `name_of` returns the name of the player with an id.
    pub fn sentence(&self, name_of: impl Fn(&str) -> String) -> String {
        let epochs = if self.epochs == 1 { "1 epoch".to_owned() } else { format!("{} epochs", self.epochs) };
        let how = match self.termination.as_str() {
            "TAINTED" => " because the others are out".to_owned(),
            // The text omits the usual end, since some games have no other end.
            "" | "GAME_ENDED" => String::new(),
            word => format!(", by {}", in_words(word)),
        };
        let winners: Vec<String> = self.winners.iter().map(|id| name_of(id)).collect();
        let who = match winners.as_slice() {
            [] => "no winner".to_owned(),
            [winner] if winner.contains("(you)") => format!("{winner} have won"),
            [winner] => format!("{winner} has won"),
            several => format!("a draw between {}", several.join(" and ")),
        };
        let point = |score: &Value| score.as_f64().map_or_else(|| score.to_string(), |score| score.to_string());
        let mut points: Vec<String> =
            self.scores.iter().map(|(id, score)| format!("{} {}", name_of(id), point(score))).collect();
        points.sort_unstable();
        let points = if points.is_empty() { String::new() } else { format!("; points: {}", points.join(", ")) };
        format!("the game is over after {epochs}{how}: {who}{points}")
    }
}

/// Converts a code of the protocol to words: `SEVENTYFIVE_MOVES` becomes "seventyfive moves".
fn in_words(word: &str) -> String {
    word.to_lowercase().replace('_', " ")
}

/// Formats a disqualification as a sentence with the player's name, the reason and the details.
pub fn out_sentence(name: &str, reason: &str, detail: &str) -> String {
    let detail = detail.trim();
    match reason {
        "RESIGNED" if detail.is_empty() || detail == "gave up" => format!("{name} gave up"),
        "RESIGNED" => format!("{name} gave up: {detail}"),
        _ if detail.is_empty() => format!("{name} is out ({})", in_words(reason)),
        _ => format!("{name} is out ({}): {detail}", in_words(reason)),
    }
}

impl GameState {
    /// Returns true if the agent with this id is to move.
    pub fn asks(&self, id: &str) -> bool {
        self.asked.iter().any(|asked| asked == id)
    }

    /// Returns the time to answer: from the message's timestamp to the deadline, both by the server's clock.
    pub fn patience(&self, message: &InboxMessage) -> Option<Duration> {
        let left_ms = self.deadline?.saturating_sub(message.timestamp);
        Some(Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)))
    }

    /// Returns the deadline by the local clock for a message that arrived at `came`.
    pub fn until(&self, message: &InboxMessage, came: Instant) -> Option<Instant> {
        Some(came + self.patience(message)?)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn message(content: &str) -> InboxMessage {
        InboxMessage {
            channel: ChannelKind::Operator,
            index: 1,
            from: "operator".to_owned(),
            to: None,
            content: content.to_owned(),
            timestamp: 1_792_627_200_250,
        }
    }

    #[test]
    fn what_a_games_operator_says_is_told_apart() {
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
        .map(|content| format!("{:?}\n", Said::read(&message(content))))
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
        let chat = InboxMessage { channel: ChannelKind::Chat, ..message(r#"{"result": {}}"#) };
        assert_eq!(Said::read(&chat), None, "players aren't the operator");
    }

    #[test]
    fn outcomes_are_told_in_sentences() {
        let name = |id: &str| if id == "a" { "Player 1 (you)".to_owned() } else { format!("Player {id}") };
        let lines: String = [
            r#"{"termination": "CHECKMATE", "epochs": 34, "scores": {"a": 1.0, "2": 0.0}, "winners": ["a"]}"#,
            r#"{"termination": "TAINTED", "epochs": 1, "scores": {"a": 0.0, "2": 0.0}, "winners": ["2"]}"#,
            r#"{"termination": "GAME_ENDED", "epochs": 9, "scores": {"2": 7, "3": 7}, "winners": ["2", "3"]}"#,
            r#"{"termination": "SEVENTYFIVE_MOVES", "epochs": 200, "winners": []}"#,
        ]
        .iter()
        .map(|text| serde_json::from_str::<GameOutcome>(text).expect("an outcome").sentence(name) + "\n")
        .chain(
            [("TIMEOUT", "no answer in time"), ("RESIGNED", "gave up"), ("RESIGNED", "it's late"), ("CRASHED", "")]
                .map(|(reason, detail)| out_sentence("Player 2", reason, detail) + "\n"),
        )
        .collect();
        expect![[r#"
            the game is over after 34 epochs, by checkmate: Player 1 (you) have won; points: Player 1 (you) 1, Player 2 0
            the game is over after 1 epoch because the others are out: Player 2 has won; points: Player 1 (you) 0, Player 2 0
            the game is over after 9 epochs: a draw between Player 2 and Player 3; points: Player 2 7, Player 3 7
            the game is over after 200 epochs, by seventyfive moves: no winner
            Player 2 is out (timeout): no answer in time
            Player 2 gave up
            Player 2 gave up: it's late
            Player 2 is out (crashed)
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn deadlines_are_counted_by_the_arenas_clock() {
        let left = |deadline: &str| {
            let said = message(&format!(r#"{{"world_state": {{}}, "deadline": {deadline}}}"#));
            let Some(Said::State(state)) = Said::read(&said) else { panic!("{said:?}") };
            state.patience(&said)
        };
        assert_eq!(left("1792627202250"), Some(Duration::from_secs(2)));
        assert_eq!(left("1792627100000"), Some(Duration::ZERO));
        assert_eq!(left("null"), None);
    }
}
