//! The match loop. It passes states from the match to the conversation with the agents, passes actions back,
//! and records both in the replay. Each match has its own thread.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_model::{
    AdjudicationDecision, Adjudicator, AgentId, AnyGame, EngineScore, GameType, Match, OptionsError,
    Seat as SeatNumber, Seed, TimeLimits,
};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::conversation::{Actions, Conversation, Player};
use crate::match_plan::{PlayedMatch, SeatedAgent};
use crate::moves::MovesHash;
use crate::process::StartError;
use crate::replay::{EpochRecord, Header, Recorder, ResultPart, SeatRecord, States};
use crate::seat::Seat;

#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A process couldn't be started for a reason that isn't the agent's fault.
    #[error(transparent)]
    Start(StartError),
    #[error("the replay cannot be written")]
    Replay(#[from] io::Error),
    #[error("a system call of the match failed")]
    System(#[from] Errno),
    /// A service failed that an agent depends on, such as the endpoint of a language model. Contains the agent and the
    /// reason in a sentence.
    #[error("{0}")]
    Outage(String),
    #[error("the match was called off")]
    CalledOff,
}

/// A snapshot of a match: of an epoch before its actions are applied, or of the end.
#[derive(Debug, Clone, Copy)]
pub struct MatchSnapshot<'a> {
    /// The epoch, from 1. At the end, the number of epochs played.
    pub epoch: u64,
    /// The states by seat, as JSON members without braces. The text is empty for an agent that gets no request, and for
    /// an agent with the same state as an earlier seat.
    pub states: &'a [Vec<u8>],
    pub seats: &'a [Seat],
}

/// A subscriber to a match.
pub trait Watch: Send {
    /// The match waits until this returns, and the agents' clocks don't run.
    fn on_epoch(&mut self, snapshot: MatchSnapshot<'_>);

    /// Receives the snapshot of the end. The match calls this only if it has a result.
    fn on_end(&mut self, _snapshot: MatchSnapshot<'_>) {}
}

pub struct MatchRun<'a> {
    play: Match,
    seed: Seed,
    options: &'a Map<String, Value>,
    limits: TimeLimits,
    talk: Conversation<'a>,
    /// The writer of the match's replay.
    pub recorder: Option<Recorder<'a>>,
    pub watch: Option<&'a mut dyn Watch>,
    /// The states of this epoch, in the form of [`MatchSnapshot::states`].
    states: Vec<Vec<u8>>,
    banks_ms: Vec<u64>,
    taken: Vec<u8>,
    moves: MovesHash,
    pub adjudicator: Option<Adjudicator>,
}

impl<'a> MatchRun<'a> {
    /// Creates a match with agents that run and haven't received a message yet.
    pub fn new(
        game: Box<dyn AnyGame>,
        seed: Seed,
        options: &'a Map<String, Value>,
        limits: TimeLimits,
        mut players: Vec<Player>,
        called_off: &'a AtomicBool,
    ) -> MatchRun<'a> {
        let ids: Vec<AgentId> = players.iter().map(|player| player.seat.id.clone()).collect();
        for Player { seat, .. } in &mut players {
            seat.meet(ids.iter().map(AgentId::as_str));
        }
        let play = Match::new(game, ids);
        MatchRun {
            moves: MovesHash::new(&play, options),
            states: vec![Vec::new(); players.len()],
            play,
            seed,
            options,
            limits,
            talk: Conversation::new(players, limits, called_off),
            recorder: None,
            watch: None,
            banks_ms: Vec::new(),
            taken: Vec::new(),
            adjudicator: None,
        }
    }

    /// Plays the match to its end. Stops the agents even if the match fails.
    ///
    /// # Errors
    /// See [`MatchError`]. An agent's behavior is never an error.
    pub fn play(mut self) -> Result<PlayedMatch, MatchError> {
        self.shake_hands()?;
        while self.play.is_on() {
            self.play_epoch()?;
        }
        self.finish()
    }

    /// Sends the ping, the ids and the config to the agents, and writes the replay's header.
    fn shake_hands(&mut self) -> Result<(), MatchError> {
        let config = self.play.config(self.limits);
        self.talk.ping()?;
        self.talk.introduce(&config)?;
        if let Some(recorder) = &mut self.recorder {
            let agents = self.talk.seats.iter().map(|seat| SeatRecord {
                agent_id: &seat.id,
                name: &seat.name,
                version: seat.version.as_deref(),
                time_control: seat.time_control,
            });
            let (game, seed) = (self.play.game().game_type(), self.seed.reveal());
            recorder.header(&Header::new(game, seed, self.options, &config, agents.collect()))?;
        }
        disqualify(&mut self.play, &self.talk.seats);
        let out = self.talk.send_away();
        let faults = self.talk.new_faults();
        if !out.is_empty() {
            self.moves.play(None, out.iter());
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !out.is_empty() || !faults.is_empty()) {
            recorder.epoch(&EpochRecord { disqualified: &out, faults, ..EpochRecord::default() })?;
        }
        Ok(())
    }

    fn play_epoch(&mut self) -> Result<(), MatchError> {
        let epoch = self.play.epochs() + 1;
        self.write_states();
        if let Some(watch) = &mut self.watch {
            watch.on_epoch(MatchSnapshot { epoch, states: &self.states, seats: &self.talk.seats });
        }
        let (seats, replies) = self.talk.show(None)?;
        disqualify(&mut self.play, seats);
        let mut replies: Vec<Actions<'_>> = replies;
        if let Some(adjudicator) = &mut self.adjudicator {
            adjudicate(adjudicator, epoch, seats, &mut replies);
        }
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        self.taken.clear();
        let taken = &mut self.taken;
        let is_played = self.play.play(|game, events| game.play(&replies, taken, events));
        self.end_epoch(epoch, is_played)
    }

    /// Removes the agents that are out after the actions of an epoch, and records the epoch.
    fn end_epoch(&mut self, epoch: u64, is_played: bool) -> Result<(), MatchError> {
        for (seat, out) in self.talk.seats.iter_mut().zip(self.play.out()) {
            if seat.out.is_none() {
                seat.out.clone_from(out);
            }
        }
        let out = self.talk.send_away();
        let states = states(self.play.game().game_type(), &self.states);
        if self.moves.wants_states()
            && let Some(text) = states.text()
        {
            self.moves.see(&text);
        }
        let taken = is_played.then_some(&self.taken[..]);
        self.moves.play(taken.and_then(|taken| str::from_utf8(taken).ok()), out.iter());
        let infos: Vec<Option<String>> = self.talk.seats.iter_mut().map(|seat| seat.info.take()).collect();
        let times: Vec<Option<f64>> = self.talk.seats.iter_mut().map(|seat| seat.step_used.take().map(in_ms)).collect();
        let is_timed =
            infos.iter().any(Option::is_some) || self.talk.seats.iter().any(|seat| seat.time_control.is_some());
        let rejected = self.play.events().rejections();
        for seat in &mut self.talk.seats {
            if let Some(first) = rejected.iter().find(|rejected| rejected.seat == seat.number) {
                seat.note_refused(&first.reason);
            }
        }
        let faults = self.talk.new_faults();
        if let Some(recorder) = &mut self.recorder {
            recorder.epoch(&EpochRecord {
                epoch,
                states,
                banks_ms: &self.banks_ms,
                disqualified: &out,
                taken,
                infos: &infos,
                used_ms: if is_timed { &times } else { &[] },
                rejected,
                faults,
            })?;
        }
        Ok(())
    }

    /// Writes the states of this epoch for the agents that get a request.
    fn write_states(&mut self) {
        let is_shared = self.play.game().game_type().is_shared;
        self.banks_ms.clear();
        self.banks_ms.extend(self.talk.seats.iter().map(Seat::bank_ms));
        let mut shared: Option<usize> = None;
        for number in 0..self.states.len() {
            self.states[number].clear();
            if !self.play.is_asked(SeatNumber(number)) {
                continue;
            }
            self.talk.seats[number].on_time_over = self.play.game().on_time_over(SeatNumber(number));
            let from = match shared.filter(|_| is_shared) {
                Some(first) => first,
                None => {
                    self.play.write_state(SeatNumber(number), &mut self.states[number]);
                    *shared.insert(number)
                }
            };
            self.talk.write_state(number, &self.states[from]);
        }
    }

    /// Stops the agents, records the result, and waits until all agents have ended.
    fn finish(mut self) -> Result<PlayedMatch, MatchError> {
        self.talk.stop();
        let mut result = self.play.result(self.seed);
        if self.recorder.is_some() || self.watch.is_some() {
            for (number, state) in self.states.iter_mut().enumerate() {
                state.clear();
                self.play.write_state(SeatNumber(number), state);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.on_end(MatchSnapshot { epoch: result.epochs, states: &self.states, seats: &self.talk.seats });
        }
        let replay = match &mut self.recorder {
            Some(recorder) => {
                let states = states(self.play.game().game_type(), &self.states);
                Some(recorder.result(&ResultPart::of(&result), states)?)
            }
            None => None,
        };
        let logs = self.talk.finish();
        result.moves = Some(self.moves.finish(&result.scores()));
        for (part, seat) in result.seats.iter_mut().zip(&self.talk.seats) {
            (part.faults, part.refused) = (seat.faults, seat.refused);
            (part.waited_ms, part.longest_step_ms) = (in_ms(seat.used), in_ms(seat.longest));
        }
        let mut seats = self.talk.seats.into_iter();
        let result = result.with_agents(|_, id| {
            let Seat { name, version, .. } = seats.next().expect("a result has the seats of its match");
            SeatedAgent { id, name, version }
        });
        Ok(PlayedMatch { result, sandbox: Value::Null, logs, replay })
    }
}

/// Disqualifies in the match those agents that the conversation has disqualified.
fn disqualify(play: &mut Match, seats: &[Seat]) {
    for out in seats.iter().filter_map(|seat| seat.out.as_ref()) {
        if play.is_in(SeatNumber(out.seat)) {
            play.disqualify(out.clone());
        }
    }
}

/// Adds the adjudicator's decisions to the actions of the agents that report scores.
fn adjudicate(adjudicator: &mut Adjudicator, epoch: u64, seats: &[Seat], replies: &mut [Actions<'_>]) {
    for (seat, reply) in seats.iter().zip(replies) {
        let Some(actions) = reply else { continue };
        let score = seat.info.as_deref().and_then(score_of);
        match adjudicator.decide(seat.number, epoch.div_ceil(2), score) {
            Some(AdjudicationDecision::Resign) => *reply = Some(r#"[{"action":"move","move":"resign"}]"#.into()),
            Some(AdjudicationDecision::Draw) => {
                let rest = actions.trim_ascii_start().strip_prefix('[').unwrap_or("]").trim_ascii_start().to_owned();
                let comma = if rest.starts_with(']') { "" } else { "," };
                *reply = Some(format!(r#"[{{"action":"move","move":"draw"}}{comma}{rest}"#).into());
            }
            None => {}
        }
    }
}

/// Returns the score in the `info` of a reply.
fn score_of(info: &str) -> Option<EngineScore> {
    let info: Map<String, Value> = serde_json::from_str(info).ok()?;
    let number = |key: &str| info.get(key).and_then(Value::as_i64);
    number("mate").map(EngineScore::Mate).or_else(|| number("cp").map(EngineScore::Centipawns))
}

/// Returns a time in milliseconds, with three decimal places.
pub(crate) fn in_ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the states of an epoch in the form of a replay.
pub(crate) fn states<'s>(game: &GameType, states: &'s [Vec<u8>]) -> States<'s> {
    match game.is_shared {
        false => States::Each(states),
        true => states.iter().find(|state| !state.is_empty()).map_or(States::None, |state| States::One(state)),
    }
}

#[cfg(test)]
mod tests;
