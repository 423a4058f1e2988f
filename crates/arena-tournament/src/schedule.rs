//! Schedules: the games of a tournament as far as they are known, and what came of them.
//!
//! Games come in waves. A wave depends on the complete results of those before it, so the order in which games of a wave end, and
//! how many are played beside each other, changes nothing. Where a test ends the tournament within a wave, it is judged in the order
//! of the games' numbers; those that were played beyond its end are kept, but don't count.

pub(crate) mod adaptive;
pub(crate) mod fixed;
pub(crate) mod knockout;
pub(crate) mod swiss;
mod trial;

use std::collections::BTreeMap;
use std::fmt;

use arena_model::Seed;

use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

pub use trial::Trial;

/// A match that is to be played: its agents, their seats and its seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    /// From 1, in the order of play. 0 in a league, whose store numbers matches as they end.
    pub number: usize,
    /// From 1. In a league, the season.
    pub round: usize,
    /// From 1. The games of a meeting share a seed.
    pub meeting: u64,
    /// From 1: the game of its meeting.
    pub leg: usize,
    /// Who plays, by seat. Numbers of agents, from 0.
    pub agents: Vec<usize>,
    /// What all that is random in it comes of.
    pub seed: Seed,
}

/// The games of a tournament, and their results.
#[derive(Debug, Clone)]
pub struct Schedule {
    shape: Shape,
    known: Known,
    scheduler: Box<dyn Scheduler>,
    /// The ranks by seat of each known game that has been played; none of a game that was void.
    results: Vec<Option<Vec<usize>>>,
    /// The fingerprint of the moves of each known game that has been played, where there is one.
    moves: Vec<Option<Moves>>,
    /// The number of the first game with these moves.
    first: BTreeMap<Moves, usize>,
    /// How many known games haven't been played.
    missing: usize,
    /// The test that may end it, and how that stands.
    trial: Option<Trial>,
    is_complete: bool,
}

/// The agents of a game, from the first side on, and the fingerprint of its moves.
type Moves = (Vec<usize>, Box<str>);

/// Decides the pairings of a tournament, wave by wave.
pub(crate) trait Scheduler: CloneBox + fmt::Debug + Send + Sync {
    /// Adds the pairings of the next wave, if there is one. All those before it have been played. `results` has the ranks of each, and
    /// `repeats` the numbers of the games that they repeat.
    fn pair(&mut self, shape: &Shape, results: &[Option<Vec<usize>>], repeats: &[Option<usize>], known: &mut Known);
}

/// Lets schedulers be cloned that aren't known by their types.
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

/// The games that are known so far, and remarks of the scheduler on agents, by number.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    seed: Seed,
    paired: bool,
    meetings: usize,
    pairings: Vec<Pairing>,
    /// The number of meetings beyond those that are always played.
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

/// A result doesn't belong to the schedule. A sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There is no such game, or not yet.
    #[error("there is no game {number} to have a result; {known} are known so far")]
    Unknown {
        /// Of the result.
        number: usize,
        /// How many are.
        known: usize,
    },
    /// It has a result.
    #[error("game {0} has a result already")]
    Twice(usize),
    /// These aren't the ranks of so many seats.
    #[error("game {number} has {seats} seats, and these aren't their ranks: {ranks:?}")]
    Ranks {
        /// Of the result.
        number: usize,
        /// Of the game.
        seats: usize,
        /// That were given.
        ranks: Vec<usize>,
    },
}

impl Schedule {
    /// The schedule of a tournament in which nothing has been played.
    ///
    /// # Errors
    /// When there is no tournament of this shape.
    pub fn new(shape: Shape) -> Result<Schedule, ShapeError> {
        shape.check()?;
        let order = draw(&shape);
        let known = Known {
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
        let scheduler = (shape.format.info().start)(&shape, order);
        let trial = match shape.stop {
            Some(Stop::Sprt(sprt)) => Some(Trial::new(sprt, shape.paired)),
            Some(Stop::Margin(_)) | None => None,
        };
        let mut schedule = Schedule {
            shape,
            known,
            scheduler,
            results: Vec::new(),
            moves: Vec::new(),
            first: BTreeMap::new(),
            missing: 0,
            trial,
            is_complete: false,
        };
        schedule.settle();
        Ok(schedule)
    }

    /// What it is made of.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The games that are known so far, in the order of their numbers, which is the order of play.
    pub fn pairings(&self) -> &[Pairing] {
        &self.known.pairings
    }

    /// The game of this number, from 1, if it is known.
    pub fn pairing(&self, number: usize) -> Option<&Pairing> {
        self.known.pairings.get(number.checked_sub(1)?)
    }

    /// The known games without a result, if they are still to be played.
    pub fn pending(&self) -> impl Iterator<Item = &Pairing> {
        let all = if self.is_complete { &[] } else { &self.known.pairings[..] };
        all.iter().zip(&self.results).filter(|(_, result)| result.is_none()).map(|(pairing, _)| pairing)
    }

    /// The games that have been played and count, each with the ranks by seat. Void games aren't among them.
    pub fn played(&self) -> impl Iterator<Item = (&Pairing, &[usize])> {
        let all = self.known.pairings.iter().zip(&self.results).take(self.last_that_counts());
        all.filter_map(|(pairing, ranks)| Some((pairing, ranks.as_deref()?))).filter(|(_, ranks)| !ranks.is_empty())
    }

    /// The number of games that were played and came to nothing.
    pub fn void(&self) -> usize {
        self.results.iter().take(self.last_that_counts()).flatten().filter(|ranks| ranks.is_empty()).count()
    }

    /// For each game that counts, by number, the number of the first game that it repeats, if it repeats one.
    pub fn repeats(&self) -> Vec<Option<usize>> {
        (1..=self.last_that_counts()).map(|number| self.repeat_of(number)).collect()
    }

    /// The number of the first game that the game of this number, from 1, repeats, if it repeats one of those that have been played.
    pub fn repeat_of(&self, number: usize) -> Option<usize> {
        let moves = self.moves.get(number.checked_sub(1)?)?.as_ref()?;
        self.first.get(moves).copied().filter(|first| *first != number)
    }

    /// Whether the game of this number counts if it has been played: not, if it lies beyond the end of a test.
    pub fn counts(&self, number: usize) -> bool {
        number <= self.last_that_counts()
    }

    /// How many games have been played and count.
    pub fn games_played(&self) -> usize {
        match self.ended() {
            Some(games) => games,
            None => self.results.len() - self.missing,
        }
    }

    /// How many games were played beyond the end of a test. It depends on how many were played beside each other.
    pub fn surplus(&self) -> usize {
        self.results.len() - self.missing - self.games_played()
    }

    /// How many games there are in all, as far as can be told: tie-breaks of a knockout come on top, and what may end it before
    /// hasn't, unless all have been played.
    pub fn games(&self) -> usize {
        if self.is_complete {
            return self.games_played();
        }
        let planned = self.shape.games().unwrap_or_default() as usize;
        planned + self.known.tie_breaks * self.shape.games_a_meeting()
    }

    /// Whether all games have been played that are to be.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The test that ends the tournament, if there is one, and how it stands.
    pub fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// If the tournament goes on until ratings are sure: the agents, by number, whose ratings weren't sure enough after the last wave.
    /// Where it ended before its last game and there are some, more games like those that were played would not bound their ratings.
    pub fn unsure(&self) -> Option<&[usize]> {
        matches!(self.shape.stop, Some(Stop::Margin(_))).then_some(&self.known.unsure)
    }

    /// How many games there were until a test ended the tournament.
    fn ended(&self) -> Option<usize> {
        self.trial.as_ref().filter(|trial| trial.is_decided()).map(Trial::judged)
    }

    fn last_that_counts(&self) -> usize {
        self.ended().unwrap_or(self.results.len())
    }

    /// How often each agent went without an opponent in a Swiss, by number. Each counts as a meeting that was won.
    pub fn byes(&self) -> Vec<usize> {
        self.known.byes.clone()
    }

    /// In a knockout: how many rounds each agent has survived, by number. Who has survived all is the winner.
    pub fn survived(&self) -> Option<&[usize]> {
        self.known.survived.as_deref()
    }

    /// In a knockout: who went on by the draw at the start, since all tie-breaks were drawn, against whom, and in which round.
    pub fn by_lot(&self) -> &[(usize, usize, usize)] {
        &self.known.by_lot
    }

    /// Takes the result of a game: the ranks by seat, from 1 for the best; equal ones are a draw.
    ///
    /// # Errors
    /// When there is no such game (yet), it has a result, or these aren't the ranks of its seats.
    pub fn record(&mut self, number: usize, ranks: &[usize]) -> Result<(), RecordError> {
        self.record_moves(number, ranks, None)
    }

    /// [`Schedule::record`], with the seat from which the agents are counted, and the fingerprint of the game's moves. Of games with the
    /// same agents, counted so, and the same fingerprint, all but the first by number are repeats: they count in the standings, and not
    /// as evidence.
    ///
    /// # Errors
    /// As [`Schedule::record`].
    pub fn record_moves(
        &mut self,
        number: usize,
        ranks: &[usize],
        moves: Option<(usize, &str)>,
    ) -> Result<(), RecordError> {
        if ranks.is_empty() {
            let seats = self.pairing(number).map_or(0, |pairing| pairing.agents.len());
            return Err(RecordError::Ranks { number, seats, ranks: Vec::new() });
        }
        self.take(number, ranks, moves)
    }

    /// Takes it that a game was void: it was played, and tells nothing of its agents.
    ///
    /// # Errors
    /// When there is no such game (yet), or it has a result.
    pub fn record_void(&mut self, number: usize) -> Result<(), RecordError> {
        self.take(number, &[], None)
    }

    fn take(&mut self, number: usize, ranks: &[usize], moves: Option<(usize, &str)>) -> Result<(), RecordError> {
        let known = self.results.len();
        let unknown = RecordError::Unknown { number, known };
        let index = number.checked_sub(1).filter(|index| *index < known).ok_or(unknown)?;
        let seats = self.known.pairings[index].agents.len();
        let are_ranks =
            ranks.len() == seats && ranks.iter().all(|rank| (1..=seats).contains(rank)) && ranks.contains(&1);
        if !ranks.is_empty() && !are_ranks {
            return Err(RecordError::Ranks { number, seats, ranks: ranks.to_vec() });
        }
        if self.results[index].is_some() {
            return Err(RecordError::Twice(number));
        }
        self.results[index] = Some(ranks.to_vec());
        if let Some((first, fingerprint)) = moves {
            let mut agents = self.known.pairings[index].agents.clone();
            agents.rotate_left(first % seats);
            let moves: Moves = (agents, fingerprint.into());
            let first = self.first.entry(moves.clone()).or_insert(number);
            *first = number.min(*first);
            self.moves[index] = Some(moves);
        }
        self.missing -= 1;
        if let Some(trial) = &mut self.trial {
            trial.judge(&self.known.pairings, &self.results, &self.moves);
            self.is_complete = trial.is_decided();
        }
        if self.missing == 0 {
            self.settle();
        }
        Ok(())
    }

    /// All known games have been played: makes the next ones known, or finds that there are none.
    fn settle(&mut self) {
        let repeats = self.repeats();
        self.scheduler.pair(&self.shape, &self.results, &repeats, &mut self.known);
        let known = self.known.pairings.len();
        self.missing = known - self.results.len();
        self.results.resize(known, None);
        self.moves.resize(known, None);
        self.is_complete = self.missing == 0;
    }
}

impl Known {
    /// Adds a meeting of these agents, who sit like this in its first game; gives the places of its games.
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

/// The agents in an order that nobody chose.
fn draw(shape: &Shape) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shape.agents).collect();
    let mut rng = shape.seed.rng("order of agents");
    for place in (1..order.len()).rev() {
        order.swap(place, rng.below(place as u64 + 1) as usize);
    }
    order
}

/// The worth of a game to the agent on `seat`, in half points: two for each opponent that it beat, one for each that it drew with. A void
/// game, which has no ranks, is worth nothing.
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
