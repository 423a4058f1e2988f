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
    AgentId, ChallengeMetadata, Channel, ChatMessage, MemorySession, Seat, SeenMessage, TimeLimits, Verdict,
};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::program_talk::ProgramTalk;
use crate::{Answer, Answering, Cause, Halt, Heard, Measured, Player, ProgramAgent, SeatEnd, StepResult, message_for};

/// The time limits of a program. They are wide, since the game's clock stands still meanwhile.
const LIMITS: TimeLimits = TimeLimits { step_ms: 60_000, bank_ms: 0 };

pub struct ProgramPlayer {
    program: Arc<ProgramAgent>,
    permit: Arc<OwnedSemaphorePermit>,
    talk: ProgramTalk,
    /// The number of messages that were read.
    read: usize,
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
            talk: ProgramTalk::new(challenge, metadata, LIMITS),
            read: 0,
            worker: None,
            measured: Measured::default(),
        }
    }

    async fn next(&mut self, heard: Heard<'_>) -> Result<Answer, Halt> {
        let Heard { session, seat, is_reminded, policy } = heard;
        let me = session.names()[seat.0].as_str();
        let news = session.messages()[self.read..].iter().filter(|message| session.is_readable(message, seat));
        let news: Vec<SeenMessage> = news.map(|message| seen(session, message, seat)).collect();
        self.read = session.messages().len();
        let players = session.names().iter().cloned().map(Some).collect();
        let Some(next) = self.talk.hear(me, players, news, is_reminded, policy.refusals) else {
            return Ok(Answer::Steps { steps: Vec::new(), waits: true, call: None });
        };
        let config = self.talk.take_config();
        let actions = match self.show(me, config, next.state).await? {
            Shown::Actions(actions) => actions,
            Shown::Invalid => {
                self.measured.invalid += 1;
                "[]".to_owned()
            }
            Shown::Out(end) => return Ok(Answer::Ended(end)),
        };
        let steps = self.talk.take(&actions);
        Ok(Answer::Steps { steps, waits: !self.talk.has_invalid(), call: None })
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
        started.map_err(|error| Halt::Failed(format!("a thread cannot be started: {error}")))?;
        Ok(Worker { requests, called_off })
    }
}

impl Player for ProgramPlayer {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        Box::pin(self.next(heard))
    }

    fn learn(&mut self, _steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        let refusal = self.talk.learn(results)?;
        Some(SeatEnd::new(Cause::Invalid, format!("the game refused its actions: {refusal}")))
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
        error => Halt::Failed(format!("the program {} cannot be played: {error}", program.name)),
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn verdicts_are_causes() {
        let cause = |verdict: Verdict| end_of(&Disqualified::new(0, verdict, "why")).cause;
        let of = |cause_of: Cause| Verdict::ALL.into_iter().filter(|verdict| cause(*verdict) == cause_of).count();
        assert_eq!((of(Cause::Timeout), of(Cause::Crashed), of(Cause::Invalid)), (1, 4, 7));
        let end = end_of(&Disqualified::new(0, Verdict::Crashed, "exited with code 1"));
        expect!["CRASHED: exited with code 1"].assert_eq(&end.detail);
    }
}
