//! Matches over a work queue: a dispatcher publishes the matches of a tournament or league as jobs on NATS, and workers
//! on other machines play them.
//!
//! A job contains everything that a match depends on, and identifies agents by the hash of their content. A worker
//! plays the job with the match loop of `arena-match`, publishes the result with its replay, and then acknowledges the
//! job. Therefore no match is lost if a worker dies. A result that arrives twice counts once. The dispatcher verifies each
//! replay by the rules. A second worker plays a sample of the matches, and the end of the run lists the differences.

mod agents;
mod audit;
mod cache;
mod connect;
mod dispatcher;
mod executor;
mod names;
mod publish;
pub(crate) mod wire;
mod worker;

pub use agents::TravelError;
pub use connect::NatsError;
pub(crate) use executor::prepare_agents;
pub use executor::{NatsExecutor, NatsOptions, PrepareError, Prepared, prepare};
pub use worker::{WorkError, Worker, WorkerEvent, work};

/// The default share of matches that two workers play for comparison.
pub const CROSS_CHECK: f64 = 0.05;

/// Returns a random id, in hexadecimal, for a tournament or for one start of a worker.
///
/// # Errors
/// If the system's random number generator fails.
pub(crate) fn draw_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(arena_model::hex::encode(&bytes))
}
