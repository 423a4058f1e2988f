//! Bodies: what runs an agent, as the match loop sees it. A process of ours, somebody's server, or a thread of a test.

use std::time::Duration;

use crate::spent::Spent;

/// What runs an agent.
pub trait Body: Send {
    /// How it ended, if it does so within this time.
    fn ended(&mut self, patience: Duration) -> Option<End>;

    /// What it has had of the processor, and for how long it stood ready without. Nothing where that can't be known.
    fn spent(&self) -> Spent {
        Spent::default()
    }

    /// Whether it logs beyond all bounds.
    fn is_flooding(&self) -> bool;

    /// Ends it and all that it started, at once, and waits until nothing of that is left; what it logged is kept.
    fn kill(&mut self);

    /// Waits this long for it to go, ends what is left, and gives what it logged.
    fn finish(&mut self, grace: Duration) -> Log;
}

/// How an agent's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// In a sentence: `exited with code 1`.
    pub sentence: String,
    /// It was ended for what memory it took, or ran out of what it may take.
    pub is_out_of_memory: bool,
    /// The code with which it exited, if it did so by itself.
    pub code: Option<i32>,
    /// How many processes it left behind, which were ended with it.
    pub left_behind: u32,
}

/// What an agent wrote to stderr: the beginning and the end of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The beginning.
    pub head: Vec<u8>,
    /// How many bytes between the two weren't kept.
    pub left_out: u64,
    /// The end of what came after the beginning.
    pub tail: Vec<u8>,
}
