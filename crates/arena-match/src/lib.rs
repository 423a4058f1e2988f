//! Agents at run time: their processes, sandbox and clocks, the match loop, and the replay.
//!
//! `arena-games` contains the rules of the games, `arena-model` the interface of games. This crate is
//! independent of sessions and HTTP servers.

mod address;
mod agent;
pub mod archive;
mod body;
mod check;
mod conversation;
mod cpu_times;
pub mod fingerprint;
mod http;
mod kinds;
pub mod line_file;
mod link;
pub mod logs;
mod match_plan;
mod message;
mod moves;
pub mod openings;
mod output;
mod placement;
mod play;
mod private_paths;
mod python;
mod replay;
mod reply;
mod seat;
mod solo;
mod stderr;
mod thread_body;
mod uci;

pub use address::is_public;
pub use agent::{Agent, AgentError, Channel, Command, which};
pub use arena_model::{Dialect, Disqualified, Limits, SandboxMode, agent_ids};
pub use arena_sandbox::launcher::main as launch;
pub use arena_sandbox::process;
pub use body::Log;
pub use check::{CheckPlan, CheckReport, Finding, GameCheck, Severity, check};
pub use kinds::{BuiltIn, KeptEngines};
pub use match_plan::{Confinement, MatchPlan, OwnerLog, PlayedMatch, SeatedAgent, play_keeping, play_match};
pub use output::{OutputFile, open_direct, write};
pub use placement::{cores, spread, stay_here, stay_on};
pub use play::{MatchError, MatchSnapshot, Watch};
pub use private_paths::{ExposedOutput, JOURNAL, OutputPath, own_apart, private};
pub use process::{ActiveSandbox, Launcher, StartError};
pub use python::absolute as absolute_function;
pub use replay::{
    ChainRepair, DisqualifiedIn, ENTRY, EpochLine, HeaderLine, Replay, ReplayError, ReplayFork, ReplayLine, ReplaySeal,
    ResultLine, ResultPart, SeatLine, SessionGame, Summary, Verified, VerifiedResult, export_pgn, export_reference,
    index, replay_hash, seal_line, session_pgn, verified_result, verify, verify_by,
};
pub use seat::{Fault, Seat};
pub use solo::Solo;
