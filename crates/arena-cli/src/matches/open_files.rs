//! Limits on open files: parallel matches need many, and the system allows a process few by default.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::Failure;

/// File descriptors per running agent: three pipes (two of them twice), the launcher's socket, the agent's process and
/// its CPU times.
const PER_SEAT: u64 = 8;

/// Other file descriptors per match: both replays of a pair, and the agent's ends of the pipes while an agent starts.
const PER_MATCH: u64 = 11;

/// Other file descriptors of the program: terminal, signals, clocks, and inherited ones.
const OTHERWISE: u64 = 32;

/// Raises the limit on open files to its maximum. Fails if the maximum is too low for the parallel matches.
pub fn allow(concurrency: usize, seats: usize) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If the limit can't be raised, the current one may suffice.
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    match allowed.and_then(|allowed| refusal(concurrency as u64, seats as u64, allowed)) {
        Some(sentence) => Err(Failure::usage(sentence)),
        None => Ok(()),
    }
}

/// Returns an error message if the limit is too low for this number of parallel matches.
fn refusal(concurrency: u64, seats: u64, allowed: u64) -> Option<String> {
    let each = PER_MATCH + PER_SEAT * seats;
    let needed = OTHERWISE + each * concurrency;
    let most = allowed.saturating_sub(OTHERWISE) / each;
    (needed > allowed && concurrency > 1).then(|| {
        format!(
            "{concurrency} parallel games need {needed} open files, but the system allows {allowed}: \
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
    fn too_many_games_are_refused_with_advice() {
        assert_eq!(refusal(128, 2, 4096), None);
        let refused = refusal(128, 2, 1024).unwrap();
        expect!["128 parallel games need 3488 open files, but the system allows 1024: use `--concurrency 36`, or raise the limit as root: `ulimit -Hn 3488`"].assert_eq(&refused);
        assert_eq!(refusal(36, 2, 1024), None);
        assert!(refusal(37, 2, 1024).is_some());
        // A single game is allowed with any limit.
        assert_eq!(refusal(1, 8, 20), None);
        assert!(refusal(2, 8, 20).unwrap().contains("use `--concurrency 1`"));
    }
}
