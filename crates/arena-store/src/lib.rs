//! The store of sessions, messages, and users, in the model's types.
//!
//! A [`Commit`] contains all changes of one transition, or of several of one session. It is stored as a whole or not at all, and [`Store::commit`]
//! returns only when the commit would survive a power failure. Concurrent commits of several sessions share one fsync.
//!
//! [`Store`] has two backends: SQLite in the data folder, and Postgres over a network. Both use the same code to decide
//! commits (docs/decisions/0070).
//!
//! A file imports only files of earlier parts: `sql` (values, statements, connections), `tables` (rows), `mirror` (data in
//! memory), `plan` (the decisions about commits), `writing` and `queue`, `derived` (tables that follow from others), the
//! backends `sqlite` and `postgres`, and `store`, the interface.

mod commit;
mod derived;
mod errors;
mod marks;
mod mirror;
mod numbers;
mod plan;
mod postgres;
mod queue;
mod sql;
mod sqlite;
mod store;
mod tables;
mod writing;

pub use commit::{Commit, ImportOutcome, ImportedSession, NewAnswer, SessionChange, StoredAnswer};
pub use errors::{CommitError, StoreError};
pub use marks::{FoundSession, Marks, SessionMark, SessionNews, StoredSession};
pub use mirror::counts::SessionFilter;
pub use numbers::{AuditNo, EndingNo, SessionNo};
pub use postgres::PostgresStore;
pub use postgres::nodes::{NodeTerms, Nodes};
pub use postgres::url::{DatabaseUrl, DatabaseUrlError};
pub use sqlite::SqliteStore;
pub use sqlite::folder::FolderLock;
pub use store::archives::{ArchivedChannel, ArchivedFile, ArchivedMessage, NewArchive};
pub use store::audit::AuditEntry;
pub use store::bans::{AddressRange, AddressRangeError, Ban, BanSubject};
pub use store::boards::BoardFacts;
pub use store::checks::{Recount, Totals};
pub use store::copy::{CopiedRows, CopyError, StorePlace, copy_store};
pub use store::deletion::{DeletionOutcome, UserDeletion};
pub use store::log::{CreatedSession, EndedSession, LogCursor, NewLeaf, StoredLeaf};
pub use store::sessions::{DealResult, Due};
pub use store::strategies::{RunStep, StrategyRun, StrategyState};
pub use store::tickets::{QueueLimits, QueuedTicket, TicketRefusal};
pub use store::users::ProfileWrite;
pub use store::{Page, Store};
pub use tables::RemovedSession;
