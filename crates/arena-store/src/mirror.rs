//! The data that the store mirrors in memory. The writer updates the mirror after each commit.

pub(crate) mod counts;
pub(crate) mod health;
pub(crate) mod ranking;

use std::sync::Arc;

use arena_model::{Scoring, ScriptedStrategy};
use parking_lot::RwLock;

use self::counts::{BLOCK, Counts};
use self::health::WriterHealth;
use self::ranking::Rankings;
use crate::derived::Suspicion;
use crate::writing::Effects;

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
    pub(crate) fn of(counts: Counts, scoring: Scoring, rankings: Rankings, suspicion: Arc<Suspicion>) -> Mirror {
        Mirror {
            counts: Arc::new(RwLock::new(counts)),
            scoring: Arc::new(RwLock::new(Arc::new(scoring))),
            rankings: Arc::new(rankings),
            suspicion,
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

/// Returns true if a stored count is wrong: if it is out of range, or if it differs from `before + change`, where
/// `before` is the count in memory, if known.
pub(crate) fn is_count_wrong(after: Option<i64>, before: Option<i64>, change: i64) -> bool {
    after.is_none_or(|after| !(0..=BLOCK).contains(&after) || before.is_some_and(|before| before + change != after))
}

pub(crate) fn is_total_wrong(after: Option<i64>) -> bool {
    after.is_none_or(|after| after < 0)
}
