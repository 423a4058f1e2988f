//! The search for the launcher's descendants: the agent's processes, including orphans that the launcher has
//! adopted.

use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, prlimit, wait};

/// Maximum number of searches for new processes. A new process needs a free slot under the process limit, and
/// stopped processes keep theirs, so a few rounds suffice.
const MAX_ROUNDS: usize = 200;

/// The time limit for the end of killed processes, which may wait for a core on a busy machine. The runner's
/// time limit is longer.
const END_WITHIN: Duration = Duration::from_secs(4);

/// Returns all descendants of this process.
pub(super) fn all() -> Vec<Pid> {
    let own = getpid();
    if fs::exists("/proc/thread-self/children").unwrap_or(false) { by_children(own) } else { by_parents(own) }
}

/// Walks the kernel's lists of children, which it keeps per thread.
fn by_children(own: Pid) -> Vec<Pid> {
    let mut found: Vec<Pid> = Vec::new();
    let mut next = vec![own];
    while let Some(pid) = next.pop() {
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
                // A process that changes its parent during the search may appear twice.
                if !found.contains(&child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}

/// Finds descendants through the parent of every process, for kernels without lists of children.
fn by_parents(own: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pairs: Vec<(i32, i32)> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The process name may contain any character, so the fields begin after the last bracket.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![own.as_raw_pid()];
    let mut looked_at = 0;
    while let Some(&parent) = found.get(looked_at) {
        looked_at += 1;
        found.extend(pairs.iter().filter(|pair| pair.1 == parent).map(|pair| pair.0));
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Ends and reaps all descendants, including processes that fork as fast as they can.
pub(super) fn end_all() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let mut stopped: Vec<Pid> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let new: Vec<Pid> = all().into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            // Stop processes before killing them: a stopped process keeps its slot under the process limit,
            // so no new process can use that slot.
            let _ = kill_process(pid, Signal::STOP);
            let _ = prlimit(Some(pid), Resource::Nproc, none);
            stopped.push(pid);
        }
    }
    let until = Instant::now() + END_WITHIN;
    while Instant::now() < until {
        for pid in all() {
            let _ = kill_process(pid, Signal::KILL);
        }
        // If the launcher has no children left, all processes of the agent have ended.
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}
