//! Sessions at run time: load → decide → commit → publish. Deadlines, and fan-out to who is watching.
//!
//! The rules decide (`arena-model`), the store remembers (`arena-store`); this crate brings the two together, one
//! transition at a time per session and all sessions beside each other. It knows nothing of HTTP.

mod admin;
mod bans;
mod catalogue;
mod channels;
mod deadlines;
mod engine;
mod environment;
mod events;
mod export;
mod feed;
mod following;
mod freshness;
mod import;
mod live;
mod request;
mod users;

pub use admin::Administrator;
pub use arena_nats::{NatsUrl, NatsUrlError};
pub use catalogue::{Hosted, Revive};
pub use channels::Subscription;
pub use engine::Engine;
pub use environment::Environment;
pub use events::EventCounts;
pub use export::{Export, Exported};
pub use feed::{Posted, Snapshot};
pub use following::Neighbours;
pub use import::{Import, ImportReport, Skipped};
pub use request::{Act, Chat, Create, EngineError, Join, Limits, Once, ReportUsage, Respond, Written};
pub use users::ChangeProfile;
