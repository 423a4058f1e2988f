//! Conversations with agents, from the ping to `stop`: requests, clocks, the validation of answers, and the
//! removal of disqualified agents.
//!
//! A conversation is independent of the game. Its caller supplies the states and receives the replies. The
//! caller is the [`MatchRun`](crate::play::MatchRun) of a match with all agents, or a [`Solo`](crate::Solo) with
//! one.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_model::{AgentId, Disqualified, StartLimits, TimeControl, TimeLimits, Verdict};
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::body::{Body, GRACE, Log};
use crate::link::{Answer, Link, Request, ask_fairly};
use crate::match_plan::{OwnerLog, absent};
use crate::message;
use crate::play::MatchError;
use crate::process::StartError;
use crate::seat::{Fault, Seat};

/// The usual time limit from the start of an agent to its first pong.
pub(crate) const STARTUP: Duration = Duration::from_millis(StartLimits::USUAL_MS);

/// The time limit for the answer to `set_agent_id`. Agents may omit this answer.
pub(crate) const CONSENT: Duration = Duration::from_millis(500);

/// The time limit for the launcher's report on a process that has closed its output. The agents' clocks don't
/// run during this wait.
pub(crate) const END: Duration = Duration::from_secs(2);

/// An agent with its seat, its link and its process or server.
pub struct Player {
    /// The agent's state in the match.
    pub seat: Seat,
    /// The agent's pipes.
    pub link: Link,
    /// The agent's process or server.
    pub body: Box<dyn Body>,
}

impl Player {
    /// Seats an agent. If the agent failed to start by its own fault, the agent is seated and disqualified.
    ///
    /// # Errors
    /// If the agent failed to start for another reason.
    pub fn new(
        agent: &Agent,
        number: usize,
        id: AgentId,
        limits: TimeLimits,
        started: Result<(Link, Box<dyn Body>), StartError>,
    ) -> Result<Player, MatchError> {
        let mut seat = Seat::new(number, id, agent.name.clone(), agent.version.clone(), agent.dialect, limits);
        seat.set_time_control(agent.time_control);
        seat.ping_limit = Duration::from_millis(agent.start_limits.first_ms());
        let (link, body) = match started {
            Ok(parts) => parts,
            Err(error) if error.is_agents_fault() => {
                seat.disqualify(Verdict::StartupFail, error.to_string());
                absent()?
            }
            Err(error) => return Err(MatchError::Start(error)),
        };
        Ok(Player { seat, link, body })
    }
}

/// The JSON text of the actions in a valid reply; `None` without a valid reply.
pub type Actions<'line> = Option<Cow<'line, str>>;

pub struct Conversation<'a> {
    /// The agents' seats. `links`, `bodies` and `messages` have the same order.
    pub seats: Vec<Seat>,
    links: Vec<Link>,
    bodies: Vec<Box<dyn Body>>,
    /// The messages of the next request, by seat. The message is empty for an agent that gets no request.
    messages: Vec<Vec<u8>>,
    limits: TimeLimits,
    called_off: &'a AtomicBool,
    faults: Vec<Fault>,
}

impl<'a> Conversation<'a> {
    /// Creates a conversation with agents that already run.
    pub fn new(players: Vec<Player>, limits: TimeLimits, called_off: &'a AtomicBool) -> Conversation<'a> {
        let messages = vec![Vec::new(); players.len()];
        let (mut seats, mut links, mut bodies) = (Vec::<Seat>::new(), Vec::new(), Vec::new());
        for Player { seat, link, body } in players {
            seats.push(seat);
            links.push(link);
            bodies.push(body);
        }
        Conversation { seats, links, bodies, messages, limits, called_off, faults: Vec::new() }
    }

    /// Sends each agent the ping and validates its pong.
    ///
    /// # Errors
    /// [`MatchError`]; an agent's behavior is never an error.
    pub fn ping(&mut self) -> Result<(), MatchError> {
        self.write(|_| message::ping());
        for (number, answer, _) in self.ask(|seat| seat.ping_limit, |_, _| true)? {
            let seat = &mut self.seats[number];
            match answer {
                Answer::Line => seat.validate_pong(self.links[number].line()),
                Answer::Late => {
                    let awaited = self.bodies[number].awaited().map(|awaited| format!(": {awaited}"));
                    let awaited = awaited.unwrap_or_default();
                    // The sentence has no number of lines, since that depends on the clock.
                    let empty = if self.links[number].empty_lines() > 0 { ", only empty lines" } else { "" };
                    let limit = seat.ping_limit.as_millis();
                    let detail = format!("no answer to the ping within {limit} ms{empty}{awaited}");
                    seat.disqualify(Verdict::PingFail, detail);
                }
                _ => fail(seat, &mut *self.bodies[number], answer, Verdict::StartupFail)?,
            }
        }
        Ok(())
    }

    /// Sends each agent its id and the config, and validates the answers.
    ///
    /// # Errors
    /// As [`Conversation::ping`].
    pub fn introduce(&mut self, config: &Map<String, Value>) -> Result<(), MatchError> {
        self.write(|seat| message::set_agent_id(&seat.id, config));
        for (number, answer, _) in self.ask(|_| CONSENT, |_, _| true)? {
            let seat = &mut self.seats[number];
            match answer {
                Answer::Line => seat.validate_consent(self.links[number].line()),
                Answer::Late => seat.note_silence(),
                _ => fail(seat, &mut *self.bodies[number], answer, Verdict::StartupFail)?,
            }
        }
        Ok(())
    }

    /// Writes the state for the next request to an agent. `members` is the text of the state's members,
    /// without braces.
    pub fn write_state(&mut self, number: usize, members: &[u8]) {
        let seat = &self.seats[number];
        let clocks = self.seats.iter().any(|seat| seat.time_control.is_some()).then(|| clocks(&self.seats));
        message::state(seat.dialect, members, seat.bank_ms(), clocks.as_deref(), &mut self.messages[number]);
    }

    /// Sends the states from [`Conversation::write_state`] and validates the answers. Returns the seats and,
    /// by seat, the text of the actions in a valid reply. `patience` replaces the deadline that follows from
    /// the time limits.
    ///
    /// # Errors
    /// As [`Conversation::ping`].
    pub fn show(&mut self, patience: Option<Duration>) -> Result<(&[Seat], Vec<Actions<'_>>), MatchError> {
        let limits = self.limits;
        let answers = self.ask(|seat| patience.unwrap_or(seat.step(limits) + seat.bank), Seat::is_answer)?;
        let mut replies = vec![None; self.seats.len()];
        for (number, answer, used) in answers {
            let (seat, body) = (&mut self.seats[number], &mut *self.bodies[number]);
            let (step_ms, bank_ms) = (seat.step(limits).as_millis(), u128::from(seat.bank_ms()));
            seat.charge(used, limits);
            match answer {
                Answer::Line | Answer::SetAside if seat.is_in() => {
                    replies[number] = seat.validate_actions(self.links[number].line())
                }
                // The agent was disqualified for its late answer to `set_agent_id`.
                Answer::Line | Answer::SetAside => {}
                Answer::Late if body.is_flooding() => fail(seat, body, Answer::Flood, Verdict::OutputLimit)?,
                Answer::Late => {
                    check_outage(body)?;
                    if let Some(actions) = seat.on_time_over.take() {
                        replies[number] = Some(actions.into());
                        continue;
                    }
                    let detail = match patience {
                        Some(patience) => format!("no answer within {} ms", patience.as_millis()),
                        None if let Some(control) = seat.time_control => {
                            format!("no answer within {} ms, its time under the control {control}", step_ms + bank_ms)
                        }
                        None => format!(
                            "no answer within {} ms ({step_ms} ms a step and {bank_ms} ms in the bank)",
                            step_ms + bank_ms
                        ),
                    };
                    seat.disqualify(Verdict::Timeout, detail + &only_empty(&self.links[number]));
                }
                _ => fail(seat, body, answer, Verdict::Crashed)?,
            }
        }
        Ok((&self.seats, replies))
    }

    /// Collects the faults since the last call, by seat.
    pub fn new_faults(&mut self) -> &[Fault] {
        let known = self.faults.len();
        self.faults.extend(self.seats.iter_mut().flat_map(Seat::take_faults));
        &self.faults[known..]
    }

    /// Stops the agents that were disqualified since the last call, and returns their disqualifications. They get time
    /// to read `stop`, then their processes are killed.
    pub fn send_away(&mut self) -> Vec<Disqualified> {
        let mut out: Vec<Disqualified> = Vec::new();
        for (seat, link) in self.seats.iter().zip(&mut self.links) {
            if let Some(disqualified) = seat.out.as_ref().filter(|_| !link.is_closed()) {
                link.close(&message::stop(disqualified.verdict.is_cheating()));
                out.push(disqualified.clone());
            }
        }
        let by = Instant::now() + GRACE;
        for disqualified in &out {
            let body = &mut self.bodies[disqualified.seat];
            // The agents' clocks don't run between two epochs.
            body.ended(by.saturating_duration_since(Instant::now()));
            body.kill();
        }
        out
    }

    pub fn stop(&mut self) {
        self.send_away();
        for link in self.links.iter_mut().filter(|link| !link.is_closed()) {
            link.close(&message::stop(false));
        }
    }

    /// Waits until all agents have ended, and returns the logs for their owners, by seat.
    pub fn finish(&mut self) -> Vec<OwnerLog> {
        self.new_faults();
        let by = Instant::now() + GRACE;
        // The links stay open while agents end, so that an agent can write its last line without an error.
        let logs: Vec<Log> =
            self.bodies.iter_mut().map(|body| body.finish(by.saturating_duration_since(Instant::now()))).collect();
        let metered = self.bodies.iter().map(|body| serde_json::from_str(&body.metered()?).ok());
        let log = |((seat, stderr), metered): ((&Seat, Log), Option<Value>)| OwnerLog {
            stderr,
            metered,
            faults: self.faults.iter().filter(|fault| fault.seat == seat.number).cloned().collect(),
            answers: seat.answers,
            refused: seat.refused + seat.misnamed,
            first_error: seat.first_error.clone(),
            verdict: seat.out.clone().map(|out| (out.verdict, out.detail)),
        };
        self.seats.iter().zip(logs).zip(metered).map(log).collect()
    }

    /// Stores a message to each agent for the next request.
    fn write(&mut self, message: impl Fn(&Seat) -> Vec<u8>) {
        for (seat, text) in self.seats.iter().zip(&mut self.messages) {
            *text = message(seat);
        }
    }

    /// Sends the messages to the agents that aren't disqualified. Returns the seat, the answer and the time used of
    /// each agent. `is_answer` returns false for a line that may answer an earlier message.
    fn ask(
        &mut self,
        patience: impl Fn(&Seat) -> Duration,
        is_answer: impl Fn(&mut Seat, &[u8]) -> bool,
    ) -> Result<Vec<(usize, Answer, Duration)>, MatchError> {
        let now = Instant::now();
        let mut requests = Vec::with_capacity(self.seats.len());
        for (at, ((link, seat), message)) in self.links.iter_mut().zip(&self.seats).zip(&self.messages).enumerate() {
            if !message.is_empty() && seat.is_in() {
                requests.push(Request::new(link, at, message, patience(seat), now));
            }
        }
        let (seats, bodies) = (&mut self.seats, &self.bodies);
        let is_answer = |at: usize, line: &[u8]| is_answer(&mut seats[at], line);
        ask_fairly(&mut requests, self.called_off, is_answer, |at| bodies[at].cpu_times())?;
        let answers: Vec<(usize, Answer, Duration)> = requests
            .into_iter()
            .map(|request| (request.seat, request.answer.unwrap_or(Answer::Interrupted), request.used))
            .collect();
        self.messages.iter_mut().for_each(Vec::clear);
        match answers.iter().any(|(_, answer, _)| *answer == Answer::Interrupted) {
            true => Err(MatchError::CalledOff),
            false => Ok(answers),
        }
    }
}

/// Returns the clocks of all seats as JSON text: the time left, the increments, and the moves until the next period.
fn clocks(seats: &[Seat]) -> String {
    let clock = |seat: &Seat| match seat.time_control {
        Some(TimeControl::Clock { increment_ms, .. }) => {
            let mut clock = json!({"remaining_ms": seat.bank_ms(), "increment_ms": increment_ms});
            if seat.moves_to_go > 0 {
                clock["moves_to_go"] = seat.moves_to_go.into();
            }
            clock
        }
        Some(TimeControl::Move(ms)) => json!({"move_ms": ms}),
        None => Value::Null,
    };
    let clocks: Map<String, Value> = seats.iter().map(|seat| (seat.id.as_str().to_owned(), clock(seat))).collect();
    Value::Object(clocks).to_string()
}

/// Describes the output of an agent that sent nothing but empty lines; the text is empty for a silent agent.
pub(crate) fn only_empty(link: &Link) -> String {
    match link.empty_lines() {
        0 => String::new(),
        1 => ", only an empty line".to_owned(),
        lines => format!(", only {lines} empty lines"),
    }
}

/// Disqualifies an agent that has closed or flooded its output. `verdict` applies if the process ended by
/// itself.
///
/// # Errors
/// [`MatchError::Outage`] if the agent ended because a service failed.
fn fail(seat: &mut Seat, body: &mut dyn Body, answer: Answer, verdict: Verdict) -> Result<(), MatchError> {
    if answer == Answer::Flood {
        seat.disqualify(Verdict::OutputLimit, "wrote a line or unrequested output beyond the limit");
        return Ok(());
    }
    let end = body.ended(END);
    check_outage(body)?;
    match end {
        Some(end) if end.is_out_of_memory => seat.disqualify(Verdict::MemoryLimit, end.sentence),
        Some(end) => seat.disqualify(verdict, end.sentence),
        None => seat.disqualify(verdict, "closed its output"),
    }
    Ok(())
}

/// Returns an error if a service fails that the agent depends on. The agent isn't at fault then.
fn check_outage(body: &dyn Body) -> Result<(), MatchError> {
    match body.outage() {
        Some(sentence) => Err(MatchError::Outage(sentence)),
        None => Ok(()),
    }
}
