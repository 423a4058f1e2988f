//! The state of a node that shares its store with others.

use std::sync::atomic::{AtomicI64, AtomicU64};

use crate::events::Events;

#[derive(Default)]
pub(crate) struct NodeState {
    /// The number of the store's losses that memory follows.
    pub(crate) losses: AtomicU64,
    /// The number of the last read changes of bans and benchmark models.
    pub(crate) administration: AtomicI64,
    /// The number of decisions that another node's commit invalidated.
    pub(crate) conflicts: AtomicU64,
    /// The lag of this machine's clock behind the database's at the last read, in milliseconds.
    pub(crate) behind_ms: AtomicI64,
    pub(crate) events: Events,
}
