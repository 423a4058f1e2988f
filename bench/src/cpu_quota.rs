//! A limit on the CPU time of one process, by a control group of the kernel. It makes one machine behave like several
//! small ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

/// The period of a quota, in microseconds. It is short, so that a process that has used its quota waits briefly.
const PERIOD_US: u32 = 10_000;

/// A control group with a limit. It must be dropped after its process has ended.
pub struct CpuQuota {
    folder: PathBuf,
}

impl CpuQuota {
    /// Limits a running process to this percentage of one core.
    ///
    /// # Errors
    /// If the kernel has no controller for CPU time, or this process may not create control groups.
    pub fn limit(pid: u32, percent: u32) -> anyhow::Result<CpuQuota> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("arena-bench-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let quota_us = PERIOD_US * percent / 100;
        // Version 1 of control groups has a hierarchy for each controller.
        let (parent, settings) = match Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            true => {
                let parent = Path::new("/sys/fs/cgroup");
                // The controller may already be enabled.
                fs::write(parent.join("cgroup.subtree_control"), "+cpu").ok();
                (parent, vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))])
            }
            false => {
                let settings = [("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", quota_us)];
                (Path::new("/sys/fs/cgroup/cpu"), settings.map(|(file, us)| (file, us.to_string())).to_vec())
            }
        };
        let folder = parent.join(name);
        let failed = || format!("could not limit CPU time with {}; this needs root", folder.display());
        fs::create_dir(&folder).with_context(failed)?;
        let quota = CpuQuota { folder: folder.clone() };
        for (file, value) in settings.into_iter().chain([("cgroup.procs", pid.to_string())]) {
            fs::write(folder.join(file), value).with_context(failed)?;
        }
        Ok(quota)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // The group stays if its process still runs; it then has no effect on other processes.
        fs::remove_dir(&self.folder).ok();
    }
}
