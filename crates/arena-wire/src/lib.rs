//! The JSON types that the HTTP server and the clients in this repository share. The server writes them and
//! describes them in `/openapi.json`; its pages and the clients read them. Types that no client reads are declared
//! beside their handlers. Pure.
//!
//! Clients also talk to other arenas, so ids are plain strings, and optional data has a default.

mod import;
mod message;
pub mod removed;
mod session;

pub use import::{ImportReport, SkippedLine};
pub use message::{Message, Messages};
pub use session::{Joined, QueuePlace, Session, SessionPage, SessionState};
