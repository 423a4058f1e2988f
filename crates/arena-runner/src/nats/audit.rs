//! The audit of a worker's result: the dispatcher replays the match's moves by the rules, and compares the outcome with
//! the reported one.

use std::io::Read;

use arena_match::verified_result;
use arena_model::MatchResult;
use arena_tournament::WorkerPart;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::nats::wire::{MatchSetup, PlayedJob, WorkerIdentity};

/// The largest size of a decompressed replay with its logs, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A match that passed the audit.
#[derive(Debug)]
pub struct AuditedMatch {
    pub result: MatchResult,
    /// The worker's part of the journal line.
    pub worker: WorkerPart,
    pub replay: Vec<u8>,
    /// The logs of agents' stderr, by seat; empty if the job didn't request logs.
    pub logs: Vec<Vec<u8>>,
}

/// Audits a worker's result of a match. `fixture` is the match's number in the schedule, and `round` its round.
///
/// # Errors
/// The reason that the result doesn't count, in one sentence.
pub fn audit(
    setup: &MatchSetup,
    (fixture, round): (usize, usize),
    worker: &WorkerIdentity,
    played: &PlayedJob,
    body: &[u8],
) -> Result<AuditedMatch, String> {
    let (replay, logs) = unpack(played, body).ok_or("the replay or a log is damaged")?;
    let verified = verified_result(&replay[..]).map_err(|error| format!("the replay breaks the rules: {error}"))?;
    // Only the dispatcher signs replays, because it has checked them.
    if verified.is_sealed {
        return Err("the worker has signed the replay".to_owned());
    }
    let header = &verified.header;
    let limits = json!(setup.limits);
    let is_limited = limits
        .as_object()
        .is_some_and(|limits| limits.iter().all(|(key, value)| header.config.get(key) == Some(value)));
    let is_asked_for = header.game == setup.game
        && header.seed == setup.seed
        && header.options == setup.options
        && header.agents.len() == setup.seats.len()
        && is_limited;
    if !is_asked_for {
        return Err("the replay is of another match".to_owned());
    }
    let claimed = &played.game;
    let result = verified.result.with_agents(|seat, _| setup.seats[seat].name.clone());
    if (claimed.number, claimed.round) != (fixture, round) || !result.is_same(&claimed.result) {
        return Err("the result differs from that of the replay".to_owned());
    }
    // The audit has verified everything except the times, which only the worker can measure.
    let worker = WorkerPart { name: worker.name.clone(), id: worker.id.clone(), played: verified.played };
    Ok(AuditedMatch { result: claimed.result.clone(), worker, replay, logs })
}

/// Decompresses replay and logs. `None` if the decompressed sizes differ from the reported sizes.
fn unpack(played: &PlayedJob, body: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let sizes = std::iter::once(played.replay_bytes).chain(played.log_bytes.iter().copied());
    let all = sizes.clone().try_fold(0_u64, u64::checked_add).filter(|all| *all <= MAX_BYTES)?;
    let mut bytes = Vec::new();
    // The limit is one byte above the reported size, to detect extra data.
    GzDecoder::new(body).take(all + 1).read_to_end(&mut bytes).ok()?;
    let mut rest = &bytes[..];
    let mut parts = sizes.map(|size| {
        let (part, more) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        rest = more;
        Some(part.to_vec())
    });
    let replay = parts.next()??;
    let logs = parts.collect::<Option<_>>()?;
    (bytes.len() as u64 == all).then_some((replay, logs))
}

pub fn unknown_game(setup: &MatchSetup) -> String {
    format!("there is no game {}", Value::String(setup.game.clone()))
}
