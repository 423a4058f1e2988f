//! The shape of a tournament: format, agents, rounds and seed, from which the schedule follows. Also validates shapes.

use arena_model::Seed;
use arena_ratings::bradley_terry::MAX_AGENTS;

use crate::format::Format;
use crate::stop::Stop;

pub const MAX_GAMES: u64 = 1_000_000;

/// The input of a schedule.
///
/// A *meeting* is the games of one set of agents with one seed. In a paired tournament, a meeting has one game for each
/// rotation of the seats; otherwise it has one game.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub format: Format,
    pub agents: usize,
    /// Round-robin and gauntlet: the number of meetings of each set of agents. Swiss: the number of rounds. Knockout:
    /// the number of meetings of each two opponents before tie-breaks. Adaptive: the total number of meetings. League: 0.
    pub rounds: usize,
    /// The number of agents in a game.
    pub seats: usize,
    /// True if a meeting has as many games as seats, all with the same seed, with each agent on each seat once.
    /// Otherwise it is one game.
    pub paired: bool,
    pub stop: Option<Stop>,
    /// The source of all random decisions and of each game's seed.
    pub seed: Seed,
}

/// An error for a shape without a valid schedule. The text is shown to the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    #[error("a tournament needs at least 2 agents, but there {}", match .0 { 0 => "are none", _ => "is only 1" })]
    TooFewAgents(usize),
    #[error("a tournament needs at least 1 round, not 0")]
    NoRounds,
    #[error("games of a tournament need at least 2 seats, not {0}")]
    TooFewSeats(usize),
    #[error("games of {seats} seats need at least {seats} agents, but there are {agents}")]
    TooManySeats { seats: usize, agents: usize },
    /// Games of more than two seats in a format that supports only two.
    #[error("the format {format} needs games of 2 seats, not {seats}")]
    NotPairs { format: Format, seats: usize },
    /// An SPRT (sequential probability ratio test) that isn't a round-robin of two agents.
    #[error(
        "an SPRT needs a round-robin of 2 agents with 2 seats, not a {format} of {agents} agents with {seats} seats"
    )]
    NotTwo { format: Format, agents: usize, seats: usize },
    #[error("only the format adaptive can stop at a rating margin, not {0}")]
    NotAdaptive(Format),
    #[error("the rating margin must be a positive number of Elo, not {0}")]
    Margin(f64),
    /// Too few games to connect all agents, directly or through common opponents. Ratings are comparable only between
    /// connected agents.
    #[error("{agents} agents need at least {least} games to be comparable, not {games}")]
    TooFewGames {
        agents: usize,
        /// The least number of games that connects all agents.
        least: usize,
        games: u64,
    },
    /// More agents than one rating fit supports. The adaptive format needs such a fit.
    #[error("an adaptive tournament has at most {MAX_AGENTS} agents, not {0}")]
    TooManyToRate(usize),
    /// A bound for a league, or a schedule of one.
    #[error("a league has no end: it has no rounds, no stop condition and no schedule")]
    OpenEnded,
    #[error("the tournament would have more than {MAX_GAMES} games; reduce agents, seats or rounds")]
    TooManyGames,
}

impl Shape {
    /// Checks that this shape has a valid schedule.
    ///
    /// # Errors
    /// [`ShapeError`] if the shape has no valid schedule.
    pub fn check(&self) -> Result<(), ShapeError> {
        let Shape { format, agents, rounds, seats, .. } = *self;
        if format.is_open_ended() {
            // Agents join later.
            return match (seats, rounds, self.stop) {
                (0 | 1, ..) => Err(ShapeError::TooFewSeats(seats)),
                (_, 0, None) => Ok(()),
                _ => Err(ShapeError::OpenEnded),
            };
        }
        if agents < 2 {
            return Err(ShapeError::TooFewAgents(agents));
        }
        // The adaptive format's own check reports its minimum, so it is exempt here.
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

    pub fn games_a_meeting(&self) -> usize {
        if self.paired { self.seats } else { 1 }
    }

    /// Returns the number of games if the tournament doesn't end early, without a knockout's tie-breaks. `None` if the
    /// number overflows.
    pub fn games(&self) -> Option<u64> {
        let meetings = (self.format.info().meetings)(self)?;
        meetings.checked_mul(self.rounds as u64)?.checked_mul(self.games_a_meeting() as u64)
    }
}

/// Returns the binomial coefficient: the number of subsets of size `k` of `n` elements. `None` if the number overflows.
pub(crate) fn choose(n: u64, k: u64) -> Option<u64> {
    (1..=k.min(n.saturating_sub(k))).try_fold(u64::from(k <= n), |sets, taken| {
        // The division is exact: the product of k consecutive numbers is divisible by k!.
        Some(sets.checked_mul(n - taken + 1)? / taken)
    })
}

#[cfg(test)]
mod tests {
    use arena_ratings::{EloModel, Sprt};
    use expect_test::expect_file;

    use super::*;

    /// Returns the number of games of a shape, or its error.
    fn games(format: Format, agents: usize, rounds: usize, seats: usize, stop: Option<Stop>) -> String {
        let shape = Shape { format, agents, rounds, seats, paired: true, stop, seed: Seed::from_number(1) };
        match shape.check() {
            Ok(()) => format!("{} games", shape.games().unwrap()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn invalid_shapes_are_refused() {
        let (all, swiss) = (Format::RoundRobin, Format::Swiss);
        let many = "the tournament would have more than 1000000 games; reduce agents, seats or rounds";
        for (format, agents, rounds, seats, expected) in [
            (all, 0, 1, 2, "a tournament needs at least 2 agents, but there are none"),
            (all, 1, 1, 2, "a tournament needs at least 2 agents, but there is only 1"),
            (all, 2, 0, 2, "a tournament needs at least 1 round, not 0"),
            (all, 2, 1, 1, "games of a tournament need at least 2 seats, not 1"),
            (all, 3, 1, 4, "games of 4 seats need at least 4 agents, but there are 3"),
            (swiss, 5, 1, 3, "the format swiss needs games of 2 seats, not 3"),
            (all, 1000, usize::MAX, 500, many),
        ] {
            assert_eq!(games(format, agents, rounds, seats, None), expected, "{agents} {rounds} {seats}");
        }
    }

    #[test]
    fn invalid_stop_conditions_are_refused() {
        let (all, adaptive) = (Format::RoundRobin, Format::Adaptive);
        let sprt = Some(Stop::Sprt(Sprt::new(0.0, 5.0, 0.05, 0.05, EloModel::Normalized).unwrap()));
        let margin = |margin| Some(Stop::Margin(margin));
        let mut transcript = String::new();
        for (format, agents, rounds, seats, stop) in [
            (all, 2, 9, 2, sprt),
            (all, 3, 9, 2, sprt),
            (Format::Swiss, 2, 9, 2, sprt),
            (all, 3, 9, 2, margin(9.0)),
            (adaptive, 3, 9, 2, margin(9.0)),
            (adaptive, 3, 9, 2, margin(0.0)),
            (adaptive, 3, 9, 2, margin(f64::NAN)),
            (adaptive, 3, 9, 2, margin(f64::INFINITY)),
            (adaptive, 3, 2, 2, None),
            (adaptive, 9, 4, 3, None),
            (adaptive, 2_001, 9_999, 2, None),
            (adaptive, 9, 999_999, 2, None),
        ] {
            let result = games(format, agents, rounds, seats, stop);
            transcript += &format!("{format} {agents} {rounds} {seats}: {result}\n");
        }
        expect_file!["shape/invalid_stop_conditions_are_refused.txt"].assert_eq(&transcript);
    }

    #[test]
    fn games_are_counted() {
        for (format, agents, rounds, seats, expected) in [
            (Format::RoundRobin, 8, 1, 2, 56),
            (Format::RoundRobin, 5, 2, 3, 60),
            (Format::Gauntlet, 8, 3, 2, 42),
            (Format::Gauntlet, 5, 1, 3, 18),
            (Format::Swiss, 9, 4, 2, 32),
            (Format::Knockout, 9, 1, 2, 16),
            (Format::Adaptive, 9, 9, 2, 18),
            (Format::Adaptive, 9, 5, 3, 15),
            (Format::Adaptive, 3, 1, 3, 3),
        ] {
            assert_eq!(games(format, agents, rounds, seats, None), format!("{expected} games"), "{format} {agents}");
        }
    }

    #[test]
    fn a_swiss_has_as_many_rounds_as_a_knockout() {
        let rounds = [2, 3, 4, 5, 8, 9, 16, 17].map(|agents| Format::Swiss.usual_rounds(agents));
        assert_eq!(rounds, [1, 2, 2, 3, 3, 4, 4, 5]);
    }
}
