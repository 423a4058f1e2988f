//! A client pool: many workers on a few client threads. All workers prepare, start together, and are awaited.
//!
//! Each thread has a runtime of its own, so that workers never move between cores. Scenarios define the work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio::runtime::LocalRuntime;
use tokio::task::JoinSet;

/// The number of workers per thread that connect at the same time. The limit exists because a listen queue has room
/// for only 128 to 4,096 connections.
const PREPARED_AT_ONCE: usize = 48;

/// The time limit for the preparation of a client pool.
const PREPARE_LIMIT: Duration = Duration::from_secs(120);

/// The size of a client pool and its time limit.
#[derive(Clone, Copy)]
pub struct ClientPool {
    pub threads: usize,
    /// The number of workers, spread evenly over the threads.
    pub workers: usize,
    /// The time limit for the work. If it is exceeded, the run fails.
    pub limit: Duration,
}

pub struct WorkerResults<T, M> {
    /// One result per worker, in no particular order.
    pub results: Vec<T>,
    /// The mark taken when all workers were ready.
    pub start: M,
    /// The mark taken when all workers were done.
    pub end: M,
}

impl ClientPool {
    /// Runs `prepare` for every worker, takes a `mark`, runs `work` for every worker, and takes another mark.
    ///
    /// # Errors
    /// If a worker or a mark fails (the first error), or if the time limit is exceeded.
    pub fn run<S, T, M>(
        self,
        prepare: impl AsyncFn(usize) -> anyhow::Result<S> + Clone + Send + 'static,
        work: impl AsyncFn(usize, S) -> anyhow::Result<T> + Clone + Send + 'static,
        mut mark: impl FnMut() -> anyhow::Result<M>,
    ) -> anyhow::Result<WorkerResults<T, M>>
    where
        S: 'static,
        T: Send + 'static,
    {
        let threads = self.threads.clamp(1, self.workers.max(1));
        let gates = Arc::new(Gates {
            ready: Barrier::new(threads + 1),
            go: Barrier::new(threads + 1),
            done: Barrier::new(threads + 1),
            failed: AtomicBool::new(false),
        });
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let share: Vec<usize> = (thread..self.workers).step_by(threads).collect();
                let (prepare, work, gates) = (prepare.clone(), work.clone(), gates.clone());
                thread::spawn(move || work_share(share, prepare, work, &gates, self.limit))
            })
            .collect();
        gates.ready.wait();
        let start = mark();
        gates.go.wait();
        gates.done.wait();
        let end = mark();
        let mut results = Vec::with_capacity(self.workers);
        for handle in handles {
            results.extend(handle.join().map_err(|_| anyhow!("a client thread panicked"))??);
        }
        Ok(WorkerResults { results, start: start?, end: end? })
    }
}

/// Runs one future on the calling thread.
///
/// # Errors
/// If the future or its runtime fails.
pub fn alone<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    LocalRuntime::new().context("could not start a client runtime")?.block_on(work)
}

/// The barriers between the threads and the caller. Every thread passes all barriers, even after an error.
struct Gates {
    ready: Barrier,
    go: Barrier,
    done: Barrier,
    failed: AtomicBool,
}

fn work_share<S: 'static, T: 'static>(
    share: Vec<usize>,
    prepare: impl AsyncFn(usize) -> anyhow::Result<S> + Clone + 'static,
    work: impl AsyncFn(usize, S) -> anyhow::Result<T> + Clone + 'static,
    gates: &Gates,
    limit: Duration,
) -> anyhow::Result<Vec<T>> {
    let runtime = LocalRuntime::new().context("could not start a client runtime");
    let prepared = runtime.as_ref().map_err(|err| anyhow!("{err:#}")).and_then(|runtime| {
        runtime.block_on(async {
            let all = prepare_share(share, prepare);
            tokio::time::timeout(PREPARE_LIMIT, all).await.unwrap_or_else(|_| {
                bail!("the clients did not connect within {} s", PREPARE_LIMIT.as_secs());
            })
        })
    });
    if prepared.is_err() {
        gates.failed.store(true, Ordering::SeqCst);
    }
    gates.ready.wait();
    gates.go.wait();
    let results = match (runtime, prepared) {
        (Err(err), _) | (_, Err(err)) => Err(err),
        // Another thread has failed and returns the error.
        (Ok(_), Ok(_)) if gates.failed.load(Ordering::SeqCst) => Ok(Vec::new()),
        (Ok(runtime), Ok(prepared)) => runtime.block_on(async {
            tokio::time::timeout(limit, join_share(prepared, work)).await.unwrap_or_else(|_| {
                bail!("the clients did not finish within {} s", limit.as_secs());
            })
        }),
    };
    gates.done.wait();
    results
}

async fn prepare_share<S: 'static>(
    share: Vec<usize>,
    prepare: impl AsyncFn(usize) -> anyhow::Result<S> + Clone + 'static,
) -> anyhow::Result<Vec<(usize, S)>> {
    let mut waiting = share.into_iter();
    let mut running = JoinSet::new();
    let mut prepared = Vec::new();
    loop {
        while running.len() < PREPARED_AT_ONCE
            && let Some(worker) = waiting.next()
        {
            let prepare = prepare.clone();
            running.spawn_local(async move { Ok::<_, anyhow::Error>((worker, prepare(worker).await?)) });
        }
        match running.join_next().await {
            Some(done) => prepared.push(done.context("a client task panicked")??),
            None => return Ok(prepared),
        }
    }
}

async fn join_share<S: 'static, T: 'static>(
    prepared: Vec<(usize, S)>,
    work: impl AsyncFn(usize, S) -> anyhow::Result<T> + Clone + 'static,
) -> anyhow::Result<Vec<T>> {
    let mut running = JoinSet::new();
    for (worker, state) in prepared {
        let work = work.clone();
        running.spawn_local(async move { work(worker, state).await });
    }
    let mut results = Vec::with_capacity(running.len());
    while let Some(done) = running.join_next().await {
        results.push(done.context("a client task panicked")??);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_pool(workers: usize) -> ClientPool {
        ClientPool { threads: 2, workers, limit: Duration::from_secs(10) }
    }

    #[test]
    fn every_worker_is_prepared_before_the_mark_and_works_after_it() {
        let mut marks = 0;
        let finished = client_pool(200)
            .run(
                async |worker| Ok(worker * 2),
                async |worker, doubled| Ok(doubled - worker),
                || {
                    marks += 1;
                    Ok(marks)
                },
            )
            .unwrap();
        let mut results = finished.results;
        results.sort_unstable();
        assert_eq!(results, (0..200).collect::<Vec<_>>());
        assert_eq!((finished.start, finished.end), (1, 2));
    }

    #[test]
    fn an_error_during_preparation_is_returned() {
        let finished = client_pool(3).run(
            async |worker| if worker == 1 { bail!("no seat for {worker}") } else { Ok(()) },
            async |_, ()| Ok(()),
            || Ok(()),
        );
        assert_eq!(finished.err().unwrap().to_string(), "no seat for 1");
    }
}
