//! A program at a seat: it receives the states and messages of a match, and its actions are the player's steps.
//!
//! A thread holds the program while its game runs. A crash, a late answer or too many invalid lines end the seat.
//! Errors of the system end the game without a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use arena_house::Step;
use arena_match::{Disqualified, MatchError, Solo};
use arena_model::{
    AgentId, ChallengeAction, ChallengeMetadata, ChallengeState, Channel, ChatMessage, MAX_ACTIONS, MemorySession,
    RefusedAction, Seat, SeenMessage, TimeLimits, Verdict,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    Answer, Answering, Cause, Halt, Heard, Measured, PlayPolicy, Player, ProgramAgent, SeatEnd, StepResult, message_for,
};

/// The time limits of a program. They are wide, since the game's clock stands still meanwhile.
const LIMITS: TimeLimits = TimeLimits { step_ms: 60_000, bank_ms: 0 };

/// The method for the answers of games.
const ACTIONS: &str = "actions";

/// The codes of refused answers that were valid but too late.
const LATE_CODES: [&str; 3] = ["NOT_YOUR_TURN", "ALREADY_ANSWERED", "OUT_OF_THE_GAME"];

pub struct ProgramPlayer {
    program: Arc<ProgramAgent>,
    permit: Arc<OwnedSemaphorePermit>,
    talk: ProgramTalk,
    worker: Option<Worker>,
    measured: Measured,
}

/// The thread that holds the program. Dropping the value ends the program.
struct Worker {
    requests: Sender<Request>,
    called_off: Arc<AtomicBool>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An answer that is still awaited has no use any more.
        self.called_off.store(true, Ordering::Relaxed);
    }
}

/// A state for the program, after the config if the program hasn't received it.
struct Request {
    config: Option<Map<String, Value>>,
    state: Map<String, Value>,
    answer: oneshot::Sender<Result<Shown, Halt>>,
}

/// The reaction of a program to a state.
#[derive(Debug, PartialEq)]
enum Shown {
    /// The JSON text of the actions.
    Actions(String),
    /// An invalid line.
    Invalid,
    Out(SeatEnd),
}

impl ProgramPlayer {
    /// Creates the player. The program starts at the first question.
    pub fn new(
        program: &Arc<ProgramAgent>,
        permit: &Arc<OwnedSemaphorePermit>,
        challenge: &str,
        metadata: ChallengeMetadata,
    ) -> ProgramPlayer {
        ProgramPlayer {
            program: Arc::clone(program),
            permit: Arc::clone(permit),
            talk: ProgramTalk::new(challenge, metadata),
            worker: None,
            measured: Measured::default(),
        }
    }

    async fn next(&mut self, heard: Heard<'_>) -> Result<Answer, Halt> {
        let Heard { session, seat, is_reminded, policy } = heard;
        let (names, me) = (session.names(), session.names()[seat.0].as_str());
        let news = session.messages()[self.talk.read..].iter().filter(|message| session.is_readable(message, seat));
        let news: Vec<SeenMessage> = news.map(|message| seen(session, message, seat)).collect();
        self.talk.read = session.messages().len();
        let Some((config, state)) = self.talk.hear(me, names, news, is_reminded, policy) else {
            return Ok(Answer::Steps { steps: Vec::new(), waits: true, call: None });
        };
        let actions = match self.show(me, config, state).await? {
            Shown::Actions(actions) => actions,
            Shown::Invalid => {
                self.measured.invalid += 1;
                "[]".to_owned()
            }
            Shown::Out(end) => return Ok(Answer::Ended(end)),
        };
        let steps = self.talk.take(&actions);
        Ok(Answer::Steps { steps, waits: self.talk.rejected.is_empty(), call: None })
    }

    async fn show(
        &mut self,
        me: &str,
        config: Option<Map<String, Value>>,
        state: Map<String, Value>,
    ) -> Result<Shown, Halt> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.start(me)?,
        };
        let (answer, shown) = oneshot::channel();
        let sent = worker.requests.send(Request { config, state, answer });
        // The worker must live as long as its answer is awaited.
        self.worker = Some(worker);
        let lost = || Halt::Failed(format!("the thread of the program {} failed", self.program.name));
        sent.map_err(|_| lost())?;
        shown.await.map_err(|_| lost())?
    }

    fn start(&self, me: &str) -> Result<Worker, Halt> {
        let id: AgentId =
            me.parse().map_err(|error| Halt::Failed(format!("the player's id isn't that of an agent: {error}")))?;
        let (requests, received) = channel();
        let called_off = Arc::new(AtomicBool::new(false));
        let (program, permit, flag) = (Arc::clone(&self.program), Arc::clone(&self.permit), Arc::clone(&called_off));
        let work = move || {
            hold(&program, &id, &received, &flag);
            // The next program may start when this one has ended.
            drop(permit);
        };
        let started = thread::Builder::new().name("program".to_owned()).spawn(work);
        started.map_err(|error| Halt::Failed(format!("a thread can't be started: {error}")))?;
        Ok(Worker { requests, called_off })
    }
}

impl Player for ProgramPlayer {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        Box::pin(self.next(heard))
    }

    fn learn(&mut self, _steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        self.talk.learn(results)
    }

    fn is_free(&self) -> bool {
        true
    }

    fn measured(&self) -> Measured {
        self.measured
    }
}

/// Shows states to a program until the game has ended, then ends the program.
fn hold(program: &ProgramAgent, id: &AgentId, requests: &Receiver<Request>, called_off: &AtomicBool) {
    let mut solo = None;
    for Request { config, state, answer } in requests {
        // Sending fails if the game has been given up.
        let _ = answer.send(show(&mut solo, program, id, called_off, config, &state));
    }
    if let Some(solo) = solo {
        solo.finish();
    }
}

fn show<'a>(
    solo: &mut Option<Solo<'a>>,
    program: &ProgramAgent,
    id: &AgentId,
    called_off: &'a AtomicBool,
    config: Option<Map<String, Value>>,
    state: &Map<String, Value>,
) -> Result<Shown, Halt> {
    let halted = |error: MatchError| match error {
        MatchError::CalledOff => Halt::Stopped,
        error => Halt::Failed(format!("the program {} can't be played: {error}", program.name)),
    };
    if solo.is_none() {
        let started = Solo::start(&program.agent, None, id.clone(), &program.confinement, LIMITS, called_off);
        *solo = Some(started.map_err(halted)?);
    }
    let Some(solo) = solo else { return Err(Halt::Stopped) };
    if let Some(config) = &config {
        solo.introduce(config).map_err(halted)?;
    }
    let actions = solo.show(state, None).map_err(halted)?;
    Ok(match (solo.out(), actions) {
        (Some(out), _) => Shown::Out(end_of(out)),
        (None, Some(actions)) => Shown::Actions(actions),
        (None, None) => Shown::Invalid,
    })
}

fn end_of(out: &Disqualified) -> SeatEnd {
    let cause = match out.verdict {
        Verdict::Timeout => Cause::Timeout,
        Verdict::StartupFail | Verdict::Crashed | Verdict::OutputLimit | Verdict::MemoryLimit => Cause::Crashed,
        Verdict::PingFail
        | Verdict::SetAgentIdFail
        | Verdict::MissingAgentId
        | Verdict::AgentIdSpoofing
        | Verdict::TooManyErrors
        | Verdict::IllegalMove
        | Verdict::NoAction => Cause::Invalid,
    };
    SeatEnd::new(cause, format!("{}: {}", out.verdict.name(), out.detail))
}

/// Returns a message as the program at a seat receives it.
fn seen(session: &MemorySession, message: &ChatMessage, seat: Seat) -> SeenMessage {
    let is_chat = matches!(message.channel, Channel::Chat(_));
    let message = message_for(session, message, seat);
    SeenMessage {
        channel: if is_chat { "chat" } else { "operator" }.to_owned(),
        index: message.index,
        from: message.from,
        to: message.to,
        content: message.content,
    }
}

/// A message of a game's operator, as far as programs need it.
#[derive(Deserialize)]
struct OperatorMessage {
    set_agent_id: Option<String>,
    config: Option<Map<String, Value>>,
    world_state: Option<Map<String, Value>>,
    public_state: Option<Map<String, Value>>,
    #[serde(default)]
    asked: Vec<String>,
}

/// The conversation with a program: messages of the session become states, and actions become steps. Pure.
struct ProgramTalk {
    challenge: String,
    metadata: ChallengeMetadata,
    /// True for games of the Colosseum protocol; the states of other challenges consist of messages.
    is_game: bool,
    /// The number of messages that were read.
    read: usize,
    /// The messages that the program hasn't received.
    fresh: Vec<SeenMessage>,
    /// The config that the program hasn't received.
    config: Option<Map<String, Value>>,
    /// The number of states so far; in a game, the epoch of the last one.
    epoch: u64,
    /// The number of consecutive states without news.
    refusal_states: u32,
    /// The actions of the steps that are being taken.
    sent: Vec<ChallengeAction>,
    /// The refused actions that the program hasn't received.
    rejected: Vec<RefusedAction>,
}

/// The game's constants, if they are new to the program, and the state.
type ConfigAndState = (Option<Map<String, Value>>, Map<String, Value>);

impl ProgramTalk {
    fn new(challenge: &str, metadata: ChallengeMetadata) -> ProgramTalk {
        let is_game = metadata.methods.iter().any(|method| method.name == ACTIONS);
        let mut config = Map::new();
        config.insert("challenge".to_owned(), challenge.into());
        config.insert("players".to_owned(), metadata.players.into());
        config.insert("step_time_limit".to_owned(), LIMITS.step_ms.into());
        config.insert("step_limit_pool".to_owned(), LIMITS.bank_ms.into());
        ProgramTalk {
            challenge: challenge.to_owned(),
            metadata,
            is_game,
            read: 0,
            fresh: Vec::new(),
            // A game sends its own config.
            config: (!is_game).then_some(config),
            epoch: 0,
            refusal_states: 0,
            sent: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// Adds messages. Returns the next state for the program `me`, after the config for the first state. Returns `None`
    /// if the program has nothing to do.
    fn hear(
        &mut self,
        me: &str,
        names: &[String],
        news: Vec<SeenMessage>,
        is_reminded: bool,
        policy: &PlayPolicy,
    ) -> Option<ConfigAndState> {
        let state = match self.is_game {
            true => self.hear_game(me, &news),
            false => self.hear_challenge(me, names, news, is_reminded, policy),
        };
        state.map(|state| (self.config.take(), state))
    }

    /// Of several states of a game, only the last is current.
    fn hear_game(&mut self, me: &str, news: &[SeenMessage]) -> Option<Map<String, Value>> {
        let mut last: Option<Map<String, Value>> = None;
        for message in news.iter().filter(|message| message.channel == "operator") {
            // The player's own action has answered the state before.
            if message.from == me {
                last = None;
            }
            if message.from != "operator" || !message.content.starts_with('{') {
                continue;
            }
            let Ok(said) = serde_json::from_str::<OperatorMessage>(&message.content) else { continue };
            let is_asked = said.asked.iter().any(|name| name == me);
            if said.set_agent_id.as_deref() == Some(me) {
                self.config = said.config;
            }
            if let Some(state) = said.world_state {
                last = Some(state).filter(|_| is_asked);
            } else if let Some(public) = said.public_state
                && !is_asked
            {
                // A later public state says that this player isn't to move any more.
                last = last.filter(|state| state.get("epoch") == public.get("epoch"));
            }
        }
        let mut state = last?;
        let epoch = state.get("epoch").and_then(Value::as_u64).unwrap_or(0);
        if epoch <= self.epoch {
            return None;
        }
        self.epoch = epoch;
        // The time bank is added to each state.
        state.remove("remaining_overage_ms");
        Some(state)
    }

    fn hear_challenge(
        &mut self,
        me: &str,
        names: &[String],
        news: Vec<SeenMessage>,
        is_reminded: bool,
        policy: &PlayPolicy,
    ) -> Option<Map<String, Value>> {
        let is_news = news.iter().any(|message| message.from != me);
        self.fresh.extend(news);
        let teaches = !self.rejected.is_empty() && self.refusal_states < policy.refusals;
        if !is_news && !teaches && !is_reminded {
            self.rejected.clear();
            return None;
        }
        self.refusal_states = if is_news { 0 } else { self.refusal_states + 1 };
        self.epoch += 1;
        let state = ChallengeState {
            challenge: self.challenge.clone(),
            prompt: self.metadata.prompt.clone(),
            methods: self.metadata.methods.clone(),
            you: me.to_owned(),
            players: names.iter().cloned().map(Some).collect(),
            messages: std::mem::take(&mut self.fresh),
            rejected: std::mem::take(&mut self.rejected),
        };
        let Value::Object(mut state) = json!(state) else { return None };
        state.insert("epoch".to_owned(), self.epoch.into());
        state.insert("agent_ids".to_owned(), names.into());
        Some(state)
    }

    /// Returns the steps of an answer. The next state shows its invalid actions.
    fn take(&mut self, actions: &str) -> Vec<Step> {
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
                self.rejected.push(invalid(&wanted, &format!("more than {MAX_ACTIONS} actions at once")));
                break;
            }
            match serde_json::from_value::<ChallengeAction>(wanted.clone()) {
                Ok(action) => {
                    steps.push(self.step(&action));
                    self.sent.push(action);
                }
                Err(error) => self.rejected.push(invalid(&wanted, &error.to_string())),
            }
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

    /// Notes the results of the steps. Returns the end of the seat if a game refused the program's answer.
    fn learn(&mut self, results: &[StepResult]) -> Option<SeatEnd> {
        if self.is_game {
            let refusal = results.iter().find_map(|result| result.as_ref().err())?;
            let (_, code) = split_refusal(refusal);
            // The answer was late or repeated: the game continues without it.
            let is_late = LATE_CODES.contains(&code);
            return (!is_late)
                .then(|| SeatEnd::new(Cause::Invalid, format!("the game refused its actions: {refusal}")));
        }
        for (action, result) in std::mem::take(&mut self.sent).into_iter().zip(results) {
            if let Err(refusal) = result {
                let (error, code) = split_refusal(refusal);
                let (error, code) = (error.to_owned(), code.to_owned());
                self.rejected.push(RefusedAction { action, code, error });
            }
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

    const POLICY: &PlayPolicy = &PlayPolicy::AT_ONCE;

    fn talk(challenge: &str) -> ProgramTalk {
        let metadata = arena_games::challenge(challenge, &Map::new()).unwrap().unwrap().metadata().clone();
        ProgramTalk::new(challenge, metadata)
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

    fn names() -> [String; 2] {
        ["me".to_owned(), "you".to_owned()]
    }

    #[test]
    fn a_challenge_is_shown_as_messages_and_answered_by_methods() {
        let mut talk = talk("psi");
        let dealt = vec![message("operator", "operator", "Your set"), message("chat", "you", "hello")];
        let (config, state) = talk.hear("me", &names(), dealt, false, POLICY).unwrap();
        let config = Value::from(config.unwrap()).to_string();
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
        let (config, state) =
            talk.hear("me", &names(), vec![message("operator", "me", "(guess) 1")], false, POLICY).unwrap();
        assert_eq!(config, None);
        let refusals: Vec<(&str, &str)> = state["rejected"]
            .as_array()
            .unwrap()
            .iter()
            .map(|refused| (refused["action"]["action"].as_str().unwrap(), refused["code"].as_str().unwrap()))
            .collect();
        assert_eq!(refusals, [("", "INVALID_ACTION"), ("guess", "INVALID_GUESS")]);
        assert_eq!(talk.hear("me", &names(), Vec::new(), false, POLICY), None);
        // A reminder is a state without messages.
        let (_, state) = talk.hear("me", &names(), Vec::new(), true, POLICY).unwrap();
        assert_eq!((&state["epoch"], &state["messages"]), (&json!(3), &json!([])));
        assert!(talk.take("{}").is_empty());
        assert_eq!(talk.rejected[0].error, "`actions` isn't a list");
    }

    #[test]
    fn refusals_alone_are_shown_a_limited_number_of_times() {
        let mut talk = talk("psi");
        assert!(talk.hear("me", &names(), vec![message("operator", "operator", "Begin.")], false, POLICY).is_some());
        let mut shown = 0;
        loop {
            talk.take("[7]");
            if talk.hear("me", &names(), Vec::new(), false, POLICY).is_none() {
                break;
            }
            shown += 1;
        }
        assert_eq!(shown, POLICY.refusals);
    }

    #[test]
    fn a_game_is_shown_by_its_last_state() {
        let mut talk = talk("chess");
        let start = r#"{"set_agent_id": "me", "config": {"n_epochs": 9}}"#;
        let state = |epoch: u64, asked: &str| {
            let text =
                json!({"world_state": {"epoch": epoch, "remaining_overage_ms": 5}, "asked": [asked]}).to_string();
            message("operator", "operator", &text)
        };
        let begin = vec![message("operator", "operator", start), state(1, "you")];
        assert_eq!(talk.hear("me", &names(), begin, false, POLICY), None);
        let (config, shown) = talk.hear("me", &names(), vec![state(2, "me")], false, POLICY).unwrap();
        assert_eq!(Value::from(config.unwrap()), json!({"n_epochs": 9}));
        assert_eq!(Value::from(shown), json!({"epoch": 2}));
        assert_eq!(talk.hear("me", &names(), vec![state(2, "me")], false, POLICY), None, "the state is answered");
        let passed = vec![state(3, "me"), message("operator", "me", "(actions) []")];
        assert_eq!(talk.hear("me", &names(), passed, false, POLICY), None);
        let steps = talk.take("[1]");
        assert_eq!(steps, [Step::Act { method: "actions".to_owned(), content: "[1]".to_owned() }]);
        assert_eq!(talk.learn(&[Ok(())]), None);
        assert_eq!(talk.learn(&[Err("It isn't your turn. (NOT_YOUR_TURN)".to_owned())]), None);
        let end = talk.learn(&[Err("Illegal. (ILLEGAL_MOVE)".to_owned())]).unwrap();
        assert_eq!(end.cause, Cause::Invalid);
    }

    #[test]
    fn verdicts_are_causes() {
        let cause = |verdict: Verdict| end_of(&Disqualified::new(0, verdict, "why")).cause;
        let of = |cause_of: Cause| Verdict::ALL.into_iter().filter(|verdict| cause(*verdict) == cause_of).count();
        assert_eq!((of(Cause::Timeout), of(Cause::Crashed), of(Cause::Invalid)), (1, 4, 7));
        let end = end_of(&Disqualified::new(0, Verdict::Crashed, "exited with code 1"));
        expect!["CRASHED: exited with code 1"].assert_eq(&end.detail);
    }
}
