//! Adaptive format: each pairing is the one that is expected to narrow the widest rating interval most. A *meeting* is
//! the games of one set of agents with one seed; a *wave* is the meetings that are scheduled from one fit.

use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::{Covariance, Fit, FitOptions, Forecast, MAX_AGENTS, fit};

use super::{Scheduled, Scheduler};
use crate::format::FormatInfo;
use crate::results::results_of;
use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

/// The number of an agent's games after which the scheduler stops trying to bound an interval that is unbounded on one
/// side. Such an agent has lost all its games or none. More such games would not bound the interval, but use up all
/// games that are left.
const OPEN_GAMES: usize = 30;

/// The least number of meetings in a wave, so that games can run at the same time.
const LEAST_WAVE: usize = 4;

/// The divisor for the size of a wave: a wave has at least 1/8 as many meetings as were played before it. Each wave
/// costs a fit of all games, and with this size the number of waves grows with the logarithm of the number of games.
const PART_OF_ALL: usize = 8;

pub const ADAPTIVE: FormatInfo = FormatInfo {
    name: "adaptive",
    help: "Each pairing narrows the widest rating interval most",
    rounds: "games",
    is_adaptive: true,
    is_of_pairs: false,
    usual_rounds: |agents| 10 * agents,
    meetings: |_| Some(1),
    check,
    start: Some(|_, order| Box::new(Adaptive { order, wave: 0 })),
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

/// Returns the least number of meetings that connects all agents, directly or through common opponents.
pub(super) fn opening_meetings(shape: &Shape) -> usize {
    if shape.agents == shape.seats { 1 } else { shape.agents.div_ceil(shape.seats - 1) }
}

#[derive(Debug, Clone)]
struct Adaptive {
    /// The agents, in the order of the draw.
    order: Vec<usize>,
    wave: usize,
}

impl Scheduler for Adaptive {
    fn pair(
        &mut self,
        shape: &Shape,
        results: &[Option<Vec<usize>>],
        repeats: &[Option<usize>],
        scheduled: &mut Scheduled,
    ) {
        let meetings = if self.wave == 0 { self.opening(shape) } else { self.next(shape, results, repeats, scheduled) };
        let left = shape.rounds - scheduled.meetings;
        let mut had = vec![vec![0u64; shape.seats]; shape.agents];
        for pairing in &scheduled.pairings {
            for (seat, agent) in pairing.agents.iter().enumerate() {
                had[*agent][seat] += 1;
            }
        }
        self.wave += 1;
        for mut agents in meetings.into_iter().take(left) {
            // The seat rotation with the lowest cost is chosen, so that each agent has each seat about equally often.
            let cost = |turn: usize| -> u64 {
                (0..shape.seats).map(|seat| had[agents[(seat + turn) % shape.seats]][seat]).sum()
            };
            let turn = (0..shape.seats).min_by_key(|turn| cost(*turn)).unwrap_or(0);
            agents.rotate_left(turn);
            for place in scheduled.meet(self.wave, &agents) {
                for (seat, agent) in scheduled.pairings[place].agents.iter().enumerate() {
                    had[*agent][seat] += 1;
                }
            }
        }
    }
}

impl Adaptive {
    /// Returns the first meetings: agents in a circle, in which neighbors play each other. They connect all agents with
    /// few games.
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
        scheduled: &mut Scheduled,
    ) -> Vec<Vec<usize>> {
        let played =
            scheduled.pairings.iter().zip(results).filter_map(|(pairing, ranks)| Some((pairing, ranks.as_deref()?)));
        let results = results_of(shape, played, repeats);
        // If the ratings can't be fitted, the meetings that connect all agents are played again.
        let Ok(reported) = fit(&results, &FitOptions::default()) else { return self.opening(shape) };
        // Reported intervals use the scatter of results, which is unreliable after few games. If an agent's interval
        // were narrow by chance, the agent would never play again, and the interval would never be corrected. Therefore
        // planning uses the model's covariance.
        let by_model = FitOptions { covariance: Covariance::Fisher, ..FitOptions::default() };
        let Ok(planned) = fit(&results, &by_model) else { return self.opening(shape) };
        let mut games = vec![0; shape.agents];
        for agent in scheduled.pairings.iter().flat_map(|pairing| &pairing.agents) {
            games[*agent] += 1;
        }
        let goal = match shape.stop {
            Some(Stop::Margin(margin)) => margin,
            _ => 0.0,
        };
        let margins: Vec<f64> = (0..shape.agents).map(|agent| margin(&reported, agent)).collect();
        scheduled.unsure = (0..shape.agents).filter(|agent| margins[*agent] > goal).collect();
        let mut wanted: Vec<usize> = scheduled.unsure.clone();
        wanted.retain(|agent| margins[*agent].is_finite() || games[*agent] < OPEN_GAMES);
        if wanted.is_empty() && goal == 0.0 {
            wanted.clone_from(&scheduled.unsure);
        }
        let count = shape.agents.div_ceil(2).max(LEAST_WAVE).max(scheduled.meetings / PART_OF_ALL);
        let mut forecast = Forecast::new(&planned, shape.seats, shape.games_a_meeting());
        // For each agent, the half-width under the model's covariance at which the reported interval would reach the
        // goal.
        let enough: Vec<f64> =
            (0..shape.agents).map(|agent| forecast.half_width(AgentIndex(agent)) * goal / margins[agent]).collect();
        let is_wanted = |agent: AgentIndex, half_width: f64| wanted.contains(&agent.0) && half_width > enough[agent.0];
        let meetings = std::iter::repeat_with(|| forecast.next(is_wanted)).take_while(|agents| !agents.is_empty());
        meetings.take(count).map(|agents| agents.into_iter().map(|agent| agent.0).collect()).collect()
    }
}

/// Returns the larger distance from an agent's rating to an end of its interval, in Elo.
fn margin(fit: &Fit, agent: usize) -> f64 {
    let (rating, interval) = (fit.rating(AgentIndex(agent)), fit.interval(AgentIndex(agent)));
    (rating - interval.low).max(interval.high - rating)
}
