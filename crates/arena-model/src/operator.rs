//! The rules of one session, and the table at which they sit.

use crate::{Attribution, InviteCode, Score, Seat, Seed, SeedRng, Timestamp};

/// The rules of one session: takes joins and messages, says who sees what, scores.
///
/// An operator is a deterministic state machine. All that it may touch is the [`Table`]; all that it remembers is in
/// what [`Operator::serialize`] returns, because it is restored from that for every transition. Nothing that it posts
/// leaves the table before the transition is durable.
pub trait Operator: Send {
    /// A player has taken `seat`.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail, which those of scripts may: the seat isn't taken then.
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection>;

    /// The last seat is taken (after its [`Operator::join`]): the game begins.
    ///
    /// # Errors
    /// As [`Operator::join`].
    fn start(&mut self, _table: &mut Table<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    /// The player at `seat` calls `method` with `content`, while the game is running.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules refuse the action. What was changed or posted meanwhile is thrown away.
    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection>;

    /// The deadline that was set with [`Table::set_deadline_in`] has passed; it is unset now.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail. The session goes on as it was, without a deadline.
    fn deadline(&mut self, _table: &mut Table<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    /// The seats without which the game can't go on as it stands. `None` if the rules can't tell; then every seat that hasn't
    /// acted is taken to be one of them.
    fn awaited(&self) -> Option<Vec<Seat>> {
        None
    }

    /// Everything that the operator remembers, as a JSON object. Shown to all once the session has ended.
    fn serialize(&self) -> String;
}

/// Why the rules refuse an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// Stable name for programs, such as `INVALID_GUESS`.
    pub code: String,
    /// Sentence for the player.
    pub message: String,
}

impl Rejection {
    /// A refusal with a stable code and a sentence.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Rejection {
        Rejection { code: code.into(), message: message.into() }
    }

    /// The refusal of a method that the challenge doesn't have.
    pub fn unknown_method(method: &str) -> Rejection {
        Rejection::new("UNKNOWN_METHOD", format!("Unknown challenge method: {method}"))
    }
}

/// What the operator says during a transition.
#[derive(Debug)]
pub(crate) struct Post {
    /// Whether it is said in the chat, rather than in the operator's own channel.
    pub(crate) is_chat: bool,
    /// To whom, if not to all.
    pub(crate) to: Option<Seat>,
    pub(crate) content: String,
}

/// What an operator may touch during one transition: seats, scores, attributions, outbox, deadline, randomness.
#[derive(Debug)]
pub struct Table<'t> {
    seed: &'t Seed,
    players: &'t [InviteCode],
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
    /// `scores` are those of all seats, taken or not.
    pub(crate) fn new(
        seed: &'t Seed,
        players: &'t [InviteCode],
        now: Timestamp,
        transition: u64,
        scores: Vec<Score>,
        attributions: Vec<Attribution>,
        deadline: Option<Timestamp>,
    ) -> Self {
        let size = scores.len();
        Table { seed, players, size, now, transition, scores, attributions, deadline, outbox: Vec::new(), ended: false }
    }

    /// How many seats the session has, taken or not.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All seats of the session.
    pub fn seats(&self) -> impl Iterator<Item = Seat> + use<> {
        (0..self.size).map(Seat)
    }

    /// The name under which the others know the player at `seat`.
    ///
    /// # Panics
    /// If nobody has taken the seat.
    pub fn player(&self, seat: Seat) -> InviteCode {
        self.players[seat.0]
    }

    /// The names of all who have joined, by seat; the one that is joining among them.
    pub fn players(&self) -> &'t [InviteCode] {
        self.players
    }

    /// When the transition happens.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Which transition of the session this is, from 1; its creation is none. No two that count have the same number.
    pub fn transition(&self) -> u64 {
        self.transition
    }

    /// Tells one player something.
    pub fn send(&mut self, to: Seat, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: false, to: Some(to), content: content.into() });
    }

    /// Tells everybody something.
    pub fn broadcast(&mut self, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: false, to: None, content: content.into() });
    }

    /// Says something among the players' chat, to one or to all.
    pub fn say(&mut self, to: Option<Seat>, content: impl Into<String>) {
        self.outbox.push(Post { is_chat: true, to, content: content.into() });
    }

    /// The score of a seat, to be read or set.
    pub fn score(&mut self, seat: Seat) -> &mut Score {
        &mut self.scores[seat.0]
    }

    /// The scores of all seats.
    pub fn scores(&self) -> &[Score] {
        &self.scores
    }

    /// What players have done to each other so far.
    pub fn attributions(&self) -> &[Attribution] {
        &self.attributions
    }

    /// Puts other records in place of all that players have done to each other.
    pub fn set_attributions(&mut self, attributions: Vec<Attribution>) {
        self.attributions = attributions;
    }

    /// Records that `from` caused `kind` to happen to `to`.
    pub fn attribute(&mut self, from: Seat, to: Seat, kind: impl Into<String>) {
        self.attributions.push(Attribution { from, to, kind: kind.into() });
    }

    /// Asks for [`Operator::deadline`] to be called `ms` milliseconds from now, instead of any earlier request.
    pub fn set_deadline_in(&mut self, ms: i64) {
        self.deadline = Some(self.now.plus_ms(ms));
    }

    /// When [`Operator::deadline`] will be called, if it will be.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Takes the request for a deadline back.
    pub fn clear_deadline(&mut self) {
        self.deadline = None;
    }

    /// Ends the game with the scores as they stand when the transition is over.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// A seed of its own for one purpose: for rules that want a [`Seed`] rather than a stream.
    pub fn derive_seed(&self, purpose: &str) -> Seed {
        self.seed.derive(purpose)
    }

    /// The session's stream of random numbers for one purpose. Name what varies (a round, a seat) in the purpose:
    /// equal purposes give equal numbers.
    pub fn rng(&self, purpose: &str) -> SeedRng {
        self.seed.rng(purpose)
    }
}
