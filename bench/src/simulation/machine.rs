//! A machine: threads, and cores that are shared evenly by those that have something to do, as a kernel shares them.

use std::collections::VecDeque;

use super::calendar::Calendar;

/// Threads that take work from one queue.
#[derive(Debug)]
struct Crew<T> {
    threads: usize,
    busy: usize,
    waiting: VecDeque<(f64, T)>,
    worked: f64,
    /// When one of them was last done with something.
    done: f64,
}

/// A machine with cores, and crews of threads on them. Times are in microseconds.
#[derive(Debug)]
pub struct Machine<T> {
    cores: usize,
    /// How long an idle core takes until it works.
    wake: f64,
    /// What a thread works in addition when it has slept: the kernel's switch, and caches that others have used.
    switch: f64,
    crews: Vec<Crew<T>>,
    /// Until when it has been followed.
    at: f64,
    /// How much each thread has worked that has worked all the time. With more threads than cores it is less than the time.
    each: f64,
    /// What is worked on, by where `each` will be when it is done: whose, and what follows.
    running: Calendar<(usize, T)>,
    /// Cores that are waking up.
    waking: usize,
    /// Counts how often what happens next has changed.
    version: u64,
}

/// What becomes of work that was given.
#[derive(Debug, PartialEq)]
pub enum Taken<T> {
    /// It is worked on, or waits for a thread.
    Here,
    /// Its core wakes up first: so long. Then it is to be given to [`Machine::awake`].
    Asleep(f64, usize, f64, T),
}

impl<T> Machine<T> {
    /// A machine with so many cores, what they take to wake up, and what a thread works in addition that has slept.
    pub fn new(cores: usize, wake: f64, switch: f64) -> Machine<T> {
        Machine {
            cores,
            wake,
            switch,
            crews: Vec::new(),
            at: 0.0,
            each: 0.0,
            running: Calendar::new(),
            waking: 0,
            version: 0,
        }
    }

    /// Adds so many threads that share a queue. Returns which they are.
    pub fn add_crew(&mut self, threads: usize) -> usize {
        self.crews.push(Crew { threads, busy: 0, waiting: VecDeque::new(), worked: 0.0, done: -1.0 });
        self.crews.len() - 1
    }

    /// Gives work to a crew.
    pub fn work(&mut self, now: f64, crew: usize, time: f64, then: T) -> Taken<T> {
        let idle = self.running.len() + self.waking < self.cores;
        let of = &mut self.crews[crew];
        if of.busy == of.threads {
            of.waiting.push_back((time, then));
            return Taken::Here;
        }
        of.busy += 1;
        // What follows at once on what a thread has done, it does without having slept.
        let slept = of.done < now;
        let time = if slept { time + self.switch } else { time };
        if slept && idle && self.wake > 0.0 {
            self.waking += 1;
            return Taken::Asleep(self.wake, crew, time, then);
        }
        self.begin(now, crew, time, then);
        Taken::Here
    }

    /// The core is awake for which this work has waited.
    pub fn awake(&mut self, now: f64, crew: usize, time: f64, then: T) {
        self.waking -= 1;
        self.begin(now, crew, time, then);
    }

    fn begin(&mut self, now: f64, crew: usize, time: f64, then: T) {
        self.follow(now);
        self.crews[crew].worked += time;
        self.running.enter(self.each + time, (crew, then));
        self.version += 1;
    }

    /// How fast each thread works that does.
    fn pace(&self) -> f64 {
        (self.cores as f64 / self.running.len().max(1) as f64).min(1.0)
    }

    fn follow(&mut self, now: f64) {
        let passed = now - self.at;
        self.each += passed * self.pace();
        self.at = now;
    }

    /// When the next piece of work is done if nothing is added before, and the version for which that is so.
    pub fn next(&self) -> Option<(f64, u64)> {
        let until = self.running.next()?;
        Some((self.at + (until - self.each).max(0.0) / self.pace(), self.version))
    }

    /// A piece of work is done: what follows. Nothing if something has changed since this version.
    pub fn done(&mut self, now: f64, version: u64) -> Option<T> {
        if version != self.version {
            return None;
        }
        self.follow(now);
        let (_, (crew, then)) = self.running.take()?;
        self.version += 1;
        match self.crews[crew].waiting.pop_front() {
            Some((time, next)) => self.begin(now, crew, time, next),
            None => {
                self.crews[crew].busy -= 1;
                self.crews[crew].done = now;
            }
        }
        Some(then)
    }

    /// What a crew has worked so far.
    pub fn worked(&self, crew: usize) -> f64 {
        self.crews[crew].worked
    }

    /// Counts from now on.
    pub fn forget(&mut self) {
        self.crews.iter_mut().for_each(|crew| crew.worked = 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives pieces of work to crews, all at once, and tells when each is done.
    fn check(cores: usize, [wake, switch]: [f64; 2], threads: &[usize], work: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let mut machine = Machine::new(cores, wake, switch);
        for threads in threads {
            machine.add_crew(*threads);
        }
        let mut asleep = Vec::new();
        for (number, (crew, time)) in work.iter().enumerate() {
            if let Taken::Asleep(wake, crew, time, then) = machine.work(0.0, *crew, *time, number) {
                asleep.push((wake, crew, time, then));
            }
        }
        for (wake, crew, time, then) in asleep {
            machine.awake(wake, crew, time, then);
        }
        let mut done = Vec::new();
        while let Some((at, version)) = machine.next() {
            done.push((machine.done(at, version).unwrap(), at.round()));
        }
        done
    }

    #[test]
    fn threads_share_the_cores_evenly() {
        // Three on two cores: each at two thirds, until the first is done.
        assert_eq!(
            check(2, [0.0; 2], &[1, 1, 1], &[(0, 100.0), (1, 200.0), (2, 200.0)]),
            [(0, 150.0), (1, 250.0), (2, 250.0)]
        );
    }

    #[test]
    fn a_crew_works_on_as_much_as_it_has_threads() {
        assert_eq!(
            check(4, [0.0; 2], &[1, 2], &[(0, 10.0), (0, 10.0), (1, 10.0), (1, 15.0)]),
            [(0, 10.0), (2, 10.0), (3, 15.0), (1, 20.0),]
        );
    }

    #[test]
    fn an_idle_core_wakes_up_first_and_a_thread_that_has_slept_works_more() {
        assert_eq!(check(1, [50.0, 5.0], &[1], &[(0, 10.0), (0, 10.0)]), [(0, 65.0), (1, 75.0)]);
    }
}
