//! One agent by itself: asked and judged as in a match, while what it plays in is elsewhere, on a server. Its states and ids are the
//! caller's; who is wrong, and by what verdict, is told here.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_model::{AgentId, TimeLimits, Verdict};
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::body::Body;
use crate::contest::{Confinement, OwnerLog, start_one};
use crate::link::{Answer, Link, Request, ask_fairly};
use crate::message;
use crate::play::{CONSENT, GRACE, MatchError, STARTUP, fail};
use crate::report::Disqualified;
use crate::seat::{Fault, Seat};

/// An agent that plays elsewhere. Once it is out it isn't asked any more. Nothing is left of it when this is dropped.
pub struct Solo<'a> {
    seat: Seat,
    link: Link,
    body: Box<dyn Body>,
    limits: TimeLimits,
    called_off: &'a AtomicBool,
    faults: Vec<Fault>,
}

impl<'a> Solo<'a> {
    /// Starts an agent, which will be called `id`, and sends it the ping. If it doesn't start or gives no pong, it is out.
    ///
    /// # Errors
    /// When it isn't the agent's fault that it can't be started or asked.
    pub fn start(
        agent: &Agent,
        id: AgentId,
        confinement: &Confinement,
        limits: TimeLimits,
        called_off: &'a AtomicBool,
    ) -> Result<Solo<'a>, MatchError> {
        let mut seat = Seat::new(0, id, agent.name.clone(), agent.version.clone(), agent.dialect, limits);
        let (link, body) = match start_one(agent, confinement, limits) {
            Ok(parts) => parts,
            Err(error) if error.is_of_the_agent() => {
                seat.disqualify(Verdict::StartupFail, error.to_string());
                crate::contest::absent()?
            }
            Err(error) => return Err(MatchError::Start(error)),
        };
        let mut solo = Solo { seat, link, body, limits, called_off, faults: Vec::new() };
        match solo.ask(&message::ping(), STARTUP, |_, _| true)? {
            Some((Answer::Line, _)) => solo.seat.hear_pong(solo.link.line()),
            Some((Answer::Late, _)) => {
                let detail = format!("no answer to the ping within {} ms", STARTUP.as_millis());
                solo.seat.disqualify(Verdict::PingFail, detail);
            }
            Some((answer, _)) => fail(&mut solo.seat, &mut *solo.body, answer, Verdict::StartupFail),
            None => {}
        }
        Ok(solo)
    }

    /// Tells the agent its id and the constants.
    ///
    /// # Errors
    /// As [`Solo::start`].
    pub fn introduce(&mut self, config: &Map<String, Value>) -> Result<(), MatchError> {
        let message = message::set_agent_id(&self.seat.id, config);
        match self.ask(&message, CONSENT, |_, _| true)? {
            Some((Answer::Line, _)) => self.seat.hear_consent(self.link.line()),
            Some((Answer::Late, _)) => self.seat.note_silence(),
            Some((answer, _)) => fail(&mut self.seat, &mut *self.body, answer, Verdict::StartupFail),
            None => {}
        }
        self.faults.extend(self.seat.take_faults());
        Ok(())
    }

    /// Shows the agent a state and takes its answer: the JSON text of its list of actions. `None` if the answer counts for nothing,
    /// or the agent is out. The state's `agent_ids` are the players that an answer can be judged by. `by`: when somebody else's patience ends, if that is sooner than ours.
    ///
    /// # Errors
    /// As [`Solo::start`].
    pub fn show(&mut self, state: &Map<String, Value>, by: Option<Instant>) -> Result<Option<String>, MatchError> {
        if let Some(ids) = state.get("agent_ids").and_then(Value::as_array) {
            self.seat.meet(ids.iter().filter_map(Value::as_str));
        }
        let (step_ms, bank_ms) = (self.limits.step_ms, self.seat.bank_ms());
        let own = Duration::from_millis(step_ms + bank_ms);
        let patience = by.map_or(own, |by| by.saturating_duration_since(Instant::now()).min(own));
        let mut text = serde_json::to_vec(state).expect("a map of texts is JSON");
        // The message has braces of its own.
        text.pop();
        let mut message = Vec::new();
        message::state(self.seat.dialect, &text[1..], bank_ms, &mut message);
        let Some((answer, used)) = self.ask(&message, patience, Seat::is_answer)? else { return Ok(None) };
        self.seat.charge(used, self.limits);
        let heard = match answer {
            Answer::Line | Answer::SetAside if self.seat.is_in() => {
                self.seat.hear(self.link.line()).map(|actions| actions.into_owned())
            }
            Answer::Line | Answer::SetAside => None,
            Answer::Late if self.body.is_flooding() => {
                fail(&mut self.seat, &mut *self.body, Answer::Flood, Verdict::OutputLimit);
                None
            }
            Answer::Late => {
                self.seat.disqualify(Verdict::Timeout, format!("no answer within {} ms", patience.as_millis()));
                None
            }
            _ => {
                fail(&mut self.seat, &mut *self.body, answer, Verdict::Crashed);
                None
            }
        };
        self.faults.extend(self.seat.take_faults());
        Ok(heard.filter(|_| self.seat.is_in()))
    }

    /// Why the agent is out, if it is.
    pub fn out(&self) -> Option<&Disqualified> {
        self.seat.out.as_ref()
    }

    /// What the agent calls itself.
    pub fn name(&self) -> &str {
        &self.seat.name
    }

    /// Tells the agent that it is over, waits until nothing of it is left, and gives what its owner should know.
    pub fn finish(mut self) -> OwnerLog {
        let out = self.seat.out.clone();
        self.link.close(&message::stop(out.as_ref().is_some_and(|out| out.verdict.is_cheating())));
        let stderr = self.body.finish(if out.is_some() { Duration::ZERO } else { GRACE });
        OwnerLog { stderr, faults: std::mem::take(&mut self.faults), verdict: out.map(|out| (out.verdict, out.detail)) }
    }

    /// Asks the agent if it is in: what came of it, and the time used.
    fn ask(
        &mut self,
        message: &[u8],
        patience: Duration,
        mut is_answer: impl FnMut(&mut Seat, &[u8]) -> bool,
    ) -> Result<Option<(Answer, Duration)>, MatchError> {
        if !self.seat.is_in() {
            return Ok(None);
        }
        let (seat, body) = (&mut self.seat, &self.body);
        let mut requests = [Request::new(&mut self.link, 0, message, patience, Instant::now())];
        ask_fairly(&mut requests, self.called_off, |_, line| is_answer(seat, line), |_| body.spent())?;
        let [request] = requests;
        match request.answer.unwrap_or(Answer::Interrupted) {
            Answer::Interrupted => Err(MatchError::CalledOff),
            answer => Ok(Some((answer, request.used))),
        }
    }
}

impl Drop for Solo<'_> {
    fn drop(&mut self) {
        self.body.kill();
    }
}
