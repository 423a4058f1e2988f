//! From results to standings: points, Elo, Glicko-2, OpenSkill, and Bradley–Terry with ties, intervals and ranks; and the
//! sequential test that says when a match of two agents has been played long enough.
//!
//! Everything here is pure: equal results in equal order and equal options give equal numbers, to the last bit. Who plays
//! whom, and where results are kept, is for others to say; agents are numbers here.

pub mod bradley_terry;
mod distributions;
mod elo;
mod glicko2;
mod linear;
mod mean;
mod openskill;
mod results;
mod sprt;
mod standings;

pub use distributions::LEVEL;
pub use elo::{ELO_PER_LOGIT, EloOptions, difference, elo, expected_score};
pub use glicko2::{Glicko2, Glicko2Options, glicko2};
pub use mean::Mean;
pub use openskill::{OpenSkill, OpenSkillOptions, openskill};
pub use results::{AgentIndex, Game, Outcome, RankedSeat, Results, ResultsError, Tally, tallies};
pub use sprt::{Difference, EloModel, Scores, Sprt, SprtError, SprtState, SprtVerdict};
pub use standings::{RatingOptions, Standing, Standings, standings};
