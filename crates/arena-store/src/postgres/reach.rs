//! The state of the connection to the database, which writer and readers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::StoreError;

/// The state of the connection to the database.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    /// The number of times that the database may have lost commits, which memory then still shows.
    pub(crate) losses: Arc<AtomicU64>,
    /// The error that closed this store; `None` while the store is open.
    pub(crate) ended: Arc<RwLock<Option<StoreError>>>,
    /// The size of the store in bytes, as last measured.
    pub(crate) bytes: Arc<AtomicU64>,
    /// The place of the writer's server in the URL.
    pub(crate) server: Arc<AtomicUsize>,
}

impl Reach {
    /// Returns the state after the first connection, to the server at this place in the URL.
    pub(super) fn of(server: usize) -> Reach {
        Reach { server: Arc::new(server.into()), ..Reach::default() }
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }
}
