//! Threads that serve connections. Each thread has a runtime of its own, and a connection stays on its thread, as do
//! its requests for the routes of play. All other requests, and scripts, may take long, so the runtime that all threads
//! share executes them. Bodies of their answers, such as streams, are made on the connection's thread again.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The threads. They end when this value is dropped, and their tasks are dropped with them.
pub(crate) struct ConnectionThreads(Vec<ConnectionThread>);

struct ConnectionThread {
    runtime: Handle,
    /// A reference for each task, so that they can be counted.
    tasks: Arc<()>,
    stopped: Arc<Notify>,
}

impl ConnectionThreads {
    /// Starts a thread for each processor.
    pub(crate) fn start() -> io::Result<ConnectionThreads> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).map(|_| ConnectionThread::start()).collect::<io::Result<_>>().map(ConnectionThreads)
    }

    /// Runs a task on the thread with the fewest tasks.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(thread) = self.0.iter().min_by_key(|thread| Arc::strong_count(&thread.tasks)) else { return };
        let reference = Arc::clone(&thread.tasks);
        thread.runtime.spawn(async move {
            let _reference = reference;
            task.await;
        });
    }
}

impl ConnectionThread {
    fn start() -> io::Result<ConnectionThread> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = ConnectionThread {
            runtime: runtime.handle().clone(),
            tasks: Arc::default(),
            stopped: Arc::new(Notify::new()),
        };
        let stopped = Arc::clone(&thread.stopped);
        thread::Builder::new().name("arena-serve".to_owned()).spawn(move || runtime.block_on(stopped.notified()))?;
        Ok(thread)
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        self.stopped.notify_one();
    }
}
