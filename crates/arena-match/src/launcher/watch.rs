//! Watching an agent: until it exits, uses too much, or the runner wants it gone. Then nothing of it is left.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, getpid, pidfd_open, wait};

use super::descendants;
use crate::process::wire::{self, Report};
use crate::process::{Ended, How, InForce, KillReason, Limits};

/// How often memory and processes are counted.
const INTERVAL: Duration = Duration::from_millis(200);

/// How often when an agent is past half of what it may use, so that it can't run far beyond it in between.
const SHORT_INTERVAL: Duration = Duration::from_millis(20);

/// Which processes are the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// All in our process namespace but us.
    Namespace,
    /// All that descend from us.
    Descendants,
}

/// Signals of ended children, as something to poll. Called after the agent is started, which would inherit that they are
/// held back; children that ended before are looked for once.
fn child_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Tells the runner that the agent runs, watches it, and returns when all its processes are gone.
/// `None` if the runner was gone before.
pub(super) fn until_the_end(
    control: &OwnedFd,
    agent: u32,
    in_force: InForce,
    limits: &Limits,
    members: Members,
) -> Option<Ended> {
    let agent = i32::try_from(agent).ok().and_then(Pid::from_raw)?;
    // It can't be reaped yet, so the number is still its own.
    let pidfd = pidfd_open(agent, PidfdFlags::empty()).ok();
    let fds: Vec<_> = pidfd.iter().map(AsFd::as_fd).collect();
    let told = wire::send(control, &Report::Started(in_force), &fds).is_ok();
    let mut peak_bytes = 0;
    let how = match child_signals() {
        Ok(signals) if told => watch(control, &signals, agent, limits, members, &mut peak_bytes),
        _ => How::Killed(KillReason::Asked),
    };
    let left_behind = match how {
        How::Exited(_) | How::Signalled(_) => count_left(members),
        _ => 0,
    };
    end_members(members);
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let (max_rss_bytes, cpu_time_us) = usage.map_or((0, 0), |usage| {
        let kib = u64::try_from(usage.max_rss()).unwrap_or(0);
        let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        (kib * 1024, u64::try_from(cpu).unwrap_or(0))
    });
    told.then_some(Ended { how, left_behind, max_rss_bytes: max_rss_bytes.max(peak_bytes), cpu_time_us })
}

fn watch(
    control: &OwnedFd,
    signals: &SignalFd,
    agent: Pid,
    limits: &Limits,
    members: Members,
    peak_bytes: &mut u64,
) -> How {
    let mut due = Instant::now() + INTERVAL;
    if let Some(how) = reap(agent) {
        return how;
    }
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return How::Killed(KillReason::Asked),
        }
        let [control_ready, signal_ready] = fds.map(|fd| !fd.revents().is_empty());
        if signal_ready {
            while signals.read_signal().is_ok_and(|signal| signal.is_some()) {}
            if let Some(how) = reap(agent) {
                return how;
            }
        }
        // The runner sends nothing any more: that it can be read from means that it is over.
        if control_ready {
            return How::Killed(KillReason::Asked);
        }
        if Instant::now() >= due {
            let used = Used::by(members, limits.processes.is_some());
            *peak_bytes = used.memory_bytes.max(*peak_bytes);
            if limits.memory_bytes.is_some_and(|limit| used.memory_bytes > limit) {
                return How::Killed(KillReason::Memory);
            }
            if limits.processes.is_some_and(|limit| used.processes > limit) {
                return How::Killed(KillReason::Processes);
            }
            let is_close = limits.memory_bytes.is_some_and(|limit| used.memory_bytes > limit / 2);
            due = Instant::now() + if is_close { SHORT_INTERVAL } else { INTERVAL };
        }
    }
}

/// Reaps all children that are over, orphans among them; says how the agent ended if it is one of them.
fn reap(agent: Pid) -> Option<How> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == agent => return Some(how(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Exited(code),
        (None, Some(signal)) => How::Signalled(signal),
        (None, None) => How::Unknown,
    }
}

/// What the agent's processes use together.
#[derive(Default)]
struct Used {
    memory_bytes: u64,
    processes: u32,
}

impl Used {
    fn by(members: Members, count_threads: bool) -> Used {
        let mut used = Used::default();
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        for pid in pids(members) {
            let resident = fs::read_to_string(format!("/proc/{pid}/statm"))
                .ok()
                .and_then(|statm| statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
            used.memory_bytes += resident.unwrap_or(0) * page_bytes;
            // In a namespace the kernel counts them itself.
            if count_threads && members == Members::Descendants {
                let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
                used.processes += u32::try_from(threads).unwrap_or(u32::MAX);
            }
        }
        used
    }
}

fn pids(members: Members) -> Vec<i32> {
    match members {
        Members::Descendants => descendants::all().into_iter().map(Pid::as_raw_pid).collect(),
        Members::Namespace => {
            let own = getpid().as_raw_pid();
            let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            pids.filter(|&pid| pid != own).collect()
        }
    }
}

/// How many processes go on although the agent is over.
fn count_left(members: Members) -> u32 {
    // Those that ended with it, or before it, are no more than numbers.
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
    u32::try_from(pids(members).len()).unwrap_or(u32::MAX)
}

/// Ends all the agent's processes and reaps them, which also adds what they used to our account.
fn end_members(members: Members) {
    match members {
        Members::Descendants => descendants::end_all(),
        Members::Namespace => {
            // Reaches all in the namespace at once; the kernel lets nobody fork in between.
            let everybody = nix::unistd::Pid::from_raw(-1);
            let _ = nix::sys::signal::kill(everybody, Signal::SIGKILL);
            while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
        }
    }
}
