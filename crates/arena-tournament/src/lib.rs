//! Tournaments: who meets whom, on which seats and with which seed, and who stands where.
//!
//! Everything comes of the [`Shape`] of a tournament and the results so far, in whatever order these came in. So a tournament that is
//! broken off goes on as if nothing had happened. Playing the games, keeping their results and telling of them are others' business.

mod matching;
mod results;
mod schedule;
mod shape;
mod standings;
mod stop;

pub use results::results;
pub use schedule::{Fixture, RecordError, Schedule, Trial};
pub use shape::{Format, MAX_GAMES, Shape, ShapeError};
pub use standings::{Standing, Versus, cross_table, standings};
pub use stop::Stop;
