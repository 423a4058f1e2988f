//! The input of all ratings: games between numbered agents, in playing order.

use serde::{Deserialize, Serialize};

/// An agent, as a number from 0 up to but not including the number of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentIndex(pub usize);

/// Games in playing order between agents 0 to N - 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Results {
    agents: usize,
    seats: Vec<RankedSeat>,
    /// For each game: the end of its range in `seats`, its pair, and true if the game repeats an earlier game.
    games: Vec<(usize, Option<u64>, bool)>,
}

/// The agent on one seat of a game, and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedSeat {
    pub agent: AgentIndex,
    /// The rank; 1 is the best, and equal ranks are a tie.
    pub rank: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Game<'r> {
    /// The seats, two or more, with distinct agents.
    pub seats: &'r [RankedSeat],
    /// The pair that the game belongs to. Games of a pair share a seed, so they aren't independent.
    pub pair: Option<u64>,
    /// True if the game has the same moves as an earlier game with the same agents on the same seats. A repeat counts
    /// for points and Elo, but not for ratings with an interval or a deviation.
    pub is_repeat: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    #[error("a game has {0} seats, but needs at least 2")]
    TooFewSeats(usize),
    #[error("a game names agent {agent}, but there are only {agents} agents, numbered from 0")]
    UnknownAgent { agent: usize, agents: usize },
    #[error("agent {0} has two seats in one game")]
    AgainstItself(usize),
    #[error("a game has the ranks {0:?}; ranks must start at 1 and not exceed the number of seats")]
    Ranks(Vec<u32>),
}

impl Results {
    /// Creates an empty list of games between this number of agents.
    pub fn new(agents: usize) -> Results {
        Results { agents, ..Results::default() }
    }

    /// Adds an agent without games and returns its number.
    pub fn add_agent(&mut self) -> AgentIndex {
        self.agents += 1;
        AgentIndex(self.agents - 1)
    }

    /// Adds the next game: the agents in seat order, each with its rank. Games with the same `pair` share a seed, such
    /// as two games with swapped seats.
    ///
    /// # Errors
    /// [`ResultsError`] if the game is invalid. An invalid game isn't added.
    pub fn push(&mut self, seats: &[(AgentIndex, u32)], pair: Option<u64>) -> Result<(), ResultsError> {
        self.add(seats, pair, false)
    }

    /// Adds the next game as a repeat of an earlier game. See [`Game::is_repeat`].
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

    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Returns the number of games.
    pub fn len(&self) -> usize {
        self.games.len()
    }

    pub fn is_empty(&self) -> bool {
        self.games.is_empty()
    }

    /// Returns the game at this index in playing order.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn game(&self, place: usize) -> Game<'_> {
        let begin = if place == 0 { 0 } else { self.games[place - 1].0 };
        let (end, pair, is_repeat) = self.games[place];
        Game { seats: &self.seats[begin..end], pair, is_repeat }
    }

    /// Splits the agents into groups that games link, directly or through a chain of agents. The largest group comes
    /// first; groups of equal size are ordered by their first agent. An agent without games is a group of its own.
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

    /// Returns the games between these agents only. `agents` must be sorted; each agent's new number is its index in
    /// `agents`.
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

    /// Returns the number of games that repeat earlier games.
    pub fn repeats(&self) -> usize {
        self.games.iter().filter(|(.., is_repeat)| *is_repeat).count()
    }

    /// Returns the games that aren't repeats, in playing order.
    pub fn distinct(&self) -> impl Iterator<Item = Game<'_>> + '_ {
        self.games().filter(|game| !game.is_repeat)
    }

    /// Returns all games, in playing order.
    pub fn games(&self) -> impl Iterator<Item = Game<'_>> + '_ {
        (0..self.len()).map(|place| self.game(place))
    }
}

impl Game<'_> {
    /// Returns every pair of seats, the earlier seat first, with the outcome for the earlier seat.
    pub fn comparisons(&self) -> impl Iterator<Item = (AgentIndex, AgentIndex, PairOutcome)> + '_ {
        self.seats.iter().enumerate().flat_map(|(seat, one)| {
            self.seats[seat + 1..].iter().map(move |two| (one.agent, two.agent, PairOutcome::of(one.rank, two.rank)))
        })
    }
}

/// The outcome of a comparison of two agents, from the view of one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// Ranked above the opponent.
    Win,
    /// The same rank.
    Draw,
    /// Ranked below the opponent.
    Loss,
}

impl PairOutcome {
    /// Returns the outcome for the agent with rank `own`.
    pub fn of(own: u32, other: u32) -> PairOutcome {
        match own.cmp(&other) {
            std::cmp::Ordering::Less => PairOutcome::Win,
            std::cmp::Ordering::Equal => PairOutcome::Draw,
            std::cmp::Ordering::Greater => PairOutcome::Loss,
        }
    }

    /// Returns the points: 1, 0.5 or 0.
    pub fn points(self) -> f64 {
        match self {
            PairOutcome::Win => 1.0,
            PairOutcome::Draw => 0.5,
            PairOutcome::Loss => 0.0,
        }
    }

    pub fn reversed(self) -> PairOutcome {
        match self {
            PairOutcome::Win => PairOutcome::Loss,
            PairOutcome::Draw => PairOutcome::Draw,
            PairOutcome::Loss => PairOutcome::Win,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Tally {
    pub games: u64,
    /// The games in which the agent alone was ranked first.
    pub wins: u64,
    /// The games in which the agent shared the first rank.
    pub draws: u64,
    /// The games in which an opponent was ranked above the agent.
    pub losses: u64,
    /// The points. A game gives the mean over the opponents, 0 to 1: 1 for each opponent with a worse rank, and 0.5 for
    /// each with the same rank.
    pub points: f64,
}

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
            let sum: f64 = game.seats.iter().map(|other| PairOutcome::of(seat.rank, other.rank).points()).sum();
            // The sum includes 0.5 for the agent's tie with itself.
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
    fn invalid_games_are_refused() {
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
