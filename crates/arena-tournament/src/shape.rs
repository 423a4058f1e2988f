//! The shape of a tournament: all that its schedule is made of, checked once.

use arena_model::Seed;
use arena_ratings::bradley_terry::MAX_AGENTS;

use crate::format::Format;
use crate::stop::Stop;

/// The most games that a tournament may have.
pub const MAX_GAMES: u64 = 1_000_000;

/// What a schedule is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Who meets whom.
    pub format: Format,
    /// How many agents take part.
    pub agents: usize,
    /// Round robin and gauntlet: how often each set of agents meets. Swiss: the rounds. Knockout: the meetings of two agents before
    /// tie-breaks. Adaptive: how many meetings there are in all.
    pub rounds: usize,
    /// How many agents a game has.
    pub seats: usize,
    /// Whether a meeting is as many games as seats, all with the same seed, in which each agent sits on each seat once. Otherwise it
    /// is one game.
    pub paired: bool,
    /// What ends it before, if anything does.
    pub stop: Option<Stop>,
    /// All that is drawn comes of this, and the seed of each game.
    pub seed: Seed,
}

/// There is no such tournament. The sentence is for the caller.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// A test is of one difference.
    #[error(
        "an SPRT is a round robin of two agents in games of two seats, not a {format} of {agents} in games of {seats}"
    )]
    NotTwo {
        /// That was asked for.
        format: Format,
        /// In all.
        agents: usize,
        /// Of a game.
        seats: usize,
    },
    /// Nobody decides who plays next.
    #[error("only an adaptive tournament goes on until ratings are sure, and this is a {0}")]
    NotAdaptive(Format),
    /// Nothing is ever so sure, or unsure.
    #[error("ratings can be sure to a number of Elo above 0, not to {0}")]
    Margin(f64),
    /// Ratings of agents that haven't met can't be compared.
    #[error("{agents} agents need {least} games at least to be compared with each other, not {games}")]
    TooFewGames {
        /// In all.
        agents: usize,
        /// That connect them.
        least: usize,
        /// That were asked for.
        games: u64,
    },
    /// Who plays next depends on everybody's rating.
    #[error("an adaptive tournament has {MAX_AGENTS} agents at most, not {0}")]
    TooManyToRate(usize),
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
        // A format with a least number of games says that itself.
        if rounds == 0 && !format.info().is_adaptive {
            return Err(ShapeError::NoRounds);
        }
        if seats < 2 {
            return Err(ShapeError::TooFewSeats(seats));
        }
        if seats > 2 && format.info().is_of_pairs {
            return Err(ShapeError::NotPairs { format, seats });
        }
        if seats > agents {
            return Err(ShapeError::TooManySeats { seats, agents });
        }
        match self.stop {
            Some(Stop::Sprt(_)) if (format, agents, seats) != (Format::RoundRobin, 2, 2) => {
                return Err(ShapeError::NotTwo { format, agents, seats });
            }
            Some(Stop::Margin(_)) if !format.info().is_adaptive => return Err(ShapeError::NotAdaptive(format)),
            Some(Stop::Margin(margin)) if !margin.is_finite() || margin <= 0.0 => {
                return Err(ShapeError::Margin(margin));
            }
            _ => {}
        }
        (format.info().check)(self)?;
        match self.games() {
            Some(games) if games <= MAX_GAMES => Ok(()),
            _ => Err(ShapeError::TooManyGames),
        }
    }

    /// How many games a meeting has.
    pub fn games_a_meeting(&self) -> usize {
        if self.paired { self.seats } else { 1 }
    }

    /// How many games there are if nothing ends it before; in a knockout, without tie-breaks. `None` beyond all numbers.
    pub fn games(&self) -> Option<u64> {
        let meetings = (self.format.info().meetings)(self)?;
        meetings.checked_mul(self.rounds as u64)?.checked_mul(self.games_a_meeting() as u64)
    }
}

/// How many sets of `k` there are among `n`. `None` if there are too many to count.
pub(crate) fn choose(n: u64, k: u64) -> Option<u64> {
    (1..=k.min(n.saturating_sub(k))).try_fold(u64::from(k <= n), |sets, taken| {
        // The product of so many numbers in a row can be divided by each up to their count.
        Some(sets.checked_mul(n - taken + 1)? / taken)
    })
}

#[cfg(test)]
mod tests {
    use arena_ratings::{EloModel, Sprt};
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(format: Format, agents: usize, rounds: usize, seats: usize, expected: Expect) {
        check_stop(format, agents, rounds, seats, None, expected);
    }

    #[track_caller]
    fn check_stop(format: Format, agents: usize, rounds: usize, seats: usize, stop: Option<Stop>, expected: Expect) {
        let shape = Shape { format, agents, rounds, seats, paired: true, stop, seed: Seed::from_number(1) };
        expected.assert_eq(&match shape.check() {
            Ok(()) => format!("{} games", shape.games().unwrap()),
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
    fn what_cannot_end_a_tournament_is_told() {
        let (all, adaptive) = (Format::RoundRobin, Format::Adaptive);
        let sprt = Some(Stop::Sprt(Sprt::new(0.0, 5.0, 0.05, 0.05, EloModel::Normalized).unwrap()));
        let margin = |margin| Some(Stop::Margin(margin));
        check_stop(all, 2, 9, 2, sprt, expect!["18 games"]);
        check_stop(
            all,
            3,
            9,
            2,
            sprt,
            expect![
                "an SPRT is a round robin of two agents in games of two seats, not a round-robin of 3 in games of 2"
            ],
        );
        check_stop(
            Format::Swiss,
            2,
            9,
            2,
            sprt,
            expect!["an SPRT is a round robin of two agents in games of two seats, not a swiss of 2 in games of 2"],
        );
        check_stop(
            all,
            3,
            9,
            2,
            margin(9.0),
            expect!["only an adaptive tournament goes on until ratings are sure, and this is a round-robin"],
        );
        check_stop(adaptive, 3, 9, 2, margin(9.0), expect!["18 games"]);
        check_stop(adaptive, 3, 9, 2, margin(0.0), expect!["ratings can be sure to a number of Elo above 0, not to 0"]);
        check_stop(
            adaptive,
            3,
            9,
            2,
            margin(f64::NAN),
            expect!["ratings can be sure to a number of Elo above 0, not to NaN"],
        );
        check_stop(
            adaptive,
            3,
            9,
            2,
            margin(f64::INFINITY),
            expect!["ratings can be sure to a number of Elo above 0, not to inf"],
        );
        check_stop(
            adaptive,
            3,
            2,
            2,
            None,
            expect!["3 agents need 6 games at least to be compared with each other, not 4"],
        );
        check_stop(
            adaptive,
            9,
            4,
            3,
            None,
            expect!["9 agents need 15 games at least to be compared with each other, not 12"],
        );
        check_stop(
            adaptive,
            2_001,
            9_999,
            2,
            None,
            expect!["an adaptive tournament has 2000 agents at most, not 2001"],
        );
        check_stop(
            adaptive,
            9,
            999_999,
            2,
            None,
            expect!["this would be more than 1000000 games; take fewer agents, seats or rounds"],
        );
    }

    #[test]
    fn games_are_counted() {
        check(Format::RoundRobin, 8, 1, 2, expect!["56 games"]);
        check(Format::RoundRobin, 5, 2, 3, expect!["60 games"]);
        check(Format::Gauntlet, 8, 3, 2, expect!["42 games"]);
        check(Format::Gauntlet, 5, 1, 3, expect!["18 games"]);
        check(Format::Swiss, 9, 4, 2, expect!["32 games"]);
        check(Format::Knockout, 9, 1, 2, expect!["16 games"]);
        check(Format::Adaptive, 9, 9, 2, expect!["18 games"]);
        check(Format::Adaptive, 9, 5, 3, expect!["15 games"]);
        check(Format::Adaptive, 3, 1, 3, expect!["3 games"]);
    }

    #[test]
    fn a_swiss_has_as_many_rounds_as_a_knockout() {
        let rounds = [2, 3, 4, 5, 8, 9, 16, 17].map(|agents| Format::Swiss.usual_rounds(agents));
        assert_eq!(rounds, [1, 2, 2, 3, 3, 4, 4, 5]);
    }
}
