//! The sessions of a log, and contradictions between its leaves.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::SessionId;

use crate::RecordPublicKey;
use crate::log::leaf::Leaf;
use crate::log::outcome::SessionOutcome;
use crate::log::reader::LogFault;

/// The indexes of the leaves about one session, since its last creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionLeaves {
    pub created: Option<u64>,
    pub ended: Option<u64>,
    pub removed: Option<u64>,
    /// The first leaf of an exclusion.
    pub excluded: Option<u64>,
}

/// The sessions of a log, from its leaves in order: about 100 bytes for each session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogAudit {
    sessions: BTreeMap<SessionId, SessionLeaves>,
    keys: Vec<(u64, RecordPublicKey)>,
    /// The days with a deal.
    days: BTreeSet<String>,
}

impl LogAudit {
    pub fn new() -> LogAudit {
        LogAudit::default()
    }

    /// Adds a leaf, and returns it parsed. Times aren't compared, because clocks of several nodes differ. A session
    /// that was removed within a second of its creation may have a leaf of its removal only. A removed session may be
    /// created again, because an administrator can import it from an export.
    ///
    /// # Errors
    /// [`LogFault::Leaf`] if the bytes aren't a leaf. [`LogFault::Contradiction`] if a session is created, ends or is
    /// removed twice, if it ends or is excluded without a creation, if it ends after its removal, or if it is unlisted
    /// after its end. [`LogFault::SecondDeal`] if its day has a deal already.
    pub fn add(&mut self, index: u64, bytes: &[u8]) -> Result<Leaf, LogFault> {
        let leaf = Leaf::from_bytes(bytes).map_err(|fault| LogFault::Leaf { leaf: index, fault })?;
        if let Leaf::Key { record_key, .. } = &leaf {
            self.keys.push((index, *record_key));
        }
        if let Leaf::Deal { day, .. } = &leaf
            && !self.days.insert(day.clone())
        {
            return Err(LogFault::SecondDeal { leaf: index, day: day.clone() });
        }
        let Some(session) = leaf.session() else { return Ok(leaf) };
        let contradiction =
            |reason: String| Err(LogFault::Contradiction { leaf: index, kind: leaf.kind(), session, reason });
        let leaves = self.sessions.entry(session).or_default();
        if matches!(leaf, Leaf::Created { .. }) && leaves.removed.is_some() {
            *leaves = SessionLeaves::default();
        }
        let (slot, needs_creation) = match leaf {
            Leaf::Created { .. } => (&mut leaves.created, false),
            Leaf::Ended { .. } => (&mut leaves.ended, true),
            Leaf::Removed { .. } => (&mut leaves.removed, false),
            Leaf::Excluded { .. } | Leaf::Key { .. } | Leaf::Deal { .. } => (&mut leaves.excluded, true),
        };
        let earlier = *slot;
        if earlier.is_none() {
            *slot = Some(index);
        }
        let may_repeat = matches!(leaf, Leaf::Excluded { .. });
        let is_unlisted = matches!(&leaf, Leaf::Excluded { reason, .. } if reason == SessionOutcome::UNLISTED);
        // Otherwise, an arena could drop a bad result with the reason of a game without a result.
        if let Some(ended) = leaves.ended.filter(|_| is_unlisted) {
            return contradiction(format!("leaf {ended} says that the session had ended before"));
        }
        match (earlier, leaves.removed) {
            (Some(first), _) if !may_repeat => contradiction(format!("leaf {first} already says so")),
            (_, Some(removed)) if removed != index && !may_repeat => {
                contradiction(format!("leaf {removed} says that the session was removed"))
            }
            _ if needs_creation && leaves.created.is_none() => {
                contradiction("no earlier leaf has its creation".to_owned())
            }
            _ => Ok(leaf),
        }
    }

    pub fn sessions(&self) -> &BTreeMap<SessionId, SessionLeaves> {
        &self.sessions
    }

    /// Returns the sessions that were created and have neither ended nor been removed. Each of them is still open, or
    /// its end is missing.
    pub fn unfinished(&self) -> impl Iterator<Item = (SessionId, u64)> {
        self.sessions.iter().filter_map(|(session, leaves)| {
            let is_over = leaves.ended.is_some() || leaves.removed.is_some();
            leaves.created.filter(|_| !is_over).map(|created| (*session, created))
        })
    }

    /// Returns the record keys with the indexes of their leaves, in order.
    pub fn keys(&self) -> &[(u64, RecordPublicKey)] {
        &self.keys
    }
}
