//! A client of language models: the APIs of providers, their faults by class, adaptive concurrency, and prompts.
//!
//! [`Endpoint`] and [`Client`] send one request; [`ask`] retries it while the endpoint fails, at the pace of a
//! [`Pacer`]. [`request_bytes`] and [`read_reply`] translate between a conversation and an [`Api`]. [`prompt`] has the
//! prompts and tools of players. A [`SeatModel`] plays a seat: it makes questions of news, and steps of answers.

mod address;
mod api;
mod ask;
mod budget;
mod client;
mod conversation;
mod endpoint;
mod fault;
pub mod gateway;
mod habits;
mod history;
mod lenient;
mod pacer;
mod presets;
mod prices;
pub mod prompt;
mod seat_model;
mod text_tools;

pub use address::{AddressError, ModelAddress};
pub use api::{Api, UnknownApi, read_reply, request_body, request_bytes};
pub use ask::{ModelEndpoint, Retry, ask};
pub use budget::{Amount, Bound, Budget, Caps, Exceeded, Reservation, Spent};
pub use client::{Client, Received, describe_certificate_fault};
pub use conversation::{CallResult, Finish, Params, Question, Reply, Tool, ToolCall, ToolUse, Turn, Usage};
pub use endpoint::{ANSWER_SECONDS, Endpoint, EndpointError, Key, Timeouts};
pub use fault::{Fault, FaultClass};
pub use pacer::{Pacer, Permit};
pub use presets::{PRESETS, Preset};
pub use prices::Prices;
pub use seat_model::{
    Decision, HISTORY_TOKENS, MAX_INVALID, MAX_REFUSED, ModelStop, SeatModel, SeatPolicy, SeatRules, StopCause,
    UnusableAnswers,
};
