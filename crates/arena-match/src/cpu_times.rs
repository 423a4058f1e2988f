//! CPU accounting: the CPU time of an agent's processes and their time cpu_times waiting for a core, as reported
//! by the kernel.
//!
//! The match charges an agent the elapsed time minus the time for which its processes waited for the shared
//! core. The deduction is at most the time for which other processes could have used that core
//! (docs/decisions/0045).

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// Maximum number of processes to measure. It exceeds every process limit and bounds the walk of a process
/// tree that keeps growing.
const MOST: usize = 512;

/// The CPU accounting of an agent: the total times of all its processes since their start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// CPU time, including that of processes and threads that have ended.
    pub running: Duration,
    /// Time in the run queue, waiting for a core.
    pub waiting: Duration,
}

impl CpuTimes {
    /// Returns the CPU accounting of all descendants of the process `root`. Returns zero if the kernel
    /// doesn't report these times.
    pub fn below(root: u32) -> CpuTimes {
        let mut cpu_times = CpuTimes::default();
        let mut pids = children(root);
        let mut seen = 0;
        while let Some(pid) = pids.pop() {
            seen += 1;
            if seen > MOST {
                break;
            }
            cpu_times.running += running(pid).unwrap_or_default();
            for task in names(&format!("/proc/{pid}/task")) {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).unwrap_or_default();
                // The fields of `schedstat`: nanoseconds on a core, nanoseconds waiting for a core, number of
                // time slices.
                let waited = text.split(' ').nth(1).and_then(|waited| waited.parse().ok());
                cpu_times.waiting += Duration::from_nanos(waited.unwrap_or(0));
            }
            pids.extend(children(pid));
        }
        cpu_times
    }
}

/// The difference between two measurements. The waiting time of processes that ended in between is lost, so
/// negative differences become zero.
impl Sub for CpuTimes {
    type Output = CpuTimes;

    fn sub(self, before: CpuTimes) -> CpuTimes {
        CpuTimes {
            running: self.running.saturating_sub(before.running),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

/// Returns the CPU time of a process, including its reaped children.
fn running(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name is in brackets and may itself contain brackets. After the name, utime, stime, cutime
    // and cstime are fields 12 to 15.
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
        // The child's own child computes and ends; the child waits for it, then sleeps.
        let script = "(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done); sleep 60; :";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let cpu_times = loop {
            let cpu_times = CpuTimes::below(std::process::id());
            let computes = !children(child.id()).is_empty() && begun.elapsed() < Duration::from_secs(30);
            if cpu_times.running > Duration::from_millis(30) || !computes && begun.elapsed() > Duration::from_secs(1) {
                break cpu_times;
            }
            thread::sleep(Duration::from_millis(5));
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(cpu_times.running >= Duration::from_millis(20), "{cpu_times:?}");
    }
}
