//! Sorted leaderboards. The players of each board in use are in memory instead of in a database index
//! (docs/decisions/0014).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena_model::{Board, Order, PlayerStandings, Scoring, strategies};
use parking_lot::RwLock;

/// The maximum number of players in one chunk of a ranking. A chunk of twice that size is split.
const CHUNK: usize = 512;

/// A board with one of its sort orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ranked {
    pub(crate) board: Board,
    pub(crate) order: Order,
}

impl Ranked {
    /// True if this is a board of the strategy.
    pub(crate) fn is_of(&self, strategy: &str) -> bool {
        matches!(&self.board, Board::Of { strategy: own, .. } if *own == strategy)
    }

    pub(crate) fn is_scripted(&self) -> bool {
        matches!(self.board, Board::Of { .. }) && !strategies().iter().any(|strategy| self.is_of(strategy.name))
    }

    /// Returns the player's sort value; `None` if the player isn't on the board.
    pub(crate) fn key(&self, scoring: &Scoring, standings: &PlayerStandings) -> Option<f64> {
        scoring.entry(&self.board, standings)?.sort_key(&self.order)
    }
}

/// A change of one player's position in a ranking: the old and the new sort value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) user: i64,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
}

#[derive(Default)]
pub(crate) struct Rankings {
    all: RwLock<HashMap<Ranked, Entry>>,
    /// The number of loadings that have begun.
    begun: AtomicU64,
    /// True if other nodes move players. The journal then contains only a player's new sort value, so the ranking must
    /// store the old one. This more than doubles the size of a ranking.
    others_move: bool,
}

/// The id of one loading. If a ranking is dropped and loaded again, it distinguishes the rows of the two loadings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginning(u64);

struct Entry {
    beginning: Beginning,
    ranking: RankingState,
    /// True if the ranking was read since the last [`Rankings::forget_idle`].
    used: AtomicBool,
}

enum RankingState {
    /// The ranking is being read from the store. The changes since then are applied after the read.
    Loading(Vec<RankingChange>),
    Ready(Ranking),
}

enum RankingChange {
    Moves(Move),
    /// A move from an unknown position to this sort value: the user's number and the new sort value.
    SetsValue(i64, Option<f64>),
}

/// A page of a ranking: the numbers of its users, and the number of users on all pages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RankingPage {
    pub(crate) users: Vec<i64>,
    pub(crate) total: u64,
}

impl Rankings {
    /// Creates rankings for a shared database, in which [`Rankings::place`] moves the players.
    pub(crate) fn shared() -> Rankings {
        Rankings { others_move: true, ..Rankings::default() }
    }

    /// Returns a page of a ranking, or `None` if the ranking isn't in memory.
    pub(crate) fn page(&self, ranked: &Ranked, offset: u64, limit: usize) -> Option<RankingPage> {
        let all = self.all.read();
        let entry = all.get(ranked)?;
        entry.used.store(true, Ordering::Relaxed);
        match &entry.ranking {
            RankingState::Loading(_) => None,
            RankingState::Ready(ranking) => Some(ranking.page(offset, limit)),
        }
    }

    /// Begins to load a ranking. Its moves are recorded from now on, and [`Rankings::finish`] applies them. If another
    /// reader has begun already, both share the loading, and the first call of `finish` completes it.
    pub(crate) fn begin(&self, ranked: &Ranked) -> Beginning {
        let beginning = Beginning(self.begun.fetch_add(1, Ordering::Relaxed));
        let entry = Entry { beginning, ranking: RankingState::Loading(Vec::new()), used: AtomicBool::new(true) };
        self.all.write().entry(ranked.clone()).or_insert(entry).beginning
    }

    /// Completes a loading with the players that were read from the store after [`Rankings::begin`]. Does nothing if
    /// the ranking was dropped in the meantime.
    pub(crate) fn finish(&self, ranked: &Ranked, beginning: Beginning, keys: Vec<(f64, i64)>) {
        let mut all = self.all.write();
        let Some(entry) = all.get_mut(ranked).filter(|entry| entry.beginning == beginning) else { return };
        if let RankingState::Loading(moves) = &mut entry.ranking {
            let mut ranking = Ranking::of(keys, self.others_move);
            for one in std::mem::take(moves) {
                ranking.change(one);
            }
            entry.ranking = RankingState::Ready(ranking);
        }
    }

    /// Returns the rankings whose moves must be recorded.
    pub(crate) fn in_use(&self) -> Vec<Ranked> {
        let all = self.all.read();
        if all.is_empty() { Vec::new() } else { all.keys().cloned().collect() }
    }

    pub(crate) fn apply(&self, moves: &[(Ranked, Move)]) {
        if moves.is_empty() {
            return;
        }
        let mut all = self.all.write();
        for (ranked, one) in moves {
            match all.get_mut(ranked).map(|entry| &mut entry.ranking) {
                Some(RankingState::Loading(moves)) => moves.push(RankingChange::Moves(*one)),
                // The player's position isn't the start of the move. The ranking was therefore loaded from standings
                // that were edited by hand, and is dropped.
                Some(RankingState::Ready(ranking)) if !ranking.fits(one) => drop(all.remove(ranked)),
                Some(RankingState::Ready(ranking)) => ranking.apply(*one),
                None => {}
            }
        }
    }

    /// Sets the sort values of players, regardless of their previous values.
    pub(crate) fn place(&self, places: &[(Ranked, i64, Option<f64>)]) {
        if places.is_empty() {
            return;
        }
        let mut all = self.all.write();
        for (ranked, user, key) in places {
            match all.get_mut(ranked).map(|entry| &mut entry.ranking) {
                Some(RankingState::Loading(moves)) => moves.push(RankingChange::SetsValue(*user, *key)),
                Some(RankingState::Ready(ranking)) => ranking.place(*user, *key),
                None => {}
            }
        }
    }

    /// Drops all rankings. Callers use this after standings were recomputed.
    pub(crate) fn forget_all(&self) {
        self.all.write().clear();
    }

    /// Drops the rankings by scripted strategies.
    pub(crate) fn forget_scripted(&self) {
        self.all.write().retain(|ranked, _| !ranked.is_scripted());
    }

    /// Drops rankings that haven't been read since the last call.
    pub(crate) fn forget_idle(&self) {
        self.all.write().retain(|_, entry| entry.used.swap(false, Ordering::Relaxed));
    }
}

/// A sort key. Larger sort values come first. Users with equal values are in the order in which they became known.
type Key = (i64, i64);

fn key(value: f64, user: i64) -> Key {
    // A float's bits are a sign and a magnitude. They are converted to integers that sort like the floats. The bitwise
    // NOT then reverses the order.
    let bits = (value + 0.0).to_bits().cast_signed();
    let ascending = if bits < 0 { !bits ^ i64::MIN } else { bits };
    (!ascending, user)
}

/// The sorted players of one board. Chunks limit the number of entries that a move shifts.
struct Ranking {
    chunks: Vec<Vec<Key>>,
    len: u64,
    /// The sort value of each user, if other nodes move players.
    by_user: Option<HashMap<i64, f64>>,
}

impl Ranking {
    fn of(keys: Vec<(f64, i64)>, others_move: bool) -> Ranking {
        let by_user = others_move.then(|| keys.iter().map(|(value, user)| (*user, *value)).collect());
        let mut keys: Vec<Key> = keys.into_iter().map(|(value, user)| key(value, user)).collect();
        keys.sort_unstable();
        let len = keys.len() as u64;
        Ranking { chunks: keys.chunks(CHUNK).map(<[Key]>::to_vec).collect(), len, by_user }
    }

    fn change(&mut self, change: RankingChange) {
        match change {
            RankingChange::Moves(one) => self.apply(one),
            RankingChange::SetsValue(user, key) => self.place(user, key),
        }
    }

    fn place(&mut self, user: i64, to: Option<f64>) {
        let Some(by_user) = &mut self.by_user else { return };
        let from = match to {
            Some(to) => by_user.insert(user, to),
            None => by_user.remove(&user),
        };
        self.apply(Move { user, from, to });
    }

    /// Returns the index of the chunk that contains a key or would contain it.
    fn chunk_of(&self, key: Key) -> usize {
        self.chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| *last < key))
            .min(self.chunks.len().saturating_sub(1))
    }

    /// The new entry may exist already: the rows from the store may include a move that is applied only now.
    fn apply(&mut self, Move { user, from, to }: Move) {
        if let Some(from) = from {
            self.remove(key(from, user));
        }
        if let Some(to) = to {
            self.insert(key(to, user));
        }
    }

    /// Returns true if the player's position is the start of the move, or already its end.
    fn fits(&self, Move { user, from, to }: &Move) -> bool {
        let is_at = |value: &Option<f64>| value.is_none_or(|value| self.holds(key(value, *user)));
        is_at(from) || (to.is_some() && is_at(to))
    }

    fn holds(&self, key: Key) -> bool {
        self.chunks.get(self.chunk_of(key)).is_some_and(|chunk| chunk.binary_search(&key).is_ok())
    }

    fn insert(&mut self, key: Key) {
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let at = self.chunk_of(key);
        let chunk = &mut self.chunks[at];
        if let Err(place) = chunk.binary_search(&key) {
            chunk.insert(place, key);
            self.len += 1;
            if chunk.len() > 2 * CHUNK {
                let rest = chunk.split_off(CHUNK);
                self.chunks.insert(at + 1, rest);
            }
        }
    }

    fn remove(&mut self, key: Key) {
        if self.chunks.is_empty() {
            return;
        }
        let at = self.chunk_of(key);
        let chunk = &mut self.chunks[at];
        if let Ok(place) = chunk.binary_search(&key) {
            chunk.remove(place);
            self.len -= 1;
            if chunk.is_empty() {
                self.chunks.remove(at);
            }
        }
    }

    fn page(&self, offset: u64, limit: usize) -> RankingPage {
        let mut skip = offset;
        let mut users = Vec::new();
        for chunk in &self.chunks {
            if users.len() == limit {
                break;
            }
            let len = chunk.len() as u64;
            if skip >= len {
                skip -= len;
                continue;
            }
            // `skip` is less than a chunk's length, so it fits.
            let here = chunk.iter().skip(skip as usize).take(limit - users.len());
            users.extend(here.map(|(_, user)| user));
            skip = 0;
        }
        RankingPage { users, total: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_sort_as_numbers_do() {
        let values = [f64::INFINITY, 3.5, 1.0, 0.1, 0.0, -0.1, -1.0, -2.5, f64::NEG_INFINITY];
        let keys: Vec<Key> = values.iter().map(|value| key(*value, 1)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(key(0.0, 1), key(-0.0, 1));
        assert!(key(1.0, 1) < key(1.0, 2));
    }

    #[test]
    fn what_was_read_before_a_ranking_was_forgotten_is_of_no_use() {
        let rankings = Rankings::default();
        let order = Order { metric: "average:security", by_low_end: false };
        let ranked = Ranked { board: Board::Global(BTreeSet::new()), order };
        let forgotten = rankings.begin(&ranked);
        rankings.forget_all();
        let beginning = rankings.begin(&ranked);
        rankings.finish(&ranked, forgotten, vec![(1.0, 1)]);
        assert_eq!(rankings.page(&ranked, 0, 9), None);
        rankings.finish(&ranked, beginning, vec![(2.0, 2)]);
        assert_eq!(rankings.page(&ranked, 0, 9), Some(RankingPage { users: vec![2], total: 1 }));
    }

    proptest! {
        // Compares with a simple implementation: a list that is sorted each time.
        #[test]
        fn a_ranking_is_always_sorted(
            first in prop::collection::vec(0u8..20, 0..3000),
            moves in prop::collection::vec((0i64..3000, 0u8..20), 0..500),
            offset in 0u64..3000,
            early in any::<bool>(),
        ) {
            let mut plain: HashMap<i64, f64> = (0..).zip(first.iter().map(|value| f64::from(*value))).collect();
            let read: Vec<(f64, i64)> = plain.iter().map(|(user, value)| (*value, *user)).collect();
            let mut moved = Vec::new();
            for (user, to) in moves {
                let to = f64::from(to);
                moved.push(Move { user, from: plain.insert(user, to), to: Some(to) });
            }
            // The rows that were read may include the moves already.
            let read = if early { read } else { plain.iter().map(|(user, value)| (*value, *user)).collect() };
            let mut ranking = Ranking::of(read.clone(), false);
            let mut placed = Ranking::of(read, true);
            for one in moved {
                ranking.apply(one);
                placed.place(one.user, one.to);
            }
            prop_assert_eq!(&placed.chunks.concat(), &ranking.chunks.concat());
            let mut sorted: Vec<(f64, i64)> = plain.iter().map(|(user, value)| (-*value, *user)).collect();
            sorted.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
            let expected: Vec<i64> = sorted.iter().skip(offset as usize).take(50).map(|(_, user)| *user).collect();
            prop_assert_eq!(ranking.page(offset, 50), RankingPage { users: expected, total: plain.len() as u64 });
        }
    }
}
