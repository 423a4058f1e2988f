//! Mean utility and security of each agent in tournaments of challenges, with 95 % intervals.

use std::collections::BTreeMap;

use arena_model::mean_score;
use arena_tournament::Record;
use serde_json::{Value, json};

use crate::text::number_of;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreMean {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// The mean utility and security of one agent; `None` if none of its games was scored.
pub(crate) type Means = Option<[ScoreMean; 2]>;

/// The headings of the two means, in the order of [`Means`].
pub(crate) const PARTS: [&str; 2] = ["utility", "security"];

/// Returns the mean utility and security of each agent, by agent number. `None` if no game has such scores: the
/// tournament doesn't play a challenge, or its journal is from an early release, which didn't record the scores.
///
/// The games of a meeting (one set of agents with one seed, in rotated seats) are dependent, so the mean over a meeting
/// is one observation for each of its agents. The means leave out games that repeat earlier games, games in which the
/// agent was disqualified, and games that ended before the rules had settled the scores.
pub(crate) fn means(record: &Record) -> Option<Vec<Means>> {
    // By agent and meeting: the sums of the scores, and the number of games.
    let mut observed: Vec<BTreeMap<u64, ([f64; 2], u32)>> = vec![BTreeMap::new(); record.plan.agents.len()];
    let mut has_any = false;
    for game in record.games() {
        let seats = &game.result.seats;
        let Some(pairing) = record.schedule.pairing(game.number) else { continue };
        has_any |= seats.iter().any(|seat| seat.challenge_score.is_some());
        if record.schedule.repeat_of(game.number).is_some() {
            continue;
        }
        for (agent, seat) in pairing.agents.iter().zip(seats) {
            if let Some(score) = seat.challenge_score {
                let (sums, games) = observed[*agent].entry(pairing.meeting).or_default();
                sums[0] += score.utility;
                sums[1] += score.security;
                *games += 1;
            }
        }
    }
    let of_agent = |meetings: &BTreeMap<u64, ([f64; 2], u32)>| -> Means {
        let part = |part: usize| {
            let values: Vec<f64> = meetings.values().map(|(sums, games)| sums[part] / f64::from(*games)).collect();
            mean_score(&values).map(|(mean, [low, high])| ScoreMean { mean, low, high })
        };
        Some([part(0)?, part(1)?])
    };
    has_any.then(|| observed.iter().map(of_agent).collect())
}

impl ScoreMean {
    /// Formats the interval: `-0.5 to 1`.
    pub fn interval(&self) -> String {
        format!("{} to {}", rounded(self.low), rounded(self.high))
    }

    pub fn text(&self) -> String {
        rounded(self.mean)
    }

    pub fn json(&self) -> Value {
        json!({"mean": self.mean, "low": self.low, "high": self.high})
    }
}

/// Formats a number with at most two decimals; negative zero has no sign.
pub(crate) fn rounded(number: f64) -> String {
    number_of((number * 100.0).round() / 100.0 + 0.0)
}
