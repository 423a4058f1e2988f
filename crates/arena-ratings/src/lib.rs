//! From results to standings: points, Elo, Glicko-2, OpenSkill.
//!
//! Everything here is pure: equal results in equal order and equal options give equal numbers, to the last bit. Who plays
//! whom, and where results are kept, is for others to say; agents are numbers here.

mod elo;
mod glicko2;
mod openskill;
mod results;

pub use elo::{ELO_PER_LOGIT, EloOptions, difference, elo, expected_score};
pub use glicko2::{Glicko2, Glicko2Options, glicko2};
pub use openskill::{OpenSkill, OpenSkillOptions, openskill};
pub use results::{AgentIndex, Game, Outcome, Results, ResultsError, SeatResult, Tally, tallies};
