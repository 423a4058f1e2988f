//! Reports: how a match ended, for scripts and for people, and what the owner of each agent should know.

use std::borrow::Cow;
use std::cmp::Ordering;

use arena_model::{AgentId, AnyGame, Score, Seat, UpdateMode, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::moves::Moves;

/// The score of an agent that was disqualified.
pub const TAINTED_SCORE: f64 = -10.0;

/// The result of a match, as it is printed: one JSON object.
#[derive(Debug, Clone, Serialize)]
pub struct MatchResult {
    /// The game's name.
    pub game: &'static str,
    /// The version of its rules.
    pub rules_version: u32,
    /// A line for each agent, best first.
    pub scores: Vec<SeatResult>,
    /// How it ended and who won.
    pub outcome: Outcome,
    /// Whether any agent was disqualified.
    pub has_tainted_agent: bool,
    /// Where the replay was written, if it was.
    pub replay_file: Option<String>,
    /// All that was random came of this: 64 hexadecimal digits.
    pub seed: String,
    /// How many epochs were played.
    pub epochs: u64,
    /// The moves, as far as games are compared by them.
    pub moves: Moves,
    /// What held the agents' processes in, as they reported it when they started.
    pub sandbox: Value,
}

/// What became of one agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeatResult {
    /// Its id in this match.
    pub agent_id: AgentId,
    /// What it is called: as it said, or as its file is called.
    pub name: String,
    /// Its version, if it said one.
    pub version: Option<String>,
    /// What the user named it by.
    pub agent_path: String,
    /// Where it sat, from 0.
    pub seat: usize,
    /// 1 for the best; equal scores share a rank.
    pub rank: usize,
    /// The game's score; [`TAINTED_SCORE`] for the disqualified.
    pub score: f64,
    /// Utility and security, of whose sum the score of a challenge is made; not for the disqualified.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub challenge_score: Option<Score>,
    /// Whether it was disqualified.
    pub tainted: bool,
    /// Why.
    pub tainted_reason: Option<Verdict>,
    /// What happened, in a sentence.
    pub tainted_detail: Option<String>,
    /// What else it got wrong in the protocol.
    pub faults: u32,
    /// How long it was waited for in all, in milliseconds.
    pub time_used_ms: f64,
    /// The longest it was waited for at once, in milliseconds.
    pub longest_step_ms: f64,
}

/// How a match ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The game's word for it, such as `CHECKMATE`, or `TAINTED`.
    pub termination: Cow<'static, str>,
    /// The winner: the side where the game names sides (`WHITE`), else the agent's id; or `DRAW`; or [`VOID`].
    pub winner: String,
    /// For two agents: `1-0`, `0-1` or `1/2-1/2`, from White's side, or else from the first seat's. Absent if the match is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'static, str>>,
    /// Why the first, by seat, of those was disqualified who were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted_reason: Option<Verdict>,
}

/// The winner of a match that is void: it counts for no agent, not even as a draw.
pub const VOID: &str = "VOID";

impl Outcome {
    /// True if the match counts for no agent.
    pub fn is_void(&self) -> bool {
        self.winner == VOID
    }
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
pub fn outcome(game: &dyn AnyGame, ids: &[AgentId], out: &[Option<Disqualified>], ranks: &[usize]) -> Outcome {
    let is_tainted = out.iter().any(Option::is_some);
    if game.is_void() && !is_tainted {
        let termination = game.termination().unwrap_or(VOID).into();
        return Outcome { termination, winner: VOID.to_owned(), result: None, tainted_reason: None };
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
    Outcome {
        termination: termination.unwrap_or("TAINTED").into(),
        winner: winner.map_or("DRAW", |seat| game.side(Seat(seat)).unwrap_or(ids[seat].as_str())).to_owned(),
        result: result.map(Cow::Borrowed),
        tainted_reason: reason,
    }
}
