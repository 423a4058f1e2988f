//! The supervision of an agent until the agent exits or exceeds a limit, or the runner requests its end. Afterwards all
//! processes of the agent have ended.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::time::clock_getcpuclockid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, getpid, pidfd_open, wait};

use super::descendants;
use crate::process::wire::{self, Report};
use crate::process::{ActiveSandbox, Ended, ExitCause, KillReason, Limits};

/// The interval between measurements of memory and processes.
const INTERVAL: Duration = Duration::from_millis(200);

/// The interval for an agent above half of its memory limit, so that it can't exceed the limit by much
/// between two measurements.
const SHORT_INTERVAL: Duration = Duration::from_millis(20);

/// The interval for an agent without limits that doesn't run.
const LONG_INTERVAL: Duration = Duration::from_secs(10);

/// The number of sockets that the memory estimate ignores. Programs often use some sockets between their own
/// processes.
const FREE_SOCKETS: u64 = 64;

/// The maximum number of queued datagrams of a socket in a new network namespace.
const DATAGRAMS: u64 = 11;

/// The processes that belong to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// All processes in the watching process's PID namespace except itself.
    Namespace,
    /// All descendants of the watching process.
    Descendants,
}

/// Returns a pollable source of signals for ended children. Must be called after the agent's start, because an agent
/// that starts later would inherit the blocked signal. The source doesn't report children that ended earlier, so the
/// caller reaps these before its first poll.
fn child_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Reports the agent's start to the runner, watches the agent, and returns after the end of all its
/// processes. Returns `None` if the runner had ended before the report.
pub(super) fn until_the_end(
    control: &OwnedFd,
    agent: u32,
    in_force: ActiveSandbox,
    limits: &Limits,
    members: Members,
) -> Option<Ended> {
    let agent = i32::try_from(agent).ok().and_then(Pid::from_raw)?;
    // The agent hasn't been reaped yet, so the process id is still its own.
    let pidfd = pidfd_open(agent, PidfdFlags::empty()).ok();
    let fds: Vec<_> = pidfd.iter().map(AsFd::as_fd).collect();
    let is_reported = wire::send(control, &Report::Started(in_force), &fds).is_ok();
    let mut peak_bytes = 0;
    let cause = match child_signals() {
        Ok(signals) if is_reported => watch(control, &signals, agent, limits, members, &mut peak_bytes),
        _ => ExitCause::Killed(KillReason::Requested),
    };
    let left_behind = match cause {
        ExitCause::Exited(_) | ExitCause::Signaled(_) => count_left(members),
        _ => 0,
    };
    end_members(members);
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let (max_rss_bytes, cpu_time_us) = usage.map_or((0, 0), |usage| {
        let kib = u64::try_from(usage.max_rss()).unwrap_or(0);
        let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        (kib * 1024, u64::try_from(cpu).unwrap_or(0))
    });
    is_reported.then_some(Ended { cause, left_behind, max_rss_bytes: max_rss_bytes.max(peak_bytes), cpu_time_us })
}

fn watch(
    control: &OwnedFd,
    signals: &SignalFd,
    agent: Pid,
    limits: &Limits,
    members: Members,
    peak_bytes: &mut u64,
) -> ExitCause {
    let (mut due, mut interval) = (Instant::now() + INTERVAL, INTERVAL);
    let mut activity = Activity::default();
    if let Some(cause) = reap(agent) {
        return cause;
    }
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return ExitCause::Killed(KillReason::Requested),
        }
        let [control_ready, signal_ready] = fds.map(|fd| !fd.revents().is_empty());
        if signal_ready {
            while signals.read_signal().is_ok_and(|signal| signal.is_some()) {}
            if let Some(cause) = reap(agent) {
                return cause;
            }
        }
        // The runner sends nothing after the start, so a readable socket means that the runner closed it.
        if control_ready {
            return ExitCause::Killed(KillReason::Requested);
        }
        if Instant::now() >= due {
            if activity.is_idle() {
                interval = idle_interval(interval, limits);
                due = Instant::now() + interval;
                continue;
            }
            let pids = pids(members);
            let used = Used::by(&pids, members, limits.processes.is_some());
            activity.see(&pids);
            *peak_bytes = used.memory_bytes.max(*peak_bytes);
            if limits.memory_bytes.is_some_and(|limit| used.memory_bytes > limit) {
                return ExitCause::Killed(KillReason::Memory);
            }
            if limits.processes.is_some_and(|limit| used.processes > limit) {
                return ExitCause::Killed(KillReason::Processes);
            }
            let is_close = limits.memory_bytes.is_some_and(|limit| used.memory_bytes > limit / 2);
            interval = if is_close { SHORT_INTERVAL } else { INTERVAL };
            due = Instant::now() + interval;
        }
    }
}

/// Returns the next interval for an agent that hasn't run in the last one. An agent with limits could exceed them during
/// an interval that is longer than that of running agents.
fn idle_interval(last: Duration, limits: &Limits) -> Duration {
    let is_limited = limits.memory_bytes.is_some() || limits.processes.is_some();
    (last * 2).min(if is_limited { INTERVAL } else { LONG_INTERVAL })
}

/// Reaps all children that have ended, including orphans. Returns the agent's termination cause if the agent
/// is one of them.
fn reap(agent: Pid) -> Option<ExitCause> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == agent => return Some(cause(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

fn cause(status: WaitStatus) -> ExitCause {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitCause::Exited(code),
        (None, Some(signal)) => ExitCause::Signaled(signal),
        (None, None) => ExitCause::Unknown,
    }
}

/// The CPU times of the agent's processes, read before the processes were last listed. A process that was new then has
/// no time.
#[derive(Default)]
struct Activity(Vec<(i32, Option<Duration>)>);

impl Activity {
    /// Returns true if no process has run since the processes were last listed. They have then started no others, and
    /// their usage is the same.
    fn is_idle(&mut self) -> bool {
        let mut is_idle = !self.0.is_empty();
        for (pid, before) in &mut self.0 {
            let now = cpu_time(*pid);
            is_idle &= now.is_some() && *before == now;
            *before = now;
        }
        is_idle
    }

    /// Records the list of processes. New processes count as active, because they may have run unseen.
    fn see(&mut self, pids: &[i32]) {
        let known = std::mem::take(&mut self.0);
        let time = |pid: i32| known.iter().find(|(other, _)| *other == pid).and_then(|(_, time)| *time);
        self.0 = pids.iter().map(|&pid| (pid, time(pid))).collect();
    }
}

/// Returns the CPU time of a process and its threads.
fn cpu_time(pid: i32) -> Option<Duration> {
    let clock = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid)).ok()?;
    clock.now().ok().map(Duration::from)
}

/// The total usage of the agent's processes.
#[derive(Default)]
struct Used {
    memory_bytes: u64,
    processes: u32,
}

impl Used {
    fn by(pids: &[i32], members: Members, count_threads: bool) -> Used {
        let mut used = Used::default();
        for pid in pids {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            used.memory_bytes += memory_bytes(&status);
            // With namespaces, the kernel enforces the process limit.
            if count_threads && members == Members::Descendants {
                let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
                used.processes += u32::try_from(threads).unwrap_or(u32::MAX);
            }
        }
        if members == Members::Namespace {
            let sockets = fs::read_to_string("/proc/self/net/sockstat").unwrap_or_default();
            used.memory_bytes += if has_many_sockets(&sockets) { in_sockets_bytes() } else { 0 };
            used.memory_bytes += if has_connections(&sockets) { in_tcp_bytes() } else { 0 };
        }
        used
    }
}

/// Returns true if the sockets of the agent's network namespace could hold more data than [`in_sockets_bytes`] ignores.
fn has_many_sockets(sockstat: &str) -> bool {
    count(sockstat, "sockets: used ").saturating_mul(DATAGRAMS) > FREE_SOCKETS
}

/// Returns true if the agent's network namespace can have TCP connections. A connection has two sockets there. For the
/// list of [`in_tcp_bytes`], the kernel walks through a table of the whole machine, which takes milliseconds.
fn has_connections(sockstat: &str) -> bool {
    count(sockstat, "TCP: inuse ") > 1
}

/// Returns the number after `name` in `/proc/self/net/sockstat`, or the largest number if it can't be read.
fn count(sockstat: &str, name: &str) -> u64 {
    let rest = sockstat.lines().find_map(|line| line.strip_prefix(name));
    rest.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(u64::MAX)
}

/// Returns an upper bound of the data queued in the sockets of the agent's network namespace. This data is
/// kernel memory, which counts for no process. It stays queued after the sender's end, even in connections
/// that were never accepted.
fn in_sockets_bytes() -> u64 {
    let list = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    let full = list.lines().skip(1).map(|line| match line.split_ascii_whitespace().nth(4) {
        Some("0002") => DATAGRAMS,
        _ => 1,
    });
    let beyond = full.sum::<u64>().saturating_sub(FREE_SOCKETS);
    if beyond == 0 { 0 } else { beyond * socket_bytes() }
}

/// Returns the data queued in the TCP connections of the agent's network namespace.
fn in_tcp_bytes() -> u64 {
    let list = fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let queues = list.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(4)?.split_once(':'));
    let hex = |digits| u64::from_str_radix(digits, 16).unwrap_or(0);
    queues.map(|(sent, received)| hex(sent) + hex(received)).sum()
}

/// Returns the size of a socket's send buffer. Agents can't change it.
fn socket_bytes() -> u64 {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).and_then(|fd| socket_send_buffer_size(&fd));
    socket.ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or(212_992)
}

/// Returns the memory of a process according to its `/proc/PID/status`: resident memory, swap, huge pages and
/// page tables. Page tables grow even if memory is only read.
fn memory_bytes(status: &str) -> u64 {
    let counted = ["VmRSS", "VmPTE", "VmSwap", "HugetlbPages"];
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let sizes = lines.filter(|(name, _)| counted.contains(name));
    let kib = sizes.filter_map(|(_, size)| size.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.sum::<u64>() * 1024
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

/// Counts the processes that still run after the agent's end.
fn count_left(members: Members) -> u32 {
    // Processes that have ended keep an entry in `/proc` until they are reaped.
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
    u32::try_from(pids(members).len()).unwrap_or(u32::MAX)
}

/// Ends and reaps all the agent's processes. Reaping adds their usage to that of the launcher.
fn end_members(members: Members) {
    match members {
        Members::Descendants => descendants::end_all(),
        Members::Namespace => {
            // The signal reaches all processes of the namespace at once; none can fork in between.
            let everybody = nix::unistd::Pid::from_raw(-1);
            let _ = nix::sys::signal::kill(everybody, Signal::SIGKILL);
            while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_have_not_run_are_idle() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id().cast_signed();
        let mut activity = Activity::default();
        assert!(!activity.is_idle());
        activity.see(&[pid]);
        assert!(!activity.is_idle(), "a new process may have run");
        // The child needs some time to start and to fall asleep.
        while !activity.is_idle() {
            activity.see(&[pid]);
        }
        assert!(activity.is_idle());
        let own = getpid().as_raw_pid();
        activity.see(&[pid, own]);
        assert!(!activity.is_idle() && !activity.is_idle(), "this process runs");
        activity.see(&[pid]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!activity.is_idle(), "a process that ended isn't idle");
    }

    #[test]
    fn looks_at_idle_agents_become_rare() {
        let mut intervals = [SHORT_INTERVAL; 2];
        for (interval, limits) in intervals.iter_mut().zip([Limits::default(), Limits::NONE]) {
            for _ in 0..10 {
                *interval = idle_interval(*interval, &limits);
            }
        }
        assert_eq!(intervals, [INTERVAL, LONG_INTERVAL]);
    }

    #[test]
    fn sockets_are_listed_only_if_there_can_be_enough_of_them() {
        let listed = |sockets: &str| (has_many_sockets(sockets), has_connections(sockets));
        let sockstat = |used: u64, tcp: u64| {
            format!("sockets: used {used}\nTCP: inuse {tcp} orphan 0 tw 0 alloc 90 mem 9\nUDP: inuse 0 mem 0\n")
        };
        assert_eq!(listed(&sockstat(0, 0)), (false, false));
        assert_eq!(listed(&sockstat(5, 1)), (false, false));
        assert_eq!(listed(&sockstat(6, 2)), (true, true));
        assert_eq!(listed(""), (true, true));
        let own = fs::read_to_string("/proc/self/net/sockstat").unwrap();
        assert_ne!(count(&own, "sockets: used "), u64::MAX);
        assert_ne!(count(&own, "TCP: inuse "), u64::MAX);
    }
}
