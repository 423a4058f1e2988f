//! Plays tournaments and leagues. A [`Competition`] names the next pairing and takes results; an [`Executor`] plays the matches, on this
//! machine or by workers over NATS. A failure of either is a [`RunError`].
//!
//! Plans, pairings and standings are `arena-tournament`'s; the match loop is `arena-match`'s.

mod competition;
mod entrants;
mod executor;
mod journal;
pub mod league;
mod local;
pub mod nats;

pub use competition::{Competition, Ended, Event, Next, Terms};
pub use entrants::{EntrantError, FilesChanged, agent_of, enter};
pub use executor::{Executor, RunError, causes};
pub use journal::{Journal, JournalError, REPLAYS, check_folder, places, read_pgn};
pub use local::LocalExecutor;
