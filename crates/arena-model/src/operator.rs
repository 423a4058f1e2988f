//! Operators, which run the rules of one session, and [`Table`], an operator's interface to its session.

use crate::{Attribution, InviteCode, Occupant, Score, Seat, Seed, SeedRng, Session, Timestamp, UserId};

/// The rules of one session: an operator reacts to joins and messages, sends messages and sets scores.
///
/// An operator is a deterministic state machine that acts only through the [`Table`]. The engine restores the
/// operator from the output of [`Operator::serialize`] for every transition, so an operator keeps no other data. The
/// engine publishes the operator's messages once the transition is durable.
pub trait Operator: Send {
    /// Handles the join of a player at `seat`.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail, which is possible for scripts; the player then doesn't join.
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection>;

    /// Starts the game, after the [`Operator::join`] of the last seat.
    ///
    /// # Errors
    /// The same as for [`Operator::join`].
    fn start(&mut self, _table: &mut Table<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    /// Handles the call of `method` with `content` by the player at `seat`, while the game runs.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules refuse the action. All changes and messages of the call are then discarded.
    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection>;

    /// Handles the passing of the deadline that [`Table::set_deadline_in`] set. The deadline is already cleared.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail. The session then goes on without a deadline.
    fn deadline(&mut self, _table: &mut Table<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    /// Returns the seats that the game waits for, or `None` if the rules can't determine them. After `None`,
    /// every seat that hasn't acted counts as awaited.
    fn awaited(&self) -> Option<Vec<Seat>> {
        None
    }

    /// Returns the operator's whole state as a JSON object. The state becomes public when the session ends.
    fn serialize(&self) -> String;
}

/// The rules' refusal of an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// A stable name for programs, such as `INVALID_GUESS`.
    pub code: String,
    /// A sentence for the player.
    pub message: String,
}

impl Rejection {
    /// The code of a failure of the rules, which no player caused.
    pub const FAILED: &str = "CHALLENGE_FAILED";

    /// Returns true if the rules failed rather than refused the action.
    pub fn is_failure(&self) -> bool {
        self.code == Rejection::FAILED
    }

    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Rejection {
        Rejection { code: code.into(), message: message.into() }
    }

    pub fn unknown_method(method: &str) -> Rejection {
        Rejection::new("UNKNOWN_METHOD", format!("Unknown challenge method: {method}"))
    }
}

/// A message that the operator sends during a transition.
#[derive(Debug)]
pub(crate) struct Post {
    /// True if the message goes to the chat rather than to the operator channel.
    pub(crate) is_chat: bool,
    /// The recipient, or `None` for everyone.
    pub(crate) to: Option<Seat>,
    pub(crate) content: String,
}

/// An operator's interface to the session in one transition: seats, scores, attributions, messages, deadline and
/// randomness.
#[derive(Debug)]
pub struct Table<'t> {
    seed: &'t Seed,
    players: &'t [InviteCode],
    occupants: &'t [Occupant],
    size: usize,
    now: Timestamp,
    transition: u64,
    pub(crate) scores: Vec<Score>,
    pub(crate) attributions: Vec<Attribution>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) outbox: Vec<Post>,
    pub(crate) ended: bool,
}

impl<'t> Table<'t> {
    /// Creates a table for a transition of `session`, whose scores and attributions are passed separately. `players`
    /// contains the players of its seats.
    pub(crate) fn new(
        session: &'t Session,
        players: &'t [InviteCode],
        now: Timestamp,
        scores: Vec<Score>,
        attributions: Vec<Attribution>,
    ) -> Self {
        Table {
            seed: session.facts.dealt_from(),
            players,
            occupants: &session.seats,
            size: scores.len(),
            now,
            transition: session.version,
            scores,
            attributions,
            deadline: session.deadline,
            outbox: Vec::new(),
            ended: false,
        }
    }

    /// Returns the number of seats of the session, with or without players.
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn seats(&self) -> impl Iterator<Item = Seat> + use<> {
        (0..self.size).map(Seat)
    }

    /// Returns the public name of the player at `seat`.
    ///
    /// # Panics
    /// If the seat isn't taken.
    pub fn player(&self, seat: Seat) -> InviteCode {
        self.players[seat.0]
    }

    /// Returns the public names of all players by seat, including a joining player.
    pub fn players(&self) -> &'t [InviteCode] {
        self.players
    }

    /// Returns the user at `seat`, or `None` for a player without a user id. Players are anonymous until the end, so no
    /// message may reveal it to others.
    pub fn user(&self, seat: Seat) -> Option<&'t UserId> {
        self.occupants.get(seat.0)?.user.as_ref()
    }

    /// Returns the time of the transition.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the transition's number in its session, from 1. The session's creation has no number. No two committed
    /// transitions of a session have the same number.
    pub fn transition(&self) -> u64 {
        self.transition
    }

    pub fn send(&mut self, to: Seat, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: false, to: Some(to), content: content.into() });
    }

    pub fn broadcast(&mut self, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: false, to: None, content: content.into() });
    }

    /// Posts a message to the players' chat, to one player or to everyone.
    pub fn say(&mut self, to: Option<Seat>, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: true, to, content: content.into() });
    }

    /// Returns a seat's score, to read or set.
    pub fn score(&mut self, seat: Seat) -> &mut Score {
        &mut self.scores[seat.0]
    }

    pub fn scores(&self) -> &[Score] {
        &self.scores
    }

    pub fn attributions(&self) -> &[Attribution] {
        &self.attributions
    }

    pub fn set_attributions(&mut self, attributions: Vec<Attribution>) {
        self.attributions = attributions;
    }

    /// Records that `from` caused `kind` to happen to `to`.
    pub fn attribute(&mut self, from: Seat, to: Seat, kind: impl Into<String>) {
        self.attributions.push(Attribution { from, to, kind: kind.into() });
    }

    /// Requests a call of [`Operator::deadline`] in `ms` milliseconds. This request replaces any earlier one.
    pub fn set_deadline_in(&mut self, ms: i64) {
        self.deadline = Some(self.now.plus_ms(ms));
    }

    /// Returns the time of the next [`Operator::deadline`] call, if there is one.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    pub fn clear_deadline(&mut self) {
        self.deadline = None;
    }

    /// Ends the game with the scores at the end of the transition.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Derives a seed for one purpose, for rules that need a [`Seed`] rather than a stream.
    pub fn derive_seed(&self, purpose: &str) -> Seed {
        self.seed.derive(purpose)
    }

    /// Returns the session's stream of random numbers for one purpose. The purpose must name everything that varies,
    /// such as the round or the seat: equal purposes give equal numbers.
    pub fn rng(&self, purpose: &str) -> SeedRng {
        self.seed.rng(purpose)
    }
}
