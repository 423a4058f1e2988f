//! Ratings from results: points, Elo, and Bradley–Terry with ties, intervals and ranks; the
//! sequential probability ratio test (SPRT) of two agents; and means and differences of scores over seeds, with their
//! intervals, p values and sample sizes.
//!
//! The crate is pure: equal results in equal order and equal options give equal numbers, to the last bit. Agents are
//! numbers; other crates handle names, pairings and storage.

pub mod bradley_terry;
mod clustered;
mod distributions;
mod elo;
mod holm;
mod linear;
mod mean;
mod paired;
mod permutation;
mod power;
mod rating_table;
mod results;
mod sprt;
#[cfg(test)]
mod testing;

pub use clustered::{ClusteredMean, MIN_CLUSTERS, bound_without_events};
pub use distributions::LEVEL;
pub use elo::{ELO_PER_LOGIT, EloOptions, difference, elo, expected_score};
pub use holm::holm;
pub use mean::Mean;
pub use paired::PairedDifference;
pub use permutation::sign_flips;
pub use power::{POWER, clusters_needed, power};
pub use rating_table::{RatingOptions, RatingRow, RatingTable, rate_all};
pub use results::{AgentIndex, Game, PairOutcome, RankedSeat, Results, ResultsError, Tally, tallies};
pub use sprt::{Difference, EloModel, Scores, Sprt, SprtError, SprtState, SprtVerdict};

#[cfg(test)]
mod tests {
    mod coverage;
}
