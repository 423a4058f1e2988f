//! The engine, which runs sessions: each transition is load → decide → commit → publish. It also handles deadlines and
//! notifies subscribers.
//!
//! This crate combines the rules (`arena-model`) with the store (`arena-store`). Transitions of one session run one
//! at a time, those of different sessions concurrently. HTTP belongs to `arena-server`.

mod admin;
mod archive;
mod bans;
mod catalogue;
mod channels;
mod completion;
mod deadlines;
mod engine;
mod environment;
mod events;
mod export;
mod feed;
mod import;
mod inputs;
mod live;
mod matchmaking;
mod node_state;
mod nodes;
mod records;
mod request;
mod stale_marks;
mod strategies;
mod transcript;
mod transitions;
mod users;
mod withdrawal;

pub use admin::Administrator;
pub use archive::ArchivedCount;
pub use arena_nats::{NatsUrl, NatsUrlError};
pub use catalogue::{Hosted, Revive};
pub use channels::Subscription;
pub use engine::Engine;
pub use environment::Environment;
pub use events::EventCounts;
pub use export::{Export, Exported};
pub use feed::{Posted, Snapshot};
pub use import::{Import, ImportReport, Skipped};
pub use inputs::{CommitContent, ContentPlace};
pub use matchmaking::{Enqueue, Leaving, QueueState, Ticket};
pub use nodes::NodeMetrics;
pub use records::RecordSource;
pub use request::{Act, Chat, Create, Deal, EngineError, Join, Limits, Once, Respond, Written};
pub use users::ChangeProfile;
pub use withdrawal::{Requester, Withdrawal};
