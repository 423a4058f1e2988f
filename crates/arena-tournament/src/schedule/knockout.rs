//! Knockout: who loses is out. Equals meet again, up to a point.

use std::ops::Range;

use super::{Known, Scheduler, halves};
use crate::format::FormatInfo;
use crate::shape::Shape;

/// So many meetings more are played between equals. Two agents that do the same every time would otherwise never end.
pub const MOST_TIE_BREAKS: usize = 3;

pub const KNOCKOUT: FormatInfo = FormatInfo {
    name: "knockout",
    help: "The loser is out",
    rounds: "meetings a tie",
    is_adaptive: false,
    is_of_pairs: true,
    usual_rounds: |_| 1,
    meetings: |shape| (shape.agents as u64).checked_sub(1),
    check: |_| Ok(()),
    start: |_, order| {
        Box::new(Knockout { places: order.len().next_power_of_two(), field: order, round: 0, ties: Vec::new() })
    },
};

/// The state of a knockout beside its games.
#[derive(Debug, Clone)]
struct Knockout {
    /// Who is left, as drawn. In each round the first meets the last, the second the last but one, and so on.
    field: Vec<usize>,
    /// How many the field would be if it were full, a power of two: the first go without an opponent.
    places: usize,
    round: usize,
    ties: Vec<Tie>,
}

/// Two agents of whom one goes on.
#[derive(Debug, Clone)]
struct Tie {
    /// As drawn.
    agents: [usize; 2],
    meetings: Vec<Range<usize>>,
    winner: Option<usize>,
}

impl Knockout {
    /// Those who have lost are out.
    fn close_round(&mut self, survived: &mut [usize]) {
        if self.round == 0 {
            return;
        }
        let losers: Vec<usize> = self
            .ties
            .drain(..)
            .flat_map(|tie| tie.agents.into_iter().filter(move |agent| tie.winner != Some(*agent)))
            .collect();
        // A winner takes the place of the one who was drawn before the other, so that the bracket is that of the draw.
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

    fn open_round(&mut self, shape: &Shape, known: &mut Known) {
        self.round += 1;
        for place in 0..self.places / 2 {
            let Some(other) = self.field.get(self.places - 1 - place) else { continue };
            let mut tie = Tie { agents: [self.field[place], *other], meetings: Vec::new(), winner: None };
            for _ in 0..shape.rounds {
                tie.meet(self.round, known);
            }
            self.ties.push(tie);
        }
    }
}

impl Scheduler for Knockout {
    /// Adds tie-breaks, or the next round. None if there is a winner.
    fn pair(&mut self, shape: &Shape, results: &[Option<Vec<usize>>], _: &[Option<usize>], known: &mut Known) {
        let mut goes_on = false;
        let mut ties = std::mem::take(&mut self.ties);
        for tie in ties.iter_mut().filter(|tie| tie.winner.is_none()) {
            let [a, b] = tie.agents;
            let points = |agent: usize| tie.points(agent, known, results);
            tie.winner = match points(a).cmp(&points(b)) {
                std::cmp::Ordering::Greater => Some(a),
                std::cmp::Ordering::Less => Some(b),
                std::cmp::Ordering::Equal if tie.meetings.len() < shape.rounds + MOST_TIE_BREAKS => {
                    tie.meet(self.round, known);
                    known.tie_breaks += 1;
                    goes_on = true;
                    None
                }
                std::cmp::Ordering::Equal => {
                    known.by_lot.push((a, b, self.round));
                    Some(a)
                }
            };
        }
        self.ties = ties;
        if goes_on {
            return;
        }
        self.close_round(known.survived.get_or_insert_with(|| vec![0; shape.agents]));
        if self.field.len() > 1 {
            self.open_round(shape, known);
        }
    }
}

impl Tie {
    /// Adds a meeting, in which the other one sits first than in the last.
    fn meet(&mut self, round: usize, known: &mut Known) {
        let mut agents = self.agents;
        agents.rotate_left(self.meetings.len() % 2);
        self.meetings.push(known.meet(round, &agents));
    }

    /// In half points.
    fn points(&self, agent: usize, known: &Known, results: &[Option<Vec<usize>>]) -> u64 {
        let games = self.meetings.iter().flat_map(|meeting| meeting.clone());
        games
            .map(|game| {
                let seat = known.pairings[game].agents.iter().position(|other| *other == agent);
                match (seat, &results[game]) {
                    (Some(seat), Some(ranks)) => halves(ranks, seat),
                    _ => 0,
                }
            })
            .sum()
    }
}
