//! The placement of matches on processor cores.
//!
//! Waking a process on another core takes many times as long as on the same core. A match and its agents
//! therefore share one core. Parallel matches get different cores, even if independent programs run them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Returns the numbers of the cores that this process may use, in ascending order. The list is empty if the
/// system doesn't report them.
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
}

/// Pins the calling thread, and the processes that it starts later, to one core. If the system refuses,
/// matches are only slower.
pub fn stay_on(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    let _ = sched_setaffinity(None, &only);
}

/// Pins the calling thread, and the processes that it starts later, to the core on which the thread runs now.
/// The kernel places a new thread on one of the least busy cores, with other programs taken into account.
pub fn stay_here() {
    stay_on(sched_getcpu());
}

/// Runs the jobs `0..count` on `workers` parallel threads. Each thread is pinned to the next core of `cores`,
/// beginning with a random one. If `cores` is empty, the threads aren't pinned. Passes each result to `done`
/// as soon as its job finishes. After `done` returns false, no more jobs start, and the running ones finish.
pub fn spread<T: Send>(
    count: usize,
    workers: usize,
    cores: &[usize],
    job: impl Fn(usize) -> T + Sync,
    mut done: impl FnMut(usize, T) -> bool,
) {
    let next = AtomicUsize::new(0);
    let first = random();
    let (results, arrived) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..workers.min(count) {
            let (results, next, job) = (results.clone(), &next, &job);
            scope.spawn(move || {
                if let Some(core) = cores.get(first.wrapping_add(worker) % cores.len().max(1)) {
                    stay_on(*core);
                }
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || results.send((number, job(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        for (number, result) in arrived {
            if !done(number, result) {
                next.store(count, Ordering::Relaxed);
            }
        }
    });
}

/// Returns a random number, which differs between programs. The process id isn't random enough: if each
/// program starts the same number of processes, their ids may all be even.
fn random() -> usize {
    // Only the speed of matches depends on this number, not their results.
    RandomState::new().hash_one(std::process::id()) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn single_jobs_are_not_all_done_on_the_first_core() {
        let cores = cores();
        let mut used = BTreeSet::new();
        for _ in 0..64 {
            spread(1, 1, &cores, |_| super::cores(), |_, core| used.insert(core));
        }
        assert!(used.len() > 1 || cores.len() == 1, "{used:?}");
    }

    #[test]
    fn who_stays_here_has_one_core() {
        thread::scope(|scope| {
            let stays = scope.spawn(|| {
                stay_here();
                cores()
            });
            let stayed = stays.join().unwrap();
            assert!(stayed.len() == 1 && cores().contains(&stayed[0]), "{stayed:?}");
        });
    }

    #[test]
    fn workers_beside_each_other_are_on_different_cores() {
        let cores = cores();
        let begun = std::sync::Barrier::new(cores.len());
        let mut used = BTreeSet::new();
        let job = |_| {
            begun.wait();
            super::cores()
        };
        spread(cores.len(), cores.len(), &cores, job, |_, core| used.insert(core));
        assert_eq!(used.len(), cores.len());
    }

    #[test]
    fn every_job_is_done_once_and_each_on_a_core() {
        let cores = cores();
        let mut seen = [0; 100];
        let job = |number: usize| (number * number, super::cores().len());
        spread(100, 3, &cores, job, |number, (square, allowed)| {
            assert_eq!((square, allowed), (number * number, 1));
            seen[number] += 1;
            true
        });
        assert_eq!(seen, [1; 100]);
    }

    #[test]
    fn no_job_is_begun_after_the_end_was_called() {
        let begun = AtomicUsize::new(0);
        // The test ends only if `spread` stops early, because nothing could run all these jobs.
        let jobs = 1 << 40;
        spread(jobs, 2, &[], |_| begun.fetch_add(1, Ordering::Relaxed), |_, _| false);
        assert!(begun.into_inner() < jobs);
    }
}
