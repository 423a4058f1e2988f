//! Threads that serve connections. Each thread has a runtime of its own, and a connection stays on its thread, as do
//! its requests for the routes of play. All other requests, and scripts, may take long, so the runtime that all threads
//! share executes them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The threads. They end when this value is dropped, and their tasks are dropped with them.
pub(crate) struct Lanes(Vec<Lane>);

struct Lane {
    runtime: Handle,
    /// The number of tasks.
    tasks: Arc<AtomicUsize>,
    stopped: Arc<Notify>,
}

impl Lanes {
    /// Starts a thread for each processor.
    pub(crate) fn start() -> io::Result<Lanes> {
        let lanes = thread::available_parallelism().map_or(1, usize::from);
        (0..lanes).map(|_| Lane::start()).collect::<io::Result<_>>().map(Lanes)
    }

    /// Runs a task on the thread with the fewest tasks.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(lane) = self.0.iter().min_by_key(|lane| lane.tasks.load(Ordering::Relaxed)) else { return };
        let guard = TaskGuard::by(&lane.tasks);
        lane.runtime.spawn(async move {
            let _guard = guard;
            task.await;
        });
    }
}

impl Lane {
    fn start() -> io::Result<Lane> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let lane = Lane { runtime: runtime.handle().clone(), tasks: Arc::default(), stopped: Arc::new(Notify::new()) };
        let stopped = Arc::clone(&lane.stopped);
        thread::Builder::new().name("arena-serve".to_owned()).spawn(move || runtime.block_on(stopped.notified()))?;
        Ok(lane)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.stopped.notify_one();
    }
}

/// A task in the count of its thread.
struct TaskGuard(Arc<AtomicUsize>);

impl TaskGuard {
    fn by(tasks: &Arc<AtomicUsize>) -> TaskGuard {
        tasks.fetch_add(1, Ordering::Relaxed);
        TaskGuard(Arc::clone(tasks))
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
