//! The conversation with a program at a seat: messages of the session become states, and actions become steps. Pure.

use arena_house::Step;
use arena_model::{
    ChallengeAction, ChallengeMetadata, ChallengeState, MAX_ACTIONS, RefusedAction, SeenMessage, TimeLimits,
};
use serde_json::{Map, Value, json};

use crate::{GameMessage, GameState, StepResult};

/// The method for the answers of games.
const ACTIONS: &str = "actions";

/// The codes of refused answers that were valid but too late.
const LATE_CODES: [&str; 3] = ["NOT_YOUR_TURN", "ALREADY_ANSWERED", "OUT_OF_THE_GAME"];

/// The conversation with a program.
pub struct ProgramTalk {
    challenge: String,
    metadata: ChallengeMetadata,
    /// True for games of the Colosseum protocol; the states of other challenges consist of messages.
    is_game: bool,
    /// The messages that the program hasn't received.
    fresh: Vec<SeenMessage>,
    /// The config that the program hasn't received.
    config: Option<Map<String, Value>>,
    /// The number of states so far; in a game, the epoch of the last one.
    epoch: u64,
    /// The number of consecutive states without news.
    refusal_states: u32,
    /// The actions of the last answer that are being taken, and reports about its invalid ones.
    sent: Vec<Result<ChallengeAction, RefusedAction>>,
    /// The refused actions that the program hasn't received.
    rejected: Vec<RefusedAction>,
}

/// The next state for a program.
#[derive(Debug, PartialEq)]
pub struct ProgramState {
    pub state: Map<String, Value>,
    /// The deadline of the rules by the server's clock, in epoch milliseconds.
    pub deadline: Option<i64>,
}

impl ProgramTalk {
    /// Begins the conversation about a session. `limits` are those of the program.
    pub fn new(challenge: &str, metadata: ChallengeMetadata, limits: TimeLimits) -> ProgramTalk {
        let is_game = metadata.methods.iter().any(|method| method.name == ACTIONS);
        let config = json!({
            "challenge": challenge,
            "players": metadata.players,
            "step_time_limit": limits.step_ms,
            "step_limit_pool": limits.bank_ms,
        });
        ProgramTalk {
            challenge: challenge.to_owned(),
            metadata,
            is_game,
            fresh: Vec::new(),
            // A game sends its own config.
            config: config.as_object().filter(|_| !is_game).cloned(),
            epoch: 0,
            refusal_states: 0,
            sent: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// Returns the config, if it is new to the program. The program receives it before the next state.
    pub fn take_config(&mut self) -> Option<Map<String, Value>> {
        self.config.take()
    }

    /// Adds messages. Returns the next state for the program `me`, or `None` if the program has nothing to do.
    /// `players` are the names by seat, if they are known. `refusals` is the largest number of consecutive states without
    /// news that report refused actions.
    pub fn hear(
        &mut self,
        me: &str,
        players: Vec<Option<String>>,
        news: Vec<SeenMessage>,
        is_reminded: bool,
        refusals: u32,
    ) -> Option<ProgramState> {
        if self.is_game {
            return self.hear_game(me, &news);
        }
        // The program's own messages aren't news.
        let is_news = news.iter().any(|message| message.from != me);
        self.fresh.extend(news);
        if !is_news && !self.is_teaching(refusals) && !is_reminded {
            return None;
        }
        self.refusal_states = if is_news { 0 } else { self.refusal_states + 1 };
        self.epoch += 1;
        let names: Vec<String> = players.iter().flatten().cloned().collect();
        let state = ChallengeState {
            challenge: self.challenge.clone(),
            prompt: self.metadata.prompt.clone(),
            methods: self.metadata.methods.clone(),
            you: me.to_owned(),
            players,
            messages: std::mem::take(&mut self.fresh),
            rejected: std::mem::take(&mut self.rejected),
        };
        let Value::Object(mut state) = json!(state) else { return None };
        state.insert("epoch".to_owned(), self.epoch.into());
        state.insert("agent_ids".to_owned(), names.into());
        Some(ProgramState { state, deadline: None })
    }

    /// Of several states of a game, only the last is current.
    fn hear_game(&mut self, me: &str, news: &[SeenMessage]) -> Option<ProgramState> {
        let mut last: Option<GameState> = None;
        for message in news.iter().filter(|message| message.channel == "operator") {
            // A later action of this seat has answered the state. Another program with the same invite may have sent it.
            if message.from == me {
                last = None;
            }
            if message.from != "operator" {
                continue;
            }
            match GameMessage::parse(&message.content) {
                Some(GameMessage::Start { set_agent_id, config, .. }) if set_agent_id == me => {
                    self.config = Some(config);
                }
                Some(GameMessage::State(state)) => last = Some(state).filter(|state| state.asks(me)),
                // A later public state says that this player isn't to move any more.
                Some(GameMessage::Public { public_state, asked }) if !asked.iter().any(|name| name == me) => {
                    last = last.filter(|state| state.world_state.get("epoch") == public_state.get("epoch"));
                }
                _ => {}
            }
        }
        let GameState { world_state: mut state, deadline, .. } = last?;
        let epoch = state.get("epoch").and_then(Value::as_u64).unwrap_or(0);
        // After a return to the seat, the channel begins with past states.
        if epoch <= self.epoch {
            return None;
        }
        self.epoch = epoch;
        // `Solo` adds this member from the time bank that it counts itself.
        state.remove("remaining_overage_ms");
        Some(ProgramState { state, deadline })
    }

    /// True if refused actions are reported at once, without other news.
    pub fn is_teaching(&self, refusals: u32) -> bool {
        !self.rejected.is_empty() && self.refusal_states < refusals
    }

    /// Returns the steps of an answer. The next state shows its invalid actions.
    pub fn take(&mut self, actions: &str) -> Vec<Step> {
        self.sent.clear();
        if self.is_game {
            return vec![Step::Act { method: ACTIONS.to_owned(), content: actions.to_owned() }];
        }
        let list = match serde_json::from_str(actions) {
            Ok(Value::Array(list)) => list,
            Ok(other) => {
                self.rejected.push(invalid(&other, "`actions` isn't a list"));
                return Vec::new();
            }
            // The line was valid JSON, so the only possible error is a number out of range.
            Err(error) => {
                self.rejected.push(invalid(&Value::Null, &error.to_string()));
                return Vec::new();
            }
        };
        let mut steps = Vec::new();
        for (number, wanted) in list.into_iter().enumerate() {
            if number >= MAX_ACTIONS {
                self.sent.push(Err(invalid(&wanted, &format!("more than {MAX_ACTIONS} actions at once"))));
                break;
            }
            let action = serde_json::from_value::<ChallengeAction>(wanted.clone());
            steps.extend(action.as_ref().ok().map(|action| self.step(action)));
            self.sent.push(action.map_err(|error| invalid(&wanted, &error.to_string())));
        }
        steps
    }

    fn step(&self, action: &ChallengeAction) -> Step {
        let ChallengeAction { action, content, to } = action.clone();
        let has_method = self.metadata.methods.iter().any(|method| method.name == action);
        match action == "chat" && !has_method {
            true => Step::Say { content, to },
            false => Step::Act { method: action, content },
        }
    }

    /// True if the last answer has invalid actions.
    pub fn has_invalid(&self) -> bool {
        !self.rejected.is_empty() || self.sent.iter().any(Result::is_err)
    }

    /// Notes the results of the steps. Returns the refusal if a game refused the program's answer, which ends the seat.
    pub fn learn(&mut self, results: &[StepResult]) -> Option<String> {
        if self.is_game {
            let refusal = results.iter().find_map(|result| result.as_ref().err())?;
            let (_, code) = split_refusal(refusal);
            // The answer was late or repeated: the game continues without it.
            let is_late = LATE_CODES.contains(&code);
            return (!is_late).then(|| refusal.clone());
        }
        let mut results = results.iter();
        for sent in std::mem::take(&mut self.sent) {
            self.rejected.extend(match sent {
                Err(invalid) => Some(invalid),
                Ok(action) => results.next().and_then(|result| result.as_ref().err()).map(|refusal| {
                    let (error, code) = split_refusal(refusal);
                    RefusedAction { action, code: code.to_owned(), error: error.to_owned() }
                }),
            });
        }
        None
    }
}

/// Splits a refusal such as `Invalid guess format. (INVALID_GUESS)` into message and code.
fn split_refusal(refusal: &str) -> (&str, &str) {
    let is_code = |code: &str| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let parts = refusal.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    parts.filter(|(_, code)| is_code(code)).unwrap_or((refusal, "REFUSED"))
}

/// Returns the report about an invalid action.
fn invalid(wanted: &Value, why: &str) -> RefusedAction {
    let name = wanted["action"].as_str().unwrap_or_default().to_owned();
    let action = ChallengeAction { action: name, content: wanted.to_string(), to: None };
    RefusedAction { action, code: "INVALID_ACTION".to_owned(), error: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const REFUSALS: u32 = 20;

    fn talk(challenge: &str) -> ProgramTalk {
        let metadata = arena_games::challenge(challenge, &Map::new()).unwrap().unwrap().metadata().clone();
        ProgramTalk::new(challenge, metadata, TimeLimits { step_ms: 60_000, bank_ms: 0 })
    }

    fn message(channel: &str, from: &str, content: &str) -> SeenMessage {
        SeenMessage {
            channel: channel.to_owned(),
            index: 1,
            from: from.to_owned(),
            to: None,
            content: content.to_owned(),
        }
    }

    fn names() -> Vec<Option<String>> {
        ["me", "you"].map(|name| Some(name.to_owned())).into()
    }

    #[test]
    fn a_challenge_is_shown_as_messages_and_answered_by_methods() {
        let mut talk = talk("psi");
        let dealt = vec![message("operator", "operator", "Your set"), message("chat", "you", "hello")];
        let config = Value::from(talk.take_config().unwrap()).to_string();
        let state = talk.hear("me", names(), dealt, false, REFUSALS).unwrap().state;
        expect![[r#"{"challenge":"psi","players":2,"step_limit_pool":0,"step_time_limit":60000}"#]].assert_eq(&config);
        let texts: Vec<&str> =
            state["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_str()).collect();
        assert_eq!(texts, ["Your set", "hello"]);
        assert_eq!(
            (&state["epoch"], &state["you"], &state["agent_ids"]),
            (&json!(1), &json!("me"), &json!(["me", "you"]))
        );
        let answer = r#"[{"action": "guess", "content": [1, 2]}, {"action": "chat", "content": "hi", "to": "you"}, 7]"#;
        let steps = talk.take(answer);
        assert_eq!(
            steps,
            [
                Step::Act { method: "guess".to_owned(), content: "[1,2]".to_owned() },
                Step::Say { content: "hi".to_owned(), to: Some("you".to_owned()) },
            ]
        );
        let refused = Err("Invalid guess format. (INVALID_GUESS)".to_owned());
        assert_eq!(talk.learn(&[refused, Ok(())]), None);
        // The refusals are news.
        assert!(talk.is_teaching(REFUSALS));
        let own = vec![message("operator", "me", "(guess) 1")];
        let state = talk.hear("me", names(), own, false, REFUSALS).unwrap().state;
        assert_eq!(talk.take_config(), None);
        let refusals: Vec<(&str, &str)> = state["rejected"]
            .as_array()
            .unwrap()
            .iter()
            .map(|refused| (refused["action"]["action"].as_str().unwrap(), refused["code"].as_str().unwrap()))
            .collect();
        assert_eq!(refusals, [("guess", "INVALID_GUESS"), ("", "INVALID_ACTION")]);
        assert_eq!(talk.hear("me", names(), Vec::new(), false, REFUSALS), None);
        // A reminder is a state without messages.
        let state = talk.hear("me", names(), Vec::new(), true, REFUSALS).unwrap().state;
        assert_eq!((&state["epoch"], &state["messages"]), (&json!(3), &json!([])));
        assert!(talk.take("{}").is_empty());
        assert_eq!(talk.rejected[0].error, "`actions` isn't a list");
    }

    #[test]
    fn refusals_alone_are_shown_a_limited_number_of_times() {
        let mut talk = talk("psi");
        assert!(talk.hear("me", names(), vec![message("operator", "operator", "Begin.")], false, REFUSALS).is_some());
        let mut shown = 0;
        loop {
            talk.take("[7]");
            assert_eq!(talk.learn(&[]), None);
            if talk.hear("me", names(), Vec::new(), false, REFUSALS).is_none() {
                break;
            }
            shown += 1;
        }
        assert_eq!(shown, REFUSALS);
    }

    #[test]
    fn a_game_is_shown_by_its_last_state() {
        let mut talk = talk("chess");
        let start = r#"{"set_agent_id": "me", "config": {"n_epochs": 9}}"#;
        let state = |epoch: u64, asked: &str| {
            let text =
                json!({"world_state": {"epoch": epoch, "remaining_overage_ms": 5}, "asked": [asked], "deadline": 7});
            message("operator", "operator", &text.to_string())
        };
        let begin = vec![message("operator", "operator", start), state(1, "you")];
        assert_eq!(talk.hear("me", names(), begin, false, REFUSALS), None);
        assert_eq!(talk.take_config().map(Value::from), Some(json!({"n_epochs": 9})));
        let shown = talk.hear("me", names(), vec![state(2, "me")], false, REFUSALS).unwrap();
        assert_eq!((Value::from(shown.state), shown.deadline), (json!({"epoch": 2}), Some(7)));
        assert_eq!(talk.hear("me", names(), vec![state(2, "me")], false, REFUSALS), None, "the state is answered");
        let passed = vec![state(3, "me"), message("operator", "me", "(actions) []")];
        assert_eq!(talk.hear("me", names(), passed, false, REFUSALS), None);
        let steps = talk.take("[1]");
        assert_eq!(steps, [Step::Act { method: "actions".to_owned(), content: "[1]".to_owned() }]);
        assert_eq!(talk.learn(&[Ok(())]), None);
        assert_eq!(talk.learn(&[Err("It isn't your turn. (NOT_YOUR_TURN)".to_owned())]), None);
        let illegal = "Illegal. (ILLEGAL_MOVE)".to_owned();
        assert_eq!(talk.learn(&[Err(illegal.clone())]), Some(illegal));
    }
}
