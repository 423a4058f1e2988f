//! A machine: threads, and cores that the busy threads share evenly, as in a kernel.

use std::collections::VecDeque;

use super::calendar::Calendar;

/// Threads with a common queue of work.
#[derive(Debug)]
struct ThreadPool<T> {
    threads: usize,
    busy: usize,
    waiting: VecDeque<(f64, T)>,
    worked: f64,
    /// The last time at which a thread finished work.
    done: f64,
}

/// A machine with cores, and pools of threads on them. Times are in microseconds.
#[derive(Debug)]
pub struct SimulatedMachine<T> {
    cores: usize,
    /// The time that an idle core needs to wake up.
    wake: f64,
    /// The additional work of a thread that has slept: the context switch, and cold caches.
    switch: f64,
    pools: Vec<ThreadPool<T>>,
    /// The time up to which the machine is simulated.
    at: f64,
    /// The work that an always busy thread would have done since the start. It grows more slowly than the time if more
    /// threads than cores are busy.
    each: f64,
    /// The running work, by the value of `each` at its end. An entry contains the thread pool and the continuation.
    running: Calendar<(usize, T)>,
    /// The number of cores that are waking up.
    waking: usize,
    /// The number of changes to the running work. A change moves the next end of work, so it invalidates the event that
    /// was scheduled for that end.
    version: u64,
}

/// The state of new work.
#[derive(Debug, PartialEq)]
pub enum WorkState<T> {
    /// The work is running, or waits for a thread.
    Here,
    /// A core must wake up first. The first number is the wakeup time, after which the caller passes the other values
    /// to [`SimulatedMachine::awake`].
    Asleep(f64, usize, f64, T),
}

impl<T> SimulatedMachine<T> {
    /// Returns a machine with this number of cores, their wakeup time, and the additional work of a thread that has
    /// slept.
    pub fn new(cores: usize, wake: f64, switch: f64) -> SimulatedMachine<T> {
        SimulatedMachine {
            cores,
            wake,
            switch,
            pools: Vec::new(),
            at: 0.0,
            each: 0.0,
            running: Calendar::new(),
            waking: 0,
            version: 0,
        }
    }

    /// Adds threads that share a queue. Returns the index of their pool.
    pub fn add_crew(&mut self, threads: usize) -> usize {
        self.pools.push(ThreadPool { threads, busy: 0, waiting: VecDeque::new(), worked: 0.0, done: -1.0 });
        self.pools.len() - 1
    }

    /// Gives work to a thread pool. `time` is the work in microseconds, and `then` its continuation.
    pub fn work(&mut self, now: f64, pool: usize, time: f64, then: T) -> WorkState<T> {
        let idle = self.running.len() + self.waking < self.cores;
        let of = &mut self.pools[pool];
        if of.busy == of.threads {
            of.waiting.push_back((time, then));
            return WorkState::Here;
        }
        of.busy += 1;
        // A thread that finished its last work at this moment hasn't slept.
        let slept = of.done < now;
        let time = if slept { time + self.switch } else { time };
        if slept && idle && self.wake > 0.0 {
            self.waking += 1;
            return WorkState::Asleep(self.wake, pool, time, then);
        }
        self.begin(now, pool, time, then);
        WorkState::Here
    }

    /// Starts work that waited for its core to wake up.
    pub fn awake(&mut self, now: f64, pool: usize, time: f64, then: T) {
        self.waking -= 1;
        self.begin(now, pool, time, then);
    }

    fn begin(&mut self, now: f64, pool: usize, time: f64, then: T) {
        self.follow(now);
        self.pools[pool].worked += time;
        self.running.enter(self.each + time, (pool, then));
        self.version += 1;
    }

    /// Returns the speed of each busy thread.
    fn pace(&self) -> f64 {
        (self.cores as f64 / self.running.len().max(1) as f64).min(1.0)
    }

    fn follow(&mut self, now: f64) {
        let passed = now - self.at;
        self.each += passed * self.pace();
        self.at = now;
    }

    /// Returns the time of the next end of work, and the machine's version. The time is invalid in later versions.
    pub fn next(&self) -> Option<(f64, u64)> {
        let until = self.running.next()?;
        Some((self.at + (until - self.each).max(0.0) / self.pace(), self.version))
    }

    /// Ends a piece of work and returns its continuation. Returns `None` if the machine has changed since `version`.
    pub fn done(&mut self, now: f64, version: u64) -> Option<T> {
        if version != self.version {
            return None;
        }
        self.follow(now);
        let (_, (pool, then)) = self.running.take()?;
        self.version += 1;
        match self.pools[pool].waiting.pop_front() {
            Some((time, next)) => self.begin(now, pool, time, next),
            None => {
                self.pools[pool].busy -= 1;
                self.pools[pool].done = now;
            }
        }
        Some(then)
    }

    /// Returns the work of a thread pool since the last reset, in microseconds.
    pub fn worked(&self, pool: usize) -> f64 {
        self.pools[pool].worked
    }

    /// Resets the counters of work.
    pub fn forget(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.worked = 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives pieces of work to thread pools, all at once, and returns the end of each.
    fn check(cores: usize, [wake, switch]: [f64; 2], threads: &[usize], work: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let mut machine = SimulatedMachine::new(cores, wake, switch);
        for threads in threads {
            machine.add_crew(*threads);
        }
        let mut asleep = Vec::new();
        for (number, (pool, time)) in work.iter().enumerate() {
            if let WorkState::Asleep(wake, pool, time, then) = machine.work(0.0, *pool, *time, number) {
                asleep.push((wake, pool, time, then));
            }
        }
        for (wake, pool, time, then) in asleep {
            machine.awake(wake, pool, time, then);
        }
        let mut done = Vec::new();
        while let Some((at, version)) = machine.next() {
            done.push((machine.done(at, version).unwrap(), at.round()));
        }
        done
    }

    #[test]
    fn threads_share_the_cores_evenly() {
        // Three threads on two cores each run at two thirds of the speed, until the first one is done.
        assert_eq!(
            check(2, [0.0; 2], &[1, 1, 1], &[(0, 100.0), (1, 200.0), (2, 200.0)]),
            [(0, 150.0), (1, 250.0), (2, 250.0)]
        );
    }

    #[test]
    fn a_crew_runs_one_piece_of_work_per_thread() {
        assert_eq!(
            check(4, [0.0; 2], &[1, 2], &[(0, 10.0), (0, 10.0), (1, 10.0), (1, 15.0)]),
            [(0, 10.0), (2, 10.0), (3, 15.0), (1, 20.0),]
        );
    }

    #[test]
    fn wakeups_of_cores_and_threads_take_time() {
        assert_eq!(check(1, [50.0, 5.0], &[1], &[(0, 10.0), (0, 10.0)]), [(0, 65.0), (1, 75.0)]);
    }
}
