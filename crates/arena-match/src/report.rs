//! The end of a match: final scores, ranks and outcome, from the game and the disqualifications.

use std::borrow::Cow;
use std::cmp::Ordering;

use arena_model::{AgentId, AnyGame, MatchOutcome, Score, Seat, UpdateMode, VOID, Verdict};
use serde::{Deserialize, Serialize};

/// The score of an agent that was disqualified.
pub const TAINTED_SCORE: f64 = -10.0;

/// An agent as it takes part in a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatedAgent {
    /// Its id in this match.
    pub id: AgentId,
    /// Its name: as it said, or as its file is called.
    pub name: String,
    /// Its version, if it said one.
    pub version: Option<String>,
}

/// A disqualification: which rule, and what happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disqualified {
    /// Whose, from 0.
    pub seat: usize,
    /// Which rule.
    pub verdict: Verdict,
    /// What happened, in a sentence. The clock shows in it only for `TIMEOUT`, which tells what was in the bank.
    pub detail: String,
}

/// The scores as they count, by seat: the game's, but [`TAINTED_SCORE`] for the disqualified.
pub fn final_scores(game: &dyn AnyGame, out: &[Option<Disqualified>]) -> Vec<f64> {
    let scores = game.scores().into_iter().zip(out);
    scores.map(|(score, out)| if out.is_some() { TAINTED_SCORE } else { score }).collect()
}

/// Utility and security by seat, of a challenge that was settled; the disqualified have none.
pub type ChallengeScores = Option<Vec<Option<Score>>>;

/// The utilities and securities of a match.
pub fn challenge_scores(game: &dyn AnyGame, out: &[Option<Disqualified>]) -> ChallengeScores {
    let scores = game.challenge_scores()?.into_iter().zip(out);
    Some(scores.map(|(score, out)| out.is_none().then_some(score)).collect())
}

/// Ranks by seat, from 1; the disqualified come last, and equal scores share a rank.
pub fn ranks(scores: &[f64], out: &[Option<Disqualified>]) -> Vec<usize> {
    let better = |a: usize, b: usize| {
        let clean = out[b].is_some().cmp(&out[a].is_some());
        clean.then(scores[a].total_cmp(&scores[b])) == Ordering::Greater
    };
    (0..scores.len()).map(|seat| 1 + (0..scores.len()).filter(|other| better(*other, seat)).count()).collect()
}

/// How a match ended, whose game has come to its end or in which too few are left.
pub fn outcome(game: &dyn AnyGame, ids: &[AgentId], out: &[Option<Disqualified>], ranks: &[usize]) -> MatchOutcome {
    let is_tainted = out.iter().any(Option::is_some);
    if game.is_void() && !is_tainted {
        let termination = game.termination().unwrap_or(VOID).into();
        return MatchOutcome { termination, winner: VOID.to_owned(), result: None, tainted_reason: None };
    }
    let best: Vec<usize> = (0..ranks.len()).filter(|seat| ranks[*seat] == 1).collect();
    let winner = match best[..] {
        // Whoever is first among the disqualified has won nothing.
        [seat] if out[seat].is_none() => Some(seat),
        _ => None,
    };
    let reason = out.iter().flatten().next().map(|out| out.verdict);
    // A game that goes on with the rest ends by its own rules, although somebody was disqualified.
    let goes_on = match game.game_type().mode {
        UpdateMode::Isolated => out.iter().any(Option::is_none),
        UpdateMode::Alternating | UpdateMode::Simultaneous => out.len() > 2,
    };
    let termination = game.termination().filter(|_| !is_tainted || goes_on);
    let first = (0..ranks.len()).find(|seat| game.side(Seat(*seat)) == Some("WHITE")).unwrap_or(0);
    let result = match winner {
        _ if ranks.len() != 2 => None,
        Some(seat) if seat == first => Some("1-0"),
        Some(_) => Some("0-1"),
        None => Some("1/2-1/2"),
    };
    MatchOutcome {
        termination: termination.unwrap_or("TAINTED").into(),
        winner: winner.map_or("DRAW", |seat| game.side(Seat(seat)).unwrap_or(ids[seat].as_str())).to_owned(),
        result: result.map(Cow::Borrowed),
        tainted_reason: reason,
    }
}
