//! The desk of a command-line agent: the place where the match lays states, and the agent's tools read them and lay
//! actions.
//!
//! The match asks for one answer at a time. An agent answers by an action, or by waiting for news after it has seen
//! everything. The match's thread waits for the answer, and the tools wait for news.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arena_model::{ChallengeState, GameType, Step};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::kinds::rules::{BoardRules, MatchRules};

/// The number of consecutive states without news after which a waiting agent is reminded of the game.
const PATIENCE: u32 = 3;

/// The remark for an agent that waits although nothing happens.
const REMINDER: &str = "There are no new messages, and the game ends soon if no player acts. Act now, or wait again.";

/// The remark for an agent that waits although only it can continue the game.
const YOUR_TURN: &str = "It is your turn, and the game waits for you: act by challenge_message.";

pub struct Desk {
    board: Option<BoardRules>,
    id: String,
    state: Mutex<DeskState>,
    /// Wakes the tools.
    news: Notify,
    /// Wakes the match's thread.
    answered: Condvar,
}

#[derive(Default)]
struct DeskState {
    rules: Option<MatchRules>,
    are_rules_known: bool,
    /// The messages that the agent hasn't read.
    messages: Vec<Value>,
    /// The refused actions that the agent hasn't read.
    refused: Vec<Value>,
    /// The last state of a board game.
    view: Option<Value>,
    remark: Option<&'static str>,
    turn: Turn,
    actions: Vec<Value>,
    /// The number of consecutive states without news.
    quiet: u32,
    /// True if the agent's last answer was to wait.
    waits: bool,
    /// The reason of the end.
    ended: Option<String>,
}

/// The progress of the match's request.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The match requests no answer.
    #[default]
    Closed,
    /// The match requests an answer, and the agent hasn't seen the state.
    New,
    Seen,
}

impl Desk {
    pub fn new(game: &'static GameType, id: &str) -> Desk {
        Desk {
            board: BoardRules::of(game),
            id: id.to_owned(),
            state: Mutex::default(),
            news: Notify::new(),
            answered: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays a state on the desk. Returns the answer if it is known at once.
    pub fn lay(&self, state: &Map<String, Value>) -> Option<Vec<Value>> {
        let mut desk = self.lock();
        match serde_json::from_value::<ChallengeState>(Value::Object(state.clone())) {
            Ok(state) => desk.hear_messages(&state),
            Err(_) => {
                desk.view = Some(Value::Object(state.clone()));
                let ids = state.get("agent_ids").and_then(Value::as_array);
                let names = ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
                // A state of an unknown form has no rules, so the agent can't play.
                let board = self.board.as_ref();
                let Some(board) = board else { return Some(Vec::new()) };
                desk.rules.get_or_insert_with(|| MatchRules::of_board(board, names, &self.id));
                desk.quiet = 0;
            }
        }
        if !desk.actions.is_empty() {
            desk.waits = false;
            return Some(std::mem::take(&mut desk.actions));
        }
        desk.remark = None;
        if desk.waits && desk.quiet > 0 {
            if !desk.quiet.is_multiple_of(PATIENCE) {
                return Some(Vec::new());
            }
            desk.remark = Some(REMINDER);
        }
        desk.turn = Turn::New;
        drop(desk);
        self.news.notify_waiters();
        None
    }

    pub fn wait_for_answer(&self, patience: Duration) -> Option<Vec<Value>> {
        let desk = self.lock();
        let is_open = |desk: &mut DeskState| desk.turn != Turn::Closed;
        let (mut desk, _) =
            self.answered.wait_timeout_while(desk, patience, is_open).unwrap_or_else(PoisonError::into_inner);
        (desk.turn == Turn::Closed).then(|| std::mem::take(&mut desk.actions))
    }

    pub fn end(&self, reason: &str) {
        let mut desk = self.lock();
        desk.ended.get_or_insert_with(|| reason.to_owned());
        desk.turn = Turn::Closed;
        drop(desk);
        self.news.notify_waiters();
    }

    /// Returns the news for the agent: waits for them until the deadline. An agent that has seen everything passes its
    /// turn by this call, if the rules allow it.
    pub async fn read(&self, until: Instant) -> Value {
        let mut has_passed = false;
        loop {
            let mut woken = std::pin::pin!(self.news.notified());
            // The call must not miss news between the check and the wait.
            woken.as_mut().enable();
            {
                let mut desk = self.lock();
                if let Some(news) = desk.news(until <= Instant::now()) {
                    return news;
                }
                if desk.turn == Turn::Seen && !has_passed {
                    if desk.rules.as_ref().is_some_and(|rules| rules.board.is_some_and(|turn| !turn.may_pass)) {
                        desk.turn = Turn::New;
                        desk.remark = Some(YOUR_TURN);
                        continue;
                    }
                    has_passed = true;
                    desk.waits = true;
                    desk.turn = Turn::Closed;
                    self.answered.notify_all();
                }
            }
            // At the deadline the next check returns empty news.
            let _ = timeout_at(until, woken).await;
        }
    }

    /// Acts. Returns a sentence for the agent; an error is a sentence, too.
    pub fn act(&self, step: impl FnOnce(&MatchRules) -> Result<Step, String>) -> Result<&'static str, String> {
        let mut desk = self.lock();
        if let Some(reason) = &desk.ended {
            return Err(format!("the match is over: {reason}"));
        }
        let rules = desk.rules.as_ref().ok_or("the match hasn't begun: call challenge_sync")?;
        let actions = rules.actions(step(rules)?)?;
        let is_board = rules.board.is_some();
        if is_board && desk.turn == Turn::Closed {
            return Err("it isn't your turn: call challenge_sync".to_owned());
        }
        desk.actions.extend(actions);
        desk.waits = false;
        if desk.turn != Turn::Closed {
            desk.turn = Turn::Closed;
            self.answered.notify_all();
        }
        Ok("sent; challenge_sync has the effect")
    }
}

impl DeskState {
    fn hear_messages(&mut self, state: &ChallengeState) {
        self.rules.get_or_insert_with(|| MatchRules::of_challenge(state));
        let news = state.messages.iter().filter(|message| message.from != state.you);
        let count = self.messages.len();
        self.messages.extend(news.map(|message| {
            let mut news = json!({"channel": message.channel, "from": message.from, "content": message.content});
            if let Some(to) = &message.to {
                news["to"] = to.as_str().into();
            }
            news
        }));
        let is_quiet = self.messages.len() == count && state.rejected.is_empty();
        self.refused.extend(state.rejected.iter().map(|refused| {
            json!({
                "messageType": refused.action.action, "content": refused.action.content,
                "error": refused.error, "code": refused.code,
            })
        }));
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
    }

    /// Returns the unread news, if there are any or `is_late`.
    fn news(&mut self, is_late: bool) -> Option<Value> {
        let has_news = !self.messages.is_empty() || !self.refused.is_empty() || self.turn == Turn::New;
        if !has_news && self.ended.is_none() && !is_late {
            return None;
        }
        let mut news = json!({"yourTurn": self.turn != Turn::Closed, "ended": self.ended.is_some()});
        if let Some(reason) = &self.ended {
            news["reason"] = reason.as_str().into();
        }
        if !self.are_rules_known
            && let Some(rules) = &self.rules
        {
            self.are_rules_known = true;
            news["rules"] = json!({
                "challenge": rules.seat.challenge, "prompt": rules.seat.rules, "methods": rules.seat.methods,
                "you": rules.you, "players": rules.names,
            });
        }
        news["messages"] = std::mem::take(&mut self.messages).into();
        news["refused"] = std::mem::take(&mut self.refused).into();
        if let Some(view) = &self.view {
            news["state"] = view.clone();
        }
        if let Some(remark) = self.remark.take() {
            news["remark"] = remark.into();
        }
        if self.turn == Turn::New {
            self.turn = Turn::Seen;
        }
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(messages: &[(&str, &str)]) -> Map<String, Value> {
        let message = |(place, (from, content)): (usize, &(&str, &str))| json!({"channel": "chat", "index": place + 1, "from": from, "to": null, "content": content});
        let state = json!({
            "challenge": "psi", "prompt": "Guess.", "methods": [{"name": "guess", "description": "A guess."}],
            "you": "a", "players": ["a", "b"], "rejected": [], "epoch": 1,
            "messages": messages.iter().enumerate().map(message).collect::<Vec<_>>(),
        });
        state.as_object().unwrap().clone()
    }

    fn guess(rules: &MatchRules) -> Result<Step, String> {
        assert_eq!(rules.you, "a");
        act("guess", "7")
    }

    fn act(method: &str, content: &str) -> Result<Step, String> {
        Ok(Step::Act { method: method.to_owned(), content: content.to_owned() })
    }

    /// The time at which nothing is waited for.
    fn now() -> Instant {
        Instant::now()
    }

    #[tokio::test]
    async fn an_agent_reads_acts_and_waits() {
        let desk = Desk::new(arena_games::game("psi").unwrap(), "a");
        assert!(desk.act(guess).unwrap_err().contains("hasn't begun"));
        assert_eq!(desk.lay(&challenge(&[("operator", "Your set: 7"), ("a", "own")])), None);
        assert_eq!(desk.wait_for_answer(Duration::ZERO), None);
        let news = desk.read(now()).await;
        assert_eq!(news["messages"], json!([{"channel": "chat", "from": "operator", "content": "Your set: 7"}]));
        assert_eq!((&news["yourTurn"], &news["rules"]["you"]), (&json!(true), &json!("a")));
        desk.act(guess).unwrap();
        assert_eq!(desk.wait_for_answer(Duration::ZERO), Some(vec![json!({"action": "guess", "content": "7"})]));
        // A second action between two states belongs to the next answer.
        desk.act(guess).unwrap();
        assert_eq!(desk.lay(&challenge(&[])).map(|actions| actions.len()), Some(1));
        // A wait after everything is seen is an answer.
        assert_eq!(desk.lay(&challenge(&[("b", "hi")])), None);
        assert_eq!(desk.read(now()).await["messages"][0]["content"], "hi");
        let news = desk.read(now()).await;
        assert_eq!((&news["messages"], &news["yourTurn"]), (&json!([]), &json!(true)));
        assert_eq!(desk.read(now() + Duration::from_millis(1)).await["yourTurn"], false);
        assert_eq!(desk.wait_for_answer(Duration::ZERO), Some(Vec::new()));
        let quiet: Vec<bool> = (0..3).map(|_| desk.lay(&challenge(&[])).is_some()).collect();
        assert_eq!(quiet, [true, true, false]);
        assert_eq!(desk.read(now()).await["remark"], REMINDER);
        desk.end("end_of_game");
        let news = desk.read(now() + Duration::from_secs(60)).await;
        assert_eq!((&news["ended"], &news["reason"]), (&json!(true), &json!("end_of_game")));
        assert!(desk.act(guess).unwrap_err().contains("over"));
    }

    #[tokio::test]
    async fn only_the_agent_can_continue_a_game_of_turns() {
        let desk = Desk::new(arena_games::game("chess").unwrap(), "a");
        let state = json!({"epoch": 1, "agent_ids": ["a", "b"], "fen": "…"});
        assert_eq!(desk.lay(state.as_object().unwrap()), None);
        let soon = || now() + Duration::from_millis(1);
        assert_eq!(desk.read(soon()).await["state"]["fen"], "…");
        assert_eq!(desk.read(soon()).await["remark"], YOUR_TURN);
        assert_eq!(desk.wait_for_answer(Duration::ZERO), None);
        desk.act(|_| act("move", "e2e4")).unwrap();
        assert_eq!(desk.wait_for_answer(Duration::ZERO), Some(vec![json!({"action": "move", "move": "e2e4"})]));
        let early = desk.act(|_| act("move", "e7e5"));
        assert!(early.unwrap_err().contains("isn't your turn"));
    }
}
