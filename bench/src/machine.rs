//! The machine of a report, for the interpretation of absolute numbers.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde::Serialize;

use crate::latency::Latencies;

/// The number of writes in the measurement of the disk.
const SYNCS: usize = 100;

/// The machine, its disk, and the time.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// The time of the run, in seconds since the Unix epoch.
    pub at_unix_s: u64,
    /// The number of usable processors, shared by client and server.
    pub cores: usize,
    pub processor: String,
    pub kernel: String,
    /// The load average of the minute before the run. A value well above 0 means that other programs were running.
    pub load_before: f64,
    /// The median time to write 4 KiB durably, in microseconds.
    pub fdatasync_us: f64,
}

impl Machine {
    /// Examines this machine, and the disk of `work`.
    ///
    /// # Errors
    /// If `work` can't be written.
    pub fn detect(work: &Path) -> anyhow::Result<Machine> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        Ok(Machine {
            at_unix_s: now_unix_s(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            processor: model.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, name)| name).to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            fdatasync_us: fdatasync_us(work)?,
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of the report; no decision depends on it")]
fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn fdatasync_us(work: &Path) -> anyhow::Result<f64> {
    let mut count = 0..SYNCS;
    let syncs = sync_while(work, || count.next().is_some())?;
    Ok(syncs.summary().p50_us)
}

/// Writes 4 KiB durably in `work`, again and again, as long as `more` returns true. Returns the time of each write.
///
/// # Errors
/// If `work` can't be written.
pub fn sync_while(work: &Path, mut more: impl FnMut() -> bool) -> anyhow::Result<Latencies> {
    fs::create_dir_all(work).with_context(|| format!("could not create {}", work.display()))?;
    let mut file: File =
        tempfile::tempfile_in(work).with_context(|| format!("could not write in {}", work.display()))?;
    let page = [0x5a; 4096];
    let mut took = Latencies::default();
    let mut number = 0;
    while more() {
        let start = Instant::now();
        // Two pages are overwritten in turn, as in a database's log that reuses its file.
        file.seek(SeekFrom::Start(number % 2 * page.len() as u64))?;
        file.write_all(&page)?;
        file.sync_data()?;
        took.record(start.elapsed());
        number += 1;
    }
    Ok(took)
}
