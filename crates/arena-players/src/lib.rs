//! Players of a session in memory with the driver that asks them, and the client of a seat over HTTP.
//!
//! [`play`] plays a [`MemorySession`](arena_model::MemorySession) to its end between [`Player`]s: a [`BotPlayer`], a
//! [`ProgramPlayer`], or a language model. [`PlayPolicy`] has all its limits.

mod bot;
mod driver;
mod game_message;
pub mod http;
mod model;
mod player;
mod policy;
mod program;
mod program_agent;
mod program_talk;
#[cfg(test)]
mod tests;

pub use bot::{BotKind, BotPlayer, message_for};
pub use driver::{GameEnd, Origin, PlayedGame, PlayedSeat, play, run_rules};
pub use game_message::{GameMessage, GameOutcome, GameState, RejectedPart};
pub use model::{Called, Calling, DirectCalls, ModelCalls, ModelPlayer};
pub use player::{Answer, Answering, Cause, Halt, Heard, Measured, Player, SeatEnd, StepResult};
pub use policy::PlayPolicy;
pub use program::ProgramPlayer;
pub use program_agent::{FoundProgram, ProgramAgent, ProgramSlots};
pub use program_talk::{ProgramState, ProgramTalk};
