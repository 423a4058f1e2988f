//! Which processes descend from this one. Orphans of the agent's are among them, since they fall to the launcher.

use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, prlimit, wait};

/// Rounds in which new processes are looked for before the end. Each new one needs a free place under the limit of
/// processes while the others are held still, so that few rounds suffice.
const MAX_ROUNDS: usize = 200;

/// How long processes that were killed may take to be gone. A machine that has much to do lets them wait. Whoever waits for us waits a
/// little longer.
const END_WITHIN: Duration = Duration::from_secs(4);

/// All processes below this one.
pub(super) fn all() -> Vec<Pid> {
    let own = getpid();
    if fs::exists("/proc/thread-self/children").unwrap_or(false) { by_children(own) } else { by_parents(own) }
}

/// Walks down the lists of children that the kernel keeps of each thread.
fn by_children(own: Pid) -> Vec<Pid> {
    let mut found: Vec<Pid> = Vec::new();
    let mut next = vec![own];
    while let Some(pid) = next.pop() {
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
                // A process that changes its parent while we walk may show up twice.
                if !found.contains(&child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}

/// Asks all processes of the system for their parents, where the kernel keeps no lists.
fn by_parents(own: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pairs: Vec<(i32, i32)> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name before it may hold anything, so what follows is found from its last bracket.
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

/// Ends all processes below this one, also those that make new ones as fast as they can, and reaps them.
pub(super) fn end_all() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let mut stopped: Vec<Pid> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let new: Vec<Pid> = all().into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            // Stopped, and not ended at once: a stopped process keeps its place under the limit, so nobody takes it.
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
        // Reaps what is over. Without any child left, nothing of the agent's is left.
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
