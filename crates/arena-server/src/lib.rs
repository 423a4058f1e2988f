//! The arena's HTTP server: REST, Server-Sent Events, MCP, limits, metrics and pages.
//!
//! Handlers parse requests, call the engine and build responses; they contain no rules. The list of routes is in
//! `routes.rs`.

mod acceptor;
mod admin_token;
mod answer;
mod arena;
mod auth;
mod authority;
mod connections;
mod disk;
mod error;
mod fields;
mod house;
mod identity;
mod lanes;
mod ledger;
mod mcp;
mod memory;
mod metrics;
mod openapi;
mod origin;
mod proxies;
mod proxy_protocol;
mod query;
mod rates;
mod records;
mod request;
mod request_id;
mod retention;
mod routes;
mod scripts;
mod secret;
mod server;
mod settings;
mod shared_work;
mod socket;
mod strategies;
mod supervision;
mod tls;
mod tournaments;
mod verifier;
mod web;

pub use admin_token::{AdminToken, AdminTokenError, AdminTokenFileError};
pub use auth::AuthError;
pub use house::{House, HouseSeat, Strength};
pub use origin::{AllowedOrigin, NoOrigin};
pub use proxies::{ClientHeader, TrustedProxies};
pub use records::RecordsError;

pub use secret::SecretFileError;
pub use server::{Server, StartError};
pub use settings::{
    AuthSettings, ChallengeSettings, EvalSettings, HouseSettings, LimitSettings, NetworkSettings, NodeSettings,
    RecordSettings, RetentionSettings, ScoringSettings, SessionSettings, Settings, SettingsError,
};
pub use tls::{TlsError, TlsFiles};
pub use tournaments::{Creators, TournamentSettings, TournamentsError, Uploaders};
pub use web::{SiteLink, SiteSettings};
