//! The rules of a seat as a language model or a command-line agent receives them, and the actions that its steps mean.
//! Pure.

use std::sync::Arc;

use arena_llm::SeatRules;
use arena_llm::prompt::{self, Seating};
use arena_model::{ChallengeMetadata, ChallengeState, GameType, RefusedAction, Step, UpdateMode, one_action};
use serde_json::{Map, Value, json};

/// The tool for chat messages, which games don't have.
const CHAT: &str = "chat";

/// The method of sessions that matches don't have.
const RESIGN: &str = "resign";

/// The remark on a game's rules, which describe sessions.
const NOT_A_SESSION: &str = "This game is a match without chat, and without the method `resign`. Each state asks you \
                             for one answer, whether or not it has `asked` and `deadline`.";

pub(super) struct BoardRules {
    pub(super) metadata: ChallengeMetadata,
    /// True if a player may answer without actions.
    pub(super) may_pass: bool,
}

/// The rules of a seat in a match.
pub(super) struct MatchRules {
    pub(super) seat: Arc<SeatRules>,
    pub(super) names: Vec<String>,
    pub(super) you: String,
    /// `None` for challenges, which have messages.
    pub(super) board: Option<BoardTurn>,
}

#[derive(Clone, Copy)]
pub(super) struct BoardTurn {
    pub(super) may_pass: bool,
}

impl BoardRules {
    /// Returns the description of a game, or `None` for a challenge, whose states contain the rules.
    pub(super) fn of(game: &'static GameType) -> Option<BoardRules> {
        let challenge = arena_games::find(game.name)
            .and_then(|playable| arena_games::challenge(playable.id, &Map::new()).and_then(Result::ok));
        challenge.map(|challenge| BoardRules {
            metadata: challenge.metadata().clone(),
            may_pass: game.mode != UpdateMode::Alternating,
        })
    }
}

impl MatchRules {
    pub(super) fn of_challenge(state: &ChallengeState) -> MatchRules {
        let ChallengeState { challenge, prompt, methods, players, you, .. } = state;
        let seat = SeatRules::new(challenge.clone(), prompt.clone(), methods.clone(), players.len());
        let names = players.iter().map(|player| player.clone().unwrap_or_default()).collect();
        MatchRules { seat: Arc::new(seat), names, you: you.clone(), board: None }
    }

    pub(super) fn of_board(board: &BoardRules, names: Vec<String>, you: &str) -> MatchRules {
        let BoardRules { metadata, may_pass } = board;
        let rules = format!("{}\n\n{NOT_A_SESSION}", metadata.prompt.trim());
        let methods = metadata.methods.iter().filter(|method| method.name != RESIGN).cloned().collect();
        let seat = SeatRules::new(metadata.name.clone(), rules, methods, names.len())
            .with_tools(|tool| tool != CHAT && (tool != prompt::WAIT || *may_pass));
        MatchRules { seat: Arc::new(seat), names, you: you.to_owned(), board: Some(BoardTurn { may_pass: *may_pass }) }
    }

    pub(super) fn seating(&self) -> Seating<'_> {
        self.seat.seating(&self.names, &self.you)
    }

    /// Converts a step into actions. An error is a message for the agent.
    pub(super) fn actions(&self, step: Step) -> Result<Vec<Value>, String> {
        match (step, self.board) {
            (Step::Act { method, content }, None) => Ok(vec![json!({"action": method, "content": content})]),
            (Step::Act { method, content }, Some(_)) => board_actions(&method, &content),
            (Step::Say { .. }, Some(_)) => Err("this match has no chat".to_owned()),
            (Step::Say { content, to }, None) => {
                let mut action = json!({"action": CHAT, "content": content});
                if let Some(to) = to {
                    action["to"] = to.into();
                }
                Ok(vec![action])
            }
        }
    }
}

/// Returns the actions of a board game that a call of a method means. An error is a message for the model.
fn board_actions(method: &str, content: &str) -> Result<Vec<Value>, String> {
    let list = match method {
        "actions" => content.to_owned(),
        _ => one_action(method, content).map_err(|rejection| rejection.message)?,
    };
    match serde_json::from_str(&list) {
        Ok(Value::Array(actions)) => Ok(actions),
        _ => Err("the content must be a JSON list of actions".to_owned()),
    }
}

/// Returns the reason why one of these actions was refused.
pub(super) fn find_refusal(actions: &[Value], rejected: &[RefusedAction]) -> Option<String> {
    let is_refused = |refused: &&RefusedAction| {
        let RefusedAction { action: refused, .. } = refused;
        actions.iter().any(|action| {
            action["action"] == refused.action.as_str()
                && action["content"].as_str().unwrap_or_default() == refused.content
        })
    };
    rejected.iter().find(is_refused).map(|refused| format!("{} ({})", refused.error, refused.code))
}
