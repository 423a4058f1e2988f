//! The [`Body`] of a process that a thread of this program drives.

use std::time::Duration;

use crate::body::{Body, End, Log};
use crate::cpu_times::CpuTimes;
use crate::thread_body::ThreadBody;

/// A process and the thread that drives it.
pub struct DrivenBody {
    driver: ThreadBody,
    process: Box<dyn Body>,
}

impl DrivenBody {
    pub fn new(driver: ThreadBody, process: Box<dyn Body>) -> DrivenBody {
        DrivenBody { driver, process }
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

    fn is_flooding(&self) -> bool {
        self.process.is_flooding()
    }

    fn kill(&mut self) {
        // The end of the pipes also ends the driver.
        self.process.kill();
    }

    fn finish(&mut self, grace: Duration) -> Log {
        let log = self.process.finish(grace);
        self.driver.finish(Duration::from_secs(1));
        log
    }
}
