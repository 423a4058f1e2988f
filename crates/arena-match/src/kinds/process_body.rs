//! The [`Body`] of a process that a thread of this program drives.

use std::time::{Duration, Instant};

use super::EngineReturn;
use crate::body::{Absent, Body, End, Log};
use crate::cpu_times::CpuTimes;
use crate::thread_body::ThreadBody;

/// A process and the thread that drives it.
pub struct DrivenBody {
    driver: ThreadBody,
    process: Box<dyn Body>,
    /// `None` if the process ends with the match.
    back: Option<EngineReturn>,
}

impl DrivenBody {
    pub(crate) fn new(driver: ThreadBody, process: Box<dyn Body>, back: Option<EngineReturn>) -> DrivenBody {
        DrivenBody { driver, process, back }
    }
}

impl Body for DrivenBody {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        // The driver describes only ends that the process didn't cause.
        self.driver.ended(patience).or_else(|| self.process.ended(patience))
    }

    fn cpu_times(&self) -> CpuTimes {
        self.process.cpu_times()
    }

    fn outage(&self) -> Option<String> {
        self.driver.outage()
    }

    fn awaited(&self) -> Option<String> {
        self.driver.awaited()
    }

    fn metered(&self) -> Option<String> {
        self.driver.metered()
    }

    fn is_flooding(&self) -> bool {
        self.process.is_flooding()
    }

    fn kill(&mut self) {
        // The end of the pipes also ends the driver.
        self.back = None;
        self.process.kill();
    }

    fn finish(&mut self, grace: Duration) -> Log {
        let by = Instant::now() + grace;
        let kept = self.back.take().and_then(|back| back.keep(&mut self.process, Box::new(Absent), grace));
        let log = kept.unwrap_or_else(|| self.process.finish(by.saturating_duration_since(Instant::now())));
        self.driver.finish(Duration::from_secs(1));
        log
    }
}
