//! The state of a run while it goes on, for displays.

use std::time::Instant;

use crate::{EvalFolder, Spent};

#[derive(Debug, Clone)]
pub struct Progress {
    pub games: u64,
    /// The number of finished games, with those of earlier invocations.
    pub finished: u64,
    /// The number of games that are being played.
    pub open: u64,
    /// The number of games that this invocation has given up because an endpoint failed.
    pub void: u64,
    /// The number of answered calls of this invocation, with the answers from the files of the run.
    pub calls: u64,
    /// The number of answers that came from the files of the run.
    pub cached: u64,
    /// The number of failed attempts of this invocation.
    pub retries: u64,
    /// The calls, tokens and cost of all invocations.
    pub spent: Spent,
    /// The models in the order of the run file.
    pub models: Vec<ModelProgress>,
    /// The start of this invocation.
    pub began: Instant,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelProgress {
    pub name: String,
    /// The number of calls that this invocation has sent and that were answered.
    pub calls: u64,
    /// The present limit of concurrent requests of the model's endpoint.
    pub limit: usize,
    /// The reason why the model isn't called any more, if it is paused.
    pub paused: Option<String>,
    /// The address and the last fault, if the last attempt failed.
    pub failing: Option<String>,
}

impl Progress {
    /// Creates the state of a run that begins now.
    pub fn new(folder: &EvalFolder) -> Progress {
        let plan = folder.plan();
        let finished = plan.games.iter().filter(|game| folder.finished(&game.id).is_some()).count();
        let model = |name: &String| ModelProgress { name: name.clone(), ..ModelProgress::default() };
        Progress {
            games: plan.games.len() as u64,
            finished: finished as u64,
            open: 0,
            void: 0,
            calls: 0,
            cached: 0,
            retries: 0,
            spent: folder.calls().totals(),
            models: plan.file.models.iter().map(|spec| model(&spec.name)).collect(),
            began: Instant::now(),
        }
    }
}
