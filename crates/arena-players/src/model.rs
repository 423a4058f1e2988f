//! A language model at a seat.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arena_house::Step;
use arena_llm::prompt::{self, Fence};
use arena_llm::{
    Decision, EndpointError, ModelAddress, ModelEndpoint, ModelStop, Params, Reply, SeatModel, SeatPolicy, SeatRules,
    StopCause, UnusableAnswers,
};
use arena_model::{ChatMessage, MemorySession, Seat};

use crate::{Answer, Answering, Cause, Halt, Heard, Measured, Player, SeatEnd, StepResult};

/// The time to retry a failing endpoint.
const PATIENCE: Duration = Duration::from_secs(600);

/// An answer of a model, or the end of a seat that has reached a limit.
pub enum Called {
    Answered {
        reply: Reply,
        /// The size of the request in bytes, if the endpoint has counted its tokens.
        counted: Option<usize>,
    },
    Ended(SeatEnd),
}

pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<Called, Halt>> + Send + 'a>>;

/// The calls of a model at a seat.
pub trait ModelCalls: Send {
    /// Requests the next answer of a seat.
    fn call<'a>(&'a mut self, seat: &'a mut SeatModel) -> Calling<'a>;

    /// Returns the measured numbers of the calls so far.
    fn measured(&self) -> Measured;
}

/// A model at a seat of a session.
pub struct ModelPlayer<C> {
    seat: SeatModel,
    /// The number of messages that the model has received.
    read: usize,
    calls: C,
}

impl<C: ModelCalls> ModelPlayer<C> {
    pub fn new(seat: SeatModel, calls: C) -> ModelPlayer<C> {
        ModelPlayer { seat, read: 0, calls }
    }

    async fn next(&mut self, heard: Heard<'_>) -> Result<Answer, Halt> {
        let Heard { session, seat, is_reminded, .. } = heard;
        // Messages of the seat before the model's first answer are of the player that the model replaces.
        let is_past = self.read == 0;
        let is_news = |message: &&ChatMessage| {
            session.is_readable(message, seat) && (is_past || session.seat_of(&message.from) != Some(seat))
        };
        let news: Vec<prompt::Heard<'_>> = session.messages()[self.read..]
            .iter()
            .filter(is_news)
            .map(|message| prompt::Heard {
                from: session.name_of(&message.from),
                to: message.to.as_ref().map(|to| session.name_of(to)),
                content: &message.content,
            })
            .collect();
        self.read = session.messages().len();
        self.seat.hear(&news, is_reminded);
        loop {
            let (reply, counted) = match self.calls.call(&mut self.seat).await? {
                Called::Answered { reply, counted } => (reply, counted),
                Called::Ended(end) => return Ok(Answer::Ended(end)),
            };
            match self.seat.take(reply, counted) {
                Decision::Act { steps, waits } => {
                    return Ok(Answer::Steps { steps, waits, call: Some(self.calls.measured().calls) });
                }
                Decision::AskAgain => {}
                Decision::Stop(stop) => return Ok(Answer::Ended(stop.into())),
            }
        }
    }
}

impl<C: ModelCalls> Player for ModelPlayer<C> {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        Box::pin(self.next(heard))
    }

    fn learn(&mut self, _steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        self.seat.learn(results).map(SeatEnd::from)
    }

    fn measured(&self) -> Measured {
        let UnusableAnswers { invalid, refused, truncated } = self.seat.unusable();
        Measured { invalid, refusals: refused, truncated, ..self.calls.measured() }
    }
}

impl From<ModelStop> for SeatEnd {
    fn from(ModelStop { cause, detail }: ModelStop) -> SeatEnd {
        let cause = match cause {
            StopCause::Invalid => Cause::Invalid,
            StopCause::Refused => Cause::Refused,
            StopCause::Truncated => Cause::Truncated,
        };
        SeatEnd::new(cause, detail)
    }
}

/// Calls of an endpoint without limits and without a journal.
pub struct DirectCalls {
    endpoint: ModelEndpoint,
    measured: Measured,
}

impl ModelPlayer<DirectCalls> {
    /// Seats the model at an address. No request is sent yet.
    ///
    /// # Errors
    /// If the model's key is missing.
    pub fn connect(
        address: &ModelAddress,
        session: &MemorySession,
        seat: Seat,
        fence: Fence,
    ) -> Result<ModelPlayer<DirectCalls>, EndpointError> {
        let endpoint = ModelEndpoint::new(address.model.clone(), address.endpoint()?, Params::default());
        let metadata = session.challenge().metadata_with(&session.session().facts.options);
        let (rules, names) = (Arc::new(SeatRules::of(&metadata)), session.names());
        let seat = SeatModel::new(rules, names, &names[seat.0], fence, SeatPolicy::default());
        Ok(ModelPlayer::new(seat, DirectCalls { endpoint, measured: Measured::default() }))
    }
}

impl ModelCalls for DirectCalls {
    fn call<'a>(&'a mut self, seat: &'a mut SeatModel) -> Calling<'a> {
        Box::pin(async move {
            let DirectCalls { endpoint, measured } = self;
            let mut retries = 0;
            let mut on_retry = |_: &arena_llm::Retry| {
                retries += 1;
                true
            };
            let asked = endpoint.ask(seat, PATIENCE, &mut on_retry).await;
            measured.retries += retries;
            let received = asked.map_err(|fault| Halt::Suspended {
                agent: endpoint.model.clone(),
                class: fault.class.name().to_owned(),
                why: fault.sentence,
            })?;
            measured.calls += 1;
            measured.usage += received.reply.usage;
            measured.ms += received.ms;
            let counted = received.counted();
            Ok(Called::Answered { reply: received.reply, counted })
        })
    }

    fn measured(&self) -> Measured {
        self.measured
    }
}
