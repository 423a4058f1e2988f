//! The arena's HTTP server: REST, Server-Sent Events, MCP, limits, metrics and pages.
//!
//! Handlers parse requests, call the engine and build responses; they contain no rules. The list of routes is in
//! `routes.rs`.

mod answer;
mod arena;
mod auth;
mod blocking;
mod connection;
mod error;
mod house_bots;
mod jobs;
mod limits;
mod mcp;
mod metrics;
mod openapi;
mod pictures;
mod records;
mod request;
mod routes;
mod server;
mod settings;
mod tournaments;
mod web;

pub use auth::{AdminToken, AdminTokenError, AdminTokenFileError, AuthError, SecretFileError};
pub use connection::tls::{TlsError, TlsFiles};
pub use house_bots::{House, HouseSeat, Strength};
pub use limits::{ClientHeader, LimitSettings, TrustedProxies};
pub use records::RecordsError;
pub use request::{AllowedOrigin, NoOrigin};
pub use server::{Server, StartError};
pub use settings::{
    AuthSettings, ChallengeSettings, EvalSettings, HouseSettings, NetworkSettings, NodeSettings, RecordSettings,
    RetentionSettings, ScoringSettings, SessionSettings, Settings, SettingsError,
};
pub use tournaments::{Creators, TournamentSettings, TournamentsError, Uploaders};
pub use web::{SiteLink, SiteSettings};
