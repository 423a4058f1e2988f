//! A language model on a seat. The model receives the rules and the messages, and acts through tool calls, until a
//! limit is reached. `arena_llm::SeatModel` has the conversation.

mod address;
mod transcript;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_llm::prompt::{Fence, Heard};
use arena_llm::{
    Budget, Caps, Decision, Finish, HISTORY_TOKENS, ModelEndpoint, Params, Prices, Received, Retry, SeatModel,
    SeatPolicy, SeatRules, Spent, ToolCall, Turn,
};
use arena_model::Step;
use arena_players::GameMessage;
use arena_players::http::{ChannelKind, HttpSeat, Inbox, InboxMessage, Next, random_hex};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::PlayEnd;
use super::args::ModelArgs;
use crate::exit::{Exit, Failure};
use crate::output::{counted, note};

use transcript::Transcript;

/// The default maximum number of requests.
const TURNS: u64 = 50;

/// The time to wait for messages before the first request to the model.
const OPENING: Duration = Duration::from_secs(10);

/// The default time to retry a failing endpoint, in seconds.
const PATIENCE_S: u64 = 600;

/// The interval at which a waiting request checks for an interruption and for the end of the session.
const CHECK: Duration = Duration::from_millis(100);

/// The shortest time limit of a request.
const LEAST: Duration = Duration::from_secs(1);

/// The fault of an endpoint that doesn't answer within the player's time.
const TOO_LATE: &str = "the endpoint gave no answer within --max-time";

/// The remedy of a request that is too long for the model.
const TOO_LONG: &str = " (resume with a lower --context-tokens)";

/// The message to the other players if a model stops and the challenge has no method to resign. The message doesn't
/// reveal that the player is a model.
const FAREWELL: &str = "This seat has stopped playing: it will not act or answer any more.";

pub struct Model {
    endpoint: ModelEndpoint,
    runtime: Runtime,
    /// The option that names the model, such as `--model NAME`.
    option: String,
    /// The time to retry a failing endpoint.
    patience: Duration,
    prices: Option<Prices>,
    /// The cost so far, and its limits.
    budget: Arc<Budget>,
    /// The maximum time from the first request on, and its end once it has begun.
    max_time: Option<Duration>,
    deadline: Option<Instant>,
    policy: SeatPolicy,
    transcript: Transcript,
    /// The messages and actions of this run that haven't appeared in the channels yet.
    own: Vec<(ChannelKind, String)>,
    /// The reason why the model stopped before the end of the session: the option of a reached limit, or the cause.
    stopped: Option<&'static str>,
    /// The fault of the endpoint that ended the play.
    fault: Option<String>,
}

/// The result of a question and its retries.
enum Asked {
    Answer(Box<Received>),
    /// The model didn't answer within the player's time.
    Late,
    /// The session ended while the endpoint was failing. Contains the endpoint's error.
    Over(String),
    /// The endpoint failed permanently, or for longer than the time for retries. Contains the endpoint's error.
    Failed(String),
}

impl Model {
    /// Creates the model that the command line specifies. `agent` is the address after `--agent model:`, if it is given
    /// instead of `--model`.
    ///
    /// # Errors
    /// If a key is missing, an option doesn't fit the API, or the transcript can't be written.
    pub fn of(args: &ModelArgs, agent: Option<&str>) -> Result<Model, Failure> {
        let address = address::address(args, agent)?;
        let api = address.api;
        if args.seed.is_some() && !api.takes_seed() {
            return Err(Failure::usage(format_args!("--seed isn't supported by --api {api}; remove it")));
        }
        let endpoint = address::endpoint(&address, args)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::cannot("start the client of the language model", error))?;
        let option = match agent {
            Some(text) => format!("--agent model:{text}"),
            None => format!("--model {}", address.model),
        };
        let params = Params { temperature: args.temperature, seed: args.seed, ..Params::default() };
        let prices = args.price_in.zip(args.price_out);
        let calls = Some(args.max_turns.unwrap_or(TURNS));
        let history_tokens = args.context_tokens.unwrap_or(HISTORY_TOKENS);
        Ok(Model {
            endpoint: ModelEndpoint::new(address.model, endpoint, params),
            runtime,
            option,
            patience: Duration::from_secs(args.patience.unwrap_or(PATIENCE_S)),
            prices: prices.map(|(input, output)| Prices { input, cached: args.price_cached, output }),
            budget: Budget::of_seat(Caps { usd: args.max_cost, tokens: args.max_tokens, calls }),
            max_time: args.max_time.map(Duration::from_secs),
            deadline: None,
            policy: SeatPolicy { history_tokens, ..SeatPolicy::default() },
            transcript: Transcript::of(args.transcript.as_deref())?,
            own: Vec::new(),
            stopped: None,
            fault: None,
        })
    }

    /// Lets the model play, and prints its cost at the end, even after a failure. If the endpoint fails, the seat is
    /// parked: the program doesn't resign, since the model made no mistake, and the user may return to the seat.
    ///
    /// # Errors
    /// If the server fails, the transcript can't be written, or the play was interrupted.
    pub fn play(&mut self, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<PlayEnd, Failure> {
        self.transcript.open(seat)?;
        let played = self.converse(seat, inbox);
        let error = played.as_ref().err().map(|failure| failure.sentence().to_owned());
        let mut end = self.summary();
        end["error"] = json!(error);
        self.transcript.note("end", end)?;
        note(&format!("{}: {}; {}", self.endpoint.model, self.spent_in_words(), self.transcript));
        played
    }

    /// Returns the program's failure if the endpoint failed or the model stopped before the end of the session.
    pub fn verdict(&self, seat: &HttpSeat, played: PlayEnd) -> Result<(), Failure> {
        let base = self.endpoint.endpoint.base();
        match (&self.fault, self.stopped, played) {
            (Some(why), _, PlayEnd::ToTheEnd) => Err(Failure::new(
                Exit::ModelFailed,
                format_args!("the session ended while the language model's endpoint {base} failed: {why}"),
            )),
            (Some(why), _, PlayEnd::Left) => Err(Failure::new(
                Exit::Parked,
                format_args!(
                    "the language model's endpoint {base} fails: {why}; the seat is parked, not resigned; to resume it with \
                     the same options: {} {}",
                    seat.back(),
                    self.option
                ),
            )),
            (None, Some(cause), _) => Err(Failure::new(
                Exit::ModelStopped,
                format_args!("the model stopped before the end of the session ({cause})"),
            )),
            (None, None, _) => Ok(()),
        }
    }

    /// Returns the model's cost so far in US dollars, if prices are known.
    pub fn cost(&self) -> Option<f64> {
        self.prices.map(|_| self.budget.spent().usd)
    }

    /// Returns the model's cost and end as JSON.
    pub fn summary(&self) -> Value {
        let Spent { calls, usage, .. } = self.budget.spent();
        json!({
            "turns": calls, "tokens_in": usage.input, "tokens_cached": usage.cached, "tokens_out": usage.output,
            "estimated": usage.is_estimated, "cost_usd": self.cost(), "name": self.endpoint.model,
            "stopped": self.stopped, "fault": self.fault, "transcript": self.transcript.path(),
        })
    }

    fn spent_in_words(&self) -> String {
        let Spent { calls, usage, .. } = self.budget.spent();
        let turns = counted(calls, "turn");
        let cost = self.cost().map_or_else(String::new, |cost| format!(", {cost:.4} USD"));
        format!("{turns}, {} tokens in, {} out{cost}", usage.input, usage.output)
    }

    /// Returns the option of a limit that is reached.
    fn limit_reached(&self) -> Option<&'static str> {
        Some(match self.budget.reached()? {
            "calls" => "--max-turns",
            "tokens" => "--max-tokens",
            _ => "--max-cost",
        })
    }

    /// Returns true if the maximum time is over.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Asks the model until the session ends or the model stops.
    fn converse(&mut self, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<PlayEnd, Failure> {
        let rules = Arc::new(SeatRules::of(&seat.metadata));
        let fence = Fence::of_random(&random_hex()?);
        let mut model = SeatModel::new(rules, seat.joined(), &seat.you, fence, self.policy);
        let ModelEndpoint { model: name, endpoint, params, .. } = &self.endpoint;
        self.transcript.begin(json!({
            "session": seat.session, "challenge": seat.challenge, "you": seat.you, "seat": seat.number(),
            "model": name, "api": endpoint.api(), "api_base": endpoint.base(), "tool_use": endpoint.tool_use(),
            "context_tokens": self.policy.history_tokens, "temperature": params.temperature, "seed": params.seed,
            "system": model.system(), "tools": model.rules().tools(),
        }))?;
        self.deadline = self.max_time.map(|time| Instant::now() + time);
        let mut wait = Wait::AtMost(OPENING);
        loop {
            let (messages, goes_on) = self.hear(seat, inbox, wait)?;
            if !goes_on {
                return Ok(PlayEnd::ToTheEnd);
            }
            if self.is_late() {
                return self.stop_at(seat, inbox, "--max-time");
            }
            model.set_names(seat.joined());
            model.hear(&messages.iter().map(heard).collect::<Vec<Heard<'_>>>(), false);
            let received = match self.ask(&mut model, inbox)? {
                Asked::Answer(received) => received,
                Asked::Late if self.budget.spent().calls > 0 => return self.stop_at(seat, inbox, "--max-time"),
                Asked::Late => return self.park(TOO_LATE.to_owned()),
                Asked::Failed(why) => return self.park(why),
                Asked::Over(why) => {
                    self.fault = Some(why);
                    return Ok(PlayEnd::ToTheEnd);
                }
            };
            let count = received.counted();
            // Calls of a truncated or refused answer aren't read.
            let calls = if received.reply.finish == Finish::Done { received.reply.calls.clone() } else { Vec::new() };
            let (stop, waits) = match model.take(received.reply, count) {
                Decision::Act { steps, waits } => {
                    let results = self.carry_out(seat, &steps)?;
                    let all_went_well = results.iter().all(Result::is_ok);
                    (model.learn(&results), waits && all_went_well)
                }
                Decision::AskAgain => (None, false),
                Decision::Stop(stop) => (Some(stop), false),
            };
            self.note_calls(&calls, model.new_turns())?;
            // The limit is checked now: if the session ended during the next wait, a reached limit would never be
            // reported.
            if let Some(limit) = self.limit_reached() {
                return self.stop_at(seat, inbox, limit);
            }
            if let Some(stop) = stop {
                let cause = stop.cause.name();
                let why = format!("the model stopped: {}", stop.detail);
                // The detail may quote the model's answers, which other players must not see.
                return self.stop(seat, inbox, cause, &why, &format!("the model stopped ({cause})"));
            }
            wait = if waits { Wait::ForNews } else { Wait::Not };
        }
    }

    /// Leaves the seat because the endpoint failed.
    fn park(&mut self, why: String) -> Result<PlayEnd, Failure> {
        self.transcript.note("parked", json!({"why": why}))?;
        self.fault = Some(why);
        Ok(PlayEnd::Left)
    }

    /// Requests the model's next answer, and writes it to the transcript.
    fn ask(&mut self, model: &mut SeatModel, inbox: &mut Inbox) -> Result<Asked, Failure> {
        let turn = self.budget.spent().calls + 1;
        let left_out = model.prepare();
        if left_out > 0 {
            self.transcript
                .note("shortened", json!({"turn": turn, "left_out": left_out, "kept": model.turns().len()}))?;
        }
        // The transcript contains the earlier turns in earlier lines.
        self.transcript.note("request", json!({"turn": turn, "new": model.new_turns()}))?;
        let asked = Instant::now();
        let received = match self.request(model, turn, inbox)? {
            Asked::Answer(received) => received,
            fault => return Ok(fault),
        };
        let usage = received.reply.usage;
        if usage.is_estimated && !self.budget.spent().usage.is_estimated {
            note("the endpoint reports no token counts; they are estimated at 4 bytes a token");
        }
        let spent = Spent::of_call(usage, self.prices.as_ref());
        self.budget.pay(spent);
        self.transcript.note(
            "response",
            json!({
                "turn": turn, "ms": asked.elapsed().as_millis() as u64, "body": received.body,
                "tokens_in": usage.input, "tokens_cached": usage.cached, "tokens_out": usage.output,
                "cost_usd": self.prices.map(|_| spent.usd),
            }),
        )?;
        Ok(Asked::Answer(received))
    }

    /// Sends a question. While the endpoint is busy or unreachable, retries, unless the session ends.
    fn request(&mut self, model: &mut SeatModel, turn: u64, inbox: &mut Inbox) -> Result<Asked, Failure> {
        let Model { endpoint, runtime, patience, deadline, transcript, .. } = self;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).max(LEAST));
        let failure = Mutex::new(None);
        let mut written = Ok(());
        let mut on_retry = |Retry { sentence: why, pause_ms, .. }: &Retry| {
            if failure.lock().replace(why.clone()).is_none() {
                let seconds = patience.as_secs();
                note(&format!("the language model's endpoint fails: {why}; retrying for up to {seconds} s"));
            }
            written = transcript.note("retry", json!({"turn": turn, "why": why, "pause_ms": pause_ms}));
            written.is_ok()
        };
        let asked = runtime.block_on(async {
            let patience = left.map_or(*patience, |left| left.min(*patience));
            let mut asked = pin!(endpoint.ask(model, patience, &mut on_retry));
            let mut time_up = pin!(async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            });
            let mut checks = tokio::time::interval(CHECK);
            loop {
                tokio::select! {
                    received = &mut asked => {
                        return Ok(match received {
                            Ok(received) => Asked::Answer(Box::new(received)),
                            Err(fault) if fault.is_too_long => Asked::Failed(fault.sentence + TOO_LONG),
                            Err(fault) => Asked::Failed(fault.sentence),
                        });
                    }
                    // The model is late only if its own slowness used up the time.
                    () = &mut time_up => {
                        let has_failed = failure.lock().is_some();
                        return Ok(if has_failed { Asked::Failed(TOO_LATE.to_owned()) } else { Asked::Late });
                    }
                    _ = checks.tick() => {
                        let is_over = inbox.rest(Instant::now())?;
                        if is_over && let Some(why) = failure.lock().clone() {
                            return Ok(Asked::Over(why));
                        }
                    }
                }
            }
        });
        written.and(asked)
    }

    /// Performs the model's steps in order. Returns the refusals.
    fn carry_out(&mut self, seat: &HttpSeat, steps: &[Step]) -> Result<Vec<Result<(), String>>, Failure> {
        let mut results = Vec::new();
        for step in steps {
            let refusal = match step {
                Step::Act { method, content } => {
                    self.own.push((ChannelKind::Operator, format!("({method}) {content}")));
                    seat.act(method, content)?
                }
                Step::Say { content, to } => {
                    self.own.push((ChannelKind::Chat, content.clone()));
                    seat.say(content, to.as_deref())?
                }
            };
            results.push(refusal.map_or(Ok(()), |refusal| Err(refusal.to_string())));
        }
        Ok(results)
    }

    /// Writes tool calls and their results to the transcript. `turns` are the turns after the calls.
    fn note_calls(&mut self, calls: &[ToolCall], turns: &[Turn]) -> Result<(), Failure> {
        let results = turns.iter().find_map(|turn| match turn {
            Turn::Results(results) => Some(results.as_slice()),
            Turn::Told(_) | Turn::Answered(_) => None,
        });
        let turn = self.budget.spent().calls;
        for (call, result) in calls.iter().zip(results.unwrap_or_default()) {
            self.transcript.note(
                "call",
                json!({
                    "turn": turn, "name": call.name, "arguments": call.arguments.as_ref().ok(),
                    "result": result.text, "is_error": result.is_error,
                }),
            )?;
        }
        Ok(())
    }

    /// Ends the model's play at a limit.
    fn stop_at(&mut self, seat: &HttpSeat, inbox: &mut Inbox, limit: &'static str) -> Result<PlayEnd, Failure> {
        let why = format!("{limit} was reached");
        self.stop(seat, inbox, limit, &why, &why)
    }

    /// Ends the model's play. Resigns if the challenge has a method for it; otherwise notifies the other players. Then
    /// follows the session to its end, at most until the deadline. Other players see the reason `to_players`.
    fn stop(
        &mut self,
        seat: &HttpSeat,
        inbox: &mut Inbox,
        cause: &'static str,
        why: &str,
        to_players: &str,
    ) -> Result<PlayEnd, Failure> {
        self.stopped = Some(cause);
        let what = if seat.resign(to_players)? {
            "it resigned"
        } else if seat.say(FAREWELL, None)?.is_none() {
            "the other players are notified and the seat stays silent"
        } else {
            "the seat stays silent"
        };
        self.transcript.note("stop", json!({"cause": cause, "why": why, "what": what}))?;
        let waits = if self.is_late() { "" } else { "; waiting for the end of the session, Ctrl-C leaves" };
        note(&format!("{why}; {what}{waits}"));
        loop {
            if self.is_late() {
                return Ok(PlayEnd::Left);
            }
            if inbox.next(self.deadline)? == Next::Over {
                return Ok(PlayEnd::ToTheEnd);
            }
        }
    }

    /// Waits for messages that are new to the model, and returns them. The second value is false if the session is
    /// over.
    fn hear(
        &mut self,
        seat: &mut HttpSeat,
        inbox: &mut Inbox,
        wait: Wait,
    ) -> Result<(Vec<InboxMessage>, bool), Failure> {
        loop {
            let until = match wait {
                Wait::Not => Some(Instant::now()),
                Wait::AtMost(time) => Some(Instant::now() + time),
                Wait::ForNews => self.deadline,
            };
            let (mut messages, goes_on) = inbox.gather(until)?;
            messages.retain(|message| self.is_news(seat, message));
            if !messages.is_empty() || !goes_on || wait != Wait::ForNews || self.is_late() {
                seat.look_for_others()?;
                return Ok((messages, goes_on));
            }
        }
    }

    /// Returns true if a message is new to the model. The history contains the messages that the model sent in this
    /// run, but not those of earlier runs. A game's public states aren't new either, since the model receives its own
    /// view of the game.
    fn is_news(&mut self, seat: &HttpSeat, message: &InboxMessage) -> bool {
        if message.from == seat.you {
            let own = |(kind, text): &(ChannelKind, String)| *kind == message.channel && *text == message.content;
            let Some(place) = self.own.iter().position(own) else { return true };
            self.own.remove(place);
            return false;
        }
        !matches!(message.game_message(), Some(GameMessage::Public { .. }))
    }
}

fn heard(message: &InboxMessage) -> Heard<'_> {
    Heard { from: &message.from, to: message.to.as_deref(), content: &message.content }
}

/// The event that the model waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Not,
    AtMost(Duration),
    ForNews,
}
