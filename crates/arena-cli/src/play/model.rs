//! A language model on a seat. The model receives the rules and the messages, and acts through tool calls, until a
//! limit is reached. The crate `arena-llm` contains the prompts and the formats of the APIs; `model/attempts` sends the
//! requests.

mod address;
mod attempts;
mod spent;
mod transcript;

use std::time::{Duration, Instant};

use arena_llm::prompt::{self, Fence, Heard, Seating, Want};
use arena_llm::{CallResult, History, Params, Question, Reply, Tool, Turn, around};
use arena_players::http::{ChannelKind, HttpSeat, Inbox, InboxMessage, Next, random_hex};
use serde_json::{Value, json};

use super::PlayEnd;
use super::game::Said;
use crate::args::ModelArgs;
use crate::exit::{Exit, Failure};
use crate::output::note;

use attempts::{Asked, Attempts, TOO_LATE};
use spent::{Limits, ModelCost};
use transcript::Transcript;

/// The time to wait for messages before the first request to the model.
const OPENING: Duration = Duration::from_secs(10);

/// The default maximum number of input tokens. It fits into the context window of most models, with room for the
/// answer.
const CONTEXT_TOKENS: u64 = 100_000;

/// The default time to retry a failing endpoint, in seconds.
const PATIENCE_S: u64 = 600;

/// The number of consecutive answers without a tool call after which a model counts as refusing to play.
const IDLE_ANSWERS: u32 = 5;

/// The message to the other players if a model stops and the challenge has no method to resign. The message doesn't
/// reveal that the player is a model.
const FAREWELL: &str = "This seat has stopped playing: it will not act or answer any more.";

/// The number of characters in the mark of a fence.
const MARK: usize = 12;

pub struct Model {
    name: String,
    /// The option that names the model, such as `--model NAME`.
    option: String,
    attempts: Attempts,
    limits: Limits,
    spent: ModelCost,
    /// Maximum number of input tokens; the oldest turns are dropped first.
    context_tokens: u64,
    params: Params,
    transcript: Transcript,
    /// The messages and actions of this run that haven't appeared in the channels yet.
    own: Vec<(ChannelKind, String)>,
    /// The reason why the model stopped before the end of the session: the option of a reached limit, or `refused`.
    stopped: Option<&'static str>,
    /// The fault of the endpoint that ended the play.
    fault: Option<String>,
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
            return Err(Failure::new(Exit::Usage, format_args!("--seed isn't supported by --api {api}; remove it")));
        }
        let endpoint = address::endpoint(&address, args)?;
        let option = match agent {
            Some(text) => format!("--agent model:{text}"),
            None => format!("--model {}", address.model),
        };
        Ok(Model {
            name: address.model,
            option,
            attempts: Attempts::new(endpoint, Duration::from_secs(args.patience.unwrap_or(PATIENCE_S)))?,
            limits: Limits::of(args),
            spent: ModelCost::of(args),
            context_tokens: args.context_tokens.unwrap_or(CONTEXT_TOKENS),
            params: Params { temperature: args.temperature, seed: args.seed, ..Params::default() },
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
        let played = self.hold(seat, inbox);
        let error = played.as_ref().err().map(|failure| failure.sentence().to_owned());
        let mut end = self.summary();
        end["error"] = json!(error);
        self.transcript.note("end", end)?;
        note(&format!("{}: {}; {}", self.name, self.spent, self.transcript));
        played
    }

    /// Returns the program's failure if the endpoint failed or the model stopped before the end of the session.
    pub fn verdict(&self, seat: &HttpSeat, played: PlayEnd) -> Result<(), Failure> {
        let base = self.attempts.endpoint().base();
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
        self.spent.cost()
    }

    /// Returns the model's cost and end as JSON.
    pub fn summary(&self) -> Value {
        let mut summary = self.spent.to_json();
        summary["name"] = json!(self.name);
        summary["stopped"] = json!(self.stopped);
        summary["fault"] = json!(self.fault);
        summary["transcript"] = json!(self.transcript.path());
        summary
    }

    fn hold(&mut self, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<PlayEnd, Failure> {
        let fence = Fence::of(&random_hex()?[..MARK]);
        let tools = prompt::tools(&seat.metadata.methods);
        let system = prompt::system(&seating(seat), &fence);
        let endpoint = self.attempts.endpoint();
        self.transcript.begin(json!({
            "session": seat.session, "challenge": seat.challenge, "you": seat.you, "seat": seat.number(),
            "model": self.name, "api": endpoint.api(), "api_base": endpoint.base(), "tool_use": endpoint.tool_use(),
            "context_tokens": self.context_tokens, "temperature": self.params.temperature, "seed": self.params.seed,
            "system": system, "tools": tools,
        }))?;
        let begun = Instant::now();
        let deadline = self.limits.time.map(|time| begun + time);
        let mut history = History::of(self.context_tokens);
        let mut wait = Wait::AtMost(OPENING);
        let mut idle_answers = 0;
        loop {
            let (messages, goes_on) = self.hear(seat, inbox, wait, deadline)?;
            if !goes_on {
                return Ok(PlayEnd::ToTheEnd);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return self.stop(seat, inbox, "--max-time", deadline);
            }
            let heard: Vec<Heard<'_>> = messages.iter().map(heard).collect();
            let prompt_text = prompt::news(&seating(seat), &fence, &heard, history.turns());
            if !prompt_text.is_empty() {
                history.push(Turn::Told(prompt_text), messages.iter().any(|message| message.from == "operator"));
            }
            let reply = match self.ask(&system, &tools, &mut history, deadline, inbox)? {
                Asked::Answer(answer) => answer.reply,
                Asked::Late if self.spent.turns == 0 => {
                    let why = TOO_LATE.to_owned();
                    self.transcript.note("parked", json!({"why": why}))?;
                    self.fault = Some(why);
                    return Ok(PlayEnd::Left);
                }
                Asked::Late => return self.stop(seat, inbox, "--max-time", deadline),
                Asked::Over(why) => {
                    self.fault = Some(why);
                    return Ok(PlayEnd::ToTheEnd);
                }
                Asked::Failed(why) => {
                    self.transcript.note("parked", json!({"why": why}))?;
                    self.fault = Some(why);
                    return Ok(PlayEnd::Left);
                }
            };
            let results = self.carry_out(seat, &reply)?;
            // The limit is checked now: if the session ended during the next wait, a reached limit would never be
            // reported.
            if let Some(limit) = self.limits.reached(&self.spent) {
                return self.stop(seat, inbox, limit, deadline);
            }
            // After an answer without a tool call, the next request contains a reminder.
            idle_answers = if reply.calls.is_empty() { idle_answers + 1 } else { 0 };
            if idle_answers == IDLE_ANSWERS {
                return self.stop(seat, inbox, REFUSED, deadline);
            }
            let wants_to_wait = reply.calls.iter().any(|call| call.name == prompt::WAIT);
            let all_went_well = results.iter().all(|result| !result.is_error);
            wait = if wants_to_wait && all_went_well { Wait::ForNews } else { Wait::Not };
            history.push(Turn::Answered(reply), false);
            if !results.is_empty() {
                history.push(Turn::Results(results), false);
            }
        }
    }

    fn ask(
        &mut self,
        system: &str,
        tools: &[Tool],
        history: &mut History,
        deadline: Option<Instant>,
        inbox: &mut Inbox,
    ) -> Result<Asked, Failure> {
        let turn = self.spent.turns + 1;
        let left_out = history.shorten(around(system, tools));
        if left_out > 0 {
            self.transcript
                .note("shortened", json!({"turn": turn, "left_out": left_out, "kept": history.turns().len()}))?;
        }
        let turns = history.turns();
        let question = Question { model: &self.name, system, tools, turns, params: &self.params };
        // The transcript contains the earlier turns in earlier lines.
        let fresh = turns.iter().rposition(|turn| turn.reply().is_some()).map_or(0, |last| last + 1);
        self.transcript.note("request", json!({"turn": turn, "new": &turns[fresh..]}))?;
        let asked = Instant::now();
        let (transcript, patience) = (&mut self.transcript, self.attempts.patience());
        let mut is_told = false;
        let retried = |why: &str, pause: Duration| {
            if !std::mem::replace(&mut is_told, true) {
                let seconds = patience.as_secs();
                note(&format!("the language model's endpoint fails: {why}; retrying for up to {seconds} s"));
            }
            transcript.note("retry", json!({"turn": turn, "why": why, "pause_ms": pause.as_millis() as u64}))
        };
        let answer = match self.attempts.ask(&question, deadline, inbox, retried)? {
            Asked::Answer(answer) => answer,
            fault => return Ok(fault),
        };
        let usage = answer.reply.usage;
        if !usage.is_estimated {
            history.learn(answer.request_bytes, usage.input);
        } else if !self.spent.is_estimated() {
            note("the endpoint reports no token counts; they are estimated at 4 bytes a token");
        }
        let ms = asked.elapsed().as_millis() as u64;
        let cost = self.spent.add(usage);
        self.transcript.note(
            "response",
            json!({
                "turn": turn, "ms": ms, "body": answer.body,
                "tokens_in": usage.input, "tokens_cached": usage.cached, "tokens_out": usage.output, "cost_usd": cost,
            }),
        )?;
        Ok(Asked::Answer(answer))
    }

    /// Performs the model's calls in order.
    fn carry_out(&mut self, seat: &HttpSeat, reply: &Reply) -> Result<Vec<CallResult>, Failure> {
        let mut results = Vec::new();
        for call in &reply.calls {
            let refused = match Want::read(&seating(seat), call) {
                Ok(Want::Act(method, content)) => {
                    self.own.push((ChannelKind::Operator, format!("({method}) {content}")));
                    seat.act(&method, &content)?.map(|refusal| refusal.to_string())
                }
                Ok(Want::Say(text, to)) => {
                    self.own.push((ChannelKind::Chat, text.clone()));
                    seat.say(&text, to.as_deref())?.map(|refusal| refusal.to_string())
                }
                Ok(Want::Wait) => None,
                Err(wrong) => Some(wrong),
            };
            let is_error = refused.is_some();
            let text = refused.map_or_else(|| "done".to_owned(), |why| format!("refused: {why}"));
            self.transcript.note(
                "call",
                json!({
                    "turn": self.spent.turns, "name": call.name, "arguments": call.arguments.as_ref().ok(),
                    "result": text, "is_error": is_error,
                }),
            )?;
            results.push(CallResult { id: call.id.clone(), text, is_error });
        }
        Ok(results)
    }

    /// Ends the model's play. Resigns if the challenge has a method for it; otherwise notifies the other players. Then
    /// follows the session to its end, at most until `deadline`.
    fn stop(
        &mut self,
        seat: &HttpSeat,
        inbox: &mut Inbox,
        cause: &'static str,
        deadline: Option<Instant>,
    ) -> Result<PlayEnd, Failure> {
        self.stopped = Some(cause);
        let why = match cause {
            REFUSED => format!("the model refused to play: {IDLE_ANSWERS} answers in a row without a tool call"),
            limit => format!("{limit} was reached"),
        };
        let what = if seat.resign(&why)? {
            "it resigned"
        } else if seat.say(FAREWELL, None)?.is_none() {
            "the other players are notified and the seat stays silent"
        } else {
            "the seat stays silent"
        };
        self.transcript.note("stop", json!({"cause": cause, "why": why, "what": what}))?;
        let waits = match deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            true => "",
            false => "; waiting for the end of the session, Ctrl-C leaves",
        };
        note(&format!("{why}; {what}{waits}"));
        loop {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(PlayEnd::Left);
            }
            if inbox.next(deadline)? == Next::Over {
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
        deadline: Option<Instant>,
    ) -> Result<(Vec<InboxMessage>, bool), Failure> {
        loop {
            let until = match wait {
                Wait::Not => Some(Instant::now()),
                Wait::AtMost(time) => Some(Instant::now() + time),
                Wait::ForNews => deadline,
            };
            let (mut messages, goes_on) = inbox.gather(until)?;
            // Of several states of a game, only the last is current. After a return to the seat, the channel begins
            // with all past states.
            let is_state = |message: &InboxMessage| matches!(Said::read(message), Some(Said::State(_)));
            let last_state = messages.iter().rposition(is_state);
            let mut place = 0..;
            messages.retain(|message| {
                let is_past = place.next() < last_state && is_state(message);
                !is_past && self.is_news(seat, message)
            });
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !messages.is_empty() || !goes_on || wait != Wait::ForNews || is_late {
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
        !matches!(Said::read(message), Some(Said::Public { .. }))
    }
}

fn seating(seat: &HttpSeat) -> Seating<'_> {
    Seating {
        challenge: &seat.metadata.name,
        rules: &seat.metadata.prompt,
        methods: &seat.metadata.methods,
        players: seat.metadata.players,
        names: seat.joined(),
        you: &seat.you,
    }
}

fn heard(message: &InboxMessage) -> Heard<'_> {
    Heard { from: &message.from, to: message.to.as_deref(), content: &message.content }
}

/// The reason for stopping a model that repeatedly answers without a tool call.
const REFUSED: &str = "refused";

/// The event that the model waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Not,
    AtMost(Duration),
    ForNews,
}
