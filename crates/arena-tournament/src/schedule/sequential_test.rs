//! A sequential test (SPRT) that is evaluated during a tournament. A *meeting* is the games of the two agents with one
//! seed: one game, or two with swapped seats.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arena_ratings::{Scores, Sprt, SprtState, SprtVerdict};

use super::{Moves, Pairing, halves};

/// The state of a test of the first agent against the second.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTest {
    sprt: Sprt,
    scores: Scores,
    state: SprtState,
    /// The number of games that the test has used. They are the first games of the tournament.
    judged: usize,
    /// The number of judged games that the test ignores, because all games of their meetings repeat earlier games.
    repeated: usize,
    /// The moves of the games that have been judged.
    seen: BTreeSet<Moves>,
}

impl SequentialTest {
    /// Creates the state before the first game. A meeting has two games with one seed if `paired`, else one game.
    pub(super) fn new(sprt: Sprt, paired: bool) -> SequentialTest {
        let scores = if paired { Scores::Pentanomial([0; 5]) } else { Scores::Trinomial([0; 3]) };
        SequentialTest { sprt, scores, state: sprt.judge(&scores), judged: 0, repeated: 0, seen: BTreeSet::new() }
    }

    /// Judges complete meetings in the order of their numbers, until a meeting is incomplete or the test decides.
    /// Therefore the order in which games end doesn't matter. The test ignores a meeting whose games all repeat earlier
    /// games.
    pub(super) fn judge(&mut self, pairings: &[Pairing], results: &[Option<Vec<usize>>], moves: &[Option<Moves>]) {
        let games_per_meeting = match self.scores {
            Scores::Trinomial(_) => 1,
            Scores::Pentanomial(_) => 2,
        };
        while !self.is_decided() {
            let meeting = self.judged..self.judged + games_per_meeting;
            let (Some(pairings), Some(results)) = (pairings.get(meeting.clone()), results.get(meeting)) else { return };
            let sum = pairings.iter().zip(results).try_fold(0, |sum, (pairing, ranks)| match ranks {
                Some(ranks) => ControlFlow::Continue(sum + halves(ranks, usize::from(pairing.agents[0] != 0))),
                None => ControlFlow::Break(()),
            });
            let ControlFlow::Continue(half_points) = sum else { return };
            // `filter` inserts the moves of every game, since each may be repeated later.
            let games = moves[self.judged..self.judged + games_per_meeting].iter();
            let new = games.filter(|moves| moves.as_ref().is_none_or(|moves| self.seen.insert(moves.clone()))).count();
            self.judged += games_per_meeting;
            // A meeting with a void game has no complete score, so it is skipped.
            if results.iter().flatten().any(Vec::is_empty) {
                continue;
            }
            if new == 0 {
                self.repeated += games_per_meeting;
                continue;
            }
            self.scores.add(half_points as usize);
            self.state = self.sprt.judge(&self.scores);
        }
    }

    pub fn sprt(&self) -> Sprt {
        self.sprt
    }

    /// Returns the counts of results so far, from the view of the first agent.
    pub fn scores(&self) -> Scores {
        self.scores
    }

    pub fn state(&self) -> SprtState {
        self.state
    }

    /// Returns the number of judged games. They are the first games of the tournament.
    pub fn judged(&self) -> usize {
        self.judged
    }

    /// Returns the number of judged games that the test ignores, because all games of their meetings repeat earlier
    /// games.
    pub fn repeated(&self) -> usize {
        self.repeated
    }

    /// Returns true if the test has accepted a hypothesis. The state doesn't change after that.
    pub fn is_decided(&self) -> bool {
        self.state.verdict != SprtVerdict::Continue
    }
}
