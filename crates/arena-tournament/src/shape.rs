//! The shape of a tournament: all that its schedule is made of, checked once.

use std::fmt;

use arena_model::Seed;
use serde::{Deserialize, Serialize};

/// The most games that a tournament may have.
pub const MAX_GAMES: u64 = 1_000_000;

/// Who meets whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Everybody meets everybody; in games of more than two seats, all sets of so many agents meet.
    RoundRobin,
    /// The first agent meets all others, who don't meet without it.
    Gauntlet,
    /// Agents of about equal points meet, nobody twice if that can be helped.
    Swiss,
    /// Who loses is out.
    Knockout,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::RoundRobin, Format::Gauntlet, Format::Swiss, Format::Knockout];

    /// Its name in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Format::RoundRobin => "round-robin",
            Format::Gauntlet => "gauntlet",
            Format::Swiss => "swiss",
            Format::Knockout => "knockout",
        }
    }

    /// How many rounds are usual among so many agents. A Swiss of fewer couldn't tell its winner.
    pub fn usual_rounds(self, agents: usize) -> usize {
        match self {
            Format::Swiss => agents.max(2).next_power_of_two().trailing_zeros() as usize,
            Format::RoundRobin | Format::Gauntlet | Format::Knockout => 1,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a schedule is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Who meets whom.
    pub format: Format,
    /// How many agents take part.
    pub agents: usize,
    /// Round robin and gauntlet: how often each set of agents meets. Swiss: the rounds. Knockout: the meetings of two agents before
    /// tie-breaks.
    pub rounds: usize,
    /// How many agents a game has.
    pub seats: usize,
    /// Whether a meeting is as many games as seats, all with the same seed, in which each agent sits on each seat once. Otherwise it
    /// is one game.
    pub paired: bool,
    /// All that is drawn comes of this, and the seed of each game.
    pub seed: Seed,
}

/// There is no such tournament. A sentence for whoever asked for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Nobody to play against.
    #[error("a tournament needs two agents at least, and {}", match .0 { 0 => "there is none", _ => "there is one only" })]
    TooFewAgents(usize),
    /// Nothing to play.
    #[error("a tournament of 0 rounds has no games")]
    NoRounds,
    /// A game that nobody else takes part in.
    #[error("a game of a tournament has two seats at least, not {0}")]
    TooFewSeats(usize),
    /// Not enough for one game.
    #[error("games of {seats} seats need {seats} agents at least, and there are {agents}")]
    TooManySeats {
        /// Of a game.
        seats: usize,
        /// In all.
        agents: usize,
    },
    /// Pairings are of two.
    #[error("a {format} pairs two agents, and these games have {seats} seats")]
    NotPairs {
        /// Swiss or knockout.
        format: Format,
        /// Of a game.
        seats: usize,
    },
    /// More than anybody will wait for.
    #[error("this would be more than {MAX_GAMES} games; take fewer agents, seats or rounds")]
    TooManyGames,
}

impl Shape {
    /// Whether there is such a tournament.
    ///
    /// # Errors
    /// When there is none: too few agents, no rounds, too many seats or games.
    pub fn check(&self) -> Result<(), ShapeError> {
        let Shape { format, agents, rounds, seats, .. } = *self;
        if agents < 2 {
            return Err(ShapeError::TooFewAgents(agents));
        }
        if rounds == 0 {
            return Err(ShapeError::NoRounds);
        }
        if seats < 2 {
            return Err(ShapeError::TooFewSeats(seats));
        }
        if seats > 2 && matches!(format, Format::Swiss | Format::Knockout) {
            return Err(ShapeError::NotPairs { format, seats });
        }
        if seats > agents {
            return Err(ShapeError::TooManySeats { seats, agents });
        }
        match self.least_games() {
            Some(games) if games <= MAX_GAMES => Ok(()),
            _ => Err(ShapeError::TooManyGames),
        }
    }

    /// How many games a meeting has.
    pub fn games_a_meeting(&self) -> usize {
        if self.paired { self.seats } else { 1 }
    }

    /// How many games there are: in a knockout, without tie-breaks. `None` beyond all numbers.
    pub fn least_games(&self) -> Option<u64> {
        let (agents, rounds, seats) = (self.agents as u64, self.rounds as u64, self.seats as u64);
        let meetings = match self.format {
            Format::RoundRobin => choose(agents, seats)?,
            Format::Gauntlet => choose(agents.checked_sub(1)?, seats.checked_sub(1)?)?,
            Format::Swiss => agents / 2,
            Format::Knockout => agents.checked_sub(1)?,
        };
        meetings.checked_mul(rounds)?.checked_mul(self.games_a_meeting() as u64)
    }
}

/// How many sets of `k` there are among `n`. `None` if there are too many to count.
fn choose(n: u64, k: u64) -> Option<u64> {
    (1..=k.min(n.saturating_sub(k))).try_fold(u64::from(k <= n), |sets, taken| {
        // The product of so many numbers in a row can be divided by each up to their count.
        Some(sets.checked_mul(n - taken + 1)? / taken)
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(format: Format, agents: usize, rounds: usize, seats: usize, expected: Expect) {
        let shape = Shape { format, agents, rounds, seats, paired: true, seed: Seed::from_number(1) };
        expected.assert_eq(&match shape.check() {
            Ok(()) => format!("{} games", shape.least_games().unwrap()),
            Err(error) => error.to_string(),
        });
    }

    #[test]
    fn what_cannot_be_played_is_told() {
        let (all, swiss) = (Format::RoundRobin, Format::Swiss);
        check(all, 0, 1, 2, expect!["a tournament needs two agents at least, and there is none"]);
        check(all, 1, 1, 2, expect!["a tournament needs two agents at least, and there is one only"]);
        check(all, 2, 0, 2, expect!["a tournament of 0 rounds has no games"]);
        check(all, 2, 1, 1, expect!["a game of a tournament has two seats at least, not 1"]);
        check(all, 3, 1, 4, expect!["games of 4 seats need 4 agents at least, and there are 3"]);
        check(swiss, 5, 1, 3, expect!["a swiss pairs two agents, and these games have 3 seats"]);
        let many = expect!["this would be more than 1000000 games; take fewer agents, seats or rounds"];
        check(all, 1000, usize::MAX, 500, many);
    }

    #[test]
    fn games_are_counted() {
        check(Format::RoundRobin, 8, 1, 2, expect!["56 games"]);
        check(Format::RoundRobin, 5, 2, 3, expect!["60 games"]);
        check(Format::Gauntlet, 8, 3, 2, expect!["42 games"]);
        check(Format::Gauntlet, 5, 1, 3, expect!["18 games"]);
        check(Format::Swiss, 9, 4, 2, expect!["32 games"]);
        check(Format::Knockout, 9, 1, 2, expect!["16 games"]);
    }

    #[test]
    fn a_swiss_has_as_many_rounds_as_a_knockout() {
        let rounds = [2, 3, 4, 5, 8, 9, 16, 17].map(|agents| Format::Swiss.usual_rounds(agents));
        assert_eq!(rounds, [1, 2, 2, 3, 3, 4, 4, 5]);
    }
}
