//! The bots of games, which answer the operator's states. The moves are computed in [`arena_games::bots`].

use arena_games::bots::{BotGame, HouseBot};
use serde_json::{Map, Value};

use crate::{Bot, Heard, Step, Strength};

pub fn find(challenge: &str, strength: Strength) -> Option<&'static HouseBot> {
    let [normal, easy] = arena_games::all().find(|playable| playable.id == challenge)?.kit.bots?;
    Some(if strength == Strength::Easy { easy } else { normal })
}

/// Creates the player of one game for a bot of its [`Kit`](arena_games::Kit), with the taste of [`BotGame`].
pub fn board_bot(player: &'static HouseBot, taste: u64) -> Box<dyn Bot> {
    Box::new(BoardBot { player, game: BotGame::of(player, taste), inbox: StateInbox::default() })
}

struct BoardBot {
    player: &'static HouseBot,
    game: BotGame,
    inbox: StateInbox,
}

impl Bot for BoardBot {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        if let Some(config) = self.inbox.read(heard) {
            self.game.learn(config);
        }
        let state = self.inbox.take_state()?;
        let content = self.game.decide(heard.me, &state)?;
        Some(Step::Act { method: self.player.method.to_owned(), content })
    }

    fn needs_news_only(&self) -> bool {
        true
    }
}

/// The parser of a game's messages, which reads each message once.
#[derive(Debug, Default)]
pub struct StateInbox {
    /// The index of the last message.
    last: u64,
    /// The current state, if the bot is to move in it.
    state: Option<Map<String, Value>>,
}

enum GameMessage {
    /// The game's constants.
    Start(Map<String, Value>),
    /// A state, and true if the bot is to move.
    State(Map<String, Value>, bool),
}

impl StateInbox {
    /// Reads the new messages. Returns the game's constants if the operator has sent them.
    pub fn read(&mut self, heard: &Heard<'_>) -> Option<Map<String, Value>> {
        let (mut config, last) = (None, self.last);
        for message in heard.operator.iter().filter(|message| message.index > last) {
            self.last = message.index;
            // An action of this seat has answered the state. Another program with the same invite may have sent it.
            if message.from == heard.me {
                self.state = None;
            }
            if message.from != "operator" {
                continue;
            }
            match GameMessage::parse(&message.content, heard.me) {
                Some(GameMessage::Start(constants)) => config = Some(constants),
                Some(GameMessage::State(state, is_to_move)) => self.state = Some(state).filter(|_| is_to_move),
                None => {}
            }
        }
        config
    }

    /// Returns the state in which the bot is to move. Each state is returned once: the server refuses a move only if
    /// the game no longer needs it, for example after the opponent's resignation.
    pub fn take_state(&mut self) -> Option<Map<String, Value>> {
        self.state.take()
    }
}

impl GameMessage {
    /// Parses a message for the player `me`. Returns `None` for other messages, such as public states and results.
    fn parse(content: &str, me: &str) -> Option<GameMessage> {
        if !content.starts_with('{') {
            return None;
        }
        let Ok(Value::Object(mut message)) = serde_json::from_str(content) else { return None };
        if let (Some(Value::Object(config)), true) = (message.remove("config"), message.contains_key("set_agent_id")) {
            return Some(GameMessage::Start(config));
        }
        let Some(Value::Object(state)) = message.remove("world_state") else { return None };
        let asked = message.get("asked").and_then(Value::as_array);
        let is_to_move = asked.is_some_and(|asked| asked.iter().any(|id| id.as_str() == Some(me)));
        Some(GameMessage::State(state, is_to_move))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::messages;

    /// Returns the constants and the number of the state that the inbox of `me` shows after these messages.
    fn after(inbox: &mut StateInbox, lines: &[&str]) -> (bool, Option<u64>) {
        let operator = messages(lines);
        let heard = Heard { me: "me", operator: &operator, chat: &[], is_late: false };
        let config = inbox.read(&heard);
        (config.is_some(), inbox.take_state().and_then(|state| state["epoch"].as_u64()))
    }

    const START: &str = r#"operator > me: {"set_agent_id": "me", "config": {"n_epochs": 3}}"#;
    const FIRST: &str = r#"operator > all: {"world_state": {"epoch": 1}, "asked": ["me", "you"], "deadline": 5}"#;
    const ANSWER: &str = "me > operator: (move) UP";
    const OTHERS: &str = r#"operator > all: {"world_state": {"epoch": 2}, "asked": ["you"]}"#;

    #[test]
    fn a_state_is_answered_once() {
        type Case<'c> = (&'c [&'c str], (bool, Option<u64>));
        let cases: [Case<'_>; 8] = [
            (&[START], (true, None)),
            (&[START, FIRST], (true, Some(1))),
            (&[START, FIRST, ANSWER], (true, None)),
            (&[START, FIRST, "you > operator: (move) UP"], (true, Some(1))),
            (&[FIRST, OTHERS], (false, None)),
            (&[FIRST, r#"operator > all: {"public_state": {"epoch": 1}, "asked": ["me"]}"#], (false, Some(1))),
            (&[r#"you > me: {"world_state": {"epoch": 1}, "asked": ["me"]}"#], (false, None)),
            (&["operator > all: Game ended."], (false, None)),
        ];
        for (lines, expected) in cases {
            assert_eq!(after(&mut StateInbox::default(), lines), expected, "{lines:?}");
        }
        let mut inbox = StateInbox::default();
        assert_eq!(after(&mut inbox, &[START, FIRST]), (true, Some(1)));
        assert_eq!(after(&mut inbox, &[START, FIRST]), (false, None));
    }

    #[test]
    fn a_bot_plays_from_new_messages_alone() {
        let planner = find("chess", Strength::Normal).expect("chess has bots");
        let mut bot = board_bot(planner, 0);
        let fen = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
        let state = format!(
            r#"operator > all: {{"world_state": {{"fen": "{fen}", "legal_moves": ["a1a8", "a1a2"]}}, "asked": ["me"]}}"#
        );
        let mut operator = messages(&[START, &state]);
        // The first message is gone.
        operator.remove(0);
        let heard = Heard { me: "me", operator: &operator, chat: &[], is_late: false };
        let mate = Step::Act { method: "move".to_owned(), content: "a1a8".to_owned() };
        assert_eq!((bot.next(&heard), bot.next(&heard)), (Some(mate), None));
    }
}
