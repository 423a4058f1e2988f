//! The resource usage of a process, from `/proc`: CPU time, memory, threads.

use std::fs;
use std::process;

use anyhow::Context as _;

/// A reading of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The user and system time since the start of the process, in microseconds; the kernel counts in steps of 10 ms.
    pub cpu_us: u64,
    /// The resident memory, in KiB.
    pub rss_kib: u64,
    /// The resident memory that isn't backed by files or shared, in KiB.
    pub anon_kib: u64,
    pub threads: u64,
}

impl Usage {
    /// Reads the usage of a process.
    ///
    /// # Errors
    /// If the process has ended, or `/proc` differs from the documentation of Linux.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).with_context(|| format!("could not read {path}; has the process ended?"))
        };
        parse(&read("stat")?, &read("status")?, rustix::param::clock_ticks_per_second())
            .with_context(|| format!("/proc/{pid} has an unexpected format"))
    }

    pub fn add(&mut self, other: &Usage) {
        self.cpu_us += other.cpu_us;
        self.rss_kib += other.rss_kib;
        self.anon_kib += other.anon_kib;
        self.threads += other.threads;
    }

    /// Returns the CPU time of a process and its children in microseconds, including children that have ended and were
    /// awaited. Use this for a database that starts a process for each connection.
    ///
    /// # Errors
    /// As [`Usage::of`].
    pub fn cpu_of_family(pid: u32) -> anyhow::Result<u64> {
        let ticks = rustix::param::clock_ticks_per_second();
        let path = format!("/proc/{pid}/stat");
        let stat =
            fs::read_to_string(&path).with_context(|| format!("could not read {path}; has the process ended?"))?;
        let dead = |stat: &str| Some((field(stat, 16)? + field(stat, 17)?) * 1_000_000 / ticks);
        let own = |stat: &str| Some((field(stat, 14)? + field(stat, 15)?) * 1_000_000 / ticks);
        let mut cpu_us =
            own(&stat).zip(dead(&stat)).map(|(own, dead)| own + dead).context("/proc has an unexpected format")?;
        for entry in fs::read_dir("/proc").context("could not read /proc")? {
            // Entries other than processes have no file `stat`, and neither have processes that are ending.
            let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
            if field(&stat, 4) == Some(u64::from(pid)) {
                cpu_us += own(&stat).unwrap_or(0);
            }
        }
        Ok(cpu_us)
    }

    /// Returns the CPU time of this process's children that have ended and were awaited, in microseconds.
    ///
    /// # Errors
    /// As [`Usage::of`].
    pub fn cpu_of_ended_children() -> anyhow::Result<u64> {
        let stat = fs::read_to_string("/proc/self/stat").context("could not read /proc/self/stat")?;
        let ticks = field(&stat, 16).zip(field(&stat, 17)).map(|(user, system)| user + system);
        Ok(ticks.context("/proc has an unexpected format")? * 1_000_000 / rustix::param::clock_ticks_per_second())
    }

    /// Reads the usage of this process.
    ///
    /// # Errors
    /// As [`Usage::of`].
    pub fn of_this_process() -> anyhow::Result<Usage> {
        Usage::of(process::id())
    }
}

/// Returns a field of `/proc/PID/stat`. Fields are numbered as in proc_pid_stat(5); `number` is at least 3.
fn field(stat: &str, number: usize) -> Option<u64> {
    // The second field, the name, may contain spaces and brackets, so fields are counted from the last bracket.
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(number - 3)?.parse().ok()
}

/// Parses the files of proc_pid_stat(5) and proc_pid_status(5).
fn parse(stat: &str, status: &str, ticks_per_second: u64) -> Option<Usage> {
    let field = |number| field(stat, number);
    let line = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(Usage {
        cpu_us: (field(14)? + field(15)?) * 1_000_000 / ticks_per_second,
        rss_kib: line("VmRSS")?,
        anon_kib: line("RssAnon")?,
        threads: line("Threads")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 100 1000 300";
        let status = "Name:\ta) b (c\nVmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\nThreads:\t7\n";
        let usage = Usage { cpu_us: 3_000_000, rss_kib: 2048, anon_kib: 1024, threads: 7 };
        assert_eq!(parse(stat, status, 100), Some(usage));
    }

    #[test]
    fn this_process_has_a_usage() {
        let usage = Usage::of_this_process().unwrap();
        assert!(usage.rss_kib > 0 && usage.threads > 0);
    }
}
