//! The outcomes of sessions by their leaves: the games that count on leaderboards, and the reasons why others don't.

use std::collections::BTreeMap;

use arena_model::SessionId;

use crate::EndKind;
use crate::log::leaf::Leaf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOutcome {
    /// The session was created, and has neither ended nor been removed.
    Running {
        /// True if the result will count.
        is_rated: bool,
    },
    Counted,
    Excluded(String),
}

impl SessionOutcome {
    /// The reason of games that were created without a board: with other options than the arena's, or against bots.
    pub const UNRATED: &str = "unrated";
    /// The reason of games that ended because their players were inactive.
    pub const ABANDONED: &str = "abandoned";
    /// The reason of games in which a user held two seats.
    pub const SELF_PLAY: &str = "self-play";
    /// The reason of games that were unlisted before their end.
    pub const UNLISTED: &str = "unlisted";
    /// The reason of abandoned games with a player who was banned.
    pub const BAN: &str = "ban";

    /// Returns the reason of a removed session. `reason` is that of the removal.
    pub fn removed(reason: &str) -> String {
        format!("removed: {reason}")
    }

    /// Returns the outcome after a leaf. `before` is the outcome of the leaf's session before it. A session that is
    /// created again was imported after its removal. `None` for leaves without a session.
    pub fn after(before: Option<&SessionOutcome>, leaf: &Leaf) -> Option<SessionOutcome> {
        let excluded = |reason: &str| SessionOutcome::Excluded(reason.to_owned());
        Some(match (leaf, before) {
            (Leaf::Created { rated, .. }, _) => SessionOutcome::Running { is_rated: *rated },
            (Leaf::Removed { reason, .. }, _) => SessionOutcome::Excluded(SessionOutcome::removed(reason)),
            // A removed session has no record, so no later exclusion may hide the removal.
            (Leaf::Excluded { .. }, Some(SessionOutcome::Excluded(before))) if before.starts_with("removed: ") => {
                excluded(before)
            }
            (Leaf::Excluded { reason, .. }, _) => excluded(reason),
            (Leaf::Ended { .. }, Some(SessionOutcome::Excluded(reason))) => excluded(reason),
            (Leaf::Ended { .. }, Some(SessionOutcome::Running { is_rated: false })) => {
                excluded(SessionOutcome::UNRATED)
            }
            (Leaf::Ended { ending: EndKind::Abandoned, .. }, _) => excluded(SessionOutcome::ABANDONED),
            (Leaf::Ended { .. }, _) => SessionOutcome::Counted,
            _ => return before.cloned(),
        })
    }
}

/// The number of games that count, and of those that don't by reason. Running sessions are in neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    pub counted: u64,
    /// The number of games that don't count, by reason. No number is 0.
    pub excluded: BTreeMap<String, u64>,
}

impl OutcomeCounts {
    /// `before` is the outcome of the leaf's session before it. An import after a removal is another game.
    pub fn add(&mut self, leaf: &Leaf, before: Option<&SessionOutcome>) -> Option<SessionOutcome> {
        let after = SessionOutcome::after(before, leaf);
        match before.filter(|_| !matches!(leaf, Leaf::Created { .. })) {
            Some(SessionOutcome::Counted) => self.counted = self.counted.saturating_sub(1),
            Some(SessionOutcome::Excluded(reason)) => {
                if let Some(games) = self.excluded.get_mut(reason) {
                    *games -= 1;
                }
                self.excluded.retain(|_, games| *games > 0);
            }
            Some(SessionOutcome::Running { .. }) | None => {}
        }
        match &after {
            Some(SessionOutcome::Counted) => self.counted += 1,
            Some(SessionOutcome::Excluded(reason)) => self.exclude(reason),
            Some(SessionOutcome::Running { .. }) | None => {}
        }
        after
    }

    pub fn exclude(&mut self, reason: &str) {
        *self.excluded.entry(reason.to_owned()).or_default() += 1;
    }

    pub fn excluded_games(&self) -> u64 {
        self.excluded.values().sum()
    }
}

/// The outcomes of a log that grows. The memory is that of running sessions, about 50 bytes for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOutcomes {
    /// The running sessions. The value is true if the result will count.
    running: BTreeMap<SessionId, bool>,
    /// The session of the last leaf. An exclusion usually follows the end of its session.
    last: Option<(SessionId, SessionOutcome)>,
    counts: OutcomeCounts,
}

impl LogOutcomes {
    pub fn counts(&self) -> &OutcomeCounts {
        &self.counts
    }

    /// Returns the session whose earlier leaves [`LogOutcomes::add`] needs with this leaf; `None` if it needs none.
    /// These are leaves of sessions that ended before.
    pub fn needs_earlier(&self, leaf: &Leaf) -> Option<SessionId> {
        let session = leaf.session().filter(|_| !matches!(leaf, Leaf::Created { .. }))?;
        self.find(session).is_none().then_some(session)
    }

    /// Adds a leaf. `earlier` has the earlier leaves of its session in order, if [`LogOutcomes::needs_earlier`].
    pub fn add(&mut self, leaf: &Leaf, earlier: &[Leaf]) {
        let Some(session) = leaf.session() else { return };
        let read = || -> Option<SessionOutcome> {
            let mut outcome = None;
            for leaf in earlier {
                outcome = SessionOutcome::after(outcome.as_ref(), leaf);
            }
            outcome
        };
        let before = self.find(session).or_else(read);
        let Some(after) = self.counts.add(leaf, before.as_ref()) else { return };
        if let SessionOutcome::Running { is_rated } = after {
            self.running.insert(session, is_rated);
        } else {
            self.running.remove(&session);
        }
        self.last = Some((session, after));
    }

    fn find(&self, session: SessionId) -> Option<SessionOutcome> {
        if let Some((_, outcome)) = self.last.as_ref().filter(|(last, _)| *last == session) {
            return Some(outcome.clone());
        }
        self.running.get(&session).map(|is_rated| SessionOutcome::Running { is_rated: *is_rated })
    }
}

#[cfg(test)]
mod tests {
    use arena_model::Timestamp;

    use super::*;
    use crate::{Hash, RecordPublicKey};

    fn id(number: u64) -> SessionId {
        format!("018f6b2e-0000-7000-8000-{number:012x}").parse().expect("an id")
    }

    /// Returns the leaf that a word describes: the kind, with a detail, and the number of the session.
    fn leaf(word: &str) -> Leaf {
        let (kind, number) = word.split_once(' ').expect("a kind and a number");
        let (session, at) = (id(number.parse().expect("a number")), Timestamp(1));
        let created = |rated| Leaf::Created { session, challenge: "psi".to_owned(), seed_commitment: None, rated, at };
        let ended = |ending| Leaf::Ended { session, ending, record: Hash::of(b""), at };
        match kind {
            "created" => created(true),
            "unrated" => created(false),
            "completed" => ended(EndKind::Completed),
            "abandoned" => ended(EndKind::Abandoned),
            "removed" => Leaf::Removed { session, reason: "administrator".to_owned(), at },
            "key" => Leaf::Key { record_key: RecordPublicKey([1; 32]), handover: None, at },
            reason => Leaf::Excluded { session, reason: reason.to_owned(), at },
        }
    }

    /// Returns the counts as text, such as `2 abandoned×1`.
    #[track_caller]
    fn counts(leaves: &[&str]) -> String {
        let leaves: Vec<Leaf> = leaves.iter().map(|word| leaf(word)).collect();
        let mut log = LogOutcomes::default();
        let mut outcomes: BTreeMap<SessionId, SessionOutcome> = BTreeMap::new();
        let mut whole = OutcomeCounts::default();
        for (n, leaf) in leaves.iter().enumerate() {
            let earlier: Vec<Leaf> = match log.needs_earlier(leaf) {
                Some(session) => leaves[..n].iter().filter(|leaf| leaf.session() == Some(session)).cloned().collect(),
                None => Vec::new(),
            };
            log.add(leaf, &earlier);
            // The same numbers with the outcomes of all sessions in memory.
            let Some(session) = leaf.session() else { continue };
            if let Some(after) = whole.add(leaf, outcomes.get(&session)) {
                outcomes.insert(session, after);
            }
        }
        assert_eq!(*log.counts(), whole);
        let reasons = whole.excluded.iter().map(|(reason, games)| format!(" {reason}×{games}"));
        format!("{}{}", whole.counted, reasons.collect::<String>())
    }

    #[test]
    fn each_game_has_one_outcome() {
        let cases: &[(&[&str], &str)] = &[
            (&["key 0"], "0"),
            (&["created 1"], "0"),
            (&["created 1", "completed 1"], "1"),
            (&["created 1", "abandoned 1"], "0 abandoned×1"),
            (&["unrated 1", "created 2", "completed 1", "completed 2"], "1 unrated×1"),
            (&["unrated 1", "abandoned 1"], "0 unrated×1"),
            // An exclusion replaces the outcome of the end.
            (&["created 1", "completed 1", "self-play 1"], "0 self-play×1"),
            (&["created 1", "abandoned 1", "created 2", "ban 1"], "0 ban×1"),
            (&["created 1", "unlisted 1"], "0 unlisted×1"),
            (&["created 1", "unlisted 1", "created 2", "completed 1"], "0 unlisted×1"),
            // A removal replaces all.
            (&["created 1", "removed 1"], "0 removed: administrator×1"),
            (&["created 1", "completed 1", "created 2", "completed 2", "removed 1"], "1 removed: administrator×1"),
            (&["created 1", "completed 1", "removed 1", "self-play 1"], "0 removed: administrator×1"),
            (&["created 1", "completed 1", "self-play 1", "key 0", "removed 1"], "0 removed: administrator×1"),
            (&["created 1", "completed 1", "self-play 1", "created 2", "removed 1"], "0 removed: administrator×1"),
            (&["created 1", "created 2", "completed 1", "removed 2", "removed 1"], "0 removed: administrator×2"),
            // A session that is imported after its removal is another game.
            (&["created 1", "completed 1", "removed 1", "created 1", "completed 1"], "1 removed: administrator×1"),
            (
                &["created 1", "completed 1", "removed 1", "created 2", "unrated 1", "completed 2", "completed 1"],
                "1 removed: administrator×1 unrated×1",
            ),
        ];
        for (leaves, expected) in cases {
            assert_eq!(counts(leaves), *expected, "{leaves:?}");
        }
    }

    #[test]
    fn earlier_leaves_are_needed_for_sessions_that_ended_before() {
        let mut log = LogOutcomes::default();
        for (word, needs) in [
            ("created 1", false),
            ("created 2", false),
            ("completed 1", false),
            ("self-play 1", false),
            ("completed 2", false),
            ("removed 1", true),
            ("removed 3", true),
            ("created 1", false),
        ] {
            let leaf = leaf(word);
            assert_eq!(log.needs_earlier(&leaf).is_some(), needs, "{word}");
            log.add(&leaf, &[]);
        }
    }
}
