//! The arena over HTTP: REST, Server-Sent Events, limits, metrics and a page.
//!
//! Handlers parse, call the engine, and word the answer; they decide nothing. The list of routes is `routes.rs`.

mod answer;
mod arena;
mod error;
mod mcp;
mod metrics;
mod rates;
mod request;
mod routes;
mod server;
mod settings;

pub use server::{ServeError, Server, StartError};
pub use settings::{ChallengeSettings, LimitSettings, SessionSettings, Settings, SettingsError};
