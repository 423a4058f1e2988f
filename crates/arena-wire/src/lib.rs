//! The JSON of HTTP that both ends know: the server writes these types, its description is made of them, and its pages and the clients here
//! read them. What no client here reads is described beside the handler that writes it. Pure.
//!
//! Clients also talk to other arenas, so ids are read as texts, and what such an arena may leave out has a default.

#![expect(missing_docs, reason = "what a name says isn't said again: these comments stand in the schema, too")]

mod admin;
mod message;

pub use admin::{AuditEntry, AuditPage, Ban, Bans, Counted, Hidden, ImportReport, SkippedLine};
pub use message::{Message, Messages};
