//! Logs for the owners of agents, next to the replay.

use std::path::Path;

use arena_match::Contest;
pub use arena_match::logs::write as write_all;

use crate::exit::Failure;

/// Writes a log for each agent: `game.jsonl` has `game.seat0.log` and so on.
pub fn write(replay: &Path, contest: &Contest) -> Result<(), Failure> {
    write_all(replay, contest).map_err(|(path, error)| super::cannot_write(&path, &error))
}
