//! Knockout format: single elimination, with a limited number of tie-breaks. A *tie* is two agents of which one
//! advances. They play *meetings*: games with one seed, with rotated seats if the tournament is paired.

use std::ops::Range;

use super::{Scheduled, Scheduler, halves};
use crate::format::FormatInfo;
use crate::shape::Shape;

/// The largest number of tie-break meetings in a tie. Without a limit, two deterministic agents could draw forever.
pub const MOST_TIE_BREAKS: usize = 3;

pub const KNOCKOUT: FormatInfo = FormatInfo {
    name: "knockout",
    help: "Single elimination",
    rounds: "pairings per tie",
    is_adaptive: false,
    is_of_pairs: true,
    usual_rounds: |_| 1,
    meetings: |shape| (shape.agents as u64).checked_sub(1),
    check: |_| Ok(()),
    start: Some(|_, order| {
        Box::new(Knockout { places: order.len().next_power_of_two(), field: order, round: 0, ties: Vec::new() })
    }),
};

#[derive(Debug, Clone)]
struct Knockout {
    /// The remaining agents, in the order of the draw. In each round the first plays the last, the second plays the
    /// last but one, and so on.
    field: Vec<usize>,
    /// The size of a full field: a power of two. If there are fewer agents, the first ones in the field have no
    /// opponent in this round and advance.
    places: usize,
    round: usize,
    ties: Vec<Tie>,
}

/// Two agents, of which one advances.
#[derive(Debug, Clone)]
struct Tie {
    /// The agents, in the order of the draw.
    agents: [usize; 2],
    meetings: Vec<Range<usize>>,
    winner: Option<usize>,
}

impl Knockout {
    /// Removes the losers from the field.
    fn close_round(&mut self, survived: &mut [usize]) {
        if self.round == 0 {
            return;
        }
        let losers: Vec<usize> = self
            .ties
            .drain(..)
            .flat_map(|tie| tie.agents.into_iter().filter(move |agent| tie.winner != Some(*agent)))
            .collect();
        // The winner of a tie takes the earlier of the two agents' places, so that the bracket follows the draw.
        let mut field = std::mem::take(&mut self.field);
        let half = self.places / 2;
        for place in half..field.len() {
            let opposite = self.places - 1 - place;
            if losers.contains(&field[opposite]) {
                field[opposite] = field[place];
            }
        }
        field.truncate(half);
        for agent in &field {
            survived[*agent] += 1;
        }
        self.field = field;
        self.places = half;
    }

    fn open_round(&mut self, shape: &Shape, scheduled: &mut Scheduled) {
        self.round += 1;
        for place in 0..self.places / 2 {
            let Some(other) = self.field.get(self.places - 1 - place) else { continue };
            let mut tie = Tie { agents: [self.field[place], *other], meetings: Vec::new(), winner: None };
            for _ in 0..shape.rounds {
                tie.meet(self.round, scheduled);
            }
            self.ties.push(tie);
        }
    }
}

impl Scheduler for Knockout {
    /// Adds tie-breaks or the next round. Adds nothing if one agent is left.
    fn pair(&mut self, shape: &Shape, results: &[Option<Vec<usize>>], _: &[Option<usize>], scheduled: &mut Scheduled) {
        let mut has_tie_breaks = false;
        let mut ties = std::mem::take(&mut self.ties);
        for tie in ties.iter_mut().filter(|tie| tie.winner.is_none()) {
            let [a, b] = tie.agents;
            let points = |agent: usize| tie.points(agent, scheduled, results);
            tie.winner = match points(a).cmp(&points(b)) {
                std::cmp::Ordering::Greater => Some(a),
                std::cmp::Ordering::Less => Some(b),
                std::cmp::Ordering::Equal if tie.meetings.len() < shape.rounds + MOST_TIE_BREAKS => {
                    tie.meet(self.round, scheduled);
                    scheduled.tie_breaks += 1;
                    has_tie_breaks = true;
                    None
                }
                std::cmp::Ordering::Equal => {
                    scheduled.by_lot.push((a, b, self.round));
                    Some(a)
                }
            };
        }
        self.ties = ties;
        if has_tie_breaks {
            return;
        }
        self.close_round(scheduled.survived.get_or_insert_with(|| vec![0; shape.agents]));
        if self.field.len() > 1 {
            self.open_round(shape, scheduled);
        }
    }
}

impl Tie {
    /// Adds a meeting of the two agents. They alternate on the first seat.
    fn meet(&mut self, round: usize, scheduled: &mut Scheduled) {
        let mut agents = self.agents;
        agents.rotate_left(self.meetings.len() % 2);
        self.meetings.push(scheduled.meet(round, &agents));
    }

    /// Returns an agent's half points over all meetings of the tie.
    fn points(&self, agent: usize, scheduled: &Scheduled, results: &[Option<Vec<usize>>]) -> u64 {
        let games = self.meetings.iter().flat_map(|meeting| meeting.clone());
        games
            .map(|game| {
                let seat = scheduled.pairings[game].agents.iter().position(|other| *other == agent);
                match (seat, &results[game]) {
                    (Some(seat), Some(ranks)) => halves(ranks, seat),
                    _ => 0,
                }
            })
            .sum()
    }
}
