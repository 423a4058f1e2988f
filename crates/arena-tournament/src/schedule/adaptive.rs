//! Adaptive: those meet whose games tell most about the ratings that are least sure.

use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::{Covariance, Fit, FitOptions, Forecast, MAX_AGENTS, fit};

use super::{Known, Scheduler};
use crate::format::FormatInfo;
use crate::results::results_of;
use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

/// An agent whose rating has no bound on one side after so many games, since it lost them all or lost none, is no longer looked into:
/// more of the same won't bound it, and it would take all games that there are.
const OPEN_GAMES: usize = 30;

/// A wave has so many meetings at least, so that there is something to be played beside each other.
const LEAST_WAVE: usize = 4;

/// A wave has this part of all meetings before it, if that is more: then the number of waves, each of which costs a fit of all games,
/// grows with the logarithm of the number of games.
const PART_OF_ALL: usize = 8;

pub const ADAPTIVE: FormatInfo = FormatInfo {
    name: "adaptive",
    help: "Pairings are those whose games tell most about the ratings that are least sure",
    rounds: "games",
    is_adaptive: true,
    is_of_pairs: false,
    usual_rounds: |agents| 10 * agents,
    meetings: |_| Some(1),
    check,
    start: |_, order| Box::new(Adaptive { order, wave: 0 }),
};

fn check(shape: &Shape) -> Result<(), ShapeError> {
    let (agents, least, games) = (shape.agents, opening_meetings(shape), shape.games_a_meeting());
    if agents > MAX_AGENTS {
        return Err(ShapeError::TooManyToRate(agents));
    }
    if shape.rounds < least {
        let (least, games) = (least * games, (shape.rounds * games) as u64);
        return Err(ShapeError::TooFewGames { agents, least, games });
    }
    Ok(())
}

/// The number of meetings until all agents are connected by games.
pub(super) fn opening_meetings(shape: &Shape) -> usize {
    if shape.agents == shape.seats { 1 } else { shape.agents.div_ceil(shape.seats - 1) }
}

/// The state of an adaptive tournament beside its games.
#[derive(Debug, Clone)]
struct Adaptive {
    /// The agents as drawn.
    order: Vec<usize>,
    wave: usize,
}

impl Scheduler for Adaptive {
    fn pair(&mut self, shape: &Shape, results: &[Option<Vec<usize>>], repeats: &[Option<usize>], known: &mut Known) {
        let meetings = if self.wave == 0 { self.opening(shape) } else { self.next(shape, results, repeats, known) };
        let left = shape.rounds - known.meetings;
        let mut had = vec![vec![0u64; shape.seats]; shape.agents];
        for pairing in &known.pairings {
            for (seat, agent) in pairing.agents.iter().enumerate() {
                had[*agent][seat] += 1;
            }
        }
        self.wave += 1;
        for mut agents in meetings.into_iter().take(left) {
            // Everybody sits on each seat about equally often.
            let cost = |turn: usize| -> u64 {
                (0..shape.seats).map(|seat| had[agents[(seat + turn) % shape.seats]][seat]).sum()
            };
            let turn = (0..shape.seats).min_by_key(|turn| cost(*turn)).unwrap_or(0);
            agents.rotate_left(turn);
            for place in known.meet(self.wave, &agents) {
                for (seat, agent) in known.pairings[place].agents.iter().enumerate() {
                    had[*agent][seat] += 1;
                }
            }
        }
    }
}

impl Adaptive {
    /// A circle in which neighbours meet, which connects all with the fewest games.
    fn opening(&self, shape: &Shape) -> Vec<Vec<usize>> {
        let at = |place: usize| self.order[place % self.order.len()];
        let meeting = |number: usize| (0..shape.seats).map(|seat| at(number * (shape.seats - 1) + seat)).collect();
        (0..opening_meetings(shape)).map(meeting).collect()
    }

    fn next(
        &self,
        shape: &Shape,
        results: &[Option<Vec<usize>>],
        repeats: &[Option<usize>],
        known: &mut Known,
    ) -> Vec<Vec<usize>> {
        let played =
            known.pairings.iter().zip(results).filter_map(|(pairing, ranks)| Some((pairing, ranks.as_deref()?)));
        let results = results_of(shape, played, repeats);
        // What can't be fitted can't be looked into either. Games that connect all are never wrong.
        let Ok(told) = fit(&results, &FitOptions::default()) else { return self.opening(shape) };
        // What is told of how sure ratings are goes by how results scatter, which few games don't say well. Who happens to look sure
        // by that would never play again, and so never be corrected.
        let by_model = FitOptions { covariance: Covariance::Fisher, ..FitOptions::default() };
        let Ok(planned) = fit(&results, &by_model) else { return self.opening(shape) };
        let mut games = vec![0; shape.agents];
        for agent in known.pairings.iter().flat_map(|pairing| &pairing.agents) {
            games[*agent] += 1;
        }
        let goal = match shape.stop {
            Some(Stop::Margin(margin)) => margin,
            _ => 0.0,
        };
        let margins: Vec<f64> = (0..shape.agents).map(|agent| margin(&told, agent)).collect();
        known.unsure = (0..shape.agents).filter(|agent| margins[*agent] > goal).collect();
        let mut wanted: Vec<usize> = known.unsure.clone();
        wanted.retain(|agent| margins[*agent].is_finite() || games[*agent] < OPEN_GAMES);
        if wanted.is_empty() && goal == 0.0 {
            wanted.clone_from(&known.unsure);
        }
        let count = shape.agents.div_ceil(2).max(LEAST_WAVE).max(known.meetings / PART_OF_ALL);
        let mut forecast = Forecast::new(&planned, shape.seats, shape.games_a_meeting());
        // As narrow by the model as makes what is told narrow enough.
        let enough: Vec<f64> =
            (0..shape.agents).map(|agent| forecast.half_width(AgentIndex(agent)) * goal / margins[agent]).collect();
        let is_wanted = |agent: AgentIndex, half_width: f64| wanted.contains(&agent.0) && half_width > enough[agent.0];
        let meetings = std::iter::repeat_with(|| forecast.next(is_wanted)).take_while(|agents| !agents.is_empty());
        meetings.take(count).map(|agents| agents.into_iter().map(|agent| agent.0).collect()).collect()
    }
}

/// How far an agent's rating is known, in Elo, to the side to which it is known less.
fn margin(fit: &Fit, agent: usize) -> f64 {
    let (rating, interval) = (fit.rating(AgentIndex(agent)), fit.interval(AgentIndex(agent)));
    (rating - interval.low).max(interval.high - rating)
}
