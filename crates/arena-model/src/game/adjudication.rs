//! Adjudication: the ends of board games that follow from the scores that the players' engines report.
//!
//! A decision is an action of a player, so the rules of the game end the match, and a replay repeats it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjudication {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resign: Option<ResignRule>,
}

/// The rule for draws: from a move on, both engines have seen an almost even position for some moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawRule {
    /// The first move of the game after which a draw is possible.
    pub move_number: u64,
    /// The number of consecutive moves of each side.
    pub move_count: u32,
    /// The largest distance of the scores from zero, in centipawns.
    pub score: i64,
}

/// The rule for resignations: an engine has seen a lost position for some moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResignRule {
    /// The number of consecutive moves.
    pub move_count: u32,
    /// The deficit in centipawns.
    pub score: i64,
    /// True if the opponent's engine must have seen as large an advantage for as long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub two_sided: bool,
}

/// The score of a position, for the player to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineScore {
    Centipawns(i64),
    /// Moves to the mate; negative if the player is mated.
    Mate(i64),
}

/// A decision for the player to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdjudicationDecision {
    Resign,
    /// The player offers a draw, or accepts one.
    Draw,
}

/// The scores of a game of two players, as far as the rules need them.
#[derive(Debug, Clone)]
pub struct Adjudicator {
    rules: Adjudication,
    /// The numbers of consecutive moves of each seat with even, lost and won positions.
    even: [u32; 2],
    lost: [u32; 2],
    won: [u32; 2],
}

impl Adjudicator {
    pub fn new(rules: Adjudication) -> Adjudicator {
        Adjudicator { rules, even: [0; 2], lost: [0; 2], won: [0; 2] }
    }

    /// Records the score of a player's move, and decides. `move_number` counts the moves of the game from 1. A move
    /// without a score ends all series of the player.
    pub fn decide(
        &mut self,
        seat: usize,
        move_number: u64,
        score: Option<EngineScore>,
    ) -> Option<AdjudicationDecision> {
        let (own, other) = (seat.min(1), 1 - seat.min(1));
        let is_at_least = |least: i64| match score {
            Some(EngineScore::Centipawns(cp)) => cp >= least,
            Some(EngineScore::Mate(moves)) => moves > 0,
            None => false,
        };
        let is_at_most = |most: i64| match score {
            Some(EngineScore::Centipawns(cp)) => cp <= most,
            Some(EngineScore::Mate(moves)) => moves <= 0,
            None => false,
        };
        let count = |count: &mut u32, goes_on: bool| *count = if goes_on { count.saturating_add(1) } else { 0 };
        if let Some(rule) = self.rules.resign {
            count(&mut self.lost[own], is_at_most(-rule.score));
            count(&mut self.won[own], is_at_least(rule.score));
            let is_agreed = !rule.two_sided || self.won[other] >= rule.move_count;
            if self.lost[own] >= rule.move_count && is_agreed {
                return Some(AdjudicationDecision::Resign);
            }
        }
        if let Some(rule) = self.rules.draw {
            let is_even = matches!(score, Some(EngineScore::Centipawns(cp)) if cp.abs() <= rule.score);
            count(&mut self.even[own], is_even);
            let is_long = self.even[own] >= rule.move_count && self.even[other] >= rule.move_count;
            if is_long && move_number >= rule.move_number {
                return Some(AdjudicationDecision::Draw);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use AdjudicationDecision::{Draw, Resign};
    use EngineScore::{Centipawns, Mate};

    /// Plays these scores of alternating players. Returns the plies with a decision, from 1.
    fn decisions(rules: Adjudication, scores: &[Option<EngineScore>]) -> Vec<(usize, AdjudicationDecision)> {
        let mut adjudicator = Adjudicator::new(rules);
        let decide = |(ply, score): (usize, &Option<EngineScore>)| {
            let decision = adjudicator.decide(ply % 2, ply as u64 / 2 + 1, *score);
            decision.map(|decision| (ply + 1, decision))
        };
        scores.iter().enumerate().filter_map(decide).collect()
    }

    #[test]
    fn a_draw_needs_even_scores_of_both_sides_and_its_move() {
        let draw = Some(DrawRule { move_number: 3, move_count: 2, score: 10 });
        let rules = Adjudication { draw, resign: None };
        let even = Some(Centipawns(-10));
        assert_eq!(decisions(rules, &[even; 6]), [(5, Draw), (6, Draw)]);
        // A score beyond the limit, a mate, or no score ends the series of its side.
        for other in [Some(Centipawns(11)), Some(Mate(3)), Some(Mate(0)), None] {
            let scores = [even, even, even, even, even, other, even, even, even, even];
            assert_eq!(decisions(rules, &scores), [(5, Draw), (10, Draw)], "{other:?}");
        }
    }

    #[test]
    fn a_resignation_needs_a_series_of_lost_positions() {
        let resign = |two_sided| Some(ResignRule { move_count: 2, score: 400, two_sided });
        let (won, lost) = (Some(Centipawns(400)), Some(Centipawns(-400)));
        let rules = Adjudication { draw: None, resign: resign(false) };
        assert_eq!(decisions(rules, &[lost, won, lost]), [(3, Resign)]);
        assert_eq!(decisions(rules, &[Some(Mate(-9)), None, Some(Mate(-8))]), [(3, Resign)]);
        assert_eq!(decisions(rules, &[lost, won, Some(Centipawns(-399)), won, lost]), []);
        assert_eq!(decisions(rules, &[Some(Mate(2)), won, Some(Mate(1))]), []);
        let both = Adjudication { draw: None, resign: resign(true) };
        assert_eq!(decisions(both, &[lost, won, lost, won, lost]), [(5, Resign)]);
        assert_eq!(decisions(both, &[lost, None, lost, won, lost]), []);
    }
}
