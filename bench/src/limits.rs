//! The limit on open files: thousands of subscribers need thousands of sockets, here and in the server, which inherits it.

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that each process has open beside its sockets, generously.
const SPARE: u64 = 500;

/// Makes room for so many sockets in this process and in those that it starts.
///
/// # Errors
/// If the system doesn't allow as many.
pub fn make_room_for(sockets: u64) -> anyhow::Result<()> {
    let needed = sockets + SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // No limit is `None`.
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
