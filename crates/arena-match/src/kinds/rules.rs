//! The rules of a seat as a language model or a command-line agent receives them, and the actions that its tool calls
//! mean. Pure.

use arena_llm::Tool;
use arena_llm::prompt::{self, Seating, Want};
use arena_model::{ChallengeMetadata, ChallengeState, GameType, Method, RefusedAction, UpdateMode, one_action};
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

/// The rules as the model receives them.
pub(super) struct SeatRules {
    pub(super) challenge: String,
    pub(super) rules: String,
    pub(super) methods: Vec<Method>,
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

impl SeatRules {
    pub(super) fn of_challenge(state: &ChallengeState) -> SeatRules {
        SeatRules {
            challenge: state.challenge.clone(),
            rules: state.prompt.clone(),
            methods: state.methods.clone(),
            names: state.players.iter().map(|player| player.clone().unwrap_or_default()).collect(),
            you: state.you.clone(),
            board: None,
        }
    }

    pub(super) fn of_board(board: &BoardRules, names: Vec<String>, you: &str) -> SeatRules {
        let BoardRules { metadata, may_pass } = board;
        SeatRules {
            challenge: metadata.name.clone(),
            rules: format!("{}\n\n{NOT_A_SESSION}", metadata.prompt.trim()),
            methods: metadata.methods.iter().filter(|method| method.name != RESIGN).cloned().collect(),
            names,
            you: you.to_owned(),
            board: Some(BoardTurn { may_pass: *may_pass }),
        }
    }

    pub(super) fn seating(&self) -> Seating<'_> {
        Seating {
            challenge: &self.challenge,
            rules: &self.rules,
            methods: &self.methods,
            players: self.names.len(),
            names: &self.names,
            you: &self.you,
        }
    }

    pub(super) fn tools(&self) -> Vec<Tool> {
        let mut tools = prompt::tools(&self.methods);
        if let Some(turn) = self.board {
            tools.retain(|tool| tool.name != CHAT && (tool.name != prompt::WAIT || turn.may_pass));
        }
        tools
    }

    /// Converts a tool call into actions; `None` means waiting. An error is a message for the model.
    pub(super) fn actions(&self, want: Want) -> Result<Option<Vec<Value>>, String> {
        match (want, self.board) {
            (Want::Act(method, content), None) => Ok(Some(vec![json!({"action": method, "content": content})])),
            (Want::Act(method, content), Some(_)) => board_actions(&method, &content).map(Some),
            (Want::Say(..), Some(_)) => Err("this match has no chat".to_owned()),
            (Want::Say(content, to), None) => {
                let mut action = json!({"action": CHAT, "content": content});
                if let Some(to) = to {
                    action["to"] = to.into();
                }
                Ok(Some(vec![action]))
            }
            (Want::Wait, Some(BoardTurn { may_pass: false })) => {
                Err("it is your turn: act by calling a tool of the rules".to_owned())
            }
            (Want::Wait, _) => Ok(None),
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
