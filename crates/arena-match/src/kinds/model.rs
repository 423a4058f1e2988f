//! Language models as agents of matches: each state is a message to the model, and its tool calls are the actions.
//!
//! A fault of the endpoint isn't the model's: the match then ends without a result. The time limits of the match apply
//! to the model's own time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_house::Bot;
use arena_llm::prompt::{self, Fence, Heard, Want};
use arena_llm::{
    CallResult, Client, Endpoint, EndpointError, Finish, History, ModelAddress, Pacer, Params, Question, Reply, Retry,
    Tool, Turn, around, ask, request_bytes,
};
use arena_model::{ChallengeState, GameType, RefusedAction, TimeLimits, hex};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::rules::{BoardRules, SeatRules, find_refusal};
use super::{AgentText, BuiltInPlayer, PlayerAnswer, PlayerError, Recipe, SeatStart};
use crate::thread_body::Notice;

/// The maximum number of tokens of a request.
const CONTEXT_TOKENS: u64 = 100_000;

/// The number of invalid answers in an epoch after which the model is asked once more.
const MAX_INVALID: u32 = 3;

/// The number of consecutive states without news after which a waiting model is reminded of the game.
const PATIENCE: u32 = 3;

/// The time after the match's deadline for which the thread of a late model still waits.
const MARGIN: Duration = Duration::from_secs(2);

/// The number of random bytes in the mark of a fence.
const MARK_BYTES: usize = 6;

/// The remark for a model that waits although nothing happens.
const REMINDER: &str = "There are no new messages, and the game ends soon if no player acts. Act now by calling a tool \
                        of the rules, or wait again.";

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
        let ModelAddress { base, api, .. } = &self.address;
        let key = self.address.key().map_err(|error| match error {
            EndpointError::NoKey(name) => format!("{name} isn't set; set it to the key of {base}"),
            error => error.to_string(),
        })?;
        Endpoint::new(*api, base, key).map_err(|error| error.to_string())
    }

    fn connect(&self, start: &SeatStart<'_>) -> Result<ModelPlayer, String> {
        let endpoint = self.endpoint()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("its client can't be started: {error}"))?;
        let mark = random_mark()?;
        let endpoint = ModelEndpoint {
            name: self.text.clone(),
            model: self.address.model.clone(),
            endpoint,
            client: Client::new(),
            pacer: Pacer::new(1),
            runtime,
            outage: start.notices.outage.clone(),
        };
        let talk = MatchTalk::new(start.game, start.id, start.config, &hex::encode(&mark));
        Ok(ModelPlayer { endpoint, limits: start.limits, talk })
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
        Err(format!("{} is a language model, not a bot", self.text))
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
    endpoint: ModelEndpoint,
    limits: TimeLimits,
    talk: MatchTalk,
}

struct ModelEndpoint {
    /// The agent as the user named it.
    name: String,
    /// The model's name at the endpoint.
    model: String,
    endpoint: Endpoint,
    client: Client,
    pacer: Arc<Pacer>,
    runtime: Runtime,
    outage: Notice,
}

impl BuiltInPlayer for ModelPlayer {
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError> {
        let ModelPlayer { endpoint, limits, talk } = self;
        let begun = Instant::now();
        if !talk.hear(state) {
            return Ok(PlayerAnswer::default());
        }
        let bank_ms = state.get("remaining_overage_ms").and_then(Value::as_u64).unwrap_or(limits.bank_ms);
        let limit = Duration::from_millis(limits.step_ms.saturating_add(bank_ms));
        for _ in 0..=MAX_INVALID {
            let asked = Instant::now();
            let reply = endpoint.ask(talk, limit.saturating_sub(begun.elapsed()))?;
            if let Some(actions) = talk.take(reply) {
                return Ok(actions.into());
            }
            // Another answer would be late, which is worse than none.
            if limit.saturating_sub(begun.elapsed()) < asked.elapsed() {
                break;
            }
        }
        Ok(PlayerAnswer::default())
    }
}

/// Returns random bytes for the mark of a fence.
///
/// # Errors
/// If the system gives none.
fn random_mark() -> Result<[u8; MARK_BYTES], String> {
    let mut mark = [0; MARK_BYTES];
    getrandom::fill(&mut mark).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(mark)
}

impl ModelEndpoint {
    /// Requests one answer. `left` is the time until the match's deadline, in which a failing endpoint is asked again.
    fn ask(&self, talk: &mut MatchTalk, left: Duration) -> Result<Reply, String> {
        let (api, tool_use) = (self.endpoint.api(), self.endpoint.tool_use());
        let body = request_bytes(api, tool_use, &talk.question(&self.model));
        let (name, outage) = (self.name.as_str(), &self.outage);
        // If the deadline comes before the next answer, the endpoint is at fault.
        let mut on_retry = |retry: &Retry| {
            outage.begin(failure(name, &retry.sentence));
            true
        };
        let asked = self.runtime.block_on(async {
            let asked = ask(&self.client, &self.endpoint, &self.pacer, &body, left, &mut on_retry);
            tokio::time::timeout(left.saturating_add(MARGIN), asked).await
        });
        match asked {
            Ok(Ok(received)) => {
                outage.end();
                let usage = received.reply.usage;
                if !usage.is_estimated {
                    talk.history.learn(received.request_bytes, usage.input);
                }
                Ok(received.reply)
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
    /// The rules, from the first state on.
    rules: Option<SeatRules>,
    system: String,
    tools: Vec<Tool>,
    params: Params,
    history: History,
    /// The answer whose results aren't known yet.
    pending: Option<Pending>,
    /// The number of consecutive states without news.
    quiet: u32,
    waits: bool,
}

/// An answer whose results aren't known yet.
struct Pending {
    reply: Reply,
    outcomes: Vec<CallOutcome>,
}

/// The result of a tool call, as far as it is known.
enum CallOutcome {
    /// These actions were sent.
    Sent(Vec<Value>),
    Done,
    Wrong(String),
}

impl MatchTalk {
    /// Creates the conversation of the agent `id`. `mark` is the mark of its fence, as in [`Fence::of`].
    fn new(game: &'static GameType, id: &str, config: &Value, mark: &str) -> MatchTalk {
        MatchTalk {
            board: BoardRules::of(game),
            id: id.to_owned(),
            opening: Some(json!({"set_agent_id": id, "config": config}).to_string()),
            fence: Fence::of(mark),
            rules: None,
            system: String::new(),
            tools: Vec::new(),
            params: Params::default(),
            history: History::of(CONTEXT_TOKENS),
            pending: None,
            quiet: 0,
            waits: false,
        }
    }

    /// Adds a state to the conversation. Returns true if the model is asked for an answer.
    pub(super) fn hear(&mut self, state: &Map<String, Value>) -> bool {
        match serde_json::from_value::<ChallengeState>(Value::Object(state.clone())) {
            Ok(state) => self.hear_messages(&state),
            Err(_) => self.hear_board(state),
        }
    }

    fn hear_messages(&mut self, state: &ChallengeState) -> bool {
        if self.rules.is_none() {
            self.learn_rules(SeatRules::of_challenge(state));
        }
        self.conclude(&state.rejected);
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
        self.tell(&news, if is_waiting { REMINDER } else { "" });
        true
    }

    fn hear_board(&mut self, state: &Map<String, Value>) -> bool {
        if self.rules.is_none() {
            let ids = state.get("agent_ids").and_then(Value::as_array);
            let names = ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            // A state of an unknown form has no rules, so the model can't play.
            let Some(board) = &self.board else { return false };
            let rules = SeatRules::of_board(board, names, &self.id);
            self.learn_rules(rules);
        }
        self.conclude(&[]);
        let mut texts: Vec<String> = self.opening.take().into_iter().collect();
        texts.push(json!({"world_state": state, "asked": [&self.id]}).to_string());
        let id = self.id.clone();
        let news: Vec<Heard<'_>> =
            texts.iter().map(|text| Heard { from: "operator", to: Some(&id), content: text }).collect();
        self.tell(&news, "");
        true
    }

    fn learn_rules(&mut self, rules: SeatRules) {
        self.system = prompt::system(&rules.seating(), &self.fence);
        self.tools = rules.tools();
        self.rules = Some(rules);
    }

    /// Adds a turn with messages and a remark, unless it would be empty.
    fn tell(&mut self, messages: &[Heard<'_>], remark: &str) {
        let Some(rules) = &self.rules else { return };
        let text = prompt::news(&rules.seating(), &self.fence, messages, self.history.turns()) + remark;
        if !text.is_empty() {
            self.history.push(Turn::Told(text), messages.iter().any(|message| message.from == "operator"));
        }
    }

    pub(super) fn question<'q>(&'q mut self, model: &'q str) -> Question<'q> {
        self.history.shorten(around(&self.system, &self.tools));
        Question { model, system: &self.system, tools: &self.tools, turns: self.history.turns(), params: &self.params }
    }

    /// Reads an answer. Returns its actions, or `None` if it is invalid, which the conversation then shows.
    pub(super) fn take(&mut self, reply: Reply) -> Option<Vec<Value>> {
        let rules = self.rules.as_ref()?;
        if reply.calls.is_empty() && reply.finish != Finish::Done {
            // A refused or truncated answer may be empty, which the APIs don't accept as a part of the history.
            return None;
        }
        let (mut actions, mut outcomes) = (Vec::new(), Vec::new());
        let (mut is_valid, mut is_clean, mut waits) = (false, true, false);
        for call in &reply.calls {
            outcomes.push(match Want::read(&rules.seating(), call).and_then(|want| rules.actions(want)) {
                Ok(Some(list)) => {
                    is_valid = true;
                    actions.extend(list.iter().cloned());
                    CallOutcome::Sent(list)
                }
                Ok(None) => {
                    (is_valid, waits) = (true, true);
                    CallOutcome::Done
                }
                Err(wrong) => {
                    is_clean = false;
                    CallOutcome::Wrong(wrong)
                }
            });
        }
        self.pending = Some(Pending { reply, outcomes });
        if !is_valid {
            self.conclude(&[]);
            self.tell(&[], "");
            return None;
        }
        self.waits = waits && is_clean;
        Some(actions)
    }

    /// Adds the last answer and its results to the history. `rejected` are the actions that the rules refused.
    fn conclude(&mut self, rejected: &[RefusedAction]) {
        let Some(Pending { reply, outcomes }) = self.pending.take() else { return };
        let results: Vec<CallResult> = reply
            .calls
            .iter()
            .zip(outcomes)
            .map(|(call, outcome)| {
                let refusal = match outcome {
                    CallOutcome::Sent(actions) => find_refusal(&actions, rejected),
                    CallOutcome::Done => None,
                    CallOutcome::Wrong(wrong) => Some(wrong),
                };
                let is_error = refusal.is_some();
                let text = refusal.map_or_else(|| "done".to_owned(), |why| format!("refused: {why}"));
                CallResult { id: call.id.clone(), text, is_error }
            })
            .collect();
        self.history.push(Turn::Answered(reply), false);
        if !results.is_empty() {
            self.history.push(Turn::Results(results), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use arena_llm::ToolCall;
    use expect_test::{Expect, expect};

    use super::*;

    fn talk(game: &str) -> MatchTalk {
        MatchTalk::new(arena_games::game(game).unwrap(), "a", &json!({"n_epochs": 3}), "c0de")
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

    /// Compares the turns without answers.
    #[track_caller]
    fn check(talk: &MatchTalk, expected: Expect) {
        let mut text = String::new();
        for turn in talk.history.turns() {
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
        let names: Vec<String> = talk.tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names, ["act_guess", "chat", "wait"]);
        assert!(talk.system.contains("Guess."), "{}", talk.system);
        let said = reply(&[("chat", json!({"text": "hi", "to": "Player 1"})), ("act_guess", json!({"content": "x"}))]);
        let actions = talk.take(said).unwrap();
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
        assert_eq!(talk.take(reply(&[("wait", json!({}))])), Some(Vec::new()));
        let quiet: Vec<bool> = (0..6).map(|_| hear(&mut talk, psi(&[("inv_1", None, "own")], json!([])))).collect();
        assert_eq!(quiet, [false, false, true, false, false, true]);
        assert!(hear(&mut talk, psi(&[("inv_0", None, "news")], json!([]))));
    }

    #[test]
    fn invalid_answers_are_shown_and_the_model_is_asked_again() {
        let mut talk = talk("psi");
        assert!(hear(&mut talk, psi(&[("operator", None, "Begin.")], json!([]))));
        assert_eq!(talk.take(reply(&[])), None);
        assert_eq!(talk.take(Reply { finish: Finish::Refused, ..Reply::default() }), None);
        assert_eq!(talk.take(reply(&[("act_sing", json!({}))])), None);
        // The valid part of an answer counts.
        let actions = talk.take(reply(&[("act_guess", json!({"content": "1"})), ("chat", json!({}))])).unwrap();
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
    fn a_model_plays_a_board_game_by_its_actions() {
        let mut chess = talk("chess");
        assert!(hear(&mut chess, json!({"epoch": 1, "agent_ids": ["b", "a"], "fen": "…"})));
        let names: Vec<&str> = chess.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(names.contains(&"act_move") && names.contains(&"act_actions"), "{names:?}");
        assert!(["chat", "wait", "act_resign"].iter().all(|name| !names.contains(name)), "{names:?}");
        let Turn::Told(told) = &chess.history.turns()[0] else { panic!() };
        assert!(told.contains(r#""set_agent_id":"a""#) && told.contains(r#""fen":"…""#), "{told}");
        assert_eq!(chess.take(reply(&[("wait", json!({}))])), None);
        assert_eq!(chess.take(reply(&[("chat", json!({"text": "hi"}))])), None);
        assert_eq!(chess.take(reply(&[("act_actions", json!({"content": "e2e4"}))])), None);
        let moved = chess.take(reply(&[("act_move", json!({"content": "e2e4"}))])).unwrap();
        assert_eq!(Value::from(moved), json!([{"action": "move", "move": "e2e4"}]));
        let list = r#"[{"action": "move", "move": "d2d4"}]"#;
        assert_eq!(chess.take(reply(&[("act_actions", json!({"content": list}))])).unwrap().len(), 1);

        let mut snake = talk("snake");
        assert!(hear(&mut snake, json!({"epoch": 1, "agent_ids": ["a", "b"]})));
        assert_eq!(snake.take(reply(&[("wait", json!({}))])), Some(Vec::new()));
        // Each state asks for an answer, also after a wait.
        assert!(hear(&mut snake, json!({"epoch": 2, "agent_ids": ["a", "b"]})));
        assert_eq!(snake.take(reply(&[("act_actions", json!({"content": "[]"}))])), Some(Vec::new()));
    }
}
