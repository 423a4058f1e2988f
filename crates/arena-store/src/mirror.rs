//! The data that the store mirrors in memory. The writer updates the mirror after each commit; in a shared database,
//! readers do it from the rows.

pub(crate) mod counts;
mod effects;
mod health;
mod ranking;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_model::{Scoring, ScriptedStrategy};
use parking_lot::RwLock;
use tokio::sync::Notify;

use self::health::WriterHealth;

pub(crate) use self::counts::{Counts, Delta, PagePlan, is_count_wrong, is_total_wrong};
pub(crate) use self::effects::Effects;
pub(crate) use self::health::Verdict;
pub(crate) use self::ranking::{Move, Ranked, RankingPage, Rankings};

/// Handles to the mirrored data. Clones share the data.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) counts: Arc<RwLock<Counts>>,
    /// The scoring. Its scripted strategies may change.
    scoring: Arc<RwLock<Arc<Scoring>>>,
    pub(crate) rankings: Arc<Rankings>,
    pub(crate) suspicion: Arc<Suspicion>,
    /// The evidence that the writer works.
    pub(crate) health: Arc<WriterHealth>,
    /// A lock that is held while a leaderboard is loaded into memory.
    pub(crate) loading: Arc<tokio::sync::Mutex<()>>,
}

impl Mirror {
    pub(crate) fn of(scoring: Scoring, rankings: Rankings) -> Mirror {
        Mirror {
            counts: Arc::default(),
            scoring: Arc::new(RwLock::new(Arc::new(scoring))),
            rankings: Arc::new(rankings),
            suspicion: Arc::default(),
            health: Arc::default(),
            loading: Arc::default(),
        }
    }

    pub(crate) fn scoring(&self) -> Arc<Scoring> {
        Arc::clone(&self.scoring.read())
    }

    pub(crate) fn set_scripted(&self, scripted: Vec<ScriptedStrategy>) {
        let mut scoring = self.scoring.write();
        *scoring = Arc::new(Scoring::clone(&scoring).with_scripted(scripted));
    }

    /// Replaces the counts with those from the database. `possible` is false if some were invalid.
    pub(crate) fn set_counts(&self, (counts, possible): (Counts, bool)) {
        *self.counts.write() = counts;
        if !possible {
            self.suspicion.raise("a count of sessions");
        }
    }

    /// Applies the effects of a durable write.
    pub(crate) fn show(&self, effects: &Effects) {
        let possible = self.counts.write().apply(&effects.delta);
        let impossible = (!possible).then_some("a count of sessions");
        if let Some(what) = effects.suspect.or(impossible).filter(|_| !effects.mend) {
            self.suspicion.raise(what);
        }
        if effects.recounted || effects.mend {
            self.rankings.forget_all();
        } else {
            self.rankings.apply(&effects.moves);
        }
    }
}

/// A signal that a derived table may be wrong. The writer raises the signal, and the engine then calls
/// [`Store::check_derived`](crate::Store::check_derived).
#[derive(Default)]
pub(crate) struct Suspicion {
    raised: AtomicBool,
    raised_notify: Notify,
}

impl Suspicion {
    /// Raises the suspicion. Only the first call after a [`Suspicion::wait`] writes to the log.
    pub(crate) fn raise(&self, what: &str) {
        if !self.raised.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "{what} disagrees with the sessions; all derived tables are now compared with the sessions"
            );
        }
        self.raised_notify.notify_one();
    }

    /// Waits until the suspicion is raised, and clears it.
    pub(crate) async fn wait(&self) {
        while !self.raised.swap(false, Ordering::SeqCst) {
            self.raised_notify.notified().await;
        }
    }
}
