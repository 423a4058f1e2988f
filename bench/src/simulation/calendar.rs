//! What is to happen, in the order in which it will; of two things at the same time, the one that was entered first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Steps in a microsecond: whole numbers have an order.
const FINE: f64 = 1e6;

/// Entries by time.
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
    /// An empty one.
    pub fn new() -> Calendar<T> {
        Calendar { entries: BinaryHeap::new(), entered: 0 }
    }

    /// Enters something for a time, in microseconds.
    pub fn enter(&mut self, at: f64, what: T) {
        self.entered += 1;
        self.entries.push(Reverse(Entry { at: (at * FINE).round() as u64, number: self.entered, what }));
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<f64> {
        self.entries.peek().map(|Reverse(entry)| entry.at as f64 / FINE)
    }

    /// Takes the next thing out, with its time.
    pub fn take(&mut self) -> Option<(f64, T)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at as f64 / FINE, entry.what))
    }

    /// How many there are.
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
