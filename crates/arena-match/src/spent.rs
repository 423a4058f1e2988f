//! What the processes of an agent have had of the processor, and for how long they have stood ready without it, as the system tells.
//!
//! An agent is charged the time that passed, less the time that its processes waited for the shared core. That deduction is at most
//! the time that they left to others (docs/decisions/0045).

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// More processes than any agent may have; a tree that grows while it is walked has an end here.
const MOST: usize = 512;

/// Time of all processes of an agent together, since they started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// On a core; also that of processes and threads which have ended.
    pub running: Duration,
    /// Ready to run, while others had the core.
    pub waiting: Duration,
}

impl Spent {
    /// What the processes below this one have spent. Nothing where the system doesn't tell.
    pub fn below(root: u32) -> Spent {
        let mut spent = Spent::default();
        let mut pids = children(root);
        let mut seen = 0;
        while let Some(pid) = pids.pop() {
            seen += 1;
            if seen > MOST {
                break;
            }
            spent.running += running(pid).unwrap_or_default();
            for task in names(&format!("/proc/{pid}/task")) {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).unwrap_or_default();
                // Nanoseconds on a core, nanoseconds waiting for one, and how often it got one.
                let waited = text.split(' ').nth(1).and_then(|waited| waited.parse().ok());
                spent.waiting += Duration::from_nanos(waited.unwrap_or(0));
            }
            pids.extend(children(pid));
        }
        spent
    }
}

/// From an earlier look to a later one. Who ended in between takes its waiting with it; less than nothing is nothing.
impl Sub for Spent {
    type Output = Spent;

    fn sub(self, before: Spent) -> Spent {
        Spent {
            running: self.running.saturating_sub(before.running),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

/// CPU time of a process, and of the children that it has waited for.
fn running(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything, also brackets. Behind it, utime, stime, cutime and cstime are the 12th to 15th.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 1000 / clock_ticks_per_second().max(1)))
}

fn children(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for task in names(&format!("/proc/{pid}/task")) {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).unwrap_or_default();
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    children
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).ok().into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn grandchildren_and_the_dead_count() {
        // A child whose child computes and ends; it has waited for that and sleeps.
        let script = "(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done); sleep 60; :";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let spent = loop {
            let spent = Spent::below(std::process::id());
            let computes = !children(child.id()).is_empty() && begun.elapsed() < Duration::from_secs(30);
            if spent.running > Duration::from_millis(30) || !computes && begun.elapsed() > Duration::from_secs(1) {
                break spent;
            }
            thread::sleep(Duration::from_millis(5));
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(spent.running >= Duration::from_millis(20), "{spent:?}");
    }
}
