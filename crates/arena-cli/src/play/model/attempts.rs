//! Requests to the endpoint of a language model. A failed request is repeated, unless the session ends.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_llm::{Client, Endpoint, Fault, FaultClass, Question, Received, request_bytes};
use arena_players::http::{Inbox, SeatError};
use tokio::runtime::Runtime;

use crate::exit::{Exit, Failure};

/// The interval at which a waiting request checks for an interruption.
const LOOK: Duration = Duration::from_millis(100);

/// The shortest time limit of a request.
const LEAST: Duration = Duration::from_secs(1);

/// The first and the longest pause between two requests. Each pause is twice as long as the one before. An endpoint may
/// request longer pauses.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The fault of an endpoint that doesn't answer within the player's time.
pub const TOO_LATE: &str = "the endpoint gave no answer within --max-time";

/// The sender of requests to one endpoint.
pub struct Attempts {
    runtime: Runtime,
    client: Client,
    endpoint: Endpoint,
    /// The time to retry a failing endpoint.
    patience: Duration,
}

/// The result of a question and its retries.
pub enum Asked {
    Answer(Box<Received>),
    /// The model didn't answer within the player's time.
    Late,
    /// The session ended while the endpoint was failing. Contains the endpoint's error.
    Over(String),
    /// The endpoint failed permanently, or for longer than the time for retries. Contains the endpoint's error.
    Failed(String),
}

enum Attempt {
    Answered(Box<Received>),
    Failed(Fault),
    TimeUp,
    CalledOff,
}

impl Attempts {
    /// Creates the sender of requests to `endpoint`, which retries for the time `patience`.
    ///
    /// # Errors
    /// If the runtime can't be started.
    pub fn new(endpoint: Endpoint, patience: Duration) -> Result<Attempts, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
            Failure::new(Exit::Internal, format_args!("cannot start the client of the language model: {error}"))
        })?;
        Ok(Attempts { runtime, client: Client::new(), endpoint, patience })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Sends a question. While the endpoint is busy or unreachable, retries, unless the session ends. The callback
    /// `retried` receives the reason of each failure and the pause that follows. `deadline` is the end of the player's
    /// time.
    ///
    /// # Errors
    /// If the play was interrupted, or the server is unreachable.
    pub fn ask(
        &self,
        question: &Question<'_>,
        deadline: Option<Instant>,
        inbox: &mut Inbox,
        mut retried: impl FnMut(&str, Duration) -> Result<(), Failure>,
    ) -> Result<Asked, Failure> {
        let body = request_bytes(self.endpoint.api(), self.endpoint.tool_use(), question);
        let begun = Instant::now();
        let mut usual = PAUSES.0;
        let mut failed = false;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (why, pause, is_slow) = match self.attempt(&body, left, inbox.called_off()) {
                Attempt::Answered(answer) => return Ok(Asked::Answer(answer)),
                Attempt::CalledOff => return Err(SeatError::Interrupted.into()),
                Attempt::TimeUp => (TOO_LATE.to_owned(), None, true),
                Attempt::Failed(fault) if fault.class.is_lasting() => return Ok(Asked::Failed(fault.sentence)),
                Attempt::Failed(Fault { class, sentence, retry_after, .. }) => {
                    (sentence, retry_after, matches!(class, FaultClass::Silent | FaultClass::Slow))
                }
            };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if is_slow && left.is_some_and(|left| left.is_zero()) {
                // The model is late only if its own slowness used up the time. After a failure of the endpoint, the
                // endpoint is at fault.
                return Ok(if failed { Asked::Failed(why) } else { Asked::Late });
            }
            let wished = pause
                .filter(|pause| !pause.is_zero())
                .map(|pause| format!("; it requests a pause of {} s", pause.as_secs_f64().ceil()));
            // The pause has a minimum, since some endpoints always request a pause of 0.
            let pause = pause.map_or(usual, |pause| pause.max(usual / 10));
            if pause >= left.unwrap_or(self.patience).min(self.patience.saturating_sub(begun.elapsed())) {
                return Ok(Asked::Failed(why + &wished.unwrap_or_default()));
            }
            usual = (usual * 2).min(PAUSES.1);
            failed = true;
            retried(&why, pause)?;
            if inbox.rest(Instant::now() + pause)? {
                return Ok(Asked::Over(why));
            }
        }
    }

    /// Sends the request once. `left` is the rest of the player's time.
    fn attempt(&self, body: &[u8], left: Option<Duration>, called_off: &AtomicBool) -> Attempt {
        self.runtime.block_on(async {
            let mut sent = pin!(self.client.send(&self.endpoint, body));
            let mut time_up = pin!(async {
                match left {
                    Some(left) => tokio::time::sleep(left.max(LEAST)).await,
                    None => std::future::pending().await,
                }
            });
            let mut looks = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    received = &mut sent => {
                        return match received {
                            Ok(received) => Attempt::Answered(Box::new(received)),
                            Err(fault) => Attempt::Failed(fault),
                        };
                    }
                    () = &mut time_up => return Attempt::TimeUp,
                    _ = looks.tick() => {
                        if called_off.load(Ordering::Relaxed) {
                            return Attempt::CalledOff;
                        }
                    }
                }
            }
        })
    }
}
