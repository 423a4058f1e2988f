//! The [`Executor`] trait, and the errors that end a run.

use std::io;
use std::path::PathBuf;

use arena_match::{ExposedOutput, MatchError};
use arena_ratings::bradley_terry::FitError;
use arena_tournament::PlanError;

use crate::competition::{Ended, Event};
use crate::entrants::FilesChanged;
use crate::journal::JournalError;
use crate::nats::NatsError;

/// A component that plays the matches of a competition: on this machine, or by workers.
pub trait Executor<C> {
    /// Plays the remaining matches of a competition. The executor calls `on_event` for each [`Event`], such as a
    /// recorded result.
    ///
    /// # Errors
    /// See [`RunError`]. Results that were recorded before the error are kept.
    fn play<E: Send>(
        self,
        competition: &mut C,
        on_event: impl FnMut(&C, Event) -> Result<(), E> + Send,
    ) -> Result<Ended, RunError<E>>;
}

#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Too many agents to rate.
    #[error(transparent)]
    Fit(#[from] FitError),
    #[error("game {number} ended without a result")]
    Match { number: usize, source: MatchError },
    #[error("no worker can play game {number}: {what}")]
    Unplayable {
        number: usize,
        /// The last worker's reason, in one sentence.
        what: String,
    },
    /// Changed files of agents. The matches of these agents that are under way don't count.
    #[error(transparent)]
    Changed(#[from] FilesChanged),
    /// A folder or file that can't be hidden from an agent.
    #[error(transparent)]
    ExposedOutput(#[from] ExposedOutput),
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error("{0}")]
    System(String),
    /// An error that the caller's event handler returned.
    #[error("{0}")]
    Caller(E),
}

/// Formats an error with its chain of causes. Omits each cause that the text already includes.
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
