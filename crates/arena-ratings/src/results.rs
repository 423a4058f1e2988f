//! What is rated: games between agents, in the order in which they were played. Names, schedules and files are left to
//! others; an agent here is a number.

use serde::{Deserialize, Serialize};

/// An agent, as a number from 0 up to but not including the number of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentIndex(pub usize);

/// Games in playing order, all of them between agents that exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Results {
    agents: usize,
    seats: Vec<RankedSeat>,
    /// For each game: the end of its seats in the list, the pair that it belongs to, and true if it repeats an earlier one.
    games: Vec<(usize, Option<u64>, bool)>,
}

/// Who sat in one seat of a game, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedSeat {
    /// Who sat there.
    pub agent: AgentIndex,
    /// 1 is the best; equal ranks are a tie.
    pub rank: u32,
}

/// One game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Game<'r> {
    /// In seat order, two or more, no agent twice.
    pub seats: &'r [RankedSeat],
    /// Games of one pair share a seed, and so aren't independent of each other.
    pub pair: Option<u64>,
    /// The game went move by move as an earlier one with the same agents on the same seats. It counts in points and in Elo, and is no
    /// evidence: nothing that has an interval or a deviation takes it up.
    pub is_repeat: bool,
}

/// Why something isn't the result of a game.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// A game needs an opponent.
    #[error("a game has {0} seats, and needs 2 or more")]
    TooFewSeats(usize),
    /// Somebody played who isn't rated.
    #[error("a game has agent {agent}, but there are only {agents}, counted from 0")]
    UnknownAgent {
        /// Who played.
        agent: usize,
        /// How many there are.
        agents: usize,
    },
    /// Nobody can be told from oneself.
    #[error("agent {0} sits in two seats of a game")]
    AgainstItself(usize),
    /// Ranks begin with 1 and there are no more of them than seats.
    #[error("the ranks of a game are {0:?}, but they count from 1, for the best, to the number of seats at most")]
    Ranks(Vec<u32>),
}

impl Results {
    /// No games yet, between so many agents.
    pub fn new(agents: usize) -> Results {
        Results { agents, ..Results::default() }
    }

    /// Adds the next game: agents in seat order, each with its rank. Games with the same `pair` share a seed, such as two
    /// games with swapped seats.
    ///
    /// # Errors
    /// [`ResultsError`] if it can't be a game; then nothing is added.
    pub fn push(&mut self, seats: &[(AgentIndex, u32)], pair: Option<u64>) -> Result<(), ResultsError> {
        self.add(seats, pair, false)
    }

    /// Adds the next game, which went as an earlier one did. See [`Game::is_repeat`].
    ///
    /// # Errors
    /// As [`Results::push`].
    pub fn push_repeat(&mut self, seats: &[(AgentIndex, u32)], pair: Option<u64>) -> Result<(), ResultsError> {
        self.add(seats, pair, true)
    }

    fn add(&mut self, seats: &[(AgentIndex, u32)], pair: Option<u64>, is_repeat: bool) -> Result<(), ResultsError> {
        if seats.len() < 2 {
            return Err(ResultsError::TooFewSeats(seats.len()));
        }
        let mut has_first = false;
        for (seat, &(agent, rank)) in seats.iter().enumerate() {
            if agent.0 >= self.agents {
                return Err(ResultsError::UnknownAgent { agent: agent.0, agents: self.agents });
            }
            if seats[..seat].iter().any(|(other, _)| *other == agent) {
                return Err(ResultsError::AgainstItself(agent.0));
            }
            if rank == 0 || rank as usize > seats.len() {
                return Err(ResultsError::Ranks(seats.iter().map(|(_, rank)| *rank).collect()));
            }
            has_first |= rank == 1;
        }
        if !has_first {
            return Err(ResultsError::Ranks(seats.iter().map(|(_, rank)| *rank).collect()));
        }
        self.seats.extend(seats.iter().map(|&(agent, rank)| RankedSeat { agent, rank }));
        self.games.push((self.seats.len(), pair, is_repeat));
        Ok(())
    }

    /// How many agents there are.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// How many games there are.
    pub fn len(&self) -> usize {
        self.games.len()
    }

    /// Whether there is no game.
    pub fn is_empty(&self) -> bool {
        self.games.is_empty()
    }

    /// The game at a place in playing order.
    ///
    /// # Panics
    /// If there are not so many games.
    pub fn game(&self, place: usize) -> Game<'_> {
        let begin = if place == 0 { 0 } else { self.games[place - 1].0 };
        let (end, pair, is_repeat) = self.games[place];
        Game { seats: &self.seats[begin..end], pair, is_repeat }
    }

    /// The agents in groups that share games, directly or through others; the largest group first, and of equal ones that with the
    /// first agent. An agent without games is a group of its own.
    pub fn groups(&self) -> Vec<Vec<AgentIndex>> {
        let mut parent: Vec<usize> = (0..self.agents).collect();
        fn root(parent: &mut [usize], mut agent: usize) -> usize {
            while parent[agent] != agent {
                parent[agent] = parent[parent[agent]];
                agent = parent[agent];
            }
            agent
        }
        for game in self.games() {
            let first = root(&mut parent, game.seats[0].agent.0);
            for seat in &game.seats[1..] {
                let other = root(&mut parent, seat.agent.0);
                parent[other] = first;
            }
        }
        let mut groups: Vec<Vec<AgentIndex>> = vec![Vec::new(); self.agents];
        for agent in 0..self.agents {
            groups[root(&mut parent, agent)].push(AgentIndex(agent));
        }
        groups.retain(|group| !group.is_empty());
        groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group[0]));
        groups
    }

    /// The games between these agents alone, who are numbered by their places in the list from here on. The list is sorted.
    pub fn among(&self, agents: &[AgentIndex]) -> Results {
        let mut among = Results::new(agents.len());
        for game in self.games() {
            let place = |agent: AgentIndex| agents.binary_search(&agent).ok().map(AgentIndex);
            let seats: Option<Vec<RankedSeat>> =
                game.seats.iter().map(|seat| Some(RankedSeat { agent: place(seat.agent)?, rank: seat.rank })).collect();
            if let Some(seats) = seats {
                among.seats.extend(seats);
                among.games.push((among.seats.len(), game.pair, game.is_repeat));
            }
        }
        among
    }

    /// The number of games that repeat earlier ones.
    pub fn repeats(&self) -> usize {
        self.games.iter().filter(|(.., is_repeat)| *is_repeat).count()
    }

    /// The games without those that repeat earlier ones, in playing order.
    pub fn distinct(&self) -> impl Iterator<Item = Game<'_>> + '_ {
        self.games().filter(|game| !game.is_repeat)
    }

    /// All games, in playing order.
    pub fn games(&self) -> impl Iterator<Item = Game<'_>> + '_ {
        (0..self.len()).map(|place| self.game(place))
    }
}

impl Game<'_> {
    /// Every two seats, the earlier one first, with the outcome for that one.
    pub fn comparisons(&self) -> impl Iterator<Item = (AgentIndex, AgentIndex, Outcome)> + '_ {
        self.seats.iter().enumerate().flat_map(|(seat, one)| {
            self.seats[seat + 1..].iter().map(move |two| (one.agent, two.agent, Outcome::of(one.rank, two.rank)))
        })
    }
}

/// How one of two agents fared against the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was ranked above the other.
    Win,
    /// They share a rank.
    Draw,
    /// It was ranked below the other.
    Loss,
}

impl Outcome {
    /// The outcome for the one with rank `own`.
    pub fn of(own: u32, other: u32) -> Outcome {
        match own.cmp(&other) {
            std::cmp::Ordering::Less => Outcome::Win,
            std::cmp::Ordering::Equal => Outcome::Draw,
            std::cmp::Ordering::Greater => Outcome::Loss,
        }
    }

    /// 1, 0.5 or 0 points.
    pub fn points(self) -> f64 {
        match self {
            Outcome::Win => 1.0,
            Outcome::Draw => 0.5,
            Outcome::Loss => 0.0,
        }
    }

    /// The outcome for the other one.
    pub fn reversed(self) -> Outcome {
        match self {
            Outcome::Win => Outcome::Loss,
            Outcome::Draw => Outcome::Draw,
            Outcome::Loss => Outcome::Win,
        }
    }
}

/// What one agent has collected.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Tally {
    /// Games played.
    pub games: u64,
    /// Games in which the agent alone was ranked first.
    pub wins: u64,
    /// Games in which it shared the first rank.
    pub draws: u64,
    /// Games in which somebody was ranked above it.
    pub losses: u64,
    /// Against each opponent of a game 1 for being ranked above, 0.5 for the same rank; the mean over the opponents, so
    /// that a game of however many seats gives 0 to 1.
    pub points: f64,
}

/// What each agent has collected.
pub fn tallies(results: &Results) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); results.agents()];
    for game in results.games() {
        let opponents = (game.seats.len() - 1) as f64;
        let winners = game.seats.iter().filter(|seat| seat.rank == 1).count();
        for seat in game.seats {
            let tally = &mut tallies[seat.agent.0];
            tally.games += 1;
            match (seat.rank, winners) {
                (1, 1) => tally.wins += 1,
                (1, _) => tally.draws += 1,
                _ => tally.losses += 1,
            }
            let sum: f64 = game.seats.iter().map(|other| Outcome::of(seat.rank, other.rank).points()).sum();
            // Everybody ties with oneself.
            tally.points += (sum - 0.5) / opponents;
        }
    }
    tallies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(seats: &[(usize, u32)], error: ResultsError) {
        let mut results = Results::new(3);
        let seats: Vec<_> = seats.iter().map(|&(agent, rank)| (AgentIndex(agent), rank)).collect();
        assert_eq!(results.push(&seats, None), Err(error));
        assert!(results.is_empty());
    }

    #[test]
    fn what_is_no_game_is_refused() {
        refused(&[], ResultsError::TooFewSeats(0));
        refused(&[(0, 1)], ResultsError::TooFewSeats(1));
        refused(&[(0, 1), (3, 2)], ResultsError::UnknownAgent { agent: 3, agents: 3 });
        refused(&[(0, 1), (1, 2), (0, 3)], ResultsError::AgainstItself(0));
        refused(&[(0, 0), (1, 1)], ResultsError::Ranks(vec![0, 1]));
        refused(&[(0, 2), (1, 2)], ResultsError::Ranks(vec![2, 2]));
        refused(&[(0, 1), (1, 3)], ResultsError::Ranks(vec![1, 3]));
    }

    #[test]
    fn a_game_of_three_gives_points_for_each_opponent() {
        let mut results = Results::new(3);
        let agent = AgentIndex;
        results.push(&[(agent(0), 1), (agent(1), 2), (agent(2), 2)], None).unwrap();
        results.push(&[(agent(2), 1), (agent(1), 1), (agent(0), 3)], None).unwrap();
        let tallies = tallies(&results);
        assert_eq!(tallies[0], Tally { games: 2, wins: 1, draws: 0, losses: 1, points: 1.0 });
        assert_eq!(tallies[1], Tally { games: 2, wins: 0, draws: 1, losses: 1, points: 1.0 });
        assert_eq!(tallies[2], Tally { games: 2, wins: 0, draws: 1, losses: 1, points: 1.0 });
    }
}
