//! Executors, and the one error of playing.

use std::io;
use std::path::PathBuf;

use arena_match::{MatchError, OpenPlace};
use arena_ratings::bradley_terry::FitError;
use arena_store::{CommitError, StoreError};
use arena_tournament::PlanError;

use crate::competition::{Ended, Event};
use crate::entrants::FilesChanged;
use crate::journal::JournalError;
use crate::league::RulesError;
use crate::nats::NatsError;

/// A place where the matches of a competition are played: this machine, or workers.
pub trait Executor<C> {
    /// Plays what is left of a competition. `on_event` is called after each match whose result was kept, and for all else that happens.
    ///
    /// # Errors
    /// See [`RunError`]. Results that were kept until then stay.
    fn play<E: Send>(
        self,
        competition: &mut C,
        on_event: impl FnMut(&C, Event) -> Result<(), E> + Send,
    ) -> Result<Ended, RunError<E>>;
}

/// A tournament or a league can't go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The tournament's plan can't be played.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The league's rules can't be played.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A result can't be kept in the journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store can't be read, or holds something damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A result can't be kept in the store.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// There are too many agents to rate.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A match ended without a result.
    #[error("game {number}")]
    Match {
        /// Its number; 0 in a league.
        number: usize,
        /// The reason.
        source: MatchError,
    },
    /// No worker can play a match.
    #[error("game {number} can't be played by any worker: {what}")]
    Unplayable {
        /// Its number.
        number: usize,
        /// The last worker's reason, in a sentence.
        what: String,
    },
    /// The files of agents have changed. Matches that these agents were playing don't count.
    #[error(transparent)]
    Changed(#[from] FilesChanged),
    /// A place that is written to can't be hidden from an agent.
    #[error(transparent)]
    Open(#[from] OpenPlace),
    /// Replays and logs can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The queue can't be used.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The system failed.
    #[error("{0}")]
    System(String),
    /// The caller's own error.
    #[error("{0}")]
    Caller(E),
}

/// Returns the sentence of an error with its causes. Some errors name their cause themselves.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
