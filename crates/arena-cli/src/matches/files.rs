//! Open files: matches beside each other need many, and systems give a process few unless it asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::{Exit, Failure};

/// What an agent takes while it plays: three pipes, two of them twice, its launcher's socket, its process and its times on a core.
const PER_SEAT: u64 = 8;

/// Files of a match besides: its replay, that of the other game of its pair, and the other ends of the pipes of the agent that is being started.
const PER_MATCH: u64 = 11;

/// What the program takes besides: the terminal, signals, clocks, and what it was handed by others.
const OTHERWISE: u64 = 32;

/// Has the system allow as many open files as it ever does. Refuses matches beside each other for which these aren't enough.
pub fn allow(concurrency: usize, seats: usize) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it isn't to be had, what there is may be enough.
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    match allowed.and_then(|allowed| refusal(concurrency as u64, seats as u64, allowed)) {
        Some(sentence) => Err(Failure::new(Exit::Usage, sentence)),
        None => Ok(()),
    }
}

/// Why so many matches can't be played beside each other with so many open files, and what could be.
fn refusal(concurrency: u64, seats: u64, allowed: u64) -> Option<String> {
    let each = PER_MATCH + PER_SEAT * seats;
    let needed = OTHERWISE + each * concurrency;
    let most = allowed.saturating_sub(OTHERWISE) / each;
    (needed > allowed && concurrency > 1).then(|| {
        format!(
            "{concurrency} games beside each other need {needed} open files, and the system allows {allowed}: \
             use `--concurrency {}`, or raise the limit as root: `ulimit -Hn {needed}`",
            most.max(1)
        )
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_would_do_is_told_of_too_many_games() {
        assert_eq!(refusal(128, 2, 4096), None);
        let refused = refusal(128, 2, 1024).unwrap();
        expect!["128 games beside each other need 3488 open files, and the system allows 1024: use `--concurrency 36`, or raise the limit as root: `ulimit -Hn 3488`"].assert_eq(&refused);
        assert_eq!(refusal(36, 2, 1024), None);
        assert!(refusal(37, 2, 1024).is_some());
        // A single game is tried in any case.
        assert_eq!(refusal(1, 8, 20), None);
        assert!(refusal(2, 8, 20).unwrap().contains("use `--concurrency 1`"));
    }
}
