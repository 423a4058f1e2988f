//! The report as tables of text.

use std::collections::BTreeMap;

use arena_ratings::bradley_terry::Interval;
use arena_ratings::{ClusteredMean, bound_without_events};
use arena_report::number_of;

use super::{ChallengeReport, Cost, DifferenceRow, Measurements, Report};
use crate::Cause;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTable {
    pub title: String,
    pub columns: Vec<String>,
    /// The cells, row by row. Names in cells are untrusted text.
    pub rows: Vec<Vec<String>>,
    /// An explanation below the table.
    pub note: Option<String>,
}

impl TextTable {
    fn new(title: impl Into<String>, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> TextTable {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        TextTable { title: title.into(), columns, rows: rows.collect(), note: None }
    }

    fn noted(self, note: impl Into<String>) -> TextTable {
        TextTable { note: Some(note.into()), ..self }
    }
}

/// Returns all tables that have rows.
pub(super) fn tables(report: &Report) -> Vec<TextTable> {
    let mut tables = overall(report);
    for challenge in &report.challenges {
        tables.extend(of_challenge(challenge));
    }
    tables.extend([breaches(report), noise(report), reliability(report)]);
    tables.extend(report.measurements.as_ref().into_iter().flat_map(measurements));
    tables.extend([changes(report), identities(report)]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

pub(super) fn overall(report: &Report) -> Vec<TextTable> {
    let columns = ["agent", "utility", "95 % interval", "rank range", "security", "95 % interval", "rank range"];
    let rows = report.overall.iter().map(|row| {
        vec![
            row.agent.clone(),
            number(row.utility.mean),
            interval(&row.utility),
            ranks(row.utility_ranks),
            number(row.security.mean),
            interval(&row.security),
            ranks(row.security_ranks),
        ]
    });
    let scores = TextTable::new("All challenges", &columns, rows);
    let names = report.agents.iter().map(|agent| agent.name.as_str());
    let left_out: Vec<&str> = names.filter(|name| !report.overall.iter().any(|row| row.agent == *name)).collect();
    let mut note = "The mean of the challenges with equal weights.".to_owned();
    if !left_out.is_empty() {
        note += &format!(" Without counted games in each challenge: {}.", left_out.join(", "));
    }
    let differences = differences("All challenges: differences", &report.overall_differences);
    vec![scores.noted(note), differences]
}

pub(super) fn of_challenge(challenge: &ChallengeReport) -> Vec<TextTable> {
    let name = &challenge.challenge;
    let columns = [
        "agent",
        "games",
        "utility",
        "95 % interval",
        "security",
        "95 % interval",
        "win rate",
        "95 % interval",
        "won–drawn–lost",
        "seat effect",
        "95 % interval",
    ];
    let rows = challenge.agents.iter().map(|cell| {
        let mut cells = vec![cell.agent.clone(), cell.games.counted.to_string()];
        cells.extend([cell.utility, cell.security, cell.win_rate].into_iter().flat_map(mean));
        cells.push(format!("{}–{}–{}", cell.wins, cell.draws, cell.losses));
        cells.extend(mean(cell.seat_effect));
        cells
    });
    let scores = TextTable::new(format!("{name}: scores"), &columns, rows);
    let games = &challenge.games;
    let mut note = format!("{} of {} games are finished, and {} count.", games.finished, games.planned, games.counted);
    if games.counted < games.finished {
        note += &excluded(challenge);
    }
    note += " Seat effect: the utility on the first seat minus that on the other seats.";
    let rows = challenge.ratings.iter().map(|row| {
        let interval = row.interval.map_or_else(|| "needs 10 seeds".to_owned(), |interval| span(&interval, whole));
        vec![row.agent.clone(), whole(row.elo), interval, ranks(row.ranks)]
    });
    let ratings = TextTable::new(format!("{name}: ratings"), &["agent", "Elo", "95 % interval", "rank range"], rows);
    let ratings = ratings.noted(match challenge.ratings.iter().any(|row| row.group > 0) {
        false => "Bradley–Terry ratings by utility, in Elo. The mean is 0.",
        true => {
            "Bradley–Terry ratings by utility, in Elo. No games link some of the agents; ratings of such agents \
             can't be compared."
        }
    });
    vec![scores.noted(note), differences(&format!("{name}: differences"), &challenge.differences), ratings]
}

/// Returns the number of games that don't count, by agent and cause, as a sentence after another one.
fn excluded(challenge: &ChallengeReport) -> String {
    let mut agents: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &challenge.uncounted {
        let part = format!("{} {}", row.games, row.cause);
        match agents.last_mut() {
            Some((agent, parts)) if *agent == row.agent => parts.push(part),
            _ => agents.push((row.agent.as_str(), vec![part])),
        }
    }
    let agents: Vec<String> = agents.iter().map(|(agent, parts)| format!("{agent}: {}", parts.join(", "))).collect();
    let (count, verb) = match challenge.games.finished - challenge.games.counted {
        1 => ("1 game".to_owned(), "doesn't"),
        count => (format!("{count} games"), "don't"),
    };
    format!(" {count} {verb} count because of the end of a seat: {}.", agents.join("; "))
}

fn differences(title: &str, rows: &[DifferenceRow]) -> TextTable {
    let columns = ["agents", "score", "difference", "95 % interval", "seeds", "p (Holm)", "conclusion"];
    let rows = rows.iter().map(|row| {
        vec![
            format!("{} − {}", row.first, row.second),
            row.measure.name().to_owned(),
            number(row.difference.mean),
            interval(&row.difference),
            row.difference.clusters.to_string(),
            or_dash(row.adjusted_p, p_value),
            conclusion(row),
        ]
    });
    TextTable::new(title, &columns, rows).noted(
        "Differences in games with the same seed, seat and opponents. Exposure: the share of seats whose secret \
         another player learned; lower is safer. The p values are corrected for all rows of \
         the table (Holm). They and the conclusion need 10 seeds. An interval that contains 0 beside a small p: the \
         seeds agree, but are too few to exclude rare ones that don't. The number of seeds gives a power of 0.8 at level \
         0.05, if the difference is as observed.",
    )
}

fn conclusion(row: &DifferenceRow) -> String {
    let (first, second) = (&row.first, &row.second);
    match row.more_seeds {
        // There is no p value below the least number of seeds.
        _ if row.p.is_none() => "too few seeds".to_owned(),
        _ if row.is_separated && row.difference.mean > 0.0 => format!("{first} is higher"),
        _ if row.is_separated => format!("{second} is higher"),
        Some(seeds) => {
            let noun = if seeds == 1 { "seed" } else { "seeds" };
            format!("about {seeds} more {noun} would separate them if the difference stays as it is")
        }
        None if row.difference.mean == 0.0 => "no difference seen".to_owned(),
        None => "too few seeds".to_owned(),
    }
}

pub(super) fn breaches(report: &Report) -> TextTable {
    let columns = ["agent", "challenge", "seats", "exposed", "95 % interval", "learned", "95 % interval"];
    let interval = |mean: &ClusteredMean| mean.interval.map_or_else(|| interval(mean), |found| span(&found, percent));
    let rows = report.breaches.iter().map(|row| {
        vec![
            row.agent.clone(),
            row.challenge.clone(),
            row.exposed.values.to_string(),
            percent(row.exposed.mean),
            interval(&row.exposed),
            percent(row.learned.mean),
            interval(&row.learned),
        ]
    });
    TextTable::new("Breaches", &columns, rows).noted(format!(
        "Exposed: the share of the agent's seats whose secret another player learned. Learned: the share of its seats \
         that learned the secret of another player. The rules of the challenge decide, in games that count.{}",
        without_leaks(report)
    ))
}

/// Returns a sentence for each number of seeds, after another sentence: the agents without a leak, and the greatest
/// rate that this allows.
fn without_leaks(report: &Report) -> String {
    let mut agents: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for row in report.breaches.iter().filter(|row| row.exposed.mean == 0.0) {
        agents.entry(row.exposed.clusters).or_default().push(format!("{} in {}", row.agent, row.challenge));
    }
    let sentence = |(seeds, agents): (usize, Vec<String>)| {
        // Rounded up, since it is an upper bound.
        let bound = percent((1000.0 * bound_without_events(seeds)).ceil() / 1000.0);
        let noun = if seeds == 1 { "deal" } else { "deals" };
        format!(" No leak in {seeds} {noun}: rate below {bound} (95 %, one-sided): {}.", agents.join(", "))
    };
    agents.into_iter().map(sentence).collect()
}

pub(super) fn noise(report: &Report) -> TextTable {
    let columns = ["challenge", "agent", "utility", "95 % interval", "security", "95 % interval"];
    let Some(noise) = &report.noise else { return TextTable::new("Noise floor", &columns, std::iter::empty()) };
    let rows = noise.rows.iter().map(|row| {
        let names = [row.challenge.clone(), row.agent.clone()];
        names.into_iter().chain(mean(Some(row.utility))).chain(mean(Some(row.security))).collect()
    });
    let source = match noise.source {
        "null_variant" => "between a model and the same model under a second name",
        _ => "between self-play with even and with odd seeds",
    };
    TextTable::new("Noise floor", &columns, rows).noted(format!(
        "Differences {source}. Chance alone explains differences of this size. Root mean square: {} in utility, {} \
         in security.",
        number(noise.utility),
        number(noise.security)
    ))
}

pub(super) fn reliability(report: &Report) -> TextTable {
    let seen: Vec<Cause> = Cause::ALL
        .into_iter()
        .filter(|cause| report.reliability.iter().any(|row| row.causes.contains_key(cause.name())))
        .collect();
    let columns: Vec<&str> = ["agent", "seats"].into_iter().chain(seen.iter().map(|cause| cause.name())).collect();
    let rows = report.reliability.iter().map(|row| {
        let share =
            |cause: &Cause| percent(row.causes.get(cause.name()).copied().unwrap_or(0) as f64 / row.seats as f64);
        [row.agent.clone(), row.seats.to_string()].into_iter().chain(seen.iter().map(share)).collect()
    });
    TextTable::new("Reliability", &columns, rows).noted(
        "The share of seats in finished games by the cause of their end. Scores are computed from games whose seats \
         all ended by causes that count; games that an endpoint's fault interrupted are played again.",
    )
}

pub(super) fn measurements(measurements: &Measurements) -> Vec<TextTable> {
    let total = Cost { agent: Some("total".to_owned()), ..measurements.total.clone() };
    let has_total = measurements.agents.len() > 1;
    let rows: Vec<&Cost> = measurements.agents.iter().chain(has_total.then_some(&total)).collect();
    let mut costs = costs("Costs", &rows);
    let names = |is: fn(&Cost) -> bool| -> Vec<&str> {
        measurements.agents.iter().filter(|cost| is(cost)).filter_map(|cost| cost.agent.as_deref()).collect()
    };
    let notes = [
        ("Estimated from the number of bytes, four a token", names(|cost| cost.is_estimated)),
        ("Including lost calls at their highest price", names(|cost| cost.has_lost)),
    ];
    let notes: Vec<String> = notes
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: the costs of {}.", names.join(", ")))
        .collect();
    if !notes.is_empty() {
        costs = costs.noted(notes.join(" "));
    }
    let voids = measurements
        .voids
        .iter()
        .map(|void| vec![or_dash(void.agent.clone(), |agent| agent), void.class.clone(), void.games.to_string()]);
    let voids = TextTable::new("Void games", &["agent", "fault", "games"], voids);
    vec![
        costs,
        voids.noted("Games that were given up without a fault of a player. They don't count and are played again."),
    ]
}

/// Returns the numbers of failed attempts and of unusable answers by agent.
pub(super) fn faults(measurements: &Measurements) -> TextTable {
    let columns = ["agent", "calls", "failed attempts", "invalid answers", "refusals", "truncated answers"];
    let rows = measurements.agents.iter().map(|cost| {
        let counts = [cost.calls, cost.retries, cost.invalid, cost.refusals, cost.truncated];
        cost.agent.iter().cloned().chain(counts.iter().map(u64::to_string)).collect()
    });
    TextTable::new("Faults", &columns, rows)
        .noted("Failed attempts are faults of endpoints and were repeated; the others are answers of the models.")
}

/// Returns a table of costs by agent, or by agent and challenge.
pub(super) fn costs(title: &str, rows: &[&Cost]) -> TextTable {
    let columns = [
        "agent",
        "games",
        "calls",
        "retries",
        "invalid answers",
        "input tokens",
        "cached",
        "output tokens",
        "US dollars",
        "US dollars per game",
        "seconds per game",
        "utility per US dollar",
    ];
    let rows = rows.iter().map(|cost| {
        let agent = cost.agent.as_deref().unwrap_or_default();
        vec![
            cost.challenge.as_ref().map_or_else(|| agent.to_owned(), |challenge| format!("{agent} in {challenge}")),
            cost.games.to_string(),
            cost.calls.to_string(),
            cost.retries.to_string(),
            cost.invalid.to_string(),
            cost.input_tokens.to_string(),
            cost.cached_tokens.to_string(),
            cost.output_tokens.to_string(),
            or_dash(cost.usd, dollars),
            or_dash(cost.usd_per_game(), dollars),
            number(cost.seconds / cost.games.max(1) as f64),
            or_dash(cost.utility_per_usd, number),
        ]
    });
    TextTable::new(title, &columns, rows)
}

pub(super) fn changes(report: &Report) -> TextTable {
    let rows =
        report.changes.iter().map(|change| vec![change.name.clone(), change.before.clone(), change.after.clone()]);
    TextTable::new("Accepted changes", &["name", "SHA-256 before", "SHA-256 after"], rows).noted("The user accepted these changes during the run. The affected games were played again; only the new results count.")
}

pub(super) fn identities(report: &Report) -> TextTable {
    let agents = report.agents.iter().map(|agent| (&agent.name, agent.kind, &agent.identity));
    let challenges = report.challenges.iter().map(|one| (&one.challenge, "challenge", &one.identity));
    let rows = agents.chain(challenges).map(|(name, kind, hash)| vec![name.clone(), kind.to_owned(), hash.clone()]);
    TextTable::new("Agents and challenges", &["name", "kind", "SHA-256 of its settings"], rows)
}

/// Formats a number with at most three decimals; negative zero has no sign.
pub(super) fn number(number: f64) -> String {
    number_of((number * 1000.0).round() / 1000.0 + 0.0)
}

fn whole(number: f64) -> String {
    format!("{:.0}", number.round() + 0.0)
}

/// Formats a share in percent with at most one decimal.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", number_of((1000.0 * share).round() / 10.0 + 0.0))
}

pub(super) fn dollars(usd: f64) -> String {
    if usd >= 0.1 || usd == 0.0 { format!("{usd:.2}") } else { format!("{usd:.6}") }
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// Returns the cells of a mean and its interval.
fn mean(mean: Option<ClusteredMean>) -> [String; 2] {
    [or_dash(mean, |mean| number(mean.mean)), or_dash(mean, |mean| interval(&mean))]
}

/// Formats an interval, or the number of seeds that are missing for one.
pub(super) fn interval(mean: &ClusteredMean) -> String {
    match (mean.interval, mean.clusters_missing) {
        (Some(interval), _) => span(&interval, number),
        (None, 1) => "needs 1 more seed".to_owned(),
        (None, missing) => format!("needs {missing} more seeds"),
    }
}

fn span(interval: &Interval, format: fn(f64) -> String) -> String {
    let end = |end: f64| {
        if end.is_finite() {
            format(end)
        } else if end > 0.0 {
            "∞".to_owned()
        } else {
            "-∞".to_owned()
        }
    };
    format!("{} to {}", end(interval.low), end(interval.high))
}

fn ranks(ranks: Option<(usize, usize)>) -> String {
    match ranks {
        None => "–".to_owned(),
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}–{worst}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_say_which_tokens_are_estimated_and_which_calls_are_lost() {
        let cost = |agent: &str, is_estimated, has_lost| Cost {
            agent: Some(agent.to_owned()),
            is_estimated,
            has_lost,
            ..Cost::default()
        };
        let note = |agents: Vec<Cost>| {
            let of = Measurements { started: vec![], voids: vec![], agents, cells: vec![], total: Cost::default() };
            measurements(&of)[0].note.clone().unwrap_or_default()
        };
        assert_eq!(note(vec![cost("a", false, false)]), "");
        let lost = "Including lost calls at their highest price: the costs of b.";
        assert_eq!(note(vec![cost("a", false, false), cost("b", false, true)]), lost);
        let both = format!("Estimated from the number of bytes, four a token: the costs of a. {lost}");
        assert_eq!(note(vec![cost("a", true, false), cost("b", false, true)]), both);
    }
}
