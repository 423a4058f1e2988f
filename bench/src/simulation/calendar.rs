//! Future events in order of time; events at the same time are in order of entry.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The number of time steps in a microsecond. Times are stored as integers, because floats have no total order.
const FINE: f64 = 1e6;

#[derive(Debug)]
pub struct Calendar<T> {
    entries: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> Calendar<T> {
    pub fn new() -> Calendar<T> {
        Calendar { entries: BinaryHeap::new(), entered: 0 }
    }

    /// Adds an entry for a time, in microseconds.
    pub fn enter(&mut self, at: f64, what: T) {
        self.entered += 1;
        self.entries.push(Reverse(Entry { at: (at * FINE).round() as u64, number: self.entered, what }));
    }

    /// Returns the time of the next entry.
    pub fn next(&self) -> Option<f64> {
        self.entries.peek().map(|Reverse(entry)| entry.at as f64 / FINE)
    }

    /// Removes the next entry and returns it with its time.
    pub fn take(&mut self) -> Option<(f64, T)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at as f64 / FINE, entry.what))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}
