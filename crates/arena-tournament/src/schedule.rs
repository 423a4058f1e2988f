//! Schedules: the pairings that the scheduler has decided so far, with their results.
//!
//! Pairings come in waves. A wave depends on the complete results of the waves before it. Therefore neither the order
//! in which games of a wave end nor the number of games played at the same time affects the schedule. A sequential test
//! can end the tournament within a wave; the test judges games in the order of their numbers. Games after the deciding
//! game stay in the journal, but don't count.

pub(crate) mod adaptive;
pub(crate) mod fixed;
pub(crate) mod knockout;
pub(crate) mod league;
mod sequential_test;
pub(crate) mod swiss;

use std::collections::BTreeMap;
use std::fmt;

use arena_model::Seed;

use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

pub use sequential_test::SequentialTest;

/// A scheduled game: its agents, their seats and its seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    /// The game's number, from 1, in the order of play. In a league, the place among the games of all meetings.
    pub number: usize,
    /// The round, from 1. In a league, the number of the season.
    pub round: usize,
    /// The number of the meeting, from 1. A meeting is the games of one set of agents with one seed: one game, or one
    /// for each rotation of the seats.
    pub meeting: u64,
    /// The number of the game within its meeting, from 1.
    pub leg: usize,
    /// The agent numbers by seat, from 0.
    pub agents: Vec<usize>,
    /// The seed of all random decisions in the game.
    pub seed: Seed,
}

/// The pairings of a tournament, with their results.
#[derive(Debug, Clone)]
pub struct Schedule {
    shape: Shape,
    scheduled: Scheduled,
    scheduler: Box<dyn Scheduler>,
    /// The ranks by seat of each scheduled game; `None` for a game without a result, and an empty list for a void game.
    results: Vec<Option<Vec<usize>>>,
    /// The fingerprint of the moves of each scheduled game, if the game has one.
    moves: Vec<Option<Moves>>,
    /// For each fingerprint of moves, the number of the first game that has it.
    first: BTreeMap<Moves, usize>,
    /// The number of scheduled games without a result.
    missing: usize,
    /// The sequential test that can end the tournament early, with the test's state.
    sequential_test: Option<SequentialTest>,
    is_complete: bool,
}

/// The agents of a game, in turn order from the first side, and the fingerprint of the game's moves.
type Moves = (Vec<usize>, Box<str>);

/// Decides the pairings of a tournament, wave by wave.
pub(crate) trait Scheduler: CloneBox + fmt::Debug + Send + Sync {
    /// Adds the pairings of the next wave to `scheduled`, or nothing if the tournament is over. The caller guarantees
    /// that all scheduled games have been played. For each game, `results` contains the ranks, and `repeats` the number
    /// of the earlier game with the same moves.
    fn pair(
        &mut self,
        shape: &Shape,
        results: &[Option<Vec<usize>>],
        repeats: &[Option<usize>],
        scheduled: &mut Scheduled,
    );
}

/// An object-safe `Clone`, for boxed schedulers.
pub(crate) trait CloneBox {
    fn clone_box(&self) -> Box<dyn Scheduler>;
}

impl<S: Scheduler + Clone + 'static> CloneBox for S {
    fn clone_box(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Scheduler> {
    fn clone(&self) -> Box<dyn Scheduler> {
        (**self).clone_box()
    }
}

/// The pairings that are scheduled so far, with data on agents that the scheduler records.
#[derive(Debug, Clone)]
pub(crate) struct Scheduled {
    seed: Seed,
    paired: bool,
    meetings: usize,
    pairings: Vec<Pairing>,
    /// The number of tie-break meetings.
    tie_breaks: usize,
    /// See [`Schedule::byes`].
    byes: Vec<usize>,
    /// See [`Schedule::survived`].
    survived: Option<Vec<usize>>,
    /// See [`Schedule::by_lot`].
    by_lot: Vec<(usize, usize, usize)>,
    /// See [`Schedule::unsure`].
    unsure: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("there is no game {number}; games scheduled so far: {count}")]
    Unknown {
        number: usize,
        /// The number of scheduled games.
        count: usize,
    },
    #[error("game {0} already has a result")]
    Twice(usize),
    #[error("game {number} has {seats} seats; their ranks cannot be {ranks:?}")]
    Ranks { number: usize, seats: usize, ranks: Vec<usize> },
}

impl Schedule {
    /// Creates a schedule without results.
    ///
    /// # Errors
    /// [`ShapeError`] if the shape is invalid, or open-ended.
    pub fn new(shape: Shape) -> Result<Schedule, ShapeError> {
        shape.check()?;
        let start = shape.format.info().start.ok_or(ShapeError::OpenEnded)?;
        let order = draw(&shape);
        let scheduled = Scheduled {
            seed: shape.seed.clone(),
            paired: shape.paired,
            meetings: 0,
            pairings: Vec::new(),
            tie_breaks: 0,
            byes: vec![0; shape.agents],
            survived: None,
            by_lot: Vec::new(),
            unsure: (0..shape.agents).collect(),
        };
        let scheduler = start(&shape, order);
        let sequential_test = match shape.stop {
            Some(Stop::Sprt(sprt)) => Some(SequentialTest::new(sprt, shape.paired)),
            Some(Stop::Margin(_)) | None => None,
        };
        let mut schedule = Schedule {
            shape,
            scheduled,
            scheduler,
            results: Vec::new(),
            moves: Vec::new(),
            first: BTreeMap::new(),
            missing: 0,
            sequential_test,
            is_complete: false,
        };
        schedule.settle();
        Ok(schedule)
    }

    /// Returns the input of the schedule.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the pairings that are scheduled so far, in the order of their numbers, which is the order of play.
    pub fn pairings(&self) -> &[Pairing] {
        &self.scheduled.pairings
    }

    /// Returns the pairing with this number, from 1, if it is scheduled already.
    pub fn pairing(&self, number: usize) -> Option<&Pairing> {
        self.scheduled.pairings.get(number.checked_sub(1)?)
    }

    /// Returns the scheduled pairings without a result; none if the tournament is complete.
    pub fn pending(&self) -> impl Iterator<Item = &Pairing> {
        let all = if self.is_complete { &[] } else { &self.scheduled.pairings[..] };
        all.iter().zip(&self.results).filter(|(_, result)| result.is_none()).map(|(pairing, _)| pairing)
    }

    /// Returns the games that have been played and count, each with its ranks by seat. Omits void games.
    pub fn played(&self) -> impl Iterator<Item = (&Pairing, &[usize])> {
        let all = self.scheduled.pairings.iter().zip(&self.results).take(self.last_that_counts());
        all.filter_map(|(pairing, ranks)| Some((pairing, ranks.as_deref()?))).filter(|(_, ranks)| !ranks.is_empty())
    }

    /// Returns the number of void games.
    pub fn void(&self) -> usize {
        self.results.iter().take(self.last_that_counts()).flatten().filter(|ranks| ranks.is_empty()).count()
    }

    /// Returns a list with an entry for each game that counts, by number: the number of the first game with the same
    /// moves, or `None` if the game repeats no earlier one.
    pub fn repeats(&self) -> Vec<Option<usize>> {
        (1..=self.last_that_counts()).map(|number| self.repeat_of(number)).collect()
    }

    /// Returns the number of the first game with the same moves as this game; `None` if this game is the first.
    pub fn repeat_of(&self, number: usize) -> Option<usize> {
        let moves = self.moves.get(number.checked_sub(1)?)?.as_ref()?;
        self.first.get(moves).copied().filter(|first| *first != number)
    }

    /// Returns true if the game with this number counts. Games after the decision of a sequential test don't count.
    pub fn counts(&self, number: usize) -> bool {
        number <= self.last_that_counts()
    }

    /// Returns the number of games that have been played and count.
    pub fn games_played(&self) -> usize {
        match self.ended() {
            Some(games) => games,
            None => self.results.len() - self.missing,
        }
    }

    /// Returns the number of games that were played after the decision of a sequential test. The number depends on
    /// concurrency.
    pub fn surplus(&self) -> usize {
        self.results.len() - self.missing - self.games_played()
    }

    /// Returns the total number of games. While games are left, the total includes the tie-breaks scheduled so far, and
    /// ignores that a stop condition may end the tournament early.
    pub fn games(&self) -> usize {
        if self.is_complete {
            return self.games_played();
        }
        let planned = self.shape.games().unwrap_or_default() as usize;
        planned + self.scheduled.tie_breaks * self.shape.games_a_meeting()
    }

    /// Returns true if no games are left to play.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the sequential test that can end the tournament early, with its state.
    pub fn sequential_test(&self) -> Option<&SequentialTest> {
        self.sequential_test.as_ref()
    }

    /// Returns the agents, by number, whose rating intervals were wider than the rating margin after the last wave;
    /// `None` without a margin. If the tournament ended early, these agents' intervals are unbounded on one side, and
    /// more games would not bound them.
    pub fn unsure(&self) -> Option<&[usize]> {
        matches!(self.shape.stop, Some(Stop::Margin(_))).then_some(&self.scheduled.unsure)
    }

    /// Returns the number of games up to the decision of the sequential test; `None` if there is no test or no
    /// decision.
    fn ended(&self) -> Option<usize> {
        self.sequential_test.as_ref().filter(|test| test.is_decided()).map(SequentialTest::judged)
    }

    fn last_that_counts(&self) -> usize {
        self.ended().unwrap_or(self.results.len())
    }

    /// Returns the number of byes of each agent in a Swiss tournament. A bye counts as a meeting won.
    pub fn byes(&self) -> Vec<usize> {
        self.scheduled.byes.clone()
    }

    /// Returns the number of rounds that each agent has survived in a knockout. The winner has survived all.
    pub fn survived(&self) -> Option<&[usize]> {
        self.scheduled.survived.as_deref()
    }

    /// Returns the knockout ties whose tie-breaks were all draws, so that the random initial order of the agents
    /// decided: winner, loser and round.
    pub fn by_lot(&self) -> &[(usize, usize, usize)] {
        &self.scheduled.by_lot
    }

    /// Records the result of a game: the ranks by seat. Rank 1 is the best, and equal ranks are a draw.
    ///
    /// # Errors
    /// [`RecordError`] if the game isn't scheduled (yet), already has a result, or the ranks are invalid.
    pub fn record(&mut self, number: usize, ranks: &[usize]) -> Result<(), RecordError> {
        self.record_moves(number, ranks, None)
    }

    /// Records a result like [`Schedule::record`], with the seat of the first side and the fingerprint of the game's
    /// moves. Games with the same agents in the same turn order and the same fingerprint are repeats of the first of
    /// them by number. Repeats count in the standings, but not as evidence for ratings.
    ///
    /// # Errors
    /// As [`Schedule::record`].
    pub fn record_moves(
        &mut self,
        number: usize,
        ranks: &[usize],
        moves: Option<(usize, &str)>,
    ) -> Result<(), RecordError> {
        self.check(number, Some(ranks))?;
        self.take(number, ranks, moves);
        Ok(())
    }

    /// Records a void game, which counts for no agent.
    ///
    /// # Errors
    /// [`RecordError`] if the game isn't scheduled (yet), or already has a result.
    pub fn record_void(&mut self, number: usize) -> Result<(), RecordError> {
        self.check(number, None)?;
        self.take(number, &[], None);
        Ok(())
    }

    /// Checks a result, but doesn't record it. `ranks` are `None` for a void game.
    ///
    /// # Errors
    /// As [`Schedule::record`].
    pub fn check(&self, number: usize, ranks: Option<&[usize]>) -> Result<(), RecordError> {
        let count = self.results.len();
        let unknown = RecordError::Unknown { number, count };
        let index = number.checked_sub(1).filter(|index| *index < count).ok_or(unknown)?;
        let seats = self.scheduled.pairings[index].agents.len();
        if let Some(ranks) = ranks.filter(|&ranks| !are_ranks(ranks, seats)) {
            return Err(RecordError::Ranks { number, seats, ranks: ranks.to_vec() });
        }
        match self.results[index] {
            Some(_) => Err(RecordError::Twice(number)),
            None => Ok(()),
        }
    }

    /// Records a checked result. A void game has no ranks.
    fn take(&mut self, number: usize, ranks: &[usize], moves: Option<(usize, &str)>) {
        let index = number - 1;
        self.results[index] = Some(ranks.to_vec());
        if let Some((first, fingerprint)) = moves {
            let mut agents = self.scheduled.pairings[index].agents.clone();
            let seats = agents.len();
            agents.rotate_left(first % seats);
            let moves: Moves = (agents, fingerprint.into());
            let first = self.first.entry(moves.clone()).or_insert(number);
            *first = number.min(*first);
            self.moves[index] = Some(moves);
        }
        self.missing -= 1;
        if let Some(test) = &mut self.sequential_test {
            test.judge(&self.scheduled.pairings, &self.results, &self.moves);
            self.is_complete = test.is_decided();
        }
        if self.missing == 0 {
            self.settle();
        }
    }

    /// Adds the next wave, or completes the schedule if the scheduler adds no pairings. All scheduled games must have
    /// been played.
    fn settle(&mut self) {
        let repeats = self.repeats();
        self.scheduler.pair(&self.shape, &self.results, &repeats, &mut self.scheduled);
        let count = self.scheduled.pairings.len();
        self.missing = count - self.results.len();
        self.results.resize(count, None);
        self.moves.resize(count, None);
        self.is_complete = self.missing == 0;
    }
}

impl Scheduled {
    /// Adds a meeting of these agents, listed in the seat order of the meeting's first game. Returns the indexes of the
    /// new pairings.
    fn meet(&mut self, round: usize, agents: &[usize]) -> std::ops::Range<usize> {
        self.meetings += 1;
        let seed = self.seed.derive(&format!("meeting {}", self.meetings));
        let first = self.pairings.len();
        for game in 0..if self.paired { agents.len() } else { 1 } {
            let mut agents = agents.to_vec();
            agents.rotate_left(game);
            let number = self.pairings.len() + 1;
            self.pairings.push(Pairing {
                number,
                round,
                meeting: self.meetings as u64,
                leg: game + 1,
                agents,
                seed: seed.clone(),
            });
        }
        first..self.pairings.len()
    }
}

fn are_ranks(ranks: &[usize], seats: usize) -> bool {
    ranks.len() == seats && ranks.iter().all(|rank| (1..=seats).contains(rank)) && ranks.contains(&1)
}

/// Draws the initial order of the agents: a random permutation that depends on the seed.
fn draw(shape: &Shape) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shape.agents).collect();
    let mut rng = shape.seed.rng("order of agents");
    for place in (1..order.len()).rev() {
        order.swap(place, rng.below(place as u64 + 1) as usize);
    }
    order
}

/// Returns the half points of the agent on `seat`: two for each opponent with a worse rank, one for each opponent with
/// the same rank. A void game has no ranks and gives no half points.
pub fn halves(ranks: &[usize], seat: usize) -> u64 {
    if ranks.is_empty() {
        return 0;
    }
    let others = ranks.iter().enumerate().filter(|(other, _)| *other != seat);
    others
        .map(|(_, rank)| match rank.cmp(&ranks[seat]) {
            std::cmp::Ordering::Greater => 2,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Less => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
