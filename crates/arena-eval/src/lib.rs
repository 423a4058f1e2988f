//! Evaluations: language models in many games against each other, resumable, with intervals and costs.
//!
//! A run file ([`RunFile`]) names models, baselines and challenges. [`EvalPlan`] makes all games from it,
//! [`runner::run`] plays them, [`EvalFolder`] keeps each call and each game, and [`report::report`] computes the
//! tables.

mod calls;
mod challenges;
pub mod estimate;
mod folder;
mod game;
mod harness;
mod hash;
mod journal;
mod model_player;
mod plan;
mod priced;
mod program;
pub mod progress;
mod record;
mod recorded;
pub mod report;
mod requests;
mod run_file;
pub mod runner;
mod verify;

pub use arena_llm::Spent;
pub use arena_players::{Cause, GameEnd, Measured};
pub use calls::CallStore;
pub use challenges::StoredFile;
pub use estimate::{Estimate, estimate};
pub use folder::{EvalFolder, EvalRun, FolderError};
pub use harness::Harness;
pub use journal::now;
pub use plan::{EvalAgent, EvalAgentKind, EvalPlan, PlanError, PlannedChallenge, PlannedGame};
pub use progress::{ModelProgress, Progress};
pub use record::{
    CallLine, CallRecord, ChangeRecord, GameRecord, JournalLine, SeatRecord, Transcript, TranscriptMessage, VERSION,
    VoidRecord,
};
pub use recorded::Difference;
pub use report::{Report, ReportSite, TextTable, report};
pub use run_file::{
    AGAIN, BaselineSpec, BudgetSpec, ChallengeSpec, CountSpec, EndpointAddress, HarnessSpec, Lineups, ModelSpec,
    RunFile, RunFileError, ToolUseSpec,
};
pub use runner::{PausedModel, RunEnd, RunError, RunOptions, run, usual_open_games};
pub use verify::{CheckedGame, GameCheck, Verification, verify};
