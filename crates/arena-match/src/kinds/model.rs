//! Language models as agents of matches: each state is a message to the model, and its tool calls are the actions.
//!
//! A fault of the endpoint isn't the model's: the match then ends without a result. The time limits of the match apply
//! to the model's own time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_house::Bot;
use arena_llm::prompt::{Fence, Heard};
use arena_llm::{
    Decision, Endpoint, ModelAddress, ModelEndpoint, Params, Received, Reply, Retry, SeatModel, SeatPolicy,
};
use arena_model::{ChallengeState, GameType, RefusedAction, TimeLimits, hex};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::rules::{BoardRules, MatchRules, find_refusal};
use super::{AgentText, BuiltInPlayer, PlayerAnswer, PlayerError, Recipe, SeatStart};
use crate::thread_body::Notice;

/// The number of consecutive states without news after which a waiting model is reminded of the game.
const PATIENCE: u32 = 3;

/// The time after the match's deadline for which the thread of a late model still waits.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct ModelRecipe {
    text: String,
    address: ModelAddress,
}

/// Parses what follows `model:`, the address of a model.
pub(super) fn read_model(AgentText { whole: text, rest, .. }: AgentText<'_>) -> Result<Arc<dyn Recipe>, String> {
    let address = ModelAddress::parse(rest).map_err(|error| error.to_string())?;
    Ok(Arc::new(ModelRecipe { text: text.to_owned(), address }))
}

impl ModelRecipe {
    /// Returns the endpoint with the key in the environment.
    fn endpoint(&self) -> Result<Endpoint, String> {
        self.address.endpoint().map_err(|error| error.to_string())
    }

    fn connect(&self, start: &SeatStart<'_>) -> Result<ModelPlayer, String> {
        let endpoint = self.endpoint()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("its client cannot be started: {error}"))?;
        let mut mark = [0; 8];
        getrandom::fill(&mut mark).map_err(|error| format!("the system gives no random bytes: {error}"))?;
        Ok(ModelPlayer {
            name: self.text.clone(),
            endpoint: ModelEndpoint::new(self.address.model.clone(), endpoint, Params::default()),
            runtime,
            outage: start.notices.outage.clone(),
            limits: start.limits,
            talk: MatchTalk::new(start.game, start.id, start.config, Fence::of_random(&hex::encode(&mark))),
        })
    }
}

impl Recipe for ModelRecipe {
    fn text(&self) -> &str {
        &self.text
    }

    fn check(&self, _game: &GameType) -> Result<(), String> {
        Ok(())
    }

    fn check_environment(&self) -> Result<(), String> {
        self.endpoint().map(drop)
    }

    fn bot(&self, _game: &GameType, _random: u64) -> Result<Box<dyn Bot>, String> {
        Err(format!("{} is a language model, not a house bot", self.text))
    }

    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String> {
        match self.connect(&start) {
            Ok(player) => Ok(Box::new(player)),
            Err(why) => {
                start.notices.outage.begin(failure(&self.text, &why));
                Err(why)
            }
        }
    }
}

/// Returns the sentence about the failure of a model's endpoint.
fn failure(name: &str, why: &str) -> String {
    format!("the language model {name} failed: {why}")
}

struct ModelPlayer {
    /// The agent as the user named it.
    name: String,
    endpoint: ModelEndpoint,
    runtime: Runtime,
    outage: Notice,
    limits: TimeLimits,
    talk: MatchTalk,
}

impl BuiltInPlayer for ModelPlayer {
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError> {
        let begun = Instant::now();
        if !self.talk.hear(state) {
            return Ok(self.talk.silence());
        }
        let bank_ms = state.get("remaining_overage_ms").and_then(Value::as_u64).unwrap_or(self.limits.bank_ms);
        let limit = Duration::from_millis(self.limits.step_ms.saturating_add(bank_ms));
        loop {
            let asked = Instant::now();
            let received = self.ask(limit.saturating_sub(begun.elapsed()))?;
            let counted = received.counted();
            if let Some(answer) = self.talk.take(received.reply, counted) {
                return Ok(answer);
            }
            // Another answer would be late, which is worse than none.
            if limit.saturating_sub(begun.elapsed()) < asked.elapsed() {
                return Ok(PlayerAnswer::default());
            }
        }
    }
}

impl ModelPlayer {
    /// Requests one answer. `left` is the time until the match's deadline, in which a failing endpoint is asked again.
    fn ask(&mut self, left: Duration) -> Result<Received, String> {
        let ModelPlayer { name, endpoint, runtime, outage, talk, .. } = self;
        let Some((_, seat)) = &mut talk.seat else { return Err("has no seat".to_owned()) };
        // If the deadline comes before the next answer, the endpoint is at fault.
        let mut on_retry = |retry: &Retry| {
            outage.begin(failure(name, &retry.sentence));
            true
        };
        let asked = runtime.block_on(async {
            let asked = endpoint.ask(seat, left, &mut on_retry);
            tokio::time::timeout(left.saturating_add(MARGIN), asked).await
        });
        match asked {
            Ok(Ok(received)) => {
                outage.end();
                Ok(received)
            }
            Ok(Err(fault)) => {
                outage.begin(failure(name, &fault.sentence));
                Err(fault.sentence)
            }
            // The match has noticed the deadline itself.
            Err(_) => Err("didn't answer in time".to_owned()),
        }
    }
}

/// The conversation of a model in one match. Pure.
struct MatchTalk {
    /// The game's description, if it is a board game: such states don't contain the rules.
    board: Option<BoardRules>,
    id: String,
    /// The operator's first message of a board game.
    opening: Option<String>,
    fence: Fence,
    /// The rules and the model, from the first state on.
    seat: Option<(MatchRules, SeatModel)>,
    /// The actions of each step of the last answer, or the reason why there are none.
    sent: Vec<Result<Vec<Value>, String>>,
    /// The number of consecutive states without news.
    quiet: u32,
    waits: bool,
    /// The reason why the model isn't asked any more.
    stopped: Option<String>,
}

impl MatchTalk {
    /// Creates the conversation of the agent `id`.
    fn new(game: &'static GameType, id: &str, config: &Value, fence: Fence) -> MatchTalk {
        MatchTalk {
            board: BoardRules::of(game),
            id: id.to_owned(),
            opening: Some(json!({"set_agent_id": id, "config": config}).to_string()),
            fence,
            seat: None,
            sent: Vec::new(),
            quiet: 0,
            waits: false,
            stopped: None,
        }
    }

    /// Adds a state to the conversation. Returns true if the model is asked for an answer.
    fn hear(&mut self, state: &Map<String, Value>) -> bool {
        let is_heard = match serde_json::from_value::<ChallengeState>(Value::Object(state.clone())) {
            Ok(state) => self.hear_messages(&state),
            Err(_) => self.hear_board(state),
        };
        is_heard && self.stopped.is_none()
    }

    fn hear_messages(&mut self, state: &ChallengeState) -> bool {
        self.sit_down(|_| Some(MatchRules::of_challenge(state)));
        self.learn(&state.rejected);
        let news: Vec<Heard<'_>> = state
            .messages
            .iter()
            .filter(|message| message.from != state.you)
            .map(|message| Heard { from: &message.from, to: message.to.as_deref(), content: &message.content })
            .collect();
        let is_quiet = news.is_empty() && state.rejected.is_empty();
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        let is_waiting = is_quiet && self.waits;
        if is_waiting && !self.quiet.is_multiple_of(PATIENCE) {
            return false;
        }
        self.tell(&news, is_waiting);
        true
    }

    fn hear_board(&mut self, state: &Map<String, Value>) -> bool {
        self.sit_down(|talk| {
            let ids = state.get("agent_ids").and_then(Value::as_array);
            let names = ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            Some(MatchRules::of_board(talk.board.as_ref()?, names, &talk.id))
        });
        self.learn(&[]);
        let opening = self.opening.take();
        let text = json!({"world_state": state, "asked": [&self.id]}).to_string();
        let id = self.id.clone();
        let news: Vec<Heard<'_>> = opening
            .iter()
            .chain([&text])
            .map(|text| Heard { from: "operator", to: Some(&id), content: text })
            .collect();
        self.tell(&news, false);
        // Without rules, as for a state of an unknown form, the model can't play.
        self.seat.is_some()
    }

    /// Seats the model, unless it has a seat.
    fn sit_down(&mut self, rules: impl FnOnce(&MatchTalk) -> Option<MatchRules>) {
        if self.seat.is_none() {
            self.seat = rules(self).map(|rules| {
                let MatchRules { seat, names, you, .. } = &rules;
                let (fence, policy) = (self.fence.clone(), SeatPolicy::default());
                let seat = SeatModel::new(Arc::clone(seat), names, you, fence, policy);
                (rules, seat)
            });
        }
    }

    fn tell(&mut self, news: &[Heard<'_>], is_reminded: bool) {
        if let Some((_, seat)) = &mut self.seat {
            seat.hear(news, is_reminded);
        }
    }

    /// Reads an answer. Returns `None` if the model is asked again.
    fn take(&mut self, reply: Reply, counted: Option<usize>) -> Option<PlayerAnswer> {
        let (rules, seat) = self.seat.as_mut()?;
        match seat.take(reply, counted) {
            Decision::AskAgain => None,
            Decision::Stop(stop) => {
                self.stopped = Some(stop.detail);
                Some(self.silence())
            }
            Decision::Act { steps, waits } => {
                self.waits = waits;
                self.sent = steps.into_iter().map(|step| rules.actions(step)).collect();
                if self.sent.is_empty() || self.sent.iter().any(Result::is_ok) {
                    return Some(self.sent.iter().flatten().flatten().cloned().collect::<Vec<Value>>().into());
                }
                self.learn(&[]);
                self.stopped.is_some().then(|| self.silence())
            }
        }
    }

    /// Tells the model the results of its last actions. `rejected` are the actions that the rules refused.
    fn learn(&mut self, rejected: &[RefusedAction]) {
        let result = |sent: Result<Vec<Value>, String>| match find_refusal(&sent?, rejected) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        };
        let results: Vec<Result<(), String>> = self.sent.drain(..).map(result).collect();
        if let Some((_, seat)) = &mut self.seat
            && let Some(stop) = seat.learn(&results)
        {
            self.stopped = Some(stop.detail);
        }
    }

    /// Returns an answer without actions. The replay shows why the model has stopped.
    fn silence(&self) -> PlayerAnswer {
        let info = self.stopped.as_ref().map(|why| json!({"stopped": why}));
        PlayerAnswer { actions: Vec::new(), info }
    }
}

#[cfg(test)]
mod tests {
    use arena_llm::{Finish, MAX_INVALID, ToolCall, Turn};
    use expect_test::{Expect, expect};

    use super::*;

    fn talk(game: &str) -> MatchTalk {
        MatchTalk::new(arena_games::game(game).unwrap(), "a", &json!({"n_epochs": 3}), Fence::of("c0de"))
    }

    fn hear(talk: &mut MatchTalk, state: Value) -> bool {
        let Value::Object(state) = state else { panic!("{state}") };
        talk.hear(&state)
    }

    fn reply(calls: &[(&str, Value)]) -> Reply {
        let call = |(place, (name, arguments)): (usize, &(&str, Value))| ToolCall {
            id: format!("c{place}"),
            name: (*name).to_owned(),
            arguments: Ok(arguments.as_object().cloned().unwrap()),
        };
        Reply { calls: calls.iter().enumerate().map(call).collect(), ..Reply::default() }
    }

    fn psi(messages: &[(&str, Option<&str>, &str)], rejected: Value) -> Value {
        let message = |(place, (from, to, content)): (usize, &(&str, Option<&str>, &str))| {
            let channel = if *from == "operator" { "operator" } else { "chat" };
            json!({"channel": channel, "index": place + 1, "from": from, "to": to, "content": content})
        };
        json!({
            "challenge": "psi", "prompt": "Guess.", "methods": [{"name": "guess", "description": "A guess."}],
            "you": "inv_1", "players": ["inv_0", "inv_1"], "rejected": rejected, "epoch": 1,
            "messages": messages.iter().enumerate().map(message).collect::<Vec<_>>(),
        })
    }

    fn seat(talk: &MatchTalk) -> &SeatModel {
        &talk.seat.as_ref().unwrap().1
    }

    fn take(talk: &mut MatchTalk, reply: Reply) -> Option<Vec<Value>> {
        talk.seat.as_mut().unwrap().1.prepare();
        talk.take(reply, None).map(|answer| answer.actions)
    }

    fn tools(talk: &MatchTalk) -> Vec<&str> {
        seat(talk).rules().tools().iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Compares the turns without answers.
    #[track_caller]
    fn check(talk: &MatchTalk, expected: Expect) {
        let mut text = String::new();
        for turn in seat(talk).turns() {
            match turn {
                Turn::Told(told) => text += &format!("told: {told}\n"),
                Turn::Answered(reply) => text += &format!("{} calls\n", reply.calls.len()),
                Turn::Results(results) => {
                    for result in results {
                        text += &format!("{}: {}\n", result.id, result.text);
                    }
                }
            }
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn a_model_plays_a_challenge_by_messages_and_methods() {
        let mut talk = talk("psi");
        let dealt = [("operator", Some("inv_1"), "Your set: 1"), ("inv_1", None, "mine")];
        assert!(hear(&mut talk, psi(&dealt, json!([]))));
        assert_eq!(tools(&talk), ["act_guess", "chat", "wait"]);
        assert!(seat(&talk).system().contains("Guess."), "{}", seat(&talk).system());
        let said = reply(&[("chat", json!({"text": "hi", "to": "Player 1"})), ("act_guess", json!({"content": "x"}))]);
        let actions = take(&mut talk, said).unwrap();
        assert_eq!(
            Value::from(actions),
            json!([
                {"action": "chat", "content": "hi", "to": "inv_0"},
                {"action": "guess", "content": "x"}
            ])
        );
        let refused = json!([
            {"action": {"action": "guess", "content": "x"}, "code": "INVALID_GUESS", "error": "Invalid guess format."}
        ]);
        assert!(hear(&mut talk, psi(&[("inv_0", None, "hello")], refused)));
        check(
            &talk,
            expect![[r#"
                told: <<<c0de operator to you only>>>
                Your set: 1
                <<<c0de end>>>

                2 calls
                c0: done
                c1: refused: Invalid guess format. (INVALID_GUESS)
                told: <<<c0de Player 1>>>
                hello
                <<<c0de end>>>

            "#]],
        );
    }

    #[test]
    fn a_waiting_model_is_asked_only_if_there_is_news_or_the_game_may_stall() {
        let mut talk = talk("psi");
        assert!(hear(&mut talk, psi(&[("operator", None, "Begin.")], json!([]))));
        assert_eq!(take(&mut talk, reply(&[("wait", json!({}))])), Some(Vec::new()));
        let quiet: Vec<bool> = (0..6).map(|_| hear(&mut talk, psi(&[("inv_1", None, "own")], json!([])))).collect();
        assert_eq!(quiet, [false, false, true, false, false, true]);
        assert!(hear(&mut talk, psi(&[("inv_0", None, "news")], json!([]))));
    }

    #[test]
    fn invalid_answers_are_shown_and_the_model_is_asked_again() {
        let mut talk = talk("psi");
        assert!(hear(&mut talk, psi(&[("operator", None, "Begin.")], json!([]))));
        assert_eq!(take(&mut talk, reply(&[])), None);
        assert_eq!(take(&mut talk, Reply { finish: Finish::Refused, ..Reply::default() }), None);
        assert_eq!(take(&mut talk, reply(&[("act_sing", json!({}))])), None);
        // The valid part of an answer counts.
        let actions = take(&mut talk, reply(&[("act_guess", json!({"content": "1"})), ("chat", json!({}))])).unwrap();
        assert_eq!(Value::from(actions), json!([{"action": "guess", "content": "1"}]));
        assert!(!talk.waits);
        assert!(hear(&mut talk, psi(&[], json!([]))));
        check(
            &talk,
            expect![[r#"
                told: <<<c0de operator>>>
                Begin.
                <<<c0de end>>>

                0 calls
                told: No player saw your last text: only tool calls act. Call a tool; if there is nothing to do, call wait.


                1 calls
                c0: refused: there is no tool act_sing; the tools are act_guess, chat, wait
                2 calls
                c0: done
                c1: refused: `text` is missing: give the message
            "#]],
        );
    }

    #[test]
    fn a_model_that_errs_again_and_again_is_not_asked_any_more() {
        let mut talk = talk("psi");
        assert!(hear(&mut talk, psi(&[("operator", None, "Begin.")], json!([]))));
        for _ in 1..MAX_INVALID {
            assert_eq!(take(&mut talk, reply(&[])), None);
        }
        let answer = talk.take(reply(&[]), None).unwrap();
        let detail = "3 invalid answers in a row; the last one called no tool";
        assert_eq!((answer.actions, answer.info), (Vec::new(), Some(json!({"stopped": detail}))));
        assert!(!hear(&mut talk, psi(&[("inv_0", None, "news")], json!([]))));
    }

    #[test]
    fn a_model_plays_a_board_game_by_its_actions() {
        let mut chess = talk("chess");
        assert!(hear(&mut chess, json!({"epoch": 1, "agent_ids": ["b", "a"], "fen": "…"})));
        let names = tools(&chess);
        assert!(names.contains(&"act_move") && names.contains(&"act_actions"), "{names:?}");
        assert!(["chat", "wait", "act_resign"].iter().all(|name| !names.contains(name)), "{names:?}");
        let Turn::Told(told) = &seat(&chess).turns()[0] else { panic!() };
        assert!(told.contains(r#""set_agent_id":"a""#) && told.contains(r#""fen":"…""#), "{told}");
        assert_eq!(take(&mut chess, reply(&[("wait", json!({}))])), None);
        assert_eq!(take(&mut chess, reply(&[("chat", json!({"text": "hi"}))])), None);
        let moved = take(&mut chess, reply(&[("act_move", json!({"content": "e2e4"}))])).unwrap();
        assert_eq!(Value::from(moved), json!([{"action": "move", "move": "e2e4"}]));
        assert!(hear(&mut chess, json!({"epoch": 3, "agent_ids": ["b", "a"], "fen": "…"})));
        assert_eq!(take(&mut chess, reply(&[("act_actions", json!({"content": "e2e4"}))])), None);
        let list = r#"[{"action": "move", "move": "d2d4"}]"#;
        assert_eq!(take(&mut chess, reply(&[("act_actions", json!({"content": list}))])).unwrap().len(), 1);

        let mut snake = talk("snake");
        assert!(hear(&mut snake, json!({"epoch": 1, "agent_ids": ["a", "b"]})));
        assert_eq!(take(&mut snake, reply(&[("wait", json!({}))])), Some(Vec::new()));
        // Each state asks for an answer, also after a wait.
        assert!(hear(&mut snake, json!({"epoch": 2, "agent_ids": ["a", "b"]})));
        assert_eq!(take(&mut snake, reply(&[("act_actions", json!({"content": "[]"}))])), Some(Vec::new()));
    }
}
