//! Bots as agents of matches. A [`Bot`] sees a match as the messages of a session, and its steps become actions.

use arena_model::{ChallengeState, Timestamp, one_action};
use arena_wire::Message;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{Bot, Heard, Step};

/// The maximum number of steps that a bot of a challenge takes in an epoch.
const MAX_STEPS: usize = 8;

/// The number of states without a new message after which a bot of a challenge doesn't wait for others any more.
const PATIENCE: u32 = 3;

/// Returns a number from the agent's id. The id is derived from the match's seed, so equal seeds give equal matches.
pub fn number_of(id: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(id).into();
    digest[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A bot and the messages that it has received.
pub struct MatchBot {
    bot: Box<dyn Bot>,
    /// The bot's name in the messages: the agent's id, or the player's name in a challenge.
    me: String,
    operator: Vec<Message>,
    chat: Vec<Message>,
    /// The number of states since the last new message.
    quiet: u32,
}

impl MatchBot {
    /// Seats a bot under an agent's id. `config` is the game's config, as agents receive it.
    pub fn new(bot: Box<dyn Bot>, me: &str, config: &Value) -> MatchBot {
        let mut player = MatchBot { bot, me: me.to_owned(), operator: Vec::new(), chat: Vec::new(), quiet: 0 };
        let start = json!({"set_agent_id": player.me, "config": config}).to_string();
        let start = message("operator", Some(&player.me), start);
        player.hear(start, false);
        player
    }

    fn hear(&mut self, mut message: Message, is_chat: bool) {
        let channel = if is_chat { &mut self.chat } else { &mut self.operator };
        message.index = channel.len() as u64 + 1;
        channel.push(message);
    }

    /// Returns the bot's actions in a state, as a list of the protocol.
    pub fn actions(&mut self, state: &Map<String, Value>) -> Vec<Value> {
        match serde_json::from_value::<ChallengeState>(Value::Object(state.clone())) {
            Ok(state) => self.actions_in_challenge(&state),
            Err(_) => {
                let told = json!({"world_state": state, "asked": [&self.me]}).to_string();
                self.hear(message("operator", None, told), false);
                match self.next() {
                    Some(Step::Act { method, content }) => actions_of(&method, &content),
                    _ => Vec::new(),
                }
            }
        }
    }

    fn actions_in_challenge(&mut self, state: &ChallengeState) -> Vec<Value> {
        if self.me != state.you {
            // In a challenge, players have names of their own. Bots number them by the private messages that all
            // players get at the start, of which a match shows only the own one.
            self.me.clone_from(&state.you);
            self.operator.clear();
            for player in state.players.iter().flatten() {
                let mut hidden = message("operator", Some(player), String::new());
                hidden.redacted = true;
                self.hear(hidden, false);
            }
        }
        self.quiet = if state.messages.is_empty() { self.quiet + 1 } else { 0 };
        for seen in state.messages.iter().filter(|seen| seen.from != state.you) {
            let heard = message(&seen.from, seen.to.as_deref(), seen.content.clone());
            self.hear(heard, seen.channel == "chat");
        }
        for refused in &state.rejected {
            let (method, content) = (refused.action.action.clone(), refused.action.content.clone());
            let told = format!("({method}) {content}");
            self.operator.retain(|message| message.from != self.me || message.content != told);
            self.bot.refused(&Step::Act { method, content });
        }
        let mut actions = Vec::new();
        while actions.len() < MAX_STEPS {
            let Some(step) = self.next() else { break };
            let me = self.me.clone();
            match step {
                Step::Say { content, to } => {
                    let mut action = json!({"action": "chat", "content": content});
                    if let Some(to) = &to {
                        action["to"] = to.as_str().into();
                    }
                    actions.push(action);
                    self.hear(message(&me, to.as_deref(), content), true);
                }
                Step::Act { method, content } => {
                    actions.push(json!({"action": method, "content": content}));
                    let mut told = message(&me, Some("operator"), format!("({method}) {content}"));
                    told.method = Some(method);
                    self.hear(told, false);
                }
            }
        }
        actions
    }

    fn next(&mut self) -> Option<Step> {
        let is_late = self.quiet >= PATIENCE;
        self.bot.next(&Heard { me: &self.me, operator: &self.operator, chat: &self.chat, is_late })
    }
}

/// Returns the actions of a board game that a call of a method means.
fn actions_of(method: &str, content: &str) -> Vec<Value> {
    let list = match method {
        "actions" => content.to_owned(),
        _ => one_action(method, content).unwrap_or_default(),
    };
    serde_json::from_str(&list).unwrap_or_default()
}

fn message(from: &str, to: Option<&str>, content: String) -> Message {
    Message {
        channel: String::new(),
        from: from.to_owned(),
        to: to.map(str::to_owned),
        content,
        index: 0,
        timestamp: Timestamp(0),
        redacted: false,
        content_sha256: None,
        method: None,
    }
}
