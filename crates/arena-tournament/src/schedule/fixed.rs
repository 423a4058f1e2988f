//! Round robin and gauntlet: all games are known from the beginning.

use super::{Known, Scheduler};
use crate::format::FormatInfo;
use crate::shape::{Shape, choose};

pub const ROUND_ROBIN: FormatInfo = FormatInfo {
    name: "round-robin",
    help: "Everybody meets everybody",
    rounds: "rounds",
    is_adaptive: false,
    is_of_pairs: false,
    usual_rounds: |_| 1,
    meetings: |shape| choose(shape.agents as u64, shape.seats as u64),
    check: |_| Ok(()),
    start: |shape, order| Box::new(Fixed(if shape.seats == 2 { circle(&order) } else { subsets(&order, shape.seats) })),
};

pub const GAUNTLET: FormatInfo = FormatInfo {
    name: "gauntlet",
    help: "The first agent meets all others",
    meetings: |shape| choose((shape.agents as u64).checked_sub(1)?, (shape.seats as u64).checked_sub(1)?),
    start: |shape, order| {
        let others: Vec<usize> = order.into_iter().filter(|agent| *agent != 0).collect();
        let mut sets = subsets(&others, shape.seats - 1);
        for (number, set) in sets.iter_mut().enumerate() {
            set.insert(0, 0);
            // Only counts where a meeting is one game; then the first agent goes from seat to seat.
            set.rotate_right(number % shape.seats);
        }
        Box::new(Fixed(sets))
    },
    ..ROUND_ROBIN
};

/// The sets of agents that meet in each round, until they are scheduled.
#[derive(Debug, Clone)]
struct Fixed(Vec<Vec<usize>>);

impl Scheduler for Fixed {
    fn pair(&mut self, shape: &Shape, _: &[Option<Vec<usize>>], _: &[Option<usize>], known: &mut Known) {
        let sets = std::mem::take(&mut self.0);
        for round in 0..shape.rounds {
            for set in &sets {
                let mut set = set.clone();
                set.rotate_left(round % shape.seats);
                known.meet(round + 1, &set);
            }
        }
    }
}

/// All pairs, in an order in which everybody plays about as often at any time. In each pair the one who sits first is chosen so that
/// everybody sits first in half of their games, or in one more or less.
fn circle(order: &[usize]) -> Vec<Vec<usize>> {
    let agents = order.len();
    // With an odd number, one place is nobody's.
    let places = agents + agents % 2;
    let mut pairs = Vec::new();
    for turn in 0..places - 1 {
        // One stays in place, the others move round a circle; who are opposite of each other meet.
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

/// All sets of `size` agents, in the order of the drawn places. The seats of each are chosen so that each agent has sat on each seat
/// about equally often.
fn subsets(order: &[usize], size: usize) -> Vec<Vec<usize>> {
    let mut sets = Vec::new();
    let mut places: Vec<usize> = (0..size).collect();
    // How often each place has had each seat.
    let mut had = vec![vec![0u64; size]; order.len()];
    loop {
        let cost = |turn: usize| -> u64 { (0..size).map(|seat| had[places[(seat + turn) % size]][seat]).sum() };
        let turn = (0..size).min_by_key(|turn| cost(*turn)).unwrap_or(0);
        let seated: Vec<usize> = (0..size).map(|seat| places[(seat + turn) % size]).collect();
        for (seat, place) in seated.iter().enumerate() {
            had[*place][seat] += 1;
        }
        sets.push(seated.into_iter().map(|place| order[place]).collect());
        // The next set: the last place that can move on does, and those behind it follow at once.
        let Some(moving) = (0..size).rev().find(|at| places[*at] < order.len() - size + at) else { return sets };
        places[moving] += 1;
        for at in moving + 1..size {
            places[at] = places[at - 1] + 1;
        }
    }
}
