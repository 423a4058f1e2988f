//! The rated games, collected from any number of files: their agents, results, and shared seeds.
//!
//! A game in several files counts once. Several files contain a game if, for example, a journal lies beside its
//! replays, or results were copied or exported to PGN. A game is identified by its seed, its agents by seat, and its
//! result. One file may contain such a game several times, since deterministic agents repeat games. So a game counts as
//! often as in the file that contains it most often. Games without a seed all count.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use arena_ratings::{AgentIndex, Results};

/// The pair number of a game without a seed.
const ALONE: u32 = u32::MAX;

#[derive(Debug)]
pub struct PlayedGame<'a> {
    /// The agents' names, in the order of seats. In games of two agents with sides, White comes first.
    pub names: &'a [&'a str],
    /// The agents' ranks, from 1 for the best; equal ranks are a draw.
    pub ranks: &'a [u32],
    pub seed: Option<&'a str>,
    /// The fingerprint of the moves, if known: see [`Games::alike`].
    pub alike: Option<u64>,
}

/// Games of many files, in reading order.
#[derive(Debug, Default)]
pub struct Games {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// The agent's number and rank for each seat, game after game.
    seats: Vec<(u32, u32)>,
    /// For each game: the end of its range in `seats`, its pair number, and true if it has the same agents and moves as
    /// an earlier game.
    games: Vec<(usize, u32, bool)>,
    /// The pair number and the number of games for each hash of a seed and a set of agents.
    pairs: HashMap<u64, (u32, u32)>,
    seen: HashMap<u64, Occurrences>,
    /// The move fingerprints of the games so far: see [`Games::alike`].
    played: HashSet<u64>,
    hasher: RandomState,
    source: u32,
    /// The number of games omitted because an earlier file contains them.
    pub repeated: u64,
    /// The number of games omitted because an agent played itself.
    pub against_itself: u64,
    /// The number of void games, which are omitted.
    pub void: u64,
}

#[derive(Debug, Default)]
struct Occurrences {
    counted: u32,
    /// The last file that contains the game.
    source: u32,
    /// The number of occurrences in that file.
    here: u32,
}

impl Games {
    pub fn begin_source(&mut self) {
        self.source += 1;
    }

    /// Returns the names of all agents in the order of their first games.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds a game unless an earlier file contains it. Returns an error message if the game is invalid.
    pub fn add(&mut self, played: &PlayedGame<'_>) -> Result<(), String> {
        let PlayedGame { names, ranks, seed, alike } = *played;
        let seats = names.len();
        if seats < 2 {
            return Err("a game needs at least two agents".to_owned());
        }
        if ranks.len() != seats || !ranks.contains(&1) || !ranks.iter().all(|rank| (1..=seats as u32).contains(rank)) {
            return Err(format!("invalid ranks of {seats} agents: {ranks:?}"));
        }
        if (1..seats).any(|seat| names[..seat].contains(&names[seat])) {
            self.against_itself += 1;
            return Ok(());
        }
        if let Some(seed) = seed {
            let seen = self.seen.entry(self.hasher.hash_one((seed, names, ranks))).or_default();
            if seen.source != self.source {
                (seen.source, seen.here) = (self.source, 0);
            }
            seen.here += 1;
            if seen.here <= seen.counted {
                self.repeated += 1;
                return Ok(());
            }
            seen.counted = seen.here;
        }
        for (name, rank) in names.iter().zip(ranks) {
            let agent = self.agent(name);
            self.seats.push((agent, *rank));
        }
        let pair = seed.map_or(ALONE, |seed| self.pair(seed, seats));
        let is_repeat = alike.is_some_and(|alike| !self.played.insert(alike));
        self.games.push((self.seats.len(), pair, is_repeat));
        Ok(())
    }

    /// Returns the fingerprint of a game's agents and moves: equal for games in which the same agents, in order of
    /// sides, play the same moves.
    pub fn alike(&self, names: &[&str], moves: impl std::hash::Hash) -> u64 {
        self.hasher.hash_one((names, moves))
    }

    fn agent(&mut self, name: &str) -> u32 {
        if let Some(agent) = self.by_name.get(name) {
            return *agent;
        }
        let agent = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), agent);
        agent
    }

    /// Returns the pair number for this seed and the agents on the last `seats` added seats.
    fn pair(&mut self, seed: &str, seats: usize) -> u32 {
        let mut agents: Vec<u32> = self.seats[self.seats.len() - seats..].iter().map(|(agent, _)| *agent).collect();
        agents.sort_unstable();
        let next = self.pairs.len() as u32;
        let (pair, games) = self.pairs.entry(self.hasher.hash_one((seed, agents))).or_insert((next, 0));
        *games += 1;
        *pair
    }

    /// Returns the games for rating. Games with the same seed and the same agents form a pair, if there are such games.
    pub fn results(&self) -> Results {
        let has_pairs = self.pairs.values().any(|(_, games)| *games > 1);
        let mut results = Results::new(self.names.len());
        let (mut begin, mut seats) = (0, Vec::new());
        for (end, pair, is_repeat) in &self.games {
            seats.clear();
            seats.extend(self.seats[begin..*end].iter().map(|(agent, rank)| (AgentIndex(*agent as usize), *rank)));
            let pair = (has_pairs && *pair != ALONE).then_some(u64::from(*pair));
            let pushed = if *is_repeat { results.push_repeat(&seats, pair) } else { results.push(&seats, pair) };
            pushed.expect("invalid games aren't added");
            begin = *end;
        }
        results
    }
}

/// Returns true if a text is one of this program's seeds. Seeds of other programs don't identify a game.
pub fn is_seed(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the games in these files; returns the number of games and the number of omitted repetitions. Each game is
    /// given as seed, first agent, second agent, and true if the first agent won.
    fn count(files: &[&[(&str, &str, &str, bool)]]) -> (usize, u64) {
        let mut games = Games::default();
        for file in files {
            games.begin_source();
            for (seed, first, second, won) in *file {
                let seed = (!seed.is_empty()).then_some(*seed);
                let ranks = if *won { [1, 2] } else { [2, 1] };
                games.add(&PlayedGame { names: &[*first, *second], ranks: &ranks, seed, alike: None }).unwrap();
            }
        }
        (games.results().len(), games.repeated)
    }

    #[test]
    fn a_game_that_stands_in_several_files_counts_once() {
        let (one, two) = (("7", "a", "b", true), ("7", "b", "a", true));
        assert_eq!(count(&[&[one, two], &[one, two]]), (2, 2));
        // All repetitions within one file count.
        assert_eq!(count(&[&[one, one], &[one, two], &[one, one, one]]), (4, 3));
        // A game with another result is another game.
        assert_eq!(count(&[&[one], &[("7", "a", "b", false)]]), (2, 0));
        assert_eq!(count(&[&[("", "a", "b", true)], &[("", "a", "b", true)]]), (2, 0));
    }

    #[test]
    fn games_with_a_seed_and_agents_in_common_are_a_pair() {
        let mut games = Games::default();
        games.begin_source();
        for (seed, names) in [("7", ["a", "b"]), ("7", ["b", "a"]), ("7", ["a", "c"]), ("8", ["a", "b"])] {
            games.add(&PlayedGame { names: &names, ranks: &[1, 2], seed: Some(seed), alike: None }).unwrap();
        }
        games.add(&PlayedGame { names: &["a", "b"], ranks: &[1, 1], seed: None, alike: None }).unwrap();
        let pairs: Vec<Option<u64>> = games.results().games().map(|game| game.pair).collect();
        assert_eq!(pairs, [Some(0), Some(0), Some(1), Some(2), None]);
        assert_eq!(games.names(), ["a", "b", "c"]);
    }

    #[test]
    fn impossible_games_are_refused() {
        let mut games = Games::default();
        let mut add = |names: &[&str], ranks: &[u32]| games.add(&PlayedGame { names, ranks, seed: None, alike: None });
        assert_eq!(add(&["a"], &[1]), Err("a game needs at least two agents".to_owned()));
        assert_eq!(add(&["a", "b"], &[2, 2]), Err("invalid ranks of 2 agents: [2, 2]".to_owned()));
        assert_eq!(add(&["a", "b"], &[1, 3]), Err("invalid ranks of 2 agents: [1, 3]".to_owned()));
        assert_eq!(add(&["a", "a"], &[1, 2]), Ok(()));
        assert_eq!((games.results().len(), games.against_itself), (0, 1));
    }
}
