//! Games: rules that agents play in epochs, as in the Colosseum protocol.
//!
//! A game is a pure state machine: equal config, seed and actions give equal bytes. The author of a game implements
//! [`Game`] with the game's own types. The runner calls an [`AnyGame`], which parses the actions' JSON and reports the
//! accepted ones. The match runner (`arena-match`) handles processes, clocks and faulty agents. The games are in
//! `arena-games`.

mod adjudication;
mod any;
mod machine;
mod result;
mod time_control;
mod verdict;

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::challenge::OptionsError;
use crate::{IdError, Score, Seat, Seed};

pub use adjudication::{Adjudication, AdjudicationDecision, Adjudicator, DrawRule, EngineScore, ResignRule};
pub use any::{AnyGame, GameType, MAX_ACTIONS};
pub(crate) use any::{Running, config, parse_named, read_action};
pub(crate) use machine::SeatState;
pub use machine::{Disqualified, Match, Owner, TAINTED_SCORE, first_seat, ranks};
pub use result::{MatchOutcome, MatchResult, Moves, SeatResult, VOID};
pub use time_control::{TimeControl, TimeControlError};
pub use verdict::Verdict;

/// An agent's id in one match: 1 to 255 characters, often a UUID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

impl AgentId {
    /// The longest id, in characters. Source: the Colosseum protocol, "Agent ID".
    pub const MAX_CHARS: usize = 255;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the id has the form of those from [`agent_ids`]. Other ids are names.
    pub fn is_uuid(&self) -> bool {
        uuid::Uuid::try_parse(&self.0).is_ok()
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

/// Returns the ids of a match's agents: UUIDs derived from its seed, so that equal matches are equal byte for byte.
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

/// The agents that move in each epoch, and the states that they see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UpdateMode {
    /// One agent moves in each epoch.
    Alternating,
    /// All agents move in each epoch and see the same state.
    Simultaneous,
    /// All agents move in each epoch, each in a world of its own.
    Isolated,
}

/// The time limits of an agent, in milliseconds of waiting for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// The limit of each step: `step_time_limit` on the wire.
    #[serde(rename = "step_time_limit")]
    pub step_ms: u64,
    /// The time bank of the whole match: `step_limit_pool` on the wire. Time beyond a step's limit is subtracted from
    /// the bank.
    #[serde(rename = "step_limit_pool")]
    pub bank_ms: u64,
}

/// The time limits of the answers before a match, in milliseconds. `None` is the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartLimits {
    /// From the start of an agent to its answer to the ping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<u64>,
    /// From `isready` to `readyok`, for chess engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping_ms: Option<u64>,
}

impl StartLimits {
    /// The default of both limits. Interpreters start slowly.
    pub const USUAL_MS: u64 = 5000;
    /// The longest limit.
    pub const MAX_MS: u64 = 3_600_000;

    /// Returns these limits, with those of `others` for the missing ones.
    #[must_use]
    pub fn or(self, others: StartLimits) -> StartLimits {
        StartLimits { startup_ms: self.startup_ms.or(others.startup_ms), ping_ms: self.ping_ms.or(others.ping_ms) }
    }

    /// Returns true if both limits are the defaults.
    pub fn is_usual(&self) -> bool {
        *self == StartLimits::default()
    }

    /// Returns the limit of the first ping. An engine that starts answers `isready` too, so it has the longer limit.
    pub fn first_ms(self) -> u64 {
        self.startup_ms.unwrap_or(StartLimits::USUAL_MS).max(self.ping_ms.unwrap_or(0))
    }

    /// Returns the limit of the ping of an engine that already runs.
    pub fn later_ms(self) -> u64 {
        self.ping_ms.unwrap_or(StartLimits::USUAL_MS)
    }
}

/// The seed and agents of a new game, besides its config.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The source of all randomness in the game.
    pub seed: Seed,
    /// The agents in the order of their seats; all ids differ.
    pub agents: Vec<AgentId>,
}

/// The rules of a game.
pub trait Game: Send + Sized + 'static {
    /// The game's name, such as `food_catcher`.
    const NAME: &'static str;
    /// A description in one sentence.
    const DESCRIPTION: &'static str;
    /// The turn order.
    const MODE: UpdateMode;
    /// The allowed numbers of agents.
    const SEATS: RangeInclusive<usize>;
    /// The version of the rules, from 1. A change that can alter a state, a score or a result must raise it, because
    /// games of different versions count on different boards.
    const RULES_VERSION: u32 = 1;
    /// The default time limits.
    const LIMITS: TimeLimits;
    /// True if all agents that move in an epoch see the same state, except for the side that each plays.
    const IS_SHARED: bool = !matches!(Self::MODE, UpdateMode::Isolated);
    /// The game's constants, which users may set and agents receive. Deserialization denies unknown keys
    /// (`deny_unknown_fields`), and each key has a default.
    type Config: Serialize + DeserializeOwned;
    /// One action of an agent: an object with a key `action`. Deserialization ignores unknown keys; serialization
    /// writes only the known ones.
    type Action: Serialize + DeserializeOwned + Send;

    /// Creates the game before its first epoch. The number of agents has been checked against [`Game::SEATS`].
    ///
    /// # Errors
    /// If the game can't be played with this config: the grid is too small for the agents, or a number is out of range.
    fn new(config: Self::Config, setup: Setup) -> Result<Self, OptionsError>;

    /// Returns the game's constants.
    fn config(&self) -> &Self::Config;

    /// Returns true if the agent on this seat moves in the coming epoch. The result may be false for a seat that is out
    /// of the game, such as a dead snake's.
    fn is_asked(&self, seat: Seat) -> bool;

    /// Appends the state that the agent on this seat sees: the members of a JSON object without braces, `"a":1,"b":[]`.
    /// If [`Game::IS_SHARED`], all moving agents get the same members. The runner adds the keys `epoch`, `agent_ids`,
    /// `remaining_overage_ms` and the other keys of the protocol.
    fn write_state(&self, seat: Seat, out: &mut Vec<u8>);

    /// Plays one epoch. An impossible action isn't an error: the game rejects it with a reason, and the action
    /// changes nothing. After the end of the game, this function changes nothing.
    fn step(&mut self, actions: &Actions<Self::Action>, events: &mut Events);

    /// Takes a seat out of the game: its agent was disqualified and sends no more actions.
    fn disqualify(&mut self, seat: Seat);

    /// Returns the action that stands for the missing answer of a seat whose time is over. `None` if the seat is
    /// disqualified instead.
    fn on_time_over(&self, _seat: Seat) -> Option<Self::Action> {
        None
    }

    /// Returns the game's result code, such as `GAME_ENDED` or `CHECKMATE`, or `None` while the game runs.
    fn termination(&self) -> Option<&'static str>;

    /// Returns the current score of each seat.
    fn scores(&self) -> Vec<f64>;

    /// Returns true if the game ended without a result: it counts for no agent, not even as a draw.
    fn is_void(&self) -> bool {
        false
    }

    /// Returns the utility and security of each seat, if the game is a challenge that ended by its rules.
    fn challenge_scores(&self) -> Option<Vec<Score>> {
        None
    }

    /// Returns the side of a seat, such as `WHITE`, if the game has sides.
    fn side(&self, _seat: Seat) -> Option<&'static str> {
        None
    }
}

/// The actions of one epoch, parsed into the game's type.
#[derive(Debug)]
pub struct Actions<A> {
    /// The actions by seat. `None` means that the agent wasn't asked or sent no valid reply.
    seats: Vec<Option<Vec<IndexedAction<A>>>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IndexedAction<A> {
    /// The position, from 0.
    pub index: usize,
    pub action: A,
}

impl<A> Actions<A> {
    /// Creates the actions from one list per seat, for callers without a match runner. `None` means that the seat's
    /// agent sent no valid reply.
    pub fn new(seats: Vec<Option<Vec<A>>>) -> Actions<A> {
        let offers = |list: Vec<A>| {
            list.into_iter().enumerate().map(|(index, action)| IndexedAction { index, action }).collect()
        };
        Actions { seats: seats.into_iter().map(|list| list.map(offers)).collect() }
    }

    /// Returns the actions of the agent on this seat, in the order of its reply. The list is empty if the agent sent no
    /// valid reply.
    pub fn of(&self, seat: Seat) -> &[IndexedAction<A>] {
        self.seats.get(seat.0).and_then(|list| list.as_deref()).unwrap_or_default()
    }
}

/// The rejections and forfeits of one epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    rejections: Vec<Rejected>,
    forfeits: Vec<Forfeit>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejected {
    pub seat: usize,
    /// The action's position in the list, from 0, or `None` for the whole list.
    pub index: Option<usize>,
    /// The reason, shown to the agent's owner.
    pub reason: Cow<'static, str>,
}

/// A seat that lost by the rules: because of an action, such as an illegal move in chess, or because it didn't act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forfeit {
    /// The seat that lost.
    pub seat: Seat,
    pub verdict: Verdict,
    /// The explanation, shown to the agent's owner.
    pub detail: String,
}

impl Events {
    pub fn reject(&mut self, seat: Seat, index: usize, reason: impl Into<Cow<'static, str>>) {
        self.rejections.push(Rejected { seat: seat.0, index: Some(index), reason: reason.into() });
    }

    /// Records that a seat loses by the rules. If an action of the seat is also rejected in this epoch, `detail` must
    /// be the reason of one such rejection, or end with a colon and that reason. The verification of a replay relies on
    /// this, because a replay contains accepted actions only.
    pub fn forfeit(&mut self, seat: Seat, verdict: Verdict, detail: impl Into<String>) {
        self.forfeits.push(Forfeit { seat, verdict, detail: detail.into() });
    }

    /// Returns the rejected actions, by seat and position.
    pub fn rejections(&self) -> &[Rejected] {
        &self.rejections
    }

    /// Returns the seats that lost by the rules.
    pub fn forfeits(&self) -> &[Forfeit] {
        &self.forfeits
    }

    fn clear(&mut self) {
        self.rejections.clear();
        self.forfeits.clear();
    }
}
