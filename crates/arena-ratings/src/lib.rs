//! Ratings from results: points, Elo, Glicko-2, OpenSkill, and Bradley–Terry with ties, intervals and ranks; and the
//! sequential probability ratio test (SPRT) of two agents.
//!
//! The crate is pure: equal results in equal order and equal options give equal numbers, to the last bit. Agents are
//! numbers; other crates handle names, pairings and storage.

pub mod bradley_terry;
mod distributions;
mod elo;
mod glicko2;
mod linear;
mod mean;
mod openskill;
mod rating_table;
mod results;
mod sprt;

pub use distributions::LEVEL;
pub use elo::{ELO_PER_LOGIT, EloOptions, difference, elo, expected_score};
pub use glicko2::{Glicko2, Glicko2Options, glicko2};
pub use mean::Mean;
pub use openskill::{OpenSkill, OpenSkillOptions, openskill};
pub use rating_table::{RatingOptions, RatingRow, RatingTable, rate_all};
pub use results::{AgentIndex, Game, PairOutcome, RankedSeat, Results, ResultsError, Tally, tallies};
pub use sprt::{Difference, EloModel, Scores, Sprt, SprtError, SprtState, SprtVerdict};
