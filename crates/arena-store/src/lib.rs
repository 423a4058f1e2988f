//! The store of sessions, messages, and users, in the model's types.
//!
//! A [`Commit`] contains all changes of one transition. It is stored as a whole or not at all, and [`Store::commit`]
//! returns only when the commit would survive a power failure. Concurrent commits of several sessions share one fsync.
//!
//! [`Store`] has two backends: SQLite in the data folder, and Postgres over a network. Both use the same code to decide
//! commits (docs/decisions/0070).

mod archives;
mod audit;
mod bans;
mod boards;
mod commit;
mod copy;
mod counts;
mod db;
mod deletion;
mod derived;
mod dialect;
mod errors;
mod export;
mod hiding;
mod import;
mod job;
mod log;
mod marks;
mod mirror;
mod nodes;
mod numbers;
mod plan;
mod postgres;
mod queue;
mod ranking;
mod removal;
mod scripts;
mod sqlite;
mod standings;
mod store;
mod strategies;
mod tables;
mod tickets;
mod users;
mod value;
mod writer_health;

pub use archives::{ArchivedChannel, ArchivedFile, ArchivedMessage, NewArchive};
pub use audit::AuditEntry;
pub use bans::{AddressRange, AddressRangeError, Ban, BanSubject};
pub use boards::BoardFacts;
pub use commit::{Commit, ImportOutcome, ImportedSession, NewAnswer, SessionChange, StoredAnswer};
pub use copy::{CopiedRows, CopyError, StorePlace, copy_store};
pub use counts::SessionFilter;
pub use deletion::{DeletionOutcome, UserDeletion};
pub use errors::{CommitError, StoreError};
pub use log::{CreatedSession, EndedSession, LogCursor, NewLeaf, RemovedSession, StoredLeaf};
pub use marks::{FoundSession, Marks, SessionMark, SessionNews, StoredSession};
pub use nodes::{NodeTerms, Nodes};
pub use numbers::{AuditNo, EndingNo, SessionNo};
pub use postgres::{DatabaseUrl, DatabaseUrlError, PostgresStore};
pub use sqlite::{FolderLock, SqliteStore};
pub use store::{Due, Page, Store};
pub use strategies::{StrategyRun, StrategyState};
pub use tickets::{QueueLimits, QueuedTicket, TicketRefusal};
pub use users::{ProfileWrite, Recount, Totals};
