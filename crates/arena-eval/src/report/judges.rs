//! The scores of judges, and their agreement.

use std::collections::BTreeMap;

use arena_ratings::{ClusteredMean, Scale, krippendorff_alpha};

use super::input::{Input, Played};
use super::{JudgeMean, JudgeReport, JudgeRow};
use crate::record::Judgment;

/// The settings of a judge: the identity and the hash of the prompt.
type Settings<'r> = (&'r str, &'r str);

/// Returns the judges' scores of finished games. `None` without judgments.
pub(super) fn judges(input: &Input<'_>, played: &[Vec<Played<'_>>]) -> Option<JudgeReport> {
    let mut games: BTreeMap<&str, (usize, &Played<'_>)> = BTreeMap::new();
    for (challenge, played) in played.iter().enumerate() {
        games.extend(played.iter().map(|game| (game.record.game.as_str(), (challenge, game))));
    }
    let known: Vec<&Judgment> =
        input.judgments.iter().filter(|judgment| games.contains_key(judgment.game.as_str())).collect();
    // Scores by earlier settings of a judge aren't comparable with those by its latest settings.
    let latest: BTreeMap<&str, Settings<'_>> =
        known.iter().copied().map(|judgment| (judgment.judge.as_str(), settings(judgment))).collect();
    // A later judgment of the same game by the same judge replaces the earlier one.
    let mut scores: BTreeMap<&str, BTreeMap<&str, Option<f64>>> = BTreeMap::new();
    for judgment in known {
        if latest.get(judgment.judge.as_str()) != Some(&settings(judgment)) {
            continue;
        }
        let score = judgment.score.filter(|score| score.is_finite());
        scores.entry(&judgment.judge).or_default().insert(&judgment.game, score);
    }
    if scores.is_empty() {
        return None;
    }
    let row = |(judge, of_judge): (&&str, &BTreeMap<&str, Option<f64>>)| {
        let (identity, prompt) = latest.get(judge).copied().unwrap_or_default();
        let mut by_cell: BTreeMap<(usize, usize), Vec<(u64, f64)>> = BTreeMap::new();
        for (game, score) in of_judge {
            let (Some((challenge, game)), Some(score)) = (games.get(*game), score) else { continue };
            let mut agents = game.agents.clone();
            agents.sort_unstable();
            agents.dedup();
            for agent in agents {
                by_cell.entry((*challenge, agent)).or_default().push((game.record.seed as u64, *score));
            }
        }
        let mean = |((challenge, agent), scores): ((usize, usize), Vec<(u64, f64)>)| {
            Some(JudgeMean {
                challenge: input.challenges[challenge].label.to_owned(),
                agent: input.agents[agent].name.to_owned(),
                score: ClusteredMean::of(scores)?,
            })
        };
        let scored = of_judge.values().flatten().count();
        JudgeRow {
            judge: (*judge).to_owned(),
            prompt: prompt.to_owned(),
            identity: identity.to_owned(),
            scored,
            unscored: of_judge.len() - scored,
            means: by_cell.into_iter().filter_map(mean).collect(),
        }
    };
    let rows: Vec<JudgeRow> = scores.iter().map(row).collect();
    let mut units: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (game, score) in scores.values().flatten() {
        units.entry(*game).or_default().extend(*score);
    }
    let units: Vec<Vec<f64>> = units.into_values().filter(|unit| unit.len() > 1).collect();
    Some(JudgeReport {
        judges: rows,
        shared_games: units.len(),
        alpha: krippendorff_alpha(&units, Scale::Interval),
        alpha_ordinal: krippendorff_alpha(&units, Scale::Ordinal),
    })
}

fn settings(judgment: &Judgment) -> Settings<'_> {
    (judgment.identity.as_str(), judgment.prompt.as_str())
}
