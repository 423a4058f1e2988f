//! Logs for the owners of agents, next to the replay: the agent's faults and its stderr.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::match_plan::{OwnerLog, PlayedMatch};

/// Writes a log for each agent next to a replay. The logs of `game.jsonl` are `game.seat0.log`, `game.seat1.log` and so
/// on.
///
/// # Errors
/// The path of the first log that can't be written, with the reason. The other logs are still written.
pub fn write(replay: &Path, played_match: &PlayedMatch) -> Result<(), (PathBuf, io::Error)> {
    let mut all = Ok(());
    for (seat, log) in played_match.logs.iter().enumerate() {
        let path = path(replay, seat);
        let mut text = Vec::new();
        let written = write_log(log, &mut text).and_then(|()| crate::output::write(&path, &text));
        all = all.and(written.map_err(|error| (path, error)));
    }
    all
}

/// Returns the path of the log of the agent on `seat`, next to a replay.
pub fn path(replay: &Path, seat: usize) -> PathBuf {
    replay.with_extension(format!("seat{seat}.log"))
}

/// Writes one log: the agent's faults, then its stderr.
///
/// # Errors
/// If the log can't be written.
pub fn write_log(log: &OwnerLog, to: &mut impl Write) -> io::Result<()> {
    if let Some((verdict, detail)) = &log.verdict {
        writeln!(to, "arena: disqualified, {verdict}: {detail}")?;
    }
    for fault in &log.faults {
        writeln!(to, "arena: fault: {} [{}]", fault.what, fault.line)?;
    }
    if log.refused > 0 {
        let first = log.first_error.as_deref().filter(|_| log.faults.is_empty()).unwrap_or_default();
        let colon = if first.is_empty() { "" } else { ": " };
        writeln!(to, "arena: {} of {} answers have refused actions{colon}{first}", log.refused, log.answers)?;
    }
    to.write_all(&log.stderr.head)?;
    if log.stderr.left_out > 0 {
        writeln!(to, "\narena: {} bytes of stderr are left out here", log.stderr.left_out)?;
    }
    to.write_all(&log.stderr.tail)
}
