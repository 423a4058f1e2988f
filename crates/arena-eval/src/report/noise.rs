//! Differences between equal players, which show the size of differences that chance alone explains.

use arena_ratings::ClusteredMean;

use super::input::{Input, Played};
use super::strength::{Observed, difference, mean_on_scale, observed, scale};
use super::{Measure, NoiseFloor, NoiseRow};

/// Returns the differences between a model and its null variant. Without a null variant, returns the differences
/// between self-play with even and with odd seeds.
pub(super) fn noise_floor(input: &Input<'_>, played: &[Vec<Played<'_>>]) -> Option<NoiseFloor> {
    let variants: Vec<(usize, usize)> =
        (0..).zip(&input.agents).filter_map(|(at, agent)| Some((agent.null_variant_of?, at))).collect();
    let mut rows = Vec::new();
    for (challenge, played) in played.iter().enumerate() {
        let observed = observed(input, played);
        let mut add = |agent: usize, of: &dyn Fn(Measure) -> Option<ClusteredMean>| {
            if let (Some(utility), Some(security)) = (of(Measure::Utility), of(Measure::Security)) {
                let (challenge, agent) = (input.challenges[challenge].label, input.agents[agent].name);
                let (challenge, agent) = (challenge.to_owned(), agent.to_owned());
                rows.push(NoiseRow { challenge, agent, utility, security });
            }
        };
        for pair in &variants {
            add(pair.0, &|measure| Some(difference(input, challenge, &observed, *pair, measure)?.mean));
        }
        if variants.is_empty() {
            for agent in 0..observed.len() {
                add(agent, &|measure| halves(agent, &observed, measure));
            }
        }
    }
    let size = |of: fn(&NoiseRow) -> f64| {
        let squares: f64 = rows.iter().map(|row| of(row).powi(2)).sum();
        (squares / rows.len() as f64).sqrt()
    };
    let (utility, security) = (size(|row| row.utility.mean), size(|row| row.security.mean));
    let source = if variants.is_empty() { "halves_of_self_play" } else { "null_variant" };
    (!rows.is_empty()).then_some(NoiseFloor { source, rows, utility, security })
}

/// Returns the mean score of an agent's self-play with even seeds minus that with odd seeds.
fn halves(agent: usize, observed: &[Vec<Observed>], measure: Measure) -> Option<ClusteredMean> {
    let half = |parity: u64| {
        let is_self_play =
            |observed: &&Observed| !observed.others.is_empty() && observed.others.iter().all(|other| *other == agent);
        let of = observed[agent].iter().filter(is_self_play).filter(|observed| observed.seed % 2 == parity);
        mean_on_scale(of, scale(observed, measure), measure)
    };
    Some(half(0)?.minus(&half(1)?))
}
