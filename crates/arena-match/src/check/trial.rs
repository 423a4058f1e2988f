//! Trials: some steps of a game against the partner, with what an agent may meet in it.

use std::time::Duration;

use arena_model::Dialect;
use arena_model::agent_ids;
use arena_model::{AgentId, AnyGame, Events, GameType, Seat as SeatNumber, Seed, SeedRng, Setup, TimeLimits};
use serde_json::{Map, Value};

use super::finding::Finding;
use super::partner;
use super::session::{Session, mend};
use crate::link::Answer;
use crate::message;
use crate::play::{MatchError, config, write_state};
use crate::reply::{Claim, Reply};
use crate::seat::{Seat, quote};

/// The agent that is checked sits here.
const OURS: SeatNumber = SeatNumber(0);

/// The bank isn't waited for in full: who is so late would lose most matches anyway.
const MOST_OF_BANK: Duration = Duration::from_secs(3);

/// A moment in which the machine was busy elsewhere shall not be taken for silence.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// Epochs in which the agent isn't asked count too, so that a trial ends.
const EPOCHS_PER_STEP: u64 = 4;

/// A key that no game has.
const UNKNOWN_KEY: &[u8] = br#""a_key_of_later":{"is_new":true},"#;

/// The key that makes a state a heartbeat too.
const PING: &[u8] = br#""ping":"ping","#;

/// What is tried.
#[derive(Clone, Copy)]
pub struct Trial {
    /// The game.
    pub game: &'static GameType,
    /// For how many states.
    pub steps: u64,
    /// With an unknown key in the last state but one, and a ping in the last.
    pub is_odd: bool,
    /// Whether the bank is waited for too, as in a match. Where silence is to be expected, it isn't.
    pub is_patient: bool,
}

/// How a trial went.
#[derive(Debug, Default)]
pub struct Tried {
    /// How many states the agent was sent.
    pub steps: u64,
    /// How many of them it answered as it should.
    pub answered: u64,
    /// How many of its actions the game took, and how many not.
    pub taken: u64,
    /// See above.
    pub rejected: u64,
    /// The longest wait for it.
    pub longest: Duration,
    /// In how many steps it took longer than it may.
    pub overtime: u64,
    /// It got out of step with what it was told, so that nothing more could be tried.
    pub is_broken: bool,
}

/// A game for a trial, and the agents' ids in it. The agent that is checked is the first.
pub struct Board {
    game: Box<dyn AnyGame>,
    /// The ids, in the order of the seats.
    pub ids: Vec<AgentId>,
    ids_json: Vec<u8>,
    rng: SeedRng,
    limits: TimeLimits,
    epoch: u64,
    buffer: Vec<u8>,
}

impl Board {
    /// The game before its first epoch. Two agents play, if two can.
    ///
    /// # Errors
    /// When the game can't be played so.
    pub fn new(game: &'static GameType, seed: &Seed) -> Result<Board, MatchError> {
        let seats = if game.seats.contains(&2) { 2 } else { *game.seats.start() };
        let ids = agent_ids(seed, seats);
        let started = game.start(&Map::new(), Setup { seed: seed.clone(), agents: ids.clone() })?;
        Ok(Board {
            game: started,
            ids_json: serde_json::to_vec(&ids).expect("ids are texts"),
            ids,
            rng: seed.rng("partner"),
            limits: game.limits,
            epoch: 0,
            buffer: Vec::new(),
        })
    }

    /// What agents are told of the game.
    pub fn config(&self) -> Map<String, Value> {
        config(&*self.game, self.limits)
    }

    fn write_state(&mut self, seat: usize) -> &[u8] {
        self.buffer.clear();
        write_state(&*self.game, seat, self.epoch, &self.ids_json, &mut self.buffer);
        &self.buffer
    }

    /// What the partner on this seat does. Nothing, if it isn't asked.
    fn partner(&mut self, seat: usize) -> Option<String> {
        if !self.game.is_asked(SeatNumber(seat)) {
            return None;
        }
        let text = [b"{", self.write_state(seat), b"}"].concat();
        let state = serde_json::from_slice(&text).unwrap_or_default();
        let rng = &mut self.rng;
        let draw = |below: usize| usize::try_from(rng.below(below as u64)).unwrap_or(0);
        Some(partner::actions(self.ids[seat].as_str(), &state, draw).to_string())
    }
}

/// Plays a trial. What the agent gets wrong is among the findings of the session then.
///
/// # Errors
/// See [`MatchError`].
pub fn play(session: &mut Session<'_>, board: &mut Board, trial: Trial) -> Result<Tried, MatchError> {
    let mut tried = Tried::default();
    let (mut taken, mut events) = (Vec::new(), Events::default());
    while tried.steps < trial.steps && board.epoch < EPOCHS_PER_STEP * trial.steps && board.game.termination().is_none()
    {
        board.epoch += 1;
        let mut replies: Vec<Option<String>> = vec![None];
        replies.extend((1..board.ids.len()).map(|seat| board.partner(seat)).collect::<Vec<_>>());
        let mut message = Vec::new();
        if board.game.is_asked(OURS) {
            tried.steps += 1;
            replies[0] = ask_for_step(session, board, trial, &mut tried, &mut message)?;
            if tried.is_broken {
                break;
            }
        }
        let texts: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        taken.clear();
        board.game.play(&texts, &mut taken, &mut events);
        tried.taken += count_taken(&taken);
        judge_actions(session, &mut tried, &events, &message);
        for forfeit in events.forfeits() {
            board.game.disqualify(forfeit.seat);
            tried.is_broken |= forfeit.seat == OURS;
        }
        if tried.is_broken {
            break;
        }
    }
    Ok(tried)
}

/// Sends the agent a state. What it wants to do, unless its answer counts for nothing.
fn ask_for_step(
    session: &mut Session<'_>,
    board: &mut Board,
    trial: Trial,
    tried: &mut Tried,
    message: &mut Vec<u8>,
) -> Result<Option<String>, MatchError> {
    let (is_unknown, is_heartbeat) =
        (trial.is_odd && tried.steps + 1 == trial.steps, trial.is_odd && tried.steps == trial.steps);
    let bank_ms = session.seat.bank_ms();
    message::state(session.seat.dialect, board.write_state(0), bank_ms, message);
    let extra: &[u8] = match (is_unknown, is_heartbeat) {
        (true, _) => UNKNOWN_KEY,
        (_, true) => PING,
        _ => b"",
    };
    message.splice(1..1, extra.iter().copied());
    let limit = Duration::from_millis(board.limits.step_ms);
    let patience = match trial.is_patient {
        true => limit + session.seat.bank.min(MOST_OF_BANK),
        false => limit.max(LEAST_PATIENCE),
    };
    if is_heartbeat {
        return heartbeat(session, message, patience, tried).map(|()| None);
    }
    let (answer, used) = session.ask(message, patience, Seat::is_answer)?;
    session.seat.charge(used, board.limits);
    if matches!(answer, Answer::Line | Answer::SetAside) {
        tried.longest = tried.longest.max(used);
        tried.overtime += u64::from(used > limit);
    } else {
        tried.is_broken = true;
        let how = session.describe(answer, patience);
        let finding = match answer {
            _ if is_unknown => Finding::wrong(
                format!("fails when a message has a key that it doesn't know: {how}"),
                "ignore keys that you don't know; later versions may send them",
            ),
            Answer::Late => Finding::wrong(
                format!("doesn't answer a state: {how}, of which the limit of a step is {}", limit.as_millis()),
                silence_advice(session.seat.dialect, tried.answered > 0),
            ),
            Answer::Closed => Finding::wrong(
                format!("ends in the middle of the game: {how}"),
                "catch what can go wrong while deciding; an epoch without actions is better than a match without an agent",
            ),
            _ => Finding::wrong(format!("floods its output: {how}"), "a line may have 1 MiB"),
        };
        session.break_off(finding.told(message));
        return Ok(None);
    }
    let line = session.line().to_owned();
    session.note_second_lines();
    let actions = session.seat.hear(&line).map(std::borrow::Cow::into_owned);
    let faults: Vec<_> = session.seat.take_faults().collect();
    for fault in faults {
        let finding = match is_unknown {
            false => Finding::wrong(fault.what.clone(), mend(&fault.what)),
            true => Finding::wrong(
                format!("answers a message with a key that it doesn't know in another way: {}", fault.what),
                "ignore keys that you don't know; later versions may send them",
            ),
        };
        session.findings.add(finding.sent(fault.line).told(message));
    }
    match &session.seat.out {
        Some(out) if actions.is_none() => {
            let finding = Finding::wrong(
                format!("would be disqualified here, {}: {}", out.verdict, out.detail),
                "use the id from `set_agent_id` of this match, and none from elsewhere",
            );
            if out.verdict.is_cheating() {
                session.findings.add(finding.sent(quote(&line)).told(message));
            }
            tried.is_broken = true;
        }
        _ => {}
    }
    if let Some(actions) = &actions {
        tried.answered += 1;
        let is_move_alone = Reply::read(&line).is_ok_and(|reply| !reply.has_actions());
        if is_move_alone && actions == "[]" {
            let advice = "an answer without actions is {\"agent_id\": …, \"actions\": []}";
            session
                .findings
                .add(Finding::advice("answers a state with neither `actions` nor `move`", advice).sent(quote(&line)));
        }
    }
    Ok(actions)
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

/// A state that is a ping too must be answered with a pong, and as a state.
fn heartbeat(
    session: &mut Session<'_>,
    message: &[u8],
    patience: Duration,
    tried: &mut Tried,
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
    let mut finding = Finding::advice(what, advice).told(message);
    if let Some(line) = lines.first() {
        finding = finding.sent(quote(line));
    }
    session.findings.add(finding);
    Ok(())
}

fn count_taken(taken: &[u8]) -> u64 {
    let taken: Value = serde_json::from_slice(taken).unwrap_or_default();
    taken[0].as_array().map_or(0, |list| list.len() as u64)
}

/// Notes the agent's actions that the game didn't take.
fn judge_actions(session: &mut Session<'_>, tried: &mut Tried, events: &Events, message: &[u8]) {
    let line = quote(session.line());
    for forfeit in events.forfeits().iter().filter(|forfeit| forfeit.seat == OURS) {
        let finding = Finding::wrong(
            format!("loses the game at once, {}: {}", forfeit.verdict, forfeit.detail),
            "send {\"action\": \"move\", \"move\": one of `legal_moves`}",
        );
        session.findings.add(finding.sent(&line).told(message));
    }
    for rejected in events.rejections().iter().filter(|rejected| rejected.seat == OURS.0) {
        tried.rejected += 1;
        let finding = Finding::advice(
            format!("the game doesn't take an action: {}", rejected.reason),
            "docs/agents.md has the actions of each game; what isn't taken changes nothing",
        );
        session.findings.add(finding.sent(&line).told(message));
    }
}
