//! The match loop: one owner per match, on a thread of its own. It asks the agents, judges their answers, plays the game and records it.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_model::{
    AgentId, AnyGame, Events, GameType, MatchOutcome, Moves, OptionsError, Score, Seat as SeatNumber, Seed, TimeLimits,
    UpdateMode, Verdict,
};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::body::{Body, Log};
use crate::link::{Answer, Link, Request, ask_fairly};
use crate::message;
use crate::moves::MovesHash;
use crate::process::StartError;
use crate::replay::{EpochRecord, Header, Recorder, ResultRecord, SeatRecord, States};
use crate::report::{self, Disqualified};
use crate::seat::{Fault, Seat};

/// How long an agent may take to start, until it answers the first ping. Interpreters are slow.
pub(crate) const STARTUP: Duration = Duration::from_secs(5);

/// How long an answer to `set_agent_id` is waited for. Silence is consent.
pub(crate) const CONSENT: Duration = Duration::from_millis(500);

/// How long an agent has to go after `stop`.
pub const GRACE: Duration = Duration::from_millis(500);

/// How long the system may take to tell how a process ended that has closed its output. No clock runs meanwhile.
pub(crate) const END: Duration = Duration::from_secs(2);

/// An agent at the table: its seat, and the means to speak to it.
pub struct Player {
    /// What the referee knows of it.
    pub seat: Seat,
    /// Its pipes.
    pub link: Link,
    /// What runs it.
    pub body: Box<dyn Body>,
}

/// Why a match came to no result.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// The game can't be played so.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The processes can't be started as they should, and it isn't the agents' fault.
    #[error(transparent)]
    Start(StartError),
    /// The replay can't be written.
    #[error("the replay can't be written")]
    Replay(#[from] io::Error),
    /// The system failed us.
    #[error("the match can't go on")]
    System(#[from] Errno),
    /// Somebody called it off.
    #[error("the match was called off")]
    CalledOff,
}

/// What a watcher is shown of an epoch, before its actions are played, or of the end.
#[derive(Debug, Clone, Copy)]
pub struct Glance<'a> {
    /// From 1. At the end: how many epochs were played.
    pub epoch: u64,
    /// What each agent sees, by seat: the members of a state, without braces. Empty for those who aren't asked, and for those who
    /// see the same as one before them.
    pub states: &'a [Vec<u8>],
    /// The seats, in order.
    pub seats: &'a [Seat],
}

/// Somebody who looks on.
pub trait Watch: Send {
    /// Is shown an epoch. The match waits for as long as this takes, and no agent's clock runs meanwhile.
    fn look(&mut self, glance: Glance<'_>);

    /// Is shown how it ended. Not called for a match that came to no result.
    fn see_end(&mut self, _glance: Glance<'_>) {}
}

/// What came of a match.
#[derive(Debug)]
pub struct Played {
    /// How it ended.
    pub outcome: MatchOutcome,
    /// The scores by seat.
    pub scores: Vec<f64>,
    /// Utility and security by seat, of a challenge that was settled; the disqualified have none.
    pub challenge_scores: Option<Vec<Option<Score>>>,
    /// The fingerprint of what was played.
    pub moves: Moves,
    /// The ranks by seat, from 1.
    pub ranks: Vec<usize>,
    /// How many epochs were played.
    pub epochs: u64,
    /// The seats, as the match left them.
    pub seats: Vec<Seat>,
    /// What each agent wrote to stderr, by seat.
    pub logs: Vec<Log>,
    /// What each agent got wrong, in order.
    pub faults: Vec<Fault>,
}

/// The `config` that agents receive: the game's name, its constants, how they take part, and the time limits in milliseconds. Of these only the
/// constants can be set.
pub fn config(game: &dyn AnyGame, limits: TimeLimits) -> Map<String, Value> {
    let mut config = game.config();
    let GameType { name, mode, .. } = game.game_type();
    for part in [serde_json::json!({"game_name": name, "update_mode": mode}), serde_json::json!(limits)] {
        let Value::Object(part) = part else { unreachable!("both are objects") };
        config.extend(part);
    }
    config
}

/// Whether a match goes on in which so many of its agents haven't been disqualified.
///
/// Whoever is the only one left has won, unless it played alone from the start. In games of isolated worlds nobody's score depends on
/// the others, so there the last one plays on, for its score.
pub(crate) fn is_on(game: &dyn AnyGame, left: usize, seats: usize) -> bool {
    let least = match game.game_type().mode {
        UpdateMode::Isolated => 1,
        UpdateMode::Alternating | UpdateMode::Simultaneous => seats.min(2),
    };
    left >= least && game.termination().is_none()
}

/// A match under way.
pub struct Table<'a> {
    game: Box<dyn AnyGame>,
    seed: Seed,
    options: &'a Map<String, Value>,
    limits: TimeLimits,
    // Seats, links and bodies of the agents, each in the order of their seats.
    seats: Vec<Seat>,
    links: Vec<Link>,
    bodies: Vec<Box<dyn Body>>,
    recorder: Option<Recorder<'a>>,
    watch: Option<&'a mut dyn Watch>,
    called_off: &'a AtomicBool,
    epoch: u64,
    /// The ids, as the JSON list that each state holds.
    ids_json: Vec<u8>,
    /// What the asked agents saw in this epoch, by seat; in games where all see the same, the first is everybody's.
    states: Vec<Vec<u8>>,
    messages: Vec<Vec<u8>>,
    banks_ms: Vec<u64>,
    taken: Vec<u8>,
    events: Events,
    faults: Vec<Fault>,
    moves: MovesHash,
}

impl<'a> Table<'a> {
    /// A match whose agents have been started and haven't been spoken to.
    pub fn new(
        game: Box<dyn AnyGame>,
        seed: Seed,
        options: &'a Map<String, Value>,
        limits: TimeLimits,
        players: Vec<Player>,
        called_off: &'a AtomicBool,
    ) -> Table<'a> {
        let ids: Vec<&AgentId> = players.iter().map(|player| &player.seat.id).collect();
        let ids_json = serde_json::to_vec(&ids).expect("ids are texts");
        let moves = MovesHash::new(&*game, options, ids.iter().map(|id| id.as_str()));
        let buffers = vec![Vec::new(); players.len()];
        let (mut seats, mut links, mut bodies) = (Vec::<Seat>::new(), Vec::new(), Vec::new());
        for Player { seat, link, body } in players {
            seats.push(seat);
            links.push(link);
            bodies.push(body);
        }
        let all: Vec<String> = seats.iter().map(|seat| seat.id.to_string()).collect();
        for seat in &mut seats {
            seat.meet(all.iter().map(String::as_str));
        }
        Table {
            game,
            seed,
            options,
            limits,
            recorder: None,
            watch: None,
            called_off,
            epoch: 0,
            ids_json,
            states: buffers.clone(),
            messages: buffers,
            banks_ms: Vec::new(),
            taken: Vec::new(),
            events: Events::default(),
            faults: Vec::new(),
            moves,
            seats,
            links,
            bodies,
        }
    }

    /// Records the match.
    pub fn recorded_by(mut self, recorder: Option<Recorder<'a>>) -> Table<'a> {
        self.recorder = recorder;
        self
    }

    /// Lets somebody look on.
    pub fn watched_by(mut self, watch: Option<&'a mut dyn Watch>) -> Table<'a> {
        self.watch = watch;
        self
    }

    /// Plays the match to its end. Agents are stopped in any case, also when this fails.
    ///
    /// # Errors
    /// See [`MatchError`]. What agents do is never an error.
    pub fn play(mut self) -> Result<Played, MatchError> {
        self.shake_hands()?;
        while self.is_on() {
            self.play_epoch()?;
        }
        self.finish()
    }

    fn is_on(&self) -> bool {
        let left = self.seats.iter().filter(|seat| seat.is_in()).count();
        is_on(&*self.game, left, self.seats.len())
    }

    /// Ping, then the ids and the config.
    fn shake_hands(&mut self) -> Result<(), MatchError> {
        let config = config(&*self.game, self.limits);
        self.write_messages(|_| message::ping());
        for (number, answer, _) in self.ask_all(STARTUP)? {
            let seat = &mut self.seats[number];
            match answer {
                Answer::Line => seat.hear_pong(self.links[number].line()),
                Answer::Late => {
                    let detail = format!("no answer to the ping within {} ms", STARTUP.as_millis());
                    seat.disqualify(Verdict::PingFail, detail);
                }
                _ => fail(seat, &mut *self.bodies[number], answer, Verdict::StartupFail),
            }
        }
        self.write_messages(|seat| message::set_agent_id(&seat.id, &config));
        for (number, answer, _) in self.ask_all(CONSENT)? {
            let seat = &mut self.seats[number];
            match answer {
                Answer::Line => seat.hear_consent(self.links[number].line()),
                Answer::Late => seat.note_silence(),
                _ => fail(seat, &mut *self.bodies[number], answer, Verdict::StartupFail),
            }
        }
        let out = self.send_away();
        for disqualified in &out {
            self.game.disqualify(SeatNumber(disqualified.seat));
        }
        let faults = self.take_faults();
        if !out.is_empty() {
            self.moves.play(None, out.iter());
        }
        if let Some(recorder) = &mut self.recorder {
            let agents = self.seats.iter().map(|seat| SeatRecord {
                agent_id: &seat.id,
                name: &seat.name,
                version: seat.version.as_deref(),
            });
            let game = self.game.game_type();
            let (seed, agents) = (self.seed.reveal(), agents.collect());
            recorder.header(&Header::new(game, seed, self.options, &config, agents))?;
            if !out.is_empty() || !faults.is_empty() {
                recorder.epoch(&EpochRecord {
                    epoch: 0,
                    states: States::None,
                    banks_ms: &[],
                    disqualified: &out,
                    taken: None,
                    rejected: &[],
                    faults: &faults,
                })?;
            }
        }
        self.faults.extend(faults);
        Ok(())
    }

    /// Notes a message for each agent that is in the match.
    fn write_messages(&mut self, message: impl Fn(&Seat) -> Vec<u8>) {
        for (seat, note) in self.seats.iter().zip(&mut self.messages) {
            *note = if seat.is_in() { message(seat) } else { Vec::new() };
        }
    }

    /// Asks all for whom there is a message. Seat, answer, and time used of each. `patience` is for the handshake; in an epoch the time
    /// limits rule.
    fn ask_all(&mut self, patience: Duration) -> Result<Vec<(usize, Answer, Duration)>, MatchError> {
        let (limits, epoch, now) = (self.limits, self.epoch, Instant::now());
        let mut requests = Vec::with_capacity(self.seats.len());
        for ((link, seat), message) in self.links.iter_mut().zip(&self.seats).zip(&self.messages) {
            if !message.is_empty() {
                let patience = if epoch == 0 { patience } else { Duration::from_millis(limits.step_ms) + seat.bank };
                requests.push(Request::new(link, seat.number, message, patience, now));
            }
        }
        let (seats, bodies) = (&mut self.seats, &self.bodies);
        let is_answer = |number: usize, line: &[u8]| epoch == 0 || seats[number].is_answer(line);
        ask_fairly(&mut requests, self.called_off, is_answer, |number| bodies[number].spent())?;
        let answers: Vec<(usize, Answer, Duration)> = requests
            .into_iter()
            .map(|request| (request.seat, request.answer.unwrap_or(Answer::Interrupted), request.used))
            .collect();
        match answers.iter().any(|(_, answer, _)| *answer == Answer::Interrupted) {
            true => Err(MatchError::CalledOff),
            false => Ok(answers),
        }
    }

    fn play_epoch(&mut self) -> Result<(), MatchError> {
        self.epoch += 1;
        self.write_states();
        if let Some(watch) = &mut self.watch {
            watch.look(Glance { epoch: self.epoch, states: &self.states, seats: &self.seats });
        }
        let answers = self.ask_all(Duration::ZERO)?;
        let mut heard = vec![false; self.seats.len()];
        for (number, answer, used) in answers {
            let (seat, body) = (&mut self.seats[number], &mut *self.bodies[number]);
            let (step_ms, bank_ms) = (self.limits.step_ms, seat.bank_ms());
            seat.charge(used, self.limits);
            match answer {
                Answer::Line | Answer::SetAside => heard[number] = seat.is_in(),
                Answer::Late if body.is_flooding() => fail(seat, body, Answer::Flood, Verdict::OutputLimit),
                Answer::Late => {
                    let whole = step_ms + bank_ms;
                    let detail =
                        format!("no answer within {whole} ms ({step_ms} ms a step and {bank_ms} ms in the bank)");
                    seat.disqualify(Verdict::Timeout, detail);
                }
                _ => fail(seat, body, answer, Verdict::Crashed),
            }
        }
        self.play_heard(&heard)
    }

    /// Writes what each agent that is to move is told.
    fn write_states(&mut self) {
        let is_shared = self.game.game_type().is_shared;
        self.banks_ms.clear();
        self.banks_ms.extend(self.seats.iter().map(Seat::bank_ms));
        let mut shared: Option<usize> = None;
        for (number, seat) in self.seats.iter().enumerate() {
            self.states[number].clear();
            self.messages[number].clear();
            if !seat.is_in() || !self.game.is_asked(SeatNumber(number)) {
                continue;
            }
            let from = match shared.filter(|_| is_shared) {
                Some(first) => first,
                None => {
                    write_state(&*self.game, number, self.epoch, &self.ids_json, &mut self.states[number]);
                    shared = Some(number);
                    number
                }
            };
            message::state(seat.dialect, &self.states[from], self.banks_ms[number], &mut self.messages[number]);
        }
    }

    /// Plays the actions of those whose answer was heard, and records the epoch.
    fn play_heard(&mut self, heard: &[bool]) -> Result<(), MatchError> {
        let replies: Vec<Option<Cow<'_, str>>> = (self.seats.iter_mut().zip(&self.links).zip(heard))
            .map(|((seat, link), heard)| if *heard { seat.hear(link.line()) } else { None })
            .collect();
        let mut is_out_before = vec![false; self.seats.len()];
        for (number, link) in self.links.iter().enumerate() {
            is_out_before[number] = !self.seats[number].is_in();
            if is_out_before[number] && !link.is_closed() {
                self.game.disqualify(SeatNumber(number));
            }
        }
        let is_played = self.is_on();
        self.taken.clear();
        if is_played {
            let texts: Vec<Option<&str>> = (replies.iter().zip(&is_out_before))
                .map(|(reply, is_out)| reply.as_deref().filter(|_| !is_out))
                .collect();
            self.game.play(&texts, &mut self.taken, &mut self.events);
            for forfeit in self.events.forfeits() {
                self.seats[forfeit.seat.0].disqualify(forfeit.verdict, forfeit.detail.clone());
                self.game.disqualify(forfeit.seat);
            }
        }
        drop(replies);
        let (out, faults) = (self.send_away(), self.take_faults());
        let taken = is_played.then_some(&self.taken[..]);
        if self.moves.wants_states()
            && let Some(text) = states(self.game.game_type(), &self.states).text()
        {
            self.moves.see(&text);
        }
        self.moves.play(taken.and_then(|taken| str::from_utf8(taken).ok()), out.iter());
        if let Some(recorder) = &mut self.recorder {
            recorder.epoch(&EpochRecord {
                epoch: self.epoch,
                states: states(self.game.game_type(), &self.states),
                banks_ms: &self.banks_ms,
                disqualified: &out,
                taken,
                rejected: if is_played { self.events.rejections() } else { &[] },
                faults: &faults,
            })?;
        }
        self.faults.extend(faults);
        Ok(())
    }

    /// Stops the agents that were disqualified since this was last called. Those that cheated are told so, and that takes them a
    /// moment; the others are ended at once.
    fn send_away(&mut self) -> Vec<Disqualified> {
        let mut out: Vec<Disqualified> = Vec::new();
        for (seat, link) in self.seats.iter().zip(&mut self.links) {
            if let Some(disqualified) = seat.out.as_ref().filter(|_| !link.is_closed()) {
                link.close(&message::stop(disqualified.verdict.is_cheating()));
                out.push(disqualified.clone());
            }
        }
        let by = Instant::now() + GRACE;
        for disqualified in &out {
            let body = &mut self.bodies[disqualified.seat];
            if disqualified.verdict.is_cheating() {
                // No clock runs between two epochs, so this costs nobody anything but time.
                body.ended(by.saturating_duration_since(Instant::now()));
            }
            body.kill();
        }
        out
    }

    fn take_faults(&mut self) -> Vec<Fault> {
        self.seats.iter_mut().flat_map(Seat::take_faults).collect()
    }

    /// Tells all that it is over, records the result, and waits until nothing of any agent is left.
    fn finish(mut self) -> Result<Played, MatchError> {
        for link in self.links.iter_mut().filter(|link| !link.is_closed()) {
            link.close(&message::stop(false));
        }
        let ids: Vec<AgentId> = self.seats.iter().map(|seat| seat.id.clone()).collect();
        let out: Vec<Option<Disqualified>> = self.seats.iter().map(|seat| seat.out.clone()).collect();
        let scores = report::final_scores(&*self.game, &out);
        let challenge_scores = report::challenge_scores(&*self.game, &out);
        let ranks = report::ranks(&scores, &out);
        let outcome = report::outcome(&*self.game, &ids, &out, &ranks);
        let epochs = self.epoch;
        if self.recorder.is_some() || self.watch.is_some() {
            for (number, state) in self.states.iter_mut().enumerate() {
                state.clear();
                write_state(&*self.game, number, epochs + 1, &self.ids_json, state);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.see_end(Glance { epoch: epochs, states: &self.states, seats: &self.seats });
        }
        if let Some(recorder) = &mut self.recorder {
            let states = states(self.game.game_type(), &self.states);
            recorder.result(&ResultRecord { outcome: &outcome, epochs, scores: &scores, ranks: &ranks }, states)?;
        }
        let by = Instant::now() + GRACE;
        // The links are kept meanwhile: a bot that says good-bye on stdout shall not die of a closed pipe.
        let logs =
            self.bodies.iter_mut().map(|body| body.finish(by.saturating_duration_since(Instant::now()))).collect();
        let moves = self.moves.finish(&scores);
        Ok(Played {
            outcome,
            scores,
            challenge_scores,
            moves,
            ranks,
            epochs,
            seats: self.seats,
            logs,
            faults: self.faults,
        })
    }
}

/// Disqualifies an agent whose pipe gave out, or flooded. `verdict`: when it just ended.
pub(crate) fn fail(seat: &mut Seat, body: &mut dyn Body, answer: Answer, verdict: Verdict) {
    if answer == Answer::Flood {
        return seat.disqualify(Verdict::OutputLimit, "wrote a line, or beside its answers, beyond all bounds");
    }
    match body.ended(END) {
        Some(end) if end.is_out_of_memory => seat.disqualify(Verdict::MemoryLimit, end.sentence),
        Some(end) => seat.disqualify(verdict, end.sentence),
        None => seat.disqualify(verdict, "closed its output"),
    }
}

/// What the agent on a seat sees: the game's members, and those that all games have.
pub(crate) fn write_state(game: &dyn AnyGame, seat: usize, epoch: u64, ids_json: &[u8], out: &mut Vec<u8>) {
    game.write_state(SeatNumber(seat), out);
    out.extend_from_slice(b",\"epoch\":");
    out.extend_from_slice(itoa::Buffer::new().format(epoch).as_bytes());
    out.extend_from_slice(b",\"agent_ids\":");
    out.extend_from_slice(ids_json);
}

/// The states of an epoch as a replay has them.
pub(crate) fn states<'s>(game: &GameType, states: &'s [Vec<u8>]) -> States<'s> {
    match game.is_shared {
        false => States::Each(states),
        true => states.iter().find(|state| !state.is_empty()).map_or(States::None, |state| States::One(state)),
    }
}

#[cfg(test)]
mod tests;
