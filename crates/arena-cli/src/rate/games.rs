//! The games that are rated, gathered from any number of files: who played whom, what came of it, and which of them share a seed.
//!
//! A game that stands in several files counts once: a journal beside its replays, a copy of results, PGN that was made of either.
//! Games are told apart by seed, agents by seat, and result. One file may hold such a game several times, since agents that always
//! play alike can be asked to; so a game counts as often as the file says that holds it most often. Games without a seed all count.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use arena_ratings::{AgentIndex, Results};

/// What a game has for a pair when it shares its seed with none.
const ALONE: u32 = u32::MAX;

/// One game, as a file tells it.
#[derive(Debug)]
pub struct Played<'a> {
    /// The names of the agents. Of two, the one with the white pieces comes first, where there are such; else by seat.
    pub names: &'a [&'a str],
    /// Their ranks, from 1 for the best; equal ones are a draw.
    pub ranks: &'a [u32],
    /// What all that was random came of, where that is known.
    pub seed: Option<&'a str>,
    /// The fingerprint of its moves, where that is known: see [`Games::alike`].
    pub alike: Option<u64>,
}

/// Games of many files, in the order in which they were read.
#[derive(Debug, Default)]
pub struct Games {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// Agents and ranks, game after game.
    seats: Vec<(u32, u32)>,
    /// For each game: the end of its seats in the list, its pair, and true if it repeats an earlier one.
    games: Vec<(usize, u32, bool)>,
    /// The number of each seed with its set of agents, and how many games it has.
    pairs: HashMap<u64, (u32, u32)>,
    seen: HashMap<u64, Seen>,
    /// The games of which it is known how they were played.
    played: HashSet<u64>,
    hasher: RandomState,
    source: u32,
    /// Games that were left out, as they stood in an earlier file.
    pub repeated: u64,
    /// Games that were left out, as an agent played against itself.
    pub against_itself: u64,
    /// Games that were left out, as they were void.
    pub void: u64,
}

/// How often a game was met.
#[derive(Debug, Default)]
struct Seen {
    /// How often it counts.
    counted: u32,
    /// The file that was read last of those that hold it.
    source: u32,
    /// How often it was met in that one.
    here: u32,
}

impl Games {
    /// What is added from here on comes from another file than all before.
    pub fn begin_source(&mut self) {
        self.source += 1;
    }

    /// The names of all agents that played, in the order in which they were met.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds a game, unless it stood in an earlier file. Says in a sentence what is wrong with one that can't be.
    pub fn add(&mut self, played: &Played<'_>) -> Result<(), String> {
        let Played { names, ranks, seed, alike } = *played;
        let seats = names.len();
        if seats < 2 {
            return Err("a game needs two agents or more".to_owned());
        }
        if ranks.len() != seats || !ranks.contains(&1) || !ranks.iter().all(|rank| (1..=seats as u32).contains(rank)) {
            return Err(format!("the ranks of {seats} agents are {ranks:?}"));
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

    /// The same number for games that these agents, from the first side on, have played with the same moves.
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

    /// The number of the games that the agents of the last seats play with this seed.
    fn pair(&mut self, seed: &str, seats: usize) -> u32 {
        let mut agents: Vec<u32> = self.seats[self.seats.len() - seats..].iter().map(|(agent, _)| *agent).collect();
        agents.sort_unstable();
        let next = self.pairs.len() as u32;
        let (pair, games) = self.pairs.entry(self.hasher.hash_one((seed, agents))).or_insert((next, 0));
        *games += 1;
        *pair
    }

    /// The games as what is rated. Those with one seed and the same agents belong together, if there are any such.
    pub fn results(&self) -> Results {
        let has_pairs = self.pairs.values().any(|(_, games)| *games > 1);
        let mut results = Results::new(self.names.len());
        let (mut begin, mut seats) = (0, Vec::new());
        for (end, pair, is_repeat) in &self.games {
            seats.clear();
            seats.extend(self.seats[begin..*end].iter().map(|(agent, rank)| (AgentIndex(*agent as usize), *rank)));
            let pair = (has_pairs && *pair != ALONE).then_some(u64::from(*pair));
            let pushed = if *is_repeat { results.push_repeat(&seats, pair) } else { results.push(&seats, pair) };
            pushed.expect("what can't be a game wasn't added");
            begin = *end;
        }
        results
    }
}

/// Whether a text is a seed as we write it. What others call a seed may be anything, so it tells no game from another.
pub fn is_seed(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many games count of files that hold these: seed, first agent, second agent, whether the first one won.
    fn count(files: &[&[(&str, &str, &str, bool)]]) -> (usize, u64) {
        let mut games = Games::default();
        for file in files {
            games.begin_source();
            for (seed, first, second, won) in *file {
                let seed = (!seed.is_empty()).then_some(*seed);
                let ranks = if *won { [1, 2] } else { [2, 1] };
                games.add(&Played { names: &[*first, *second], ranks: &ranks, seed, alike: None }).unwrap();
            }
        }
        (games.results().len(), games.repeated)
    }

    #[test]
    fn a_game_that_stands_in_several_files_counts_once() {
        let (one, two) = (("7", "a", "b", true), ("7", "b", "a", true));
        assert_eq!(count(&[&[one, two], &[one, two]]), (2, 2));
        // One file may say it more often, and then it counts so often.
        assert_eq!(count(&[&[one, one], &[one, two], &[one, one, one]]), (4, 3));
        // Another result is another game, and so is one without a seed.
        assert_eq!(count(&[&[one], &[("7", "a", "b", false)]]), (2, 0));
        assert_eq!(count(&[&[("", "a", "b", true)], &[("", "a", "b", true)]]), (2, 0));
    }

    #[test]
    fn games_with_a_seed_and_agents_in_common_are_a_pair() {
        let mut games = Games::default();
        games.begin_source();
        for (seed, names) in [("7", ["a", "b"]), ("7", ["b", "a"]), ("7", ["a", "c"]), ("8", ["a", "b"])] {
            games.add(&Played { names: &names, ranks: &[1, 2], seed: Some(seed), alike: None }).unwrap();
        }
        games.add(&Played { names: &["a", "b"], ranks: &[1, 1], seed: None, alike: None }).unwrap();
        let pairs: Vec<Option<u64>> = games.results().games().map(|game| game.pair).collect();
        assert_eq!(pairs, [Some(0), Some(0), Some(1), Some(2), None]);
        assert_eq!(games.names(), ["a", "b", "c"]);
    }

    #[test]
    fn what_can_be_no_game_is_told() {
        let mut games = Games::default();
        let mut add = |names: &[&str], ranks: &[u32]| games.add(&Played { names, ranks, seed: None, alike: None });
        assert_eq!(add(&["a"], &[1]), Err("a game needs two agents or more".to_owned()));
        assert_eq!(add(&["a", "b"], &[2, 2]), Err("the ranks of 2 agents are [2, 2]".to_owned()));
        assert_eq!(add(&["a", "b"], &[1, 3]), Err("the ranks of 2 agents are [1, 3]".to_owned()));
        assert_eq!(add(&["a", "a"], &[1, 2]), Ok(()));
        assert_eq!((games.results().len(), games.against_itself), (0, 1));
    }
}
