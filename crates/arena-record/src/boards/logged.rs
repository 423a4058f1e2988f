//! The facts of an arena's log about sessions, for leaderboards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arena_model::SessionId;

use crate::EndKind;
use crate::log::{Leaf, OutcomeCounts, SessionOutcome};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedSessions {
    pub(super) rated: BTreeMap<SessionId, bool>,
    /// The position of the ending, true if the game was completed, and the hash of the record in hex.
    pub(super) ended: BTreeMap<SessionId, (u64, bool, String)>,
    /// The hashes of records from before a removal, of sessions that were imported after it.
    pub(super) former: BTreeMap<SessionId, BTreeSet<String>>,
    pub(super) first_ended: BTreeMap<SessionId, u64>,
    pub(super) removed: BTreeMap<SessionId, String>,
    pub(super) excluded: BTreeMap<SessionId, String>,
    pub(super) outcomes: BTreeMap<SessionId, SessionOutcome>,
    /// The numbers of games that count by the log, and of those that don't.
    pub counts: OutcomeCounts,
}

impl LoggedSessions {
    /// Reads the lines of all leaves, in order.
    ///
    /// # Errors
    /// If a line isn't a leaf, as one sentence with the leaf's number from 0.
    pub fn read<'l>(leaves: impl IntoIterator<Item = &'l str>) -> Result<LoggedSessions, String> {
        let mut logged = LoggedSessions::default();
        for (number, line) in leaves.into_iter().enumerate() {
            let wrong = |error: &dyn fmt::Display| format!("leaf {number} of the log cannot be read: {error}");
            let leaf = line.parse::<Leaf>().map_err(|error| wrong(&error))?;
            let Some(session) = leaf.session() else { continue };
            if let Some(outcome) = logged.counts.add(&leaf, logged.outcomes.get(&session)) {
                logged.outcomes.insert(session, outcome);
            }
            match leaf {
                Leaf::Created { rated, .. } => {
                    if logged.removed.remove(&session).is_some() {
                        logged.excluded.remove(&session);
                        if let Some((_, _, record)) = logged.ended.remove(&session) {
                            logged.former.entry(session).or_default().insert(record);
                        }
                    }
                    logged.rated.insert(session, rated);
                }
                Leaf::Ended { ending, record, .. } => {
                    let ended = (number as u64, ending == EndKind::Completed, record.to_string());
                    logged.first_ended.entry(session).or_insert(ended.0);
                    if logged.ended.insert(session, ended).is_some() {
                        return Err(wrong(&"the session has ended before"));
                    }
                }
                Leaf::Removed { reason, .. } => drop(logged.removed.insert(session, reason)),
                Leaf::Excluded { reason, .. } => drop(logged.excluded.insert(session, reason)),
                // Leaves about keys and days have no session.
                _ => {}
            }
        }
        Ok(logged)
    }

    /// Returns the number of rated sessions that have neither ended nor been removed. An arena that never logs the end of
    /// a bad game leaves the session among them.
    pub fn unfinished(&self) -> u64 {
        let is_running = |outcome: &&SessionOutcome| **outcome == SessionOutcome::Running { is_rated: true };
        self.outcomes.values().filter(is_running).count() as u64
    }

    pub(super) fn excludes(&self, session: SessionId) -> bool {
        matches!(self.outcomes.get(&session), Some(SessionOutcome::Excluded(_)))
    }

    /// Returns true if the log had this hash for a session that was removed and imported later.
    pub(super) fn is_former(&self, session: SessionId, hash: &str) -> bool {
        self.former.get(&session).is_some_and(|hashes| hashes.contains(hash))
    }

    /// Returns the ended, rated sessions whose records are missing in `known`. A removed session has no record. An
    /// abandoned or excluded one that ended has one, which shows that the reason is true.
    pub(super) fn missing(&self, known: &BTreeSet<SessionId>) -> Vec<SessionId> {
        let is_missing = |(id, _): &(&SessionId, &(u64, bool, String))| {
            !known.contains(*id) && !self.removed.contains_key(*id) && self.rated.get(*id).copied().unwrap_or(true)
        };
        self.ended.iter().filter(is_missing).map(|(id, _)| *id).collect()
    }
}
