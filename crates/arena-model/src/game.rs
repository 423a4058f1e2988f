//! Games: rules that are played in epochs by agents, as the Colosseum protocol has them.
//!
//! A game is a pure state machine: equal config, seed and actions, equal bytes. What its author writes is a [`Game`] with types of
//! its own; what runs it sees an [`AnyGame`], which reads actions from JSON and tells which were taken. Processes, clocks and
//! faults of agents are the match runner's (`arena-match`); the games themselves are in `arena-games`.

mod any;
mod result;
mod verdict;

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::challenge::OptionsError;
use crate::{IdError, Score, Seat, Seed};

pub use any::{AnyGame, GameType, MAX_ACTIONS};
pub(crate) use any::{config, reason};
pub use result::{MatchOutcome, MatchResult, Moves, SeatResult, VOID};
pub use verdict::Verdict;

/// What an agent is called in one match: 1 to 255 characters, often a UUID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

impl AgentId {
    /// The longest id, in characters. Source: the Colosseum protocol, "Agent ID".
    pub const MAX_CHARS: usize = 255;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<AgentId, IdError> {
        let fits = (1..=AgentId::MAX_CHARS).contains(&text.chars().count());
        match fits && !text.contains(char::is_control) {
            true => Ok(AgentId(text.to_owned())),
            false => Err(IdError::expected("an agent id (1 to 255 characters, none of them a control character)")),
        }
    }
}

impl TryFrom<String> for AgentId {
    type Error = IdError;

    fn try_from(text: String) -> Result<AgentId, IdError> {
        text.parse()
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> String {
        id.0
    }
}

/// The ids of the agents of a match: UUIDs that come of its seed, so that equal matches are equal to the last byte.
pub fn agent_ids(seed: &Seed, count: usize) -> Vec<AgentId> {
    let mut rng = seed.rng("agent ids");
    let mut half = || rng.below(u64::MAX);
    (0..count)
        .map(|_| {
            let bytes = (u128::from(half()) << 64 | u128::from(half())).to_be_bytes();
            let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
            id.to_string().parse().expect("a UUID is an agent id")
        })
        .collect()
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the agents of a game take part in its epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UpdateMode {
    /// One agent moves in each epoch.
    Alternating,
    /// All move in each epoch, and all see the same state.
    Simultaneous,
    /// All move in each epoch, each in a world of its own.
    Isolated,
}

/// How long an agent may take, in milliseconds of waiting for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// For each step. `step_time_limit` on the wire.
    #[serde(rename = "step_time_limit")]
    pub step_ms: u64,
    /// A bank for the whole match: what a step takes beyond its limit is drawn from it. `step_limit_pool` on the wire.
    #[serde(rename = "step_limit_pool")]
    pub bank_ms: u64,
}

/// What a game starts from, beside its config.
#[derive(Debug, Clone)]
pub struct Setup {
    /// All randomness of the game comes from here.
    pub seed: Seed,
    /// The agents, in the order of their seats; all different.
    pub agents: Vec<AgentId>,
}

/// The rules of a game.
pub trait Game: Send + Sized + 'static {
    /// Its name, such as `food_catcher`.
    const NAME: &'static str;
    /// One sentence for those who choose among games.
    const DESCRIPTION: &'static str;
    /// How agents take part.
    const MODE: UpdateMode;
    /// How many agents can play.
    const SEATS: RangeInclusive<usize>;
    /// The version of the rules, from 1. A change that can alter a state, a score or a result raises it, so that games by
    /// the old rules and by the new ones are told apart.
    const RULES_VERSION: u32 = 1;
    /// The usual time limits.
    const LIMITS: TimeLimits;
    /// Whether all who are asked in an epoch see the same, but for what they play as.
    const IS_SHARED: bool = !matches!(Self::MODE, UpdateMode::Isolated);
    /// Its constants, which agents are told and users may set. Refuses unknown keys (`deny_unknown_fields`), and each key has
    /// a default.
    type Config: Serialize + DeserializeOwned;
    /// One action as an agent sends it: an object with a key `action`. Unknown keys are ignored; what is written again holds
    /// the known ones only.
    type Action: Serialize + DeserializeOwned + Send;

    /// The game before its first epoch. The number of agents has been checked against [`Game::SEATS`].
    ///
    /// # Errors
    /// When the config can't be played: a grid too small for so many, a number out of its range.
    fn new(config: Self::Config, setup: Setup) -> Result<Self, OptionsError>;

    /// Its constants.
    fn config(&self) -> &Self::Config;

    /// Whether the agent on this seat is to move in the coming epoch. A seat that is out of the game (a dead snake) need not be asked.
    fn is_asked(&self, seat: Seat) -> bool;

    /// Appends what the agent on this seat sees, as the members of a JSON object without the braces around them: `"a":1,"b":[]`.
    /// The same for all who are asked if [`Game::IS_SHARED`]. Changes nothing. The keys `epoch`, `agent_ids` and `remaining_overage_ms` are
    /// the runner's, and so are those of the protocol.
    fn write_state(&self, seat: Seat, out: &mut Vec<u8>);

    /// Plays one epoch. No action whatsoever is an error: what can't be done is rejected with a reason and changes nothing. Once
    /// the game has ended this changes nothing at all.
    fn step(&mut self, actions: &Actions<Self::Action>, events: &mut Events);

    /// Takes a seat out of the game: its agent was disqualified and gives no actions from now on.
    fn disqualify(&mut self, seat: Seat);

    /// How the game ended, such as `GAME_ENDED` or `CHECKMATE`; `None` while it goes on.
    fn termination(&self) -> Option<&'static str>;

    /// The score of each seat as it stands.
    fn scores(&self) -> Vec<f64>;

    /// True if the game has ended without anything to be judged: it counts for no agent, not even as a draw.
    fn is_void(&self) -> bool {
        false
    }

    /// Utility and security of each seat, where the game is a challenge that came to its end by its rules.
    fn challenge_scores(&self) -> Option<Vec<Score>> {
        None
    }

    /// What a seat plays as, where the game names its sides: `WHITE`.
    fn side(&self, _seat: Seat) -> Option<&'static str> {
        None
    }
}

/// The actions of one epoch that had the right types.
#[derive(Debug)]
pub struct Actions<A> {
    /// By seat. `None`: not asked, or no valid reply.
    seats: Vec<Option<Vec<Offer<A>>>>,
}

/// An action, and its place in the list that the agent sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer<A> {
    /// From 0.
    pub index: usize,
    /// What the agent wants.
    pub action: A,
}

impl<A> Actions<A> {
    /// Actions by seat, for those who call rules directly. `None`: no valid reply.
    pub fn new(seats: Vec<Option<Vec<A>>>) -> Actions<A> {
        let offers =
            |list: Vec<A>| list.into_iter().enumerate().map(|(index, action)| Offer { index, action }).collect();
        Actions { seats: seats.into_iter().map(|list| list.map(offers)).collect() }
    }

    /// What the agent on this seat wants, in its order. Empty as well when it gave no valid reply.
    pub fn of(&self, seat: Seat) -> &[Offer<A>] {
        self.seats.get(seat.0).and_then(|list| list.as_deref()).unwrap_or_default()
    }

    /// Whether the agent on this seat gave a valid reply.
    pub fn has_replied(&self, seat: Seat) -> bool {
        self.seats.get(seat.0).is_some_and(Option::is_some)
    }
}

/// What came of the actions of one epoch, beside the new state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    rejections: Vec<Rejected>,
    forfeits: Vec<Forfeit>,
}

/// An action that wasn't taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejected {
    /// Whose.
    pub seat: usize,
    /// Its place in the list, from 0; `None` when it is the list as a whole.
    pub index: Option<usize>,
    /// Why, for the agent's owner.
    pub reason: Cow<'static, str>,
}

/// A seat that lost by the rules of the game for what it did: an illegal move in chess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forfeit {
    /// Whose.
    pub seat: Seat,
    /// Which rule.
    pub verdict: Verdict,
    /// What happened, for the agent's owner.
    pub detail: String,
}

impl Events {
    /// Notes that an action isn't taken.
    pub fn reject(&mut self, seat: Seat, index: usize, reason: impl Into<Cow<'static, str>>) {
        self.rejections.push(Rejected { seat: seat.0, index: Some(index), reason: reason.into() });
    }

    /// Notes that a seat loses by the rules for what it did. If actions of it are rejected in the same epoch, the detail is the
    /// reason of one of them, or ends with it after a colon: a replay holds only those that were taken, and is verified by that.
    pub fn forfeit(&mut self, seat: Seat, verdict: Verdict, detail: impl Into<String>) {
        self.forfeits.push(Forfeit { seat, verdict, detail: detail.into() });
    }

    /// The actions that weren't taken, by seat and place.
    pub fn rejections(&self) -> &[Rejected] {
        &self.rejections
    }

    /// The seats that lost by the rules.
    pub fn forfeits(&self) -> &[Forfeit] {
        &self.forfeits
    }

    fn clear(&mut self) {
        self.rejections.clear();
        self.forfeits.clear();
    }
}
