//! A sequential test while its games are played: which of them count, and whether it is decided.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arena_ratings::{Scores, Sprt, SprtState, SprtVerdict};

use super::{Moves, Pairing, halves};

/// How a test of the first agent against the second stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    sprt: Sprt,
    scores: Scores,
    state: SprtState,
    /// How many games have been judged: all up to this number.
    judged: usize,
    /// The number of these that were no evidence: all games of their meetings repeat earlier ones.
    repeated: usize,
    /// The moves of the games that have been judged.
    seen: BTreeSet<Moves>,
}

impl Trial {
    /// Before the first game. A meeting is a pair of games, or one.
    pub(super) fn new(sprt: Sprt, paired: bool) -> Trial {
        let scores = if paired { Scores::Pentanomial([0; 5]) } else { Scores::Trinomial([0; 3]) };
        Trial { sprt, scores, state: sprt.judge(&scores), judged: 0, repeated: 0, seen: BTreeSet::new() }
    }

    /// Judges the meetings that are complete, one by one, up to the first that isn't or that decides the test. So it doesn't matter
    /// in which order games end. A meeting all of whose games repeat earlier ones tells nothing new and isn't counted.
    pub(super) fn judge(&mut self, pairings: &[Pairing], results: &[Option<Vec<usize>>], moves: &[Option<Moves>]) {
        let a_meeting = match self.scores {
            Scores::Trinomial(_) => 1,
            Scores::Pentanomial(_) => 2,
        };
        while !self.is_decided() {
            let meeting = self.judged..self.judged + a_meeting;
            let (Some(pairings), Some(results)) = (pairings.get(meeting.clone()), results.get(meeting)) else { return };
            let sum = pairings.iter().zip(results).try_fold(0, |sum, (pairing, ranks)| match ranks {
                Some(ranks) => ControlFlow::Continue(sum + halves(ranks, usize::from(pairing.agents[0] != 0))),
                None => ControlFlow::Break(()),
            });
            let ControlFlow::Continue(half_points) = sum else { return };
            // Each is looked at, since each may be repeated later.
            let games = moves[self.judged..self.judged + a_meeting].iter();
            let new = games.filter(|moves| moves.as_ref().is_none_or(|moves| self.seen.insert(moves.clone()))).count();
            self.judged += a_meeting;
            // A meeting with a void game tells nothing that the test could take.
            if results.iter().flatten().any(Vec::is_empty) {
                continue;
            }
            if new == 0 {
                self.repeated += a_meeting;
                continue;
            }
            self.scores.add(half_points as usize);
            self.state = self.sprt.judge(&self.scores);
        }
    }

    /// What is tested.
    pub fn sprt(&self) -> Sprt {
        self.sprt
    }

    /// The results that have been judged, as the first agent sees them.
    pub fn scores(&self) -> Scores {
        self.scores
    }

    /// What the test says of them.
    pub fn state(&self) -> SprtState {
        self.state
    }

    /// How many games have been judged: all up to this number.
    pub fn judged(&self) -> usize {
        self.judged
    }

    /// The number of these that repeat earlier games and so tell nothing new.
    pub fn repeated(&self) -> usize {
        self.repeated
    }

    /// Whether one of the two is accepted; then nothing changes any more.
    pub fn is_decided(&self) -> bool {
        self.state.verdict != SprtVerdict::Continue
    }
}
