//! The scores, differences and ratings of agents, from the games that count.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::Seed;
use arena_ratings::bradley_terry::Interval;
use arena_ratings::{
    AgentIndex, ClusteredMean, MIN_CLUSTERS, PairedDifference, Results, clusters_needed, holm, sign_flips,
};
use arena_report::Ratings;

use super::breaches::{breaches, has_secrets};
use super::input::{Input, Played};
use super::{
    Cell, ChallengeReport, CrossCell, DifferenceRow, GameCounts, Measure, OverallRow, RatingRow, ReliabilityRow,
    UncountedRow,
};
use crate::{Cause, SeatRecord};

/// The level of all tests.
const LEVEL: f64 = 0.05;

/// The difference below which utilities are equal. Means over copies of an agent have rounding errors.
const EQUAL: f64 = 1e-9;

pub(super) struct Observed {
    pub(super) seed: u64,
    pub(super) seat: usize,
    /// The agents on the other seats, in the order of the seats.
    pub(super) others: Vec<usize>,
    pub(super) utility: f64,
    pub(super) security: f64,
    /// True if another player learned the seat's secret.
    pub(super) is_exposed: bool,
}

impl Observed {
    pub(super) fn score(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Utility => self.utility,
            Measure::Security => self.security,
            Measure::Exposure => f64::from(self.is_exposed),
        }
    }
}

/// Returns the observations of each agent in the games that count.
pub(super) fn observed(input: &Input<'_>, played: &[Played<'_>]) -> Vec<Vec<Observed>> {
    let mut observed: Vec<Vec<Observed>> = input.agents.iter().map(|_| Vec::new()).collect();
    for game in played.iter().filter(|game| game.counts) {
        let breaches = breaches(game.record);
        for (seat, (agent, score)) in game.agents.iter().zip(&game.record.seats).enumerate() {
            let others = game.agents[..seat].iter().chain(&game.agents[seat + 1..]).copied().collect();
            observed[*agent].push(Observed {
                seed: game.record.seed as u64,
                seat,
                others,
                utility: score.utility,
                security: score.security,
                is_exposed: breaches.iter().any(|(_, victim)| *victim == seat),
            });
        }
    }
    observed
}

/// Returns the least and the greatest score of a challenge: those that are usual, and those that were observed.
pub(super) fn scale(observed: &[Vec<Observed>], measure: Measure) -> (f64, f64) {
    let usual = if measure == Measure::Exposure { (0.0, 1.0) } else { (-1.0, 1.0) };
    let scores = observed.iter().flatten().map(|observed| observed.score(measure));
    scores.fold(usual, |(low, high), score| (low.min(score), high.max(score)))
}

/// Returns the greatest possible difference of two scores of a challenge.
fn span(observed: &[Vec<Observed>], measure: Measure) -> f64 {
    let (low, high) = scale(observed, measure);
    high - low
}

/// Returns the mean of an agent's scores, with an interval for values on the scale of all agents.
pub(super) fn mean_on_scale<'o>(
    own: impl Iterator<Item = &'o Observed>,
    scale: (f64, f64),
    measure: Measure,
) -> Option<ClusteredMean> {
    Some(ClusteredMean::of(own.map(|observed| (observed.seed, observed.score(measure))))?.within(scale.0, scale.1))
}

/// Returns the different agents of a game with their mean utilities, in the order of their first seats.
fn utilities(agents: &[usize], seats: &[SeatRecord]) -> Vec<(usize, f64)> {
    let mut sums: Vec<(usize, f64, f64)> = Vec::new();
    for (agent, seat) in agents.iter().zip(seats) {
        match sums.iter_mut().find(|(other, ..)| other == agent) {
            Some((_, sum, count)) => {
                *sum += seat.utility;
                *count += 1.0;
            }
            None => sums.push((*agent, seat.utility, 1.0)),
        }
    }
    sums.into_iter().map(|(agent, sum, count)| (agent, sum / count)).collect()
}

/// The result of an agent against the other agents of a game.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Win,
    Draw,
    Loss,
}

fn outcome(own: f64, others: impl Iterator<Item = f64>) -> Outcome {
    let best = others.fold(f64::NEG_INFINITY, f64::max);
    match own - best {
        lead if lead > EQUAL => Outcome::Win,
        lead if lead < -EQUAL => Outcome::Loss,
        _ => Outcome::Draw,
    }
}

pub(super) fn challenge(input: &Input<'_>, number: usize, played: &[Played<'_>]) -> ChallengeReport {
    let challenge = &input.challenges[number];
    let observed = observed(input, played);
    let scores = Scores::of(input, played);
    let cell = |agent: usize| scores.cell(input, number, agent, &observed);
    let is_planned = |agent: &usize| challenge.planned_by_agent.contains_key(agent) || scores.finished[*agent] > 0;
    ChallengeReport {
        challenge: challenge.label.to_owned(),
        identity: challenge.identity.to_owned(),
        seats: challenge.seats,
        games: GameCounts {
            planned: challenge.planned,
            finished: played.len(),
            counted: played.iter().filter(|game| game.counts).count(),
        },
        uncounted: uncounted(input, played),
        agents: (0..input.agents.len()).filter(is_planned).map(cell).collect(),
        differences: differences(input, number, &observed, has_secrets(played)),
        ratings: ratings(input, played),
        cross_table: cross_table(input, played),
    }
}

/// Returns the games that don't count, by agent and cause.
fn uncounted(input: &Input<'_>, played: &[Played<'_>]) -> Vec<UncountedRow> {
    let mut games: BTreeMap<(usize, Cause), usize> = BTreeMap::new();
    for game in played.iter().filter(|game| !game.counts) {
        let seats = game.agents.iter().zip(&game.record.seats);
        let excluding = seats.filter(|(_, seat)| !input.file.counts.counts(seat.cause));
        // In self-play, several seats may have the same agent and cause.
        for key in excluding.map(|(agent, seat)| (*agent, seat.cause)).collect::<BTreeSet<_>>() {
            *games.entry(key).or_default() += 1;
        }
    }
    let row = |((agent, cause), games): ((usize, Cause), usize)| UncountedRow {
        agent: input.agents[agent].name.to_owned(),
        cause: cause.name(),
        games,
    };
    games.into_iter().map(row).collect()
}

struct Scores {
    finished: Vec<usize>,
    counted: Vec<usize>,
    causes: Vec<BTreeMap<&'static str, u64>>,
    /// The outcomes of games against other agents, with their seeds.
    outcomes: Vec<Vec<(u64, Outcome)>>,
}

impl Scores {
    fn of(input: &Input<'_>, played: &[Played<'_>]) -> Scores {
        let agents = input.agents.len();
        let mut scores = Scores {
            finished: vec![0; agents],
            counted: vec![0; agents],
            causes: vec![BTreeMap::new(); agents],
            outcomes: vec![Vec::new(); agents],
        };
        for game in played {
            for (agent, seat) in game.agents.iter().zip(&game.record.seats) {
                *scores.causes[*agent].entry(seat.cause.name()).or_default() += 1;
            }
            let utilities = utilities(&game.agents, &game.record.seats);
            for (agent, own) in &utilities {
                scores.finished[*agent] += 1;
                if game.counts {
                    scores.counted[*agent] += 1;
                    if utilities.len() > 1 {
                        let others = utilities.iter().filter(|(other, _)| other != agent).map(|(_, utility)| *utility);
                        scores.outcomes[*agent].push((game.record.seed as u64, outcome(*own, others)));
                    }
                }
            }
        }
        scores
    }

    fn cell(&self, input: &Input<'_>, challenge: usize, agent: usize, all: &[Vec<Observed>]) -> Cell {
        let seats = input.challenges[challenge].seats;
        let observed = &all[agent];
        let mean = |measure: Measure| mean_on_scale(observed.iter(), scale(all, measure), measure);
        let outcomes = &self.outcomes[agent];
        let count = |wanted: Outcome| outcomes.iter().filter(|(_, outcome)| *outcome == wanted).count() as u64;
        let by_seat = |seat: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for observed in observed.iter().filter(|observed| observed.seat == seat) {
                sum += observed.utility;
                count += 1.0;
            }
            (count > 0.0).then(|| sum / count)
        };
        let on = |is_first: bool| {
            let of = observed.iter().filter(move |observed| (observed.seat == 0) == is_first);
            of.map(|observed| (observed.seed, observed.utility))
        };
        Cell {
            agent: input.agents[agent].name.to_owned(),
            games: GameCounts {
                planned: input.challenges[challenge].planned_by_agent.get(&agent).copied().unwrap_or(0),
                finished: self.finished[agent],
                counted: self.counted[agent],
            },
            utility: mean(Measure::Utility),
            security: mean(Measure::Security),
            wins: count(Outcome::Win),
            draws: count(Outcome::Draw),
            losses: count(Outcome::Loss),
            win_rate: ClusteredMean::of(
                outcomes.iter().map(|(seed, outcome)| (*seed, f64::from(*outcome == Outcome::Win))),
            )
            .map(|mean| mean.within(0.0, 1.0)),
            utility_by_seat: (0..seats).map(by_seat).collect(),
            seat_effect: PairedDifference::of(on(true), on(false), |seed| *seed)
                .map(|difference| difference.mean.within(-span(all, Measure::Utility), span(all, Measure::Utility))),
            causes: self.causes[agent].clone(),
        }
    }
}

/// An opponent in matched games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Opponent {
    Agent(usize),
    /// A copy of the compared agent.
    Own,
    /// The other one of the two compared agents.
    Rival,
}

/// Returns the difference of two agents in a score: the first minus the second.
///
/// Two games match if the agents have the same seat, seed and opponents. If both agents play against themselves, their
/// games against each other are matched with self-play. Otherwise the two games in which they play against each other
/// in swapped seats match, and self-play is left out.
pub(super) fn difference(
    input: &Input<'_>,
    challenge: usize,
    observed: &[Vec<Observed>],
    (first, second): (usize, usize),
    measure: Measure,
) -> Option<PairedDifference> {
    let challenge = &input.challenges[challenge];
    let with_self_play =
        challenge.seats == 2 && [first, second].iter().all(|agent| challenge.self_play.contains(agent));
    let values = |own: usize, rival: usize| {
        observed[own].iter().filter_map(move |observed| {
            let opponent = |other: &usize| match *other {
                other if with_self_play => Opponent::Agent(other),
                other if other == own => Opponent::Own,
                other if other == rival => Opponent::Rival,
                other => Opponent::Agent(other),
            };
            let opponents: Vec<Opponent> = observed.others.iter().map(opponent).collect();
            let is_self_play = !opponents.is_empty() && opponents.iter().all(|opponent| *opponent == Opponent::Own);
            (!is_self_play).then(|| ((observed.seed, observed.seat, opponents), observed.score(measure)))
        })
    };
    let mut found = PairedDifference::of(values(first, second), values(second, first), |(seed, ..)| *seed)?;
    let span = span(observed, measure);
    found.mean = found.mean.within(-span, span);
    Some(found)
}

fn differences(
    input: &Input<'_>,
    challenge: usize,
    observed: &[Vec<Observed>],
    has_secrets: bool,
) -> Vec<DifferenceRow> {
    let mut rows = Vec::new();
    for (first, second) in pairs(input) {
        for measure in Measure::ALL.into_iter().filter(|measure| has_secrets || *measure != Measure::Exposure) {
            let Some(found) = difference(input, challenge, observed, (first, second), measure) else { continue };
            let (one, two) = (input.agents[first].name, input.agents[second].name);
            // Each comparison has its own stream, so that its p value doesn't depend on the other comparisons.
            let purpose = format!("report/{}/{one}/{two}/{}", input.challenges[challenge].label, measure.name());
            let mut random = Seed::from_number(input.file.seed).rng(&purpose);
            let mut word = || random.below(1 << 32) << 32 | random.below(1 << 32);
            let has_p = found.mean.clusters >= MIN_CLUSTERS;
            let sign_flip_p = has_p.then(|| found.sign_flip_p_value(&mut word));
            let p = found.mean.p_value().or(sign_flip_p);
            let parts = found.parts();
            rows.push(DifferenceRow { parts, ..row((one, two), measure, found.mean, p, sign_flip_p) });
        }
    }
    adjusted(rows)
}

/// Returns all pairs of compared agents in the order of the plan.
fn pairs(input: &Input<'_>) -> Vec<(usize, usize)> {
    let agents: Vec<usize> = input.compared().collect();
    let with_later = |(at, first): (usize, &usize)| {
        let first = *first;
        agents[at + 1..].iter().map(move |second| (first, *second)).collect::<Vec<_>>()
    };
    agents.iter().enumerate().flat_map(with_later).collect()
}

fn row(
    (first, second): (&str, &str),
    measure: Measure,
    difference: ClusteredMean,
    p: Option<f64>,
    sign_flip_p: Option<f64>,
) -> DifferenceRow {
    DifferenceRow {
        first: first.to_owned(),
        second: second.to_owned(),
        measure,
        difference,
        p,
        adjusted_p: None,
        sign_flip_p,
        is_separated: false,
        more_seeds: None,
        parts: Vec::new(),
    }
}

/// Returns true if the differences of the seeds aren't all the same. Equal differences have an error of 0, apart from
/// rounding errors.
fn varies(difference: &ClusteredMean) -> bool {
    difference.p_value().is_some()
}

/// Adds the adjusted p values of a table and the numbers of seeds.
fn adjusted(mut rows: Vec<DifferenceRow>) -> Vec<DifferenceRow> {
    let p_values: Vec<f64> = rows.iter().filter_map(|row| row.p).collect();
    for (row, p) in rows.iter_mut().filter(|row| row.p.is_some()).zip(holm(&p_values)) {
        row.adjusted_p = Some(p);
        row.is_separated = p < LEVEL;
    }
    // Without a p value there are fewer than 10 seeds, whose error is too uncertain for a number of seeds.
    for row in rows.iter_mut().filter(|row| !row.is_separated && row.p.is_some() && varies(&row.difference)) {
        let ClusteredMean { mean, error, clusters, .. } = row.difference;
        let needed = error.and_then(|error| clusters_needed(mean, error, clusters));
        row.more_seeds = needed.map(|needed| needed.saturating_sub(clusters as u64).max(1));
    }
    rows
}

/// Returns the Bradley–Terry ratings by utility.
fn ratings(input: &Input<'_>, played: &[Played<'_>]) -> Vec<RatingRow> {
    let mut results = Results::new(input.agents.len());
    let (mut seeds, mut rated, mut has_winner) = (BTreeSet::new(), BTreeSet::new(), false);
    for game in played.iter().filter(|game| game.counts) {
        let utilities = utilities(&game.agents, &game.record.seats);
        if utilities.len() < 2 {
            continue;
        }
        let rank = |own: f64| 1 + utilities.iter().filter(|(_, other)| other - own > EQUAL).count() as u32;
        let seats: Vec<(AgentIndex, u32)> =
            utilities.iter().map(|(agent, utility)| (AgentIndex(*agent), rank(*utility))).collect();
        has_winner |= seats.iter().any(|(_, rank)| *rank > 1);
        // Games with utilities that aren't numbers have no valid ranks.
        if results.push(&seats, Some(game.record.seed as u64)).is_ok() {
            seeds.insert(game.record.seed);
            rated.extend(utilities.iter().map(|(agent, _)| *agent));
        }
    }
    let Some(ratings) = Ratings::of_results(&results).filter(|_| has_winner) else { return Vec::new() };
    let has_interval = seeds.len() >= MIN_CLUSTERS;
    let row = |agent: usize| {
        let rating = ratings.rating(agent);
        // Agents without games are groups of their own, which can't be worse than any rated agent.
        let worst = rating.ranks.worst.min(rated.len());
        RatingRow {
            agent: input.agents[agent].name.to_owned(),
            elo: rating.elo + 0.0,
            interval: has_interval.then_some(rating.interval),
            ranks: has_interval.then_some((rating.ranks.best, worst)),
            group: ratings.group(agent),
        }
    };
    ratings.order().into_iter().filter(|agent| rated.contains(agent)).map(row).collect()
}

/// Returns the points of each agent against each other agent.
fn cross_table(input: &Input<'_>, played: &[Played<'_>]) -> Vec<CrossCell> {
    let mut cells: BTreeMap<(usize, usize), (u64, f64)> = BTreeMap::new();
    for game in played.iter().filter(|game| game.counts) {
        let utilities = utilities(&game.agents, &game.record.seats);
        for (agent, own) in &utilities {
            for (against, other) in utilities.iter().filter(|(other, _)| other != agent) {
                let cell = cells.entry((*agent, *against)).or_default();
                cell.0 += 1;
                cell.1 += match outcome(*own, std::iter::once(*other)) {
                    Outcome::Win => 1.0,
                    Outcome::Draw => 0.5,
                    Outcome::Loss => 0.0,
                };
            }
        }
    }
    let name = |agent: usize| input.agents[agent].name.to_owned();
    let cell =
        |((agent, against), (games, points))| CrossCell { agent: name(agent), against: name(against), games, points };
    cells.into_iter().map(cell).collect()
}

/// Returns the means over all challenges of the agents with counted games in each challenge.
pub(super) fn overall(input: &Input<'_>, challenges: &[ChallengeReport]) -> Vec<OverallRow> {
    let mut rows = Vec::new();
    for agent in &input.agents {
        let cells: Option<Vec<&Cell>> =
            challenges.iter().map(|challenge| challenge.agents.iter().find(|cell| cell.agent == agent.name)).collect();
        let mean = |of: fn(&Cell) -> Option<ClusteredMean>| {
            let means: Option<Vec<ClusteredMean>> = cells.as_ref()?.iter().map(|cell| of(cell)).collect();
            ClusteredMean::equal_weights(&means?)
        };
        if let (Some(utility), Some(security)) = (mean(|cell| cell.utility), mean(|cell| cell.security)) {
            let agent = agent.name.to_owned();
            rows.push(OverallRow { agent, utility, utility_ranks: None, security, security_ranks: None });
        }
    }
    let ranks = |of: fn(&OverallRow) -> ClusteredMean| {
        let intervals: Option<Vec<Interval>> = rows.iter().map(|row| of(row).interval).collect();
        intervals.map(|intervals| rank_ranges(&intervals))
    };
    let (utility, security) = (ranks(|row| row.utility), ranks(|row| row.security));
    for (at, row) in rows.iter_mut().enumerate() {
        row.utility_ranks = utility.as_ref().map(|ranks| ranks[at]);
        row.security_ranks = security.as_ref().map(|ranks| ranks[at]);
    }
    rows
}

/// Returns the best and the worst rank that each interval allows.
fn rank_ranges(intervals: &[Interval]) -> Vec<(usize, usize)> {
    let range = |own: &Interval| {
        let above = intervals.iter().filter(|other| other.low > own.high).count();
        let below = intervals.iter().filter(|other| other.high < own.low).count();
        (1 + above, intervals.len() - below)
    };
    intervals.iter().map(range).collect()
}

/// Returns the differences over all challenges, with equal weights. Pairs without matched games in each challenge are
/// left out.
pub(super) fn overall_differences(input: &Input<'_>, challenges: &[ChallengeReport]) -> Vec<DifferenceRow> {
    let mut found: BTreeMap<(&str, &str, Measure), Vec<&DifferenceRow>> = BTreeMap::new();
    for row in challenges.iter().flat_map(|challenge| &challenge.differences) {
        found.entry((row.first.as_str(), row.second.as_str(), row.measure)).or_default().push(row);
    }
    let mut rows = Vec::new();
    for (first, second) in pairs(input) {
        let (one, two) = (input.agents[first].name, input.agents[second].name);
        for measure in Measure::ALL {
            let Some(found) = found.get(&(one, two, measure)).filter(|rows| rows.len() == challenges.len()) else {
                continue;
            };
            let means: Vec<ClusteredMean> = found.iter().map(|row| row.difference).collect();
            let Some(mean) = ClusteredMean::equal_weights(&means) else { continue };
            // If no challenge's difference varies, only sign flips of the seeds give a p value.
            let is_constant = mean.clusters >= MIN_CLUSTERS && !varies(&mean);
            let sign_flip_p = is_constant.then(|| {
                let parts: Vec<f64> = found.iter().flat_map(|row| row.parts.iter().copied()).collect();
                let mut random =
                    Seed::from_number(input.file.seed).rng(&format!("overall/{one}/{two}/{}", measure.name()));
                sign_flips(&parts, &mut || random.below(1 << 32) << 32 | random.below(1 << 32))
            });
            rows.push(row((one, two), measure, mean, mean.p_value().or(sign_flip_p), sign_flip_p));
        }
    }
    adjusted(rows)
}

/// Returns the causes of each agent's ends in all challenges.
pub(super) fn reliability(input: &Input<'_>, challenges: &[ChallengeReport]) -> Vec<ReliabilityRow> {
    let mut totals: BTreeMap<&str, BTreeMap<&'static str, u64>> = BTreeMap::new();
    for cell in challenges.iter().flat_map(|challenge| &challenge.agents) {
        let total = totals.entry(cell.agent.as_str()).or_default();
        for (cause, count) in &cell.causes {
            *total.entry(*cause).or_default() += count;
        }
    }
    let row = |agent: &str| {
        let causes = totals.get(agent).cloned().unwrap_or_default();
        let seats: u64 = causes.values().sum();
        let completed = causes.get(Cause::Completed.name()).copied().unwrap_or(0) as f64 / seats.max(1) as f64;
        ReliabilityRow { agent: agent.to_owned(), seats, causes, completed }
    };
    input.agents.iter().map(|agent| row(agent.name)).filter(|row| row.seats > 0).collect()
}
