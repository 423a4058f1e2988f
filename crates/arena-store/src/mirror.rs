//! The data that the store mirrors in memory. The writer updates the mirror after each commit.

pub(crate) mod counts;
pub(crate) mod effects;
pub(crate) mod health;
pub(crate) mod ranking;
pub(crate) mod suspicion;

use std::sync::Arc;

use arena_model::{Scoring, ScriptedStrategy};
use parking_lot::RwLock;

use self::counts::Counts;
use self::effects::Effects;
use self::health::WriterHealth;
use self::ranking::Rankings;
use self::suspicion::Suspicion;

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
