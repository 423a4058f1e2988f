//! Matches: the rules that all games share. These rules decide which seats are asked for a reply, when a match ends,
//! and its result.
//!
//! A [`Match`] is a state machine without clock or I/O. Its driver sends the states, collects the replies,
//! reports each seat that leaves, and starts each epoch. The drivers are the match runner, the operator of a
//! session and the verification of replays.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    AgentId, AnyGame, Events, GameType, MatchOutcome, MatchResult, SeatResult, TimeLimits, UpdateMode, VOID, Verdict,
};
use crate::{Seat, Seed};

/// The score of a disqualified agent.
pub const TAINTED_SCORE: f64 = -10.0;

/// The maximum length of a disqualification's detail, in characters. Details need a limit because they may quote the
/// agent's output.
const MAX_DETAIL: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disqualified {
    /// The seat's number, from 0.
    pub seat: usize,
    /// The broken rule.
    pub verdict: Verdict,
    /// One sentence. It doesn't depend on the clock, except for `TIMEOUT`, where it contains the remaining time bank.
    pub detail: String,
}

impl Disqualified {
    /// Creates a disqualification; a long detail is cut.
    pub fn new(seat: usize, verdict: Verdict, detail: impl Into<String>) -> Disqualified {
        let mut detail = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(MAX_DETAIL) {
            detail.truncate(end);
            detail.push('…');
        }
        Disqualified { seat, verdict, detail }
    }
}

/// The owner of an `agent_id` in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Sender,
    /// Another player of the match, by seat. A reply with its id is cheating.
    Player(usize),
    /// No player of the match. A reply with such an id is a fault.
    Stranger,
}

impl Owner {
    /// Finds the owner of an id. `players` are the ids of all players, the sender's among them.
    pub fn of<'id>(id: &str, sender: &AgentId, players: impl IntoIterator<Item = &'id str>) -> Owner {
        if id == sender.as_str() {
            return Owner::Sender;
        }
        players.into_iter().position(|player| player == id).map_or(Owner::Stranger, Owner::Player)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SeatState {
    /// In the match, without a sealed reply.
    In,
    /// In the match, with the text of the `actions` in its reply, which is stored until the epoch is played.
    Sealed(String),
    Out,
}

/// A match of one game between the agents at its seats.
pub struct Match<G: AnyGame + ?Sized = dyn AnyGame> {
    pub(crate) agents: Vec<AgentId>,
    /// The agents' ids as a JSON list, which is part of each state.
    agents_json: String,
    pub(crate) seats: Vec<SeatState>,
    /// The disqualifications, by seat.
    out: Vec<Option<Disqualified>>,
    epochs: u64,
    events: Events,
    pub(crate) game: Box<G>,
}

impl<G: AnyGame + ?Sized> Match<G> {
    /// Creates a match before its first epoch, with the agents' ids by seat.
    pub fn new(game: Box<G>, agents: Vec<AgentId>) -> Match<G> {
        let seats = vec![SeatState::In; agents.len()];
        Match::resume(game, agents, seats, 0)
    }

    /// Creates a match after a number of epochs.
    pub(crate) fn resume(game: Box<G>, agents: Vec<AgentId>, seats: Vec<SeatState>, epochs: u64) -> Match<G> {
        let agents_json = json!(agents).to_string();
        Match { agents_json, seats, out: vec![None; agents.len()], agents, epochs, events: Events::default(), game }
    }

    pub fn game(&self) -> &G {
        &self.game
    }

    /// Returns the agents' ids, by seat.
    pub fn agents(&self) -> &[AgentId] {
        &self.agents
    }

    /// Returns the number of epochs that have ended.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Returns the rejections and forfeits of the last epoch.
    pub fn events(&self) -> &Events {
        &self.events
    }

    pub fn out(&self) -> &[Option<Disqualified>] {
        &self.out
    }

    /// Returns the `config` of the protocol: the game's name and constants, its update mode, and the time
    /// limits in milliseconds.
    pub fn config(&self, limits: TimeLimits) -> Map<String, Value> {
        let GameType { name, mode, .. } = self.game.game_type();
        let mut config = self.game.config();
        for part in [json!({"game_name": name, "update_mode": mode}), json!(limits)] {
            let Value::Object(part) = part else { unreachable!("both are objects") };
            config.extend(part);
        }
        config
    }

    pub fn is_in(&self, seat: Seat) -> bool {
        self.seats[seat.0] != SeatState::Out
    }

    /// Returns true if the seat is asked for a reply in the coming epoch.
    pub fn is_asked(&self, seat: Seat) -> bool {
        self.is_in(seat) && self.game.is_asked(seat)
    }

    /// Returns true until the match ends.
    ///
    /// If one of several agents remains, it has won and the match ends. Two kinds of match continue with one agent: a
    /// match that started with one agent, and a game of isolated worlds, where the agent's score doesn't depend on
    /// the others.
    pub fn is_on(&self) -> bool {
        let left = self.seats.iter().filter(|seat| **seat != SeatState::Out).count();
        let needed = match self.game.game_type().mode {
            UpdateMode::Isolated => 1,
            UpdateMode::Alternating | UpdateMode::Simultaneous => self.seats.len().min(2),
        };
        left >= needed && self.game.termination().is_none()
    }

    /// Stores a seat's reply until every seat that was asked has replied.
    pub(crate) fn seal(&mut self, seat: Seat, reply: String) {
        self.seats[seat.0] = SeatState::Sealed(reply);
    }

    /// Returns true if a seat is asked and has no sealed reply.
    pub(crate) fn is_waiting_for(&self, seat: Seat) -> bool {
        self.seats[seat.0] == SeatState::In && self.game.is_asked(seat)
    }

    /// Removes and returns the sealed replies, by seat.
    pub(crate) fn unseal(&mut self) -> Vec<Option<String>> {
        let unseal = |seat: &mut SeatState| match seat {
            SeatState::Sealed(reply) => {
                let reply = std::mem::take(reply);
                *seat = SeatState::In;
                Some(reply)
            }
            SeatState::In | SeatState::Out => None,
        };
        self.seats.iter_mut().map(unseal).collect()
    }

    /// Removes a seat from the match. A second call changes nothing.
    pub(crate) fn remove(&mut self, seat: Seat) {
        if std::mem::replace(&mut self.seats[seat.0], SeatState::Out) != SeatState::Out {
            self.game.disqualify(seat);
        }
    }

    /// Disqualifies the agent at a seat. A second call changes nothing.
    pub fn disqualify(&mut self, disqualified: Disqualified) {
        let seat = disqualified.seat;
        self.out[seat].get_or_insert(disqualified);
        self.remove(Seat(seat));
    }

    /// Plays one epoch with `step` and disqualifies the agents that forfeit in it. If the match has already
    /// ended, the epoch is only counted. Returns true if `step` was called.
    pub fn play(&mut self, step: impl FnOnce(&mut G, &mut Events)) -> bool {
        self.epochs += 1;
        self.events.clear();
        let is_on = self.is_on();
        if is_on {
            step(&mut self.game, &mut self.events);
            let events = std::mem::take(&mut self.events);
            for forfeit in events.forfeits() {
                self.disqualify(Disqualified::new(forfeit.seat.0, forfeit.verdict, forfeit.detail.as_str()));
            }
            self.events = events;
        }
        is_on
    }

    /// Appends a seat's state of the coming epoch, or its final state: the members of an object, without
    /// braces.
    pub fn write_state(&self, seat: Seat, out: &mut Vec<u8>) {
        self.game.write_state(seat, out);
        self.write_envelope(out);
    }

    /// Appends the members that are common to the states of all games.
    pub(crate) fn write_envelope(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"epoch\":");
        serde_json::to_writer(&mut *out, &(self.epochs + 1)).expect("writing a number to memory succeeds");
        out.extend_from_slice(b",\"agent_ids\":");
        out.extend_from_slice(self.agents_json.as_bytes());
    }

    /// Returns the seats that share the first place.
    pub fn winners(&self) -> Vec<usize> {
        self.first_places(&self.ranks(&self.scores()))
    }

    /// Returns the current result, without the fingerprint, faults and times, which the driver adds.
    pub fn result(&self, seed: Seed) -> MatchResult<AgentId> {
        let scores = self.scores();
        let ranks = self.ranks(&scores);
        let challenge_scores = self.game.challenge_scores();
        let seats = self.agents.iter().zip(&self.out).enumerate().map(|(seat, (agent, out))| SeatResult {
            agent: agent.clone(),
            rank: ranks[seat],
            score: scores[seat],
            challenge_score: challenge_scores.as_ref().map(|scores| scores[seat]).filter(|_| self.is_in(Seat(seat))),
            verdict: out.as_ref().map(|out| out.verdict),
            detail: out.as_ref().map(|out| out.detail.clone()),
            faults: 0,
            refused: 0,
            waited_ms: 0.0,
            longest_step_ms: 0.0,
        });
        let (seats, outcome) = (seats.collect(), self.outcome(&ranks));
        MatchResult { seats, outcome, seed, epochs: self.epochs, moves: None, took_ms: 0.0 }
    }

    fn scores(&self) -> Vec<f64> {
        let score = |(seat, score)| if self.is_in(Seat(seat)) { score } else { TAINTED_SCORE };
        self.game.scores().into_iter().enumerate().map(score).collect()
    }

    fn ranks(&self, scores: &[f64]) -> Vec<usize> {
        ranks(scores, |seat| !self.is_in(Seat(seat)))
    }

    /// Returns the seats with the best rank. A disqualified agent never wins, even if all are disqualified.
    fn first_places(&self, ranks: &[usize]) -> Vec<usize> {
        (0..ranks.len()).filter(|seat| ranks[*seat] == 1 && self.is_in(Seat(*seat))).collect()
    }

    fn outcome(&self, ranks: &[usize]) -> MatchOutcome {
        let tainted_reason = self.out.iter().flatten().next().map(|out| out.verdict);
        if self.game.is_void() && tainted_reason.is_none() {
            let termination = self.game.termination().unwrap_or(VOID).into();
            return MatchOutcome { termination, winner: VOID.to_owned(), result: None, tainted_reason };
        }
        let winner = match self.first_places(ranks)[..] {
            [seat] => Some(seat),
            _ => None,
        };
        // If the game continued without the disqualified agents, its own termination replaces `TAINTED`.
        let continues = match self.game.game_type().mode {
            UpdateMode::Isolated => self.out.contains(&None),
            UpdateMode::Alternating | UpdateMode::Simultaneous => ranks.len() > 2,
        };
        let termination = self.game.termination().filter(|_| tainted_reason.is_none() || continues);
        let result = match winner {
            _ if ranks.len() != 2 => None,
            Some(seat) if seat == first_seat(&*self.game, ranks.len()) => Some("1-0"),
            Some(_) => Some("0-1"),
            None => Some("1/2-1/2"),
        };
        let name = |seat: usize| self.game.side(Seat(seat)).unwrap_or(self.agents[seat].as_str());
        MatchOutcome {
            termination: termination.unwrap_or("TAINTED").into(),
            winner: winner.map_or("DRAW", name).to_owned(),
            result: result.map(Cow::Borrowed),
            tainted_reason,
        }
    }
}

/// Returns the ranks by seat, from 1. Disqualified agents come last, and equal scores share a rank.
pub fn ranks(scores: &[f64], is_out: impl Fn(usize) -> bool) -> Vec<usize> {
    let is_better = |a: usize, b: usize| {
        let by_presence = is_out(b).cmp(&is_out(a));
        by_presence.then(scores[a].total_cmp(&scores[b])) == Ordering::Greater
    };
    (0..scores.len()).map(|seat| 1 + (0..scores.len()).filter(|other| is_better(*other, seat)).count()).collect()
}

/// Returns the seat that a result such as `1-0` lists first: White's seat, or seat 0 in a game without White.
pub fn first_seat<G: AnyGame + ?Sized>(game: &G, seats: usize) -> usize {
    (0..seats).find(|seat| game.side(Seat(*seat)) == Some("WHITE")).unwrap_or(0)
}
