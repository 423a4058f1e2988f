//! Execution of tournaments and leagues. A [`Competition`] returns the next pairing and records results. An
//! [`Executor`] plays the matches, on this machine or by workers over NATS. Both report failures as [`RunError`].
//!
//! Plans, pairings and standings are in `arena-tournament`, the match loop is in `arena-match`.

mod competition;
mod entrants;
mod executor;
mod journal;
mod league;
mod local;
pub mod nats;

pub use competition::{Competition, Ended, Event, Next};
pub use entrants::{EntrantError, FilesChanged, agent_of, enter};
pub use executor::{Executor, RunError, causes};
pub use journal::{Journal, JournalError, REPLAYS, check_folder, format_of, private_paths, read_pgn};
pub use league::{Change, Joined, LeagueFolder, Until};
pub use local::LocalExecutor;
