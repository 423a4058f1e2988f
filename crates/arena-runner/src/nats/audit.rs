//! What a worker sent is held against the rules: its replay is played again, and its result has to be that of its replay.

use std::io::Read;

use arena_match::account;
use arena_model::Verdict;
use arena_tournament::{GameLine, WorkerPart};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::nats::wire::{Identity, MatchSetup, Played};

/// Most bytes that a replay and its logs may have together.
const MAX_BYTES: u64 = 1 << 30;

/// What was checked of a match.
#[derive(Debug)]
pub struct Audited {
    /// As it goes into the journal.
    pub game: GameLine,
    /// The replay.
    pub replay: Vec<u8>,
    /// What agents wrote, by seat; empty if that wasn't wanted.
    pub logs: Vec<Vec<u8>>,
}

impl Audited {
    /// Whether an agent was disqualified for what may be the fault of the machine it ran on.
    pub fn is_by_machine(&self) -> bool {
        is_by_machine(&self.game)
    }
}

/// Whether an agent was disqualified for what may be the fault of the machine it ran on: for being late, or for dying.
pub fn is_by_machine(game: &GameLine) -> bool {
    game.result.seats.iter().filter_map(|seat| seat.verdict).any(|verdict| match verdict {
        Verdict::StartupFail
        | Verdict::PingFail
        | Verdict::SetAgentIdFail
        | Verdict::Timeout
        | Verdict::Crashed
        | Verdict::OutputLimit
        | Verdict::MemoryLimit => true,
        Verdict::MissingAgentId
        | Verdict::AgentIdSpoofing
        | Verdict::TooManyErrors
        | Verdict::IllegalMove
        | Verdict::NoAction => false,
    })
}

/// Checks what a worker says of a match of this setup. `fixture` and `round` are its place in the schedule.
///
/// # Errors
/// What shows that it wasn't played so: a sentence that begins with the match.
pub fn audit(
    setup: &MatchSetup,
    (fixture, round): (usize, usize),
    worker: &Identity,
    played: &Played,
    body: &[u8],
) -> Result<Audited, String> {
    let wrong = |what: &str| format!("game {fixture}: {what}");
    let (replay, logs) = unpack(played, body).ok_or_else(|| wrong("what was recorded arrived damaged"))?;
    let account =
        account(&replay[..]).map_err(|error| wrong(&format!("the replay isn't what the rules make of it: {error}")))?;
    let header = &account.header;
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
        return Err(wrong("the replay is of another match than was asked for"));
    }
    let claimed = &played.game;
    let result = account.result.with_agents(|seat, _| setup.seats[seat].name.clone());
    if (claimed.number, claimed.round) != (fixture, round) || !result.is_same(&claimed.result) {
        return Err(wrong("the result isn't that of the replay"));
    }
    // Nothing but the times is taken from the worker.
    let worker = WorkerPart { name: worker.name.clone(), id: worker.id.clone(), played: account.played };
    let game = GameLine { number: fixture, round, result: claimed.result.clone(), worker: Some(worker) };
    Ok(Audited { game, replay, logs })
}

/// Replay and logs, if they are as large as they are said to be.
fn unpack(played: &Played, body: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let sizes = std::iter::once(played.replay_bytes).chain(played.log_bytes.iter().copied());
    let all = sizes.clone().try_fold(0_u64, u64::checked_add).filter(|all| *all <= MAX_BYTES)?;
    let mut bytes = Vec::new();
    // One byte more would be seen.
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

/// What is told of a setup that nobody knows how to play here.
pub fn unknown_game(setup: &MatchSetup) -> String {
    format!("there is no game {}", Value::String(setup.game.clone()))
}
