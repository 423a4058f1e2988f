//! A language model's turns at a seat, wherever the game is played: the conversation, the reading of answers, and the
//! policy for answers that are no turns. Pure.

use std::sync::Arc;

use arena_model::{ChallengeMetadata, Method, Step, is_public_state, is_world_state};

use crate::conversation::{CallResult, Finish, Params, Question, Reply, Tool, Turn};
use crate::history::History;
use crate::prompt::{self, Fence, Heard, Seating};

/// The number of consecutive invalid answers after which a model has stopped playing. The conversation shows the reason
/// of each, so the second answer can correct a slip, and the third a misunderstanding. Each one costs a request with
/// the whole conversation.
pub const MAX_INVALID: u32 = 3;

/// The number of consecutive refusals after which a model has stopped playing. The request after a refusal is the same
/// as before, so a second refusal is hardly an accident.
pub const MAX_REFUSED: u32 = 2;

/// The default maximum size of a request in tokens. It fits into the context window of most models, with room for the
/// answer.
pub const HISTORY_TOKENS: u64 = 100_000;

/// The remark for a model that does nothing although the game needs an action.
const REMINDER: &str = "The game waits for your action, and no other player has anything to do. Act now by calling a \
                        tool of the rules, or send a message.";

/// The rules of a game as models receive them.
#[derive(Debug, Clone)]
pub struct SeatRules {
    pub challenge: String,
    pub rules: String,
    pub methods: Vec<Method>,
    pub players: usize,
    tools: Vec<Tool>,
    /// The tools as JSON.
    tools_text: String,
}

impl SeatRules {
    pub fn of(metadata: &ChallengeMetadata) -> SeatRules {
        let ChallengeMetadata { name, prompt, methods, players, .. } = metadata;
        SeatRules::new(name.clone(), prompt.clone(), methods.clone(), *players)
    }

    pub fn new(challenge: String, rules: String, methods: Vec<Method>, players: usize) -> SeatRules {
        let tools = prompt::tools(&methods);
        let rules = SeatRules { challenge, rules, methods, players, tools, tools_text: String::new() };
        rules.with_tools(|_| true)
    }

    /// Keeps the tools whose names `is_offered` accepts.
    pub fn with_tools(mut self, is_offered: impl Fn(&str) -> bool) -> SeatRules {
        self.tools.retain(|tool| is_offered(&tool.name));
        self.tools_text = serde_json::to_string(&self.tools).unwrap_or_default();
        self
    }

    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tools as JSON.
    pub fn tools_text(&self) -> &str {
        &self.tools_text
    }

    pub fn seating<'s>(&'s self, names: &'s [String], you: &'s str) -> Seating<'s> {
        let SeatRules { challenge, rules, methods, players, .. } = self;
        Seating { challenge, rules, methods, players: *players, names, you }
    }
}

/// The limits of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatPolicy {
    /// The maximum size of a request in tokens. The oldest turns are left out first.
    pub history_tokens: u64,
    /// The number of consecutive answers without a valid call after which the model has stopped.
    pub max_invalid: u32,
    /// The number of consecutive refusals after which the model has stopped.
    pub max_refused: u32,
    /// The number of consecutive truncated answers after which the model has stopped.
    pub max_truncated: u32,
}

impl Default for SeatPolicy {
    fn default() -> SeatPolicy {
        let (max_invalid, max_refused) = (MAX_INVALID, MAX_REFUSED);
        SeatPolicy { history_tokens: HISTORY_TOKENS, max_invalid, max_refused, max_truncated: MAX_INVALID }
    }
}

/// The numbers of answers that were no turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnusableAnswers {
    pub invalid: u32,
    pub refused: u32,
    pub truncated: u32,
}

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The model takes these steps, in order. If there are any, the caller passes their results to
    /// [`SeatModel::learn`].
    Act {
        steps: Vec<Step>,
        /// True if the model waits for news after the steps.
        waits: bool,
    },
    /// The answer was no turn. The conversation shows the reason, and the model is asked again.
    AskAgain,
    Stop(ModelStop),
}

/// The end of a model's play before the end of its game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelStop {
    pub cause: StopCause,
    /// The reason in words.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// Too many answers without a valid call.
    Invalid,
    /// Too many refusals.
    Refused,
    /// Too many answers that were cut off at the limit of output tokens.
    Truncated,
}

impl StopCause {
    pub fn name(self) -> &'static str {
        match self {
            StopCause::Invalid => "invalid",
            StopCause::Refused => "refused",
            StopCause::Truncated => "truncated",
        }
    }
}

/// A language model at a seat. The caller sends the questions and performs the steps.
#[derive(Debug)]
pub struct SeatModel {
    rules: Arc<SeatRules>,
    policy: SeatPolicy,
    names: Vec<String>,
    you: String,
    fence: Fence,
    system: String,
    history: History,
    pending: Option<Pending>,
    /// The numbers of consecutive answers that were no turns.
    in_a_row: UnusableAnswers,
    unusable: UnusableAnswers,
}

/// An answer whose steps are being taken.
#[derive(Debug)]
struct Pending {
    reply: Reply,
    outcomes: Vec<CallOutcome>,
}

/// The result of a tool call, as far as it is known before the steps are taken.
#[derive(Debug)]
enum CallOutcome {
    Step,
    Done,
    Wrong(String),
}

impl SeatModel {
    /// Seats a model with the built-in system prompt. `names` are the players' public names by seat, and `you` is the
    /// model's.
    pub fn new(rules: Arc<SeatRules>, names: &[String], you: &str, fence: Fence, policy: SeatPolicy) -> SeatModel {
        SeatModel {
            system: prompt::system(&rules.seating(names, you), &fence),
            rules,
            history: History::of(policy.history_tokens),
            policy,
            names: names.to_vec(),
            you: you.to_owned(),
            fence,
            pending: None,
            in_a_row: UnusableAnswers::default(),
            unusable: UnusableAnswers::default(),
        }
    }

    /// Replaces the system prompt.
    pub fn with_system(self, system: impl FnOnce(&Seating<'_>, &Fence) -> String) -> SeatModel {
        SeatModel { system: system(&self.rules.seating(&self.names, &self.you), &self.fence), ..self }
    }

    /// Updates the players' public names, as players take their seats.
    pub fn set_names(&mut self, names: &[String]) {
        if self.names != names {
            self.names = names.to_vec();
        }
    }

    /// Adds new messages to the conversation. `is_reminded` is true if the game waits for the model's action.
    pub fn hear(&mut self, news: &[Heard<'_>], is_reminded: bool) {
        // Of several states of a game, only the last is current. Public states repeat a part of it.
        let last_state = news.iter().rposition(is_state);
        let is_current = |(place, message): &(usize, &Heard<'_>)| {
            !(message.from == "operator" && is_public_state(message.content))
                && (last_state.is_none_or(|last| *place >= last) || !is_state(message))
        };
        let news: Vec<Heard<'_>> = news.iter().enumerate().filter(is_current).map(|(_, message)| *message).collect();
        self.tell(&news, if is_reminded { REMINDER } else { "" });
    }

    /// Adds a turn with messages and a remark, unless it would be empty.
    fn tell(&mut self, messages: &[Heard<'_>], remark: &str) {
        let seating = self.rules.seating(&self.names, &self.you);
        let mut text = prompt::news(&seating, &self.fence, messages, self.history.turns());
        if !remark.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text += remark;
        }
        if !text.is_empty() {
            self.history.push(Turn::Told(text), messages.iter().any(|message| message.from == "operator"));
        }
    }

    /// Completes the conversation for the next question, and shortens it to its limit. Returns the number of dropped
    /// turns.
    pub fn prepare(&mut self) -> usize {
        // After an answer without a call and without news, the conversation would end with the answer.
        self.tell(&[], "");
        self.history.shorten(self.system.len() + self.rules.tools_text.len())
    }

    /// Returns the question to the model, after [`SeatModel::prepare`].
    pub fn question<'q>(&'q self, model: &'q str, params: &'q Params) -> Question<'q> {
        let (system, tools, turns) = (&self.system, &self.rules.tools, self.history.turns());
        Question { model, system, tools, turns, params }
    }

    pub fn system(&self) -> &str {
        &self.system
    }

    pub fn rules(&self) -> &SeatRules {
        &self.rules
    }

    pub fn turns(&self) -> &[Turn] {
        self.history.turns()
    }

    /// Returns the turns since the last answer. Earlier questions had the others.
    pub fn new_turns(&self) -> &[Turn] {
        let turns = self.history.turns();
        &turns[turns.iter().rposition(|turn| turn.reply().is_some()).map_or(0, |last| last + 1)..]
    }

    /// Returns the numbers of answers so far that were no turns.
    pub fn unusable(&self) -> UnusableAnswers {
        self.unusable
    }

    /// Returns true if the last answer was truncated, or no answer since the last truncated one was complete.
    pub fn is_truncated(&self) -> bool {
        self.in_a_row.truncated > 0
    }

    /// Reads an answer. `counted` is the size of its request in bytes, if the endpoint has counted the request's tokens.
    pub fn take(&mut self, reply: Reply, counted: Option<usize>) -> Decision {
        if let Some(bytes) = counted {
            self.history.learn(bytes, reply.usage.input);
        }
        // Refused and truncated answers may be empty, which the APIs don't accept as a part of the history.
        match reply.finish {
            Finish::Done => (self.in_a_row.refused, self.in_a_row.truncated) = (0, 0),
            Finish::Refused => {
                self.unusable.refused += 1;
                self.in_a_row.refused += 1;
                let times = self.in_a_row.refused;
                return match times < self.policy.max_refused {
                    true => Decision::AskAgain,
                    false => Decision::Stop(ModelStop {
                        cause: StopCause::Refused,
                        detail: format!("the model refused {times} times in a row"),
                    }),
                };
            }
            Finish::Length => {
                self.unusable.truncated += 1;
                self.in_a_row.truncated += 1;
                return match self.in_a_row.truncated < self.policy.max_truncated {
                    true => Decision::AskAgain,
                    false => Decision::Stop(ModelStop {
                        cause: StopCause::Truncated,
                        detail: "an answer was cut off at the limit of output tokens".to_owned(),
                    }),
                };
            }
        }
        let (mut steps, mut outcomes, mut waits) = (Vec::new(), Vec::new(), false);
        let seating = self.rules.seating(&self.names, &self.you);
        for call in &reply.calls {
            outcomes.push(match prompt::read_call(&seating, &self.rules.tools, call) {
                Ok(Some(step)) => {
                    steps.push(step);
                    CallOutcome::Step
                }
                Ok(None) => {
                    waits = true;
                    CallOutcome::Done
                }
                Err(wrong) => CallOutcome::Wrong(wrong),
            });
        }
        let is_clean = !outcomes.iter().any(|outcome| matches!(outcome, CallOutcome::Wrong(_)));
        self.pending = Some(Pending { reply, outcomes });
        if steps.is_empty() {
            let stop = self.learn(&[]);
            if !waits {
                return stop.map_or(Decision::AskAgain, Decision::Stop);
            }
        }
        Decision::Act { steps, waits: waits && is_clean }
    }

    /// Adds the last answer and the results of its steps to the conversation: `Ok`, or the reason of a refusal. Results of
    /// steps that weren't taken may be missing. Returns the end of the model's play after too many invalid answers.
    pub fn learn(&mut self, results: &[Result<(), String>]) -> Option<ModelStop> {
        let Pending { reply, outcomes } = self.pending.take()?;
        let mut results = results.iter();
        let mut is_valid = false;
        let told: Vec<CallResult> = reply
            .calls
            .iter()
            .zip(outcomes)
            .map(|(call, outcome)| {
                let refusal = match outcome {
                    CallOutcome::Step => match results.next() {
                        Some(result) => result.as_ref().err().cloned(),
                        None => Some("it wasn't carried out".to_owned()),
                    },
                    CallOutcome::Done => None,
                    CallOutcome::Wrong(wrong) => Some(wrong),
                };
                is_valid |= refusal.is_none();
                let is_error = refusal.is_some();
                let text = refusal.map_or_else(|| "done".to_owned(), |why| format!("refused: {why}"));
                CallResult { id: call.id.clone(), text, is_error }
            })
            .collect();
        let last = told.last().map(|result| format!("was {}", result.text));
        self.history.push(Turn::Answered(reply), false);
        if !told.is_empty() {
            self.history.push(Turn::Results(told), false);
        }
        if is_valid {
            self.in_a_row.invalid = 0;
            return None;
        }
        self.in_a_row.invalid += 1;
        self.unusable.invalid += 1;
        let times = self.in_a_row.invalid;
        (times >= self.policy.max_invalid).then(|| {
            let last = last.as_deref().unwrap_or("called no tool");
            let detail = format!("{times} invalid answers in a row; the last one {last}");
            ModelStop { cause: StopCause::Invalid, detail }
        })
    }
}

/// Returns true for the state of a game for a player.
fn is_state(message: &Heard<'_>) -> bool {
    message.from == "operator" && is_world_state(message.content)
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use serde_json::{Value, json};

    use super::*;
    use crate::conversation::ToolCall;

    fn seat(policy: SeatPolicy) -> SeatModel {
        let method = Method { name: "guess".to_owned(), description: "A guess.".to_owned() };
        let rules = SeatRules::new("psi".to_owned(), "Guess.".to_owned(), vec![method], 2);
        let names = ["inv_0".to_owned(), "inv_1".to_owned()];
        SeatModel::new(Arc::new(rules), &names, "inv_1", Fence::of("c0de"), policy)
    }

    fn reply(calls: &[(&str, Value)]) -> Reply {
        let call = |(place, (name, arguments)): (usize, &(&str, Value))| ToolCall {
            id: format!("c{place}"),
            name: (*name).to_owned(),
            arguments: arguments.as_object().cloned().ok_or_else(|| "no object".to_owned()),
        };
        Reply { calls: calls.iter().enumerate().map(call).collect(), ..Reply::default() }
    }

    fn finished(finish: Finish) -> Reply {
        Reply { finish, ..Reply::default() }
    }

    fn guess() -> (&'static str, Value) {
        ("act_guess", json!({"content": "1"}))
    }

    fn told(from: &'static str, content: &'static str) -> Heard<'static> {
        Heard { from, to: None, content }
    }

    /// Plays answers in a row. Returns the cause of each decision's stop, or `acts` or `again`.
    fn causes(policy: SeatPolicy, answers: Vec<Reply>) -> Vec<&'static str> {
        let mut seat = seat(policy);
        seat.hear(&[told("operator", "Begin.")], false);
        let mut cause = |answer| {
            seat.prepare();
            match seat.take(answer, None) {
                Decision::Act { steps, .. } => {
                    // The rules refuse all content but 1.
                    let is_valid = |step: &Step| matches!(step, Step::Act { content, .. } if content == "1");
                    let result = |step| if is_valid(step) { Ok(()) } else { Err("bad".to_owned()) };
                    let results: Vec<Result<(), String>> = steps.iter().map(result).collect();
                    seat.learn(&results).map_or("acts", |stop| stop.cause.name())
                }
                Decision::AskAgain => "again",
                Decision::Stop(stop) => stop.cause.name(),
            }
        };
        answers.into_iter().map(&mut cause).collect()
    }

    #[test]
    fn answers_that_are_no_turns_end_the_play_if_they_come_in_a_row() {
        let refused = || finished(Finish::Refused);
        let cut = || finished(Finish::Length);
        let wrong = || reply(&[("act_guess", json!({"content": "x"}))]);
        let unknown = || reply(&[("act_sing", json!({}))]);
        let good = || reply(&[guess()]);
        let policy = SeatPolicy { max_truncated: 2, ..SeatPolicy::default() };
        for (answers, expected) in [
            (vec![reply(&[]), unknown(), good(), wrong(), reply(&[])], vec!["again", "again", "acts", "acts", "again"]),
            (vec![reply(&[]), wrong(), unknown()], vec!["again", "acts", "invalid"]),
            (vec![wrong(), wrong(), wrong()], vec!["acts", "acts", "invalid"]),
            (vec![refused(), good(), refused(), refused()], vec!["again", "acts", "again", "refused"]),
            (vec![cut(), good(), cut(), cut()], vec!["again", "acts", "again", "truncated"]),
            // A refusal between truncated answers doesn't count as a complete answer, nor as a valid one.
            (vec![cut(), refused(), cut()], vec!["again", "again", "truncated"]),
            (
                vec![unknown(), refused(), unknown(), refused(), unknown()],
                vec!["again"; 4].into_iter().chain(["invalid"]).collect(),
            ),
        ] {
            assert_eq!(causes(policy, answers), expected);
        }
    }

    #[test]
    fn answers_are_counted_and_the_last_one_is_described() {
        let mut seat = seat(SeatPolicy { max_invalid: 1, ..SeatPolicy::default() });
        assert_eq!(seat.take(finished(Finish::Length), None), Decision::AskAgain);
        assert!(seat.is_truncated());
        assert_eq!(seat.take(finished(Finish::Refused), None), Decision::AskAgain);
        assert!(seat.is_truncated());
        let Decision::Stop(stop) = seat.take(reply(&[("chat", json!({}))]), None) else { panic!() };
        assert!(!seat.is_truncated());
        assert_eq!(
            stop.detail,
            "1 invalid answers in a row; the last one was refused: `text` is missing: give the message"
        );
        assert_eq!(seat.unusable(), UnusableAnswers { invalid: 1, refused: 1, truncated: 1 });
    }

    #[test]
    fn a_model_waits_only_after_a_flawless_answer() {
        let mut seat = seat(SeatPolicy::default());
        seat.hear(&[told("operator", "Begin.")], false);
        for (calls, expected) in [
            (vec![("wait", json!({}))], (0, true)),
            (vec![guess(), ("wait", json!({}))], (1, true)),
            (vec![guess(), ("chat", json!({})), ("wait", json!({}))], (1, false)),
            (vec![("chat", json!({})), ("wait", json!({}))], (0, false)),
            (vec![guess()], (1, false)),
        ] {
            let Decision::Act { steps, waits } = seat.take(reply(&calls), None) else { panic!("{calls:?}") };
            assert_eq!((steps.len(), waits), expected, "{calls:?}");
            seat.learn(&vec![Ok(()); steps.len()]);
        }
    }

    #[test]
    fn the_conversation_has_news_results_and_remarks() {
        let mut seat = seat(SeatPolicy::default());
        let (old, new) = (r#"{"world_state":{"turn":1}}"#, r#"{"world_state":{"turn":2}}"#);
        seat.hear(
            &[
                told("operator", old),
                told("operator", "Begin."),
                told("operator", new),
                told("operator", r#"{"public_state":{}}"#),
                // Players can't hide a state by words that look like one.
                told("inv_0", r#"{"world_state":{"turn":3}}"#),
            ],
            false,
        );
        let said = ("chat", json!({"text": "hi", "to": "Player 1"}));
        let Decision::Act { steps, .. } = seat.take(reply(&[said, guess(), guess()]), None) else { panic!() };
        assert_eq!(steps[0], Step::Say { content: "hi".to_owned(), to: Some("inv_0".to_owned()) });
        // The last step wasn't taken, as after the end of a game.
        assert_eq!(seat.learn(&[Ok(()), Err("no".to_owned())]), None);
        seat.hear(&[], true);
        assert_eq!(seat.take(reply(&[]), None), Decision::AskAgain);
        assert_eq!(seat.prepare(), 0);
        assert_eq!(seat.new_turns().len(), 1);
        assert_eq!(seat.prepare(), 0);
        let text: String = seat
            .turns()
            .iter()
            .map(|turn| match turn {
                Turn::Told(told) => format!("told: {told}\n"),
                Turn::Answered(reply) => format!("{} calls\n", reply.calls.len()),
                Turn::Results(results) => {
                    results.iter().map(|result| format!("{}: {}\n", result.id, result.text)).collect()
                }
            })
            .collect();
        expect_file!["seat_model/the_conversation_has_news_results_and_remarks.txt"].assert_eq(&text);
    }

    #[test]
    fn tools_that_are_not_offered_are_unknown() {
        let mut seat = seat(SeatPolicy::default());
        let rules = SeatRules::clone(seat.rules()).with_tools(|name| name != "chat");
        assert!(!rules.tools_text().contains("chat"));
        seat.rules = Arc::new(rules);
        assert_eq!(seat.take(reply(&[("chat", json!({"text": "hi"}))]), None), Decision::AskAgain);
        let Some(Turn::Results(results)) = seat.turns().last() else { panic!() };
        assert_eq!(results[0].text, "refused: there is no tool chat; the tools are act_guess, wait");
    }
}
