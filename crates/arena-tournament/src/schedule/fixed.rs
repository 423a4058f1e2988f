//! Round-robin and gauntlet, the formats with all pairings known from the start.

use super::{Scheduled, Scheduler};
use crate::format::FormatInfo;
use crate::shape::{Shape, choose};

pub const ROUND_ROBIN: FormatInfo = FormatInfo {
    name: "round-robin",
    help: "Every agent plays every other agent",
    rounds: "rounds",
    is_adaptive: false,
    is_of_pairs: false,
    usual_rounds: |_| 1,
    meetings: |shape| choose(shape.agents as u64, shape.seats as u64),
    check: |_| Ok(()),
    start: Some(|shape, order| {
        Box::new(Fixed(if shape.seats == 2 { circle(&order) } else { subsets(&order, shape.seats) }))
    }),
};

pub const GAUNTLET: FormatInfo = FormatInfo {
    name: "gauntlet",
    help: "The first agent plays every other agent",
    meetings: |shape| choose((shape.agents as u64).checked_sub(1)?, (shape.seats as u64).checked_sub(1)?),
    start: Some(|shape, order| {
        let others: Vec<usize> = order.into_iter().filter(|agent| *agent != 0).collect();
        let mut sets = subsets(&others, shape.seats - 1);
        for (number, set) in sets.iter_mut().enumerate() {
            set.insert(0, 0);
            // In unpaired tournaments, the gauntlet's first agent changes seats from game to game. In paired ones, the
            // rotation has no effect.
            set.rotate_right(number % shape.seats);
        }
        Box::new(Fixed(sets))
    }),
    ..ROUND_ROBIN
};

/// The scheduler's state: the sets of agents that play each other in each round. Empty after they have been scheduled.
#[derive(Debug, Clone)]
struct Fixed(Vec<Vec<usize>>);

impl Scheduler for Fixed {
    fn pair(&mut self, shape: &Shape, _: &[Option<Vec<usize>>], _: &[Option<usize>], scheduled: &mut Scheduled) {
        let sets = std::mem::take(&mut self.0);
        for round in 0..shape.rounds {
            for set in &sets {
                let mut set = set.clone();
                set.rotate_left(round % shape.seats);
                scheduled.meet(round + 1, &set);
            }
        }
    }
}

/// Returns all pairs of agents by the circle method, in an order that keeps all agents' numbers of games about equal at
/// any time. Each agent has the first seat in half of its games, plus or minus one.
fn circle(order: &[usize]) -> Vec<Vec<usize>> {
    let agents = order.len();
    // With an odd number of agents, one place is empty.
    let places = agents + agents % 2;
    let mut pairs = Vec::new();
    for turn in 0..places - 1 {
        // One place is fixed and the others rotate; agents at opposite places are paired.
        let at = |place: usize| if place == 0 { places - 1 } else { (turn + place) % (places - 1) };
        for place in 0..places / 2 {
            let (a, b) = (at(place), at(places - 1 - place));
            let (low, high) = (a.min(b), a.max(b));
            if high < agents {
                let pair = if (high - low) % 2 == 1 { [low, high] } else { [high, low] };
                pairs.push(pair.map(|place| order[place]).to_vec());
            }
        }
    }
    pairs
}

/// Returns all sets of `size` agents, in lexicographic order of the draw. The seats within each set are chosen so that
/// each agent gets each seat about equally often.
fn subsets(order: &[usize], size: usize) -> Vec<Vec<usize>> {
    let mut sets = Vec::new();
    let mut places: Vec<usize> = (0..size).collect();
    // For each agent, by its place in the draw: the number of times that the agent has had each seat.
    let mut had = vec![vec![0u64; size]; order.len()];
    loop {
        let cost = |turn: usize| -> u64 { (0..size).map(|seat| had[places[(seat + turn) % size]][seat]).sum() };
        let turn = (0..size).min_by_key(|turn| cost(*turn)).unwrap_or(0);
        let seated: Vec<usize> = (0..size).map(|seat| places[(seat + turn) % size]).collect();
        for (seat, place) in seated.iter().enumerate() {
            had[*place][seat] += 1;
        }
        sets.push(seated.into_iter().map(|place| order[place]).collect());
        // The next set in lexicographic order: the last place that can advance moves by one, and the later places
        // follow it without gaps.
        let Some(moving) = (0..size).rev().find(|at| places[*at] < order.len() - size + at) else { return sets };
        places[moving] += 1;
        for at in moving + 1..size {
            places[at] = places[at - 1] + 1;
        }
    }
}
