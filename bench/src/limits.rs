//! The limit on open files: thousands of subscribers need thousands of sockets, in this process and in the server,
//! which inherits the limit.

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// An upper estimate of the open files of a process besides its sockets.
const SPARE: u64 = 500;

/// Raises the limit for this number of sockets, in this process and its children.
///
/// # Errors
/// If the system's hard limit is lower.
pub fn make_room_for(sockets: u64) -> anyhow::Result<()> {
    let needed = sockets + SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = maximum.filter(|maximum| *maximum < needed) {
        bail!(
            "{sockets} connections need {needed} open files, but the system allows this user only {maximum} \
             (see `ulimit -Hn`)"
        );
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })
        .with_context(|| format!("could not raise the limit on open files to {needed}"))
}
