//! Utility and security in tournaments of challenges: each agent's means, with their intervals.

use std::collections::BTreeMap;

use arena_model::mean_score;
use arena_tournament::Record;
use serde_json::{Value, json};

use crate::text::number_of;

/// A mean of utilities or securities, and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreMean {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// The means of one agent; `None` for one that has no game that was settled.
pub(crate) type Means = Option<[ScoreMean; 2]>;

/// The titles of the two, in the order in which [`means`] has them.
pub(crate) const PARTS: [&str; 2] = ["utility", "security"];

/// The mean utility and security of each agent, by number; `None` if no game has any, as in games that aren't challenges and in older
/// journals.
///
/// Games of a meeting share a seed, so the mean of a meeting is one observation of its agents. Games that repeat earlier ones are left
/// out, and so are those in which the agent was disqualified or that ended before the rules had settled the scores.
pub(crate) fn means(record: &Record) -> Option<Vec<Means>> {
    // By agent and meeting: sums and how many games they are of.
    let mut observed: Vec<BTreeMap<u64, ([f64; 2], u32)>> = vec![BTreeMap::new(); record.plan.agents.len()];
    let mut has_any = false;
    for game in record.games() {
        let seats = &game.result.seats;
        let Some(fixture) = record.schedule.pairing(game.number) else { continue };
        has_any |= seats.iter().any(|seat| seat.challenge_score.is_some());
        if record.schedule.repeat_of(game.number).is_some() {
            continue;
        }
        for (agent, seat) in fixture.agents.iter().zip(seats) {
            if let Some(score) = seat.challenge_score {
                let (sums, games) = observed[*agent].entry(fixture.meeting).or_default();
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
    /// The interval as people read it.
    pub fn interval(&self) -> String {
        format!("{} to {}", rounded(self.low), rounded(self.high))
    }

    /// The mean as people read it.
    pub fn text(&self) -> String {
        rounded(self.mean)
    }

    pub fn json(&self) -> Value {
        json!({"mean": self.mean, "low": self.low, "high": self.high})
    }
}

/// A number with two digits at most, and no sign of zero.
pub(crate) fn rounded(number: f64) -> String {
    number_of((number * 100.0).round() / 100.0 + 0.0)
}
