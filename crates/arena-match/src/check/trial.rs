//! Trials: some steps of a game against the partner, with unusual but valid messages.

use std::time::Duration;

use arena_model::Dialect;
use arena_model::agent_ids;
use arena_model::{Events, GameType, Match, Seat as SeatNumber, Seed, SeedRng, Setup, TimeLimits};
use serde_json::{Map, Value};

use super::finding::Finding;
use super::partner;
use super::session::{Session, mend};
use crate::link::Answer;
use crate::message;
use crate::play::MatchError;
use crate::reply::{Claim, MISNAMED, Reply};
use crate::seat::{Seat, quote};

/// The seat of the agent that is checked.
const OURS: SeatNumber = SeatNumber(0);

/// The maximum time that a trial waits beyond the step limit. An agent that needs more would lose most
/// matches anyway.
const MOST_OF_BANK: Duration = Duration::from_secs(3);

/// The minimum time limit for an answer, so that an agent on a busy machine isn't reported as silent.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// The maximum number of epochs per step. The limit ends a trial even if the agent rarely gets a request.
const EPOCHS_PER_STEP: u64 = 4;

/// A key that no game uses.
const UNKNOWN_KEY: &[u8] = br#""a_key_of_later":{"is_new":true},"#;

/// The key that turns a state into a ping as well.
const PING: &[u8] = br#""ping":"ping","#;

const IGNORE_KEYS: &str = "ignore keys that you don't know; later versions may send them";

#[derive(Clone, Copy)]
pub struct Trial {
    pub game: &'static GameType,
    /// The number of states.
    pub steps: u64,
    /// True if the second to last state has an unknown key, and the last one a ping.
    pub is_odd: bool,
    /// True if the deadline includes the time bank, as in a match. False if silence is expected.
    pub is_patient: bool,
}

#[derive(Debug, Default)]
pub struct TrialResult {
    /// The number of states sent.
    pub steps: u64,
    /// The number of correct answers.
    pub answered: u64,
    /// The number of accepted actions.
    pub taken: u64,
    pub rejected: u64,
    /// The longest wait for the agent.
    pub longest: Duration,
    /// The number of steps that took longer than the step limit.
    pub overtime: u64,
    /// True if the agent lost synchronization with the messages, so that the trial ended early.
    pub is_broken: bool,
}

/// A match for a trial. The agent that is checked has the first seat.
pub struct TrialMatch {
    pub play: Match,
    rng: SeedRng,
    limits: TimeLimits,
    buffer: Vec<u8>,
}

impl TrialMatch {
    /// Creates a match before its first epoch, with two agents if the game allows it.
    ///
    /// # Errors
    /// If the game can't be started.
    pub fn new(game: &'static GameType, seed: &Seed) -> Result<TrialMatch, MatchError> {
        let seats = if game.seats.contains(&2) { 2 } else { *game.seats.start() };
        let agents = agent_ids(seed, seats);
        let started = game.start(&Map::new(), Setup { seed: seed.clone(), agents: agents.clone() })?;
        let play = Match::new(started, agents);
        Ok(TrialMatch { play, rng: seed.rng("partner"), limits: game.limits, buffer: Vec::new() })
    }

    pub fn config(&self) -> Map<String, Value> {
        self.play.config(self.limits)
    }

    fn write_state(&mut self, seat: usize) -> &[u8] {
        self.buffer.clear();
        self.play.write_state(SeatNumber(seat), &mut self.buffer);
        &self.buffer
    }

    /// Returns the actions of the partner on this seat, or `None` if the game expects none.
    fn partner(&mut self, seat: usize) -> Option<String> {
        if !self.play.is_asked(SeatNumber(seat)) {
            return None;
        }
        let text = [b"{", self.write_state(seat), b"}"].concat();
        let state = serde_json::from_slice(&text).unwrap_or_default();
        let rng = &mut self.rng;
        let draw = |below: usize| usize::try_from(rng.below(below as u64)).unwrap_or(0);
        Some(partner::actions(self.play.agents()[seat].as_str(), &state, draw).to_string())
    }
}

/// Plays a trial. The agent's errors are added to the findings of the session.
///
/// # Errors
/// See [`MatchError`].
pub fn play(session: &mut Session<'_>, trial_match: &mut TrialMatch, trial: Trial) -> Result<TrialResult, MatchError> {
    let mut tried = TrialResult::default();
    let mut taken = Vec::new();
    while tried.steps < trial.steps
        && trial_match.play.epochs() < EPOCHS_PER_STEP * trial.steps
        && trial_match.play.is_on()
    {
        let mut replies: Vec<Option<String>> = vec![None];
        replies.extend((1..trial_match.play.agents().len()).map(|seat| trial_match.partner(seat)).collect::<Vec<_>>());
        let mut message = Vec::new();
        if trial_match.play.is_asked(OURS) {
            tried.steps += 1;
            replies[0] = ask_for_step(session, trial_match, trial, &mut tried, &mut message)?;
            if tried.is_broken {
                break;
            }
        }
        let texts: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        taken.clear();
        trial_match.play.play(|game, events| game.play(&texts, &mut taken, events));
        tried.taken += count_taken(&taken);
        judge_actions(session, &mut tried, trial_match.play.events(), &message);
        if !trial_match.play.is_in(OURS) {
            tried.is_broken = true;
            break;
        }
    }
    Ok(tried)
}

/// Sends the agent a state. Returns its actions, or `None` if its answer is invalid.
fn ask_for_step(
    session: &mut Session<'_>,
    trial_match: &mut TrialMatch,
    trial: Trial,
    tried: &mut TrialResult,
    message: &mut Vec<u8>,
) -> Result<Option<String>, MatchError> {
    let (is_unknown, is_heartbeat) =
        (trial.is_odd && tried.steps + 1 == trial.steps, trial.is_odd && tried.steps == trial.steps);
    let bank_ms = session.seat.bank_ms();
    message::state(session.seat.dialect, trial_match.write_state(0), bank_ms, None, message);
    let extra: &[u8] = match (is_unknown, is_heartbeat) {
        (true, _) => UNKNOWN_KEY,
        (_, true) => PING,
        _ => b"",
    };
    message.splice(1..1, extra.iter().copied());
    let limit = Duration::from_millis(trial_match.limits.step_ms);
    let patience = match trial.is_patient {
        true => limit + session.seat.bank.min(MOST_OF_BANK),
        false => limit.max(LEAST_PATIENCE),
    };
    if is_heartbeat {
        return heartbeat(session, message, patience, tried).map(|()| None);
    }
    let (answer, used) = session.ask(message, patience, Seat::is_answer)?;
    session.seat.charge(used, trial_match.limits);
    if matches!(answer, Answer::Line | Answer::SetAside) {
        tried.longest = tried.longest.max(used);
        tried.overtime += u64::from(used > limit);
    } else {
        tried.is_broken = true;
        let how = session.describe(answer, patience);
        let finding = match answer {
            _ if is_unknown => {
                Finding::wrong(format!("fails when a message has a key that it doesn't know: {how}"), IGNORE_KEYS)
            }
            Answer::Late => Finding::wrong(
                format!("doesn't answer a state: {how}, and the step limit is {} ms", limit.as_millis()),
                silence_advice(session.seat.dialect, tried.answered > 0),
            ),
            Answer::Closed => Finding::wrong(
                format!("ends in the middle of the game: {how}"),
                "catch exceptions while deciding; an answer without actions is better than a crash",
            ),
            _ => Finding::wrong(format!("floods its output: {how}"), "a line may have at most 1 MiB"),
        };
        session.break_off(finding.with_message(message));
        return Ok(None);
    }
    let line = session.line().to_owned();
    session.note_second_lines();
    let actions = session.seat.validate_actions(&line).map(std::borrow::Cow::into_owned);
    judge_answer(session, &line, actions.as_deref(), is_unknown, message);
    match actions {
        Some(_) => tried.answered += 1,
        None => tried.is_broken |= session.seat.out.is_some(),
    }
    Ok(actions)
}

/// Adds findings for the form of an answer. `actions` are the valid actions in it.
fn judge_answer(session: &mut Session<'_>, line: &[u8], actions: Option<&str>, is_unknown: bool, message: &[u8]) {
    let faults: Vec<_> = session.seat.take_faults().collect();
    for fault in faults {
        let finding = match is_unknown {
            false => Finding::wrong(fault.what.clone(), mend(&fault.what)),
            true => {
                let what = format!("answers differently if a message has an unknown key: {}", fault.what);
                Finding::wrong(what, IGNORE_KEYS)
            }
        };
        session.findings.add(finding.with_line(fault.line).with_message(message));
    }
    let Some(actions) = actions else {
        if let Some(out) = session.seat.out.as_ref().filter(|out| out.verdict.is_cheating()) {
            let finding = Finding::wrong(
                format!("would be disqualified here, {}: {}", out.verdict, out.detail),
                "use the id from `set_agent_id` of this match, and none from elsewhere",
            );
            session.findings.add(finding.with_line(quote(line)).with_message(message));
        }
        return;
    };
    let reply = Reply::read(line).ok();
    if reply.as_ref().is_some_and(Reply::misnames_actions) {
        let advice = "rename the key: {\"agent_id\": …, \"actions\": […]}, a list of objects";
        session.findings.add(Finding::wrong(MISNAMED, advice).with_line(quote(line)).with_message(message));
    } else if reply.is_some_and(|reply| !reply.has_actions()) && actions == "[]" {
        let advice = "an answer without actions is {\"agent_id\": …, \"actions\": []}";
        let finding = Finding::advice("answers a state with neither `actions` nor `move`", advice);
        session.findings.add(finding.with_line(quote(line)));
    }
}

fn silence_advice(dialect: Dialect, has_answered: bool) -> &'static str {
    match dialect {
        _ if has_answered => "answer each state in time, if need be with no actions; and flush stdout after each line",
        Dialect::Spec => {
            "the state is the value of `world_state`; if it reads the keys at the top level, put {\"dialect\": \"flat\"} into manifest.json"
        }
        Dialect::Flat => {
            "the state's keys are at the top level; if it reads `world_state`, put {\"dialect\": \"spec\"} into manifest.json"
        }
        Dialect::Both => {
            "answer each message that has `world_state`, if need be with no actions; and flush stdout after each line"
        }
    }
}

/// Sends a state that is a ping as well. The answer must contain both a pong and actions.
fn heartbeat(
    session: &mut Session<'_>,
    message: &[u8],
    patience: Duration,
    tried: &mut TrialResult,
) -> Result<(), MatchError> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let (answer, _) = session.ask(message, patience, |seat, line| {
        lines.push(line.get(..line.len().min(4096)).unwrap_or_default().to_owned());
        Reply::read(line).is_ok_and(|reply| reply.has_pong() && reply.claim(&seat.id_json) == Claim::Own)
    })?;
    tried.is_broken = true;
    if answer == Answer::Line {
        tried.answered += 1;
        return Ok(());
    }
    let has_pong = lines.iter().any(|line| Reply::read(line).is_ok_and(|reply| reply.has_pong()));
    let advice = "one answer for both: {\"pong\": \"pong\", \"agent_id\": …, \"actions\": […]}";
    let what = match has_pong {
        true => "answers a `ping` that comes with a state, but not the state in the same line",
        false if answer == Answer::Closed => "ends when a `ping` comes with a state",
        false => "doesn't answer a `ping` that comes with a state",
    };
    let mut finding = Finding::advice(what, advice).with_message(message);
    if let Some(line) = lines.first() {
        finding = finding.with_line(quote(line));
    }
    session.findings.add(finding);
    Ok(())
}

fn count_taken(taken: &[u8]) -> u64 {
    let taken: Value = serde_json::from_slice(taken).unwrap_or_default();
    taken[0].as_array().map_or(0, |list| list.len() as u64)
}

/// Adds findings for the agent's actions that the game rejected.
fn judge_actions(session: &mut Session<'_>, tried: &mut TrialResult, events: &Events, message: &[u8]) {
    let line = quote(session.line());
    for forfeit in events.forfeits().iter().filter(|forfeit| forfeit.seat == OURS) {
        let finding = Finding::wrong(
            format!("loses the game at once, {}: {}", forfeit.verdict, forfeit.detail),
            "send {\"action\": \"move\", \"move\": one of `legal_moves`}",
        );
        session.findings.add(finding.with_line(&line).with_message(message));
    }
    for rejected in events.rejections().iter().filter(|rejected| rejected.seat == OURS.0) {
        tried.rejected += 1;
        let finding = Finding::advice(
            format!("the game rejects an action: {}", rejected.reason),
            "docs/games in the repository has the actions of each game; a rejected action has no effect",
        );
        session.findings.add(finding.with_line(&line).with_message(message));
    }
}
