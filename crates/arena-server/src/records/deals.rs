//! The deals of days: one challenge and seed for all visitors of a day. The log has the commitment to the seed before the
//! day begins, so the arena can't choose it by what visitors play.

use std::collections::BTreeMap;

use arena_model::{Seed, Timestamp};
use arena_record::Hash;
use arena_record::log::Leaf;
use arena_report::utc;
use sha2::{Digest, Sha256};

use super::{PublishedLog, Records};
use crate::arena::Arena;

/// The length of a day, in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// A deal in the log.
#[derive(Debug, Clone)]
pub(crate) struct LoggedDeal {
    /// The number of the leaf.
    pub(crate) leaf: u64,
    pub(crate) challenge: String,
    /// SHA-256 of the seed.
    pub(crate) commitment: Hash,
    /// The time of the leaf.
    pub(crate) at: Timestamp,
}

/// The deals of a log, by day.
pub(crate) type LoggedDeals = BTreeMap<String, LoggedDeal>;

/// Returns the day of a time in UTC, such as `2026-11-30`.
pub(crate) fn day_of(at: Timestamp) -> String {
    let mut time = utc(at.0);
    time.truncate("2026-11-30".len());
    time
}

/// Returns the end of the day of a time, in UTC.
pub(crate) fn end_of_day(at: Timestamp) -> Timestamp {
    Timestamp((at.0.div_euclid(DAY_MS) + 1) * DAY_MS)
}

/// Returns the end of a day of the last century in UTC; `None` if the day hasn't begun.
pub(crate) fn find_end(day: &str, now: Timestamp) -> Option<Timestamp> {
    let ends = (0..36_525).map(|days| Timestamp(end_of_day(now).0 - days * DAY_MS));
    // Days sort like their texts.
    let last = ends.map(|end| (end, day_of(Timestamp(end.0 - 1)))).find(|(_, other)| other.as_str() <= day)?;
    (last.1 == day).then_some(last.0)
}

impl Records {
    /// Returns the seed of a day. It follows from the arena's secret, so all nodes have the same.
    pub(crate) fn seed_of_day(&self, day: &str) -> Seed {
        Seed(Sha256::digest(self.keys.creators.owner_key(&format!("deal/{day}"))).into())
    }

    /// Returns true if a session that was created at this time has the seed of that day. `seed` is in hexadecimal digits.
    pub(crate) fn is_of_day(&self, created_at: Timestamp, seed: &str) -> bool {
        self.seed_of_day(&day_of(created_at)).reveal() == seed
    }
}

/// Returns the leaves of today's and tomorrow's deals if the log doesn't have them. There are none without house bots, who
/// play against the visitors, and none in authentication mode, where no form can take a seat.
pub(super) fn missing_leaves(arena: &Arena, log: &PublishedLog) -> Vec<Leaf> {
    let now = arena.engine.now();
    // Called twice a second, and mostly nothing is missing.
    let mut missing = vec![now, end_of_day(now)];
    missing.retain(|at| !log.deals.contains_key(&day_of(*at)));
    if missing.is_empty() {
        return Vec::new();
    }
    let Some(house) = arena.house.get().filter(|_| !arena.is_authenticated_mode()) else { return Vec::new() };
    let hosted = arena.engine.challenges();
    let games = arena_games::all().map(|playable| playable.id);
    let games: Vec<&str> = games.filter(|id| hosted.contains_key(*id) && house.plays(id)).collect();
    let deal = |at: Timestamp| {
        let day = day_of(at);
        let number = usize::try_from(at.0.div_euclid(DAY_MS)).ok()?;
        let challenge = games.get(number.checked_rem(games.len())?)?;
        let seed_commitment = Hash::of(&arena.records.seed_of_day(&day).0);
        Some(Leaf::Deal { day, challenge: (*challenge).to_owned(), seed_commitment, at: now })
    };
    missing.into_iter().filter_map(deal).collect()
}
