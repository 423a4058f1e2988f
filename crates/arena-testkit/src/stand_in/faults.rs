//! The faults that the stand-in injects. A hash of the seed and the conversation chooses them, so they are the same in
//! each run.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::apis::{AnswerEnd, ApiAnswer, Conversation};
use super::script::{FAULTY, Scene, UNKNOWN_TOOL, call, draw};

/// The maximum number of unpaid requests. Each one stops a model until the user resumes the run.
const UNPAID: u32 = 3;

/// An answer is only cut off if the request allows fewer output tokens. So one more try with a larger limit succeeds.
const TRUNCATED_BELOW: u64 = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EndpointFault {
    /// Status 429 with `Retry-After: 1`.
    Busy,
    /// Status 500.
    Failing,
    /// The connection ends before the answer.
    Reset,
    /// The first byte is late.
    Slow,
    /// The answer ends at the limit of output tokens.
    Truncated,
    Refused,
    /// The body is half of the JSON.
    HalfJson,
    /// The body contains no answer.
    Empty,
    /// The body is a web page.
    Html,
    /// The answer calls a tool that doesn't exist.
    UnknownTool,
    /// The answer calls a tool with invalid arguments.
    BadArguments,
    /// Status 402.
    Unpaid,
}

/// The faults with their names and their relative frequencies. A paused endpoint takes a second and an unpaid one needs
/// the user, so these two are rarer.
const TABLE: [(EndpointFault, &str, u64); 12] = [
    (EndpointFault::Busy, "busy", 2),
    (EndpointFault::Failing, "failing", 10),
    (EndpointFault::Reset, "reset", 10),
    (EndpointFault::Slow, "slow", 10),
    (EndpointFault::Truncated, "truncated", 10),
    (EndpointFault::Refused, "refused", 10),
    (EndpointFault::HalfJson, "half-json", 10),
    (EndpointFault::Empty, "empty", 10),
    (EndpointFault::Html, "html", 10),
    (EndpointFault::UnknownTool, "unknown-tool", 10),
    (EndpointFault::BadArguments, "bad-arguments", 10),
    (EndpointFault::Unpaid, "unpaid", 1),
];

/// Chooses faults, and remembers the conversations that had one. The next attempt of the same conversation succeeds.
#[derive(Debug)]
pub(super) struct EndpointFaults {
    seed: u64,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The share of conversations with a fault, from 0 to 1.
    share: f64,
    seen: BTreeSet<u64>,
    unpaid: u32,
}

impl EndpointFault {
    /// Returns the name in statistics.
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|(fault, ..)| *fault == self).map_or("unknown", |(_, name, _)| name)
    }

    /// Replaces the regular answer. EndpointFaults of the connection leave it as it is.
    pub fn replace(self, regular: ApiAnswer, scene: &Scene<'_>) -> ApiAnswer {
        let id = format!("{FAULTY}{:016x}", scene.number);
        let text = |text: &str, end| ApiAnswer { text: text.to_owned(), calls: Vec::new(), end };
        match self {
            EndpointFault::Truncated => text("Let me think about the players one by one. First,", AnswerEnd::Length),
            EndpointFault::Refused => text("I can't help with that.", AnswerEnd::Refused),
            EndpointFault::UnknownTool => call(scene, &id, UNKNOWN_TOOL, serde_json::json!({"to": "the end"})),
            EndpointFault::BadArguments => match regular.calls.first() {
                // Any arguments of `wait` are valid.
                Some(first) if first.name != "wait" => {
                    let mut wrong = regular.clone();
                    for call in &mut wrong.calls {
                        call.id.clone_from(&id);
                        call.is_broken = true;
                    }
                    wrong
                }
                _ => EndpointFault::UnknownTool.replace(regular, scene),
            },
            _ => regular,
        }
    }
}

impl EndpointFaults {
    pub fn new(seed: u64, share: f64) -> EndpointFaults {
        EndpointFaults { seed, memory: Mutex::new(Memory { share, ..Memory::default() }) }
    }

    pub fn set_share(&self, share: f64) {
        self.memory.lock().share = share;
    }

    /// Returns the fault of this request, if it gets one.
    pub fn of_request(&self, conversation: &Conversation, scene: &Scene<'_>) -> Option<EndpointFault> {
        let mut memory = self.memory.lock();
        // The model learns of its fault and answers again.
        if memory.share <= 0.0 || scene.is_after_fault {
            return None;
        }
        let (seed, number) = (self.seed.to_string(), scene.number.to_string());
        let drawn = |purpose: &str| draw(&[purpose, &seed, &number]);
        if !memory.seen.insert(scene.number) || drawn("share") as f64 / u64::MAX as f64 >= memory.share {
            return None;
        }
        let fault = pick(drawn("fault"));
        let is_roomy = conversation.limit.is_none_or(|limit| limit >= TRUNCATED_BELOW);
        match fault {
            EndpointFault::Unpaid if memory.unpaid == UNPAID => Some(EndpointFault::Failing),
            EndpointFault::Unpaid => {
                memory.unpaid += 1;
                Some(EndpointFault::Unpaid)
            }
            EndpointFault::Truncated if is_roomy => Some(EndpointFault::HalfJson),
            fault => Some(fault),
        }
    }
}

/// Chooses a fault by a number, according to the frequencies.
fn pick(number: u64) -> EndpointFault {
    let total: u64 = TABLE.iter().map(|(_, _, weight)| weight).sum();
    let mut left = number % total;
    for (fault, _, weight) in TABLE {
        if left < weight {
            return fault;
        }
        left -= weight;
    }
    EndpointFault::Failing
}
