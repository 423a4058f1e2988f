//! Matches over a work queue: a tournament hands its matches to workers on any machines by way of NATS, and believes of what comes back
//! only what it can check.
//!
//! A job is a match with all that it comes of; agents travel by content. A worker plays it with the match loop of `arena-match`, publishes
//! the result with its replay, and only then takes the job off the queue, so a worker that dies loses nothing and a result that comes
//! twice counts once. The tournament plays each replay again by the rules, and has some matches played by two workers; `referee` says
//! what that shows.

mod agents;
mod audit;
mod cache;
mod connect;
mod dispatcher;
mod executor;
mod names;
mod publish;
mod referee;
mod wire;
mod worker;

pub use agents::TravelError;
pub use connect::NatsError;
pub use executor::{NatsExecutor, NatsOptions, PrepareError, Prepared, prepare};
pub use worker::{Heard, WorkError, Worker, work};

/// Random hexadecimal digits, by which a tournament or a start of a worker is known.
///
/// # Errors
/// When the system gives no randomness.
pub(crate) fn draw_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
