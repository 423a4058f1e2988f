//! The report as tables of text, and as comma-separated values.

use arena_ratings::ClusteredMean;
use arena_ratings::bradley_terry::Interval;
use arena_report::number_of;

use super::{Cell, ChallengeReport, Cost, DifferenceRow, Measure, Measurements, Report};
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
    fn new(title: impl Into<String>, columns: &[&str]) -> TextTable {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        TextTable { title: title.into(), columns, rows: Vec::new(), note: None }
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
    let mut scores = TextTable::new("All challenges", &columns);
    for row in &report.overall {
        scores.rows.push(vec![
            row.agent.clone(),
            number(row.utility.mean),
            interval(&row.utility),
            ranks(row.utility_ranks),
            number(row.security.mean),
            interval(&row.security),
            ranks(row.security_ranks),
        ]);
    }
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
    let mut scores = TextTable::new(format!("{name}: scores"), &columns);
    for cell in &challenge.agents {
        scores.rows.push(vec![
            cell.agent.clone(),
            cell.games.counted.to_string(),
            mean(cell.utility.as_ref()),
            maybe_interval(cell.utility.as_ref()),
            mean(cell.security.as_ref()),
            maybe_interval(cell.security.as_ref()),
            mean(cell.win_rate.as_ref()),
            maybe_interval(cell.win_rate.as_ref()),
            format!("{}–{}–{}", cell.wins, cell.draws, cell.losses),
            mean(cell.seat_effect.as_ref()),
            maybe_interval(cell.seat_effect.as_ref()),
        ]);
    }
    let games = &challenge.games;
    let mut note = format!("{} of {} games are finished, and {} count.", games.finished, games.planned, games.counted);
    if games.counted < games.finished {
        note += &excluded(challenge);
    }
    note += " Seat effect: the utility on the first seat minus that on the other seats.";
    let mut ratings = TextTable::new(format!("{name}: ratings"), &["agent", "Elo", "95 % interval", "rank range"]);
    for row in &challenge.ratings {
        let interval = row.interval.map_or_else(|| "needs 10 seeds".to_owned(), |interval| span(&interval, whole));
        ratings.rows.push(vec![row.agent.clone(), whole(row.elo), interval, ranks(row.ranks)]);
    }
    let groups = challenge.ratings.iter().map(|row| row.group).max();
    let mut ratings = ratings.noted("Bradley–Terry ratings by utility, in Elo. The mean is 0.");
    if groups > Some(0) {
        ratings = ratings.noted(
            "Bradley–Terry ratings by utility, in Elo. No games link some of the agents; ratings of such agents \
             can't be compared.",
        );
    }
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
    let mut table = TextTable::new(title, &columns);
    for row in rows {
        table.rows.push(vec![
            format!("{} − {}", row.first, row.second),
            row.measure.name().to_owned(),
            number(row.difference.mean),
            interval(&row.difference),
            row.difference.clusters.to_string(),
            row.adjusted_p.map_or_else(|| "–".to_owned(), p_value),
            conclusion(row),
        ]);
    }
    table.noted(
        "Differences in games with the same seed, seat and opponents. The p values are corrected for all rows of \
         the table (Holm). They and the conclusion need 10 seeds. The number of seeds gives a power of 0.8 at level \
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
        Some(1) => format!("1 more seed separates {first} from {second}"),
        Some(seeds) => format!("{seeds} more seeds separate {first} from {second}"),
        None if row.difference.mean == 0.0 => "no difference".to_owned(),
        None => "too few seeds".to_owned(),
    }
}

pub(super) fn breaches(report: &Report) -> TextTable {
    let columns = ["agent", "challenge", "seats", "exposed", "95 % interval", "learned", "95 % interval"];
    let mut table = TextTable::new("Breaches", &columns);
    let interval = |mean: &ClusteredMean| mean.interval.map_or_else(|| interval(mean), |found| span(&found, percent));
    for row in &report.breaches {
        table.rows.push(vec![
            row.agent.clone(),
            row.challenge.clone(),
            row.exposed.values.to_string(),
            percent(row.exposed.mean),
            interval(&row.exposed),
            percent(row.learned.mean),
            interval(&row.learned),
        ]);
    }
    table.noted(
        "Exposed: the share of the agent's seats whose secret another player learned. Learned: the share of its seats \
         that learned the secret of another player. The rules of the challenge decide, in games that count.",
    )
}

pub(super) fn noise(report: &Report) -> TextTable {
    let columns = ["challenge", "agent", "utility", "95 % interval", "security", "95 % interval"];
    let mut table = TextTable::new("Noise floor", &columns);
    let Some(noise) = &report.noise else { return table };
    for row in &noise.rows {
        table.rows.push(vec![
            row.challenge.clone(),
            row.agent.clone(),
            number(row.utility.mean),
            interval(&row.utility),
            number(row.security.mean),
            interval(&row.security),
        ]);
    }
    let source = match noise.source {
        "null_variant" => "between a model and the same model under a second name",
        _ => "between self-play with even and with odd seeds",
    };
    table.noted(format!(
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
    let mut table = TextTable::new("Reliability", &columns);
    for row in &report.reliability {
        let share =
            |cause: &Cause| percent(row.causes.get(cause.name()).copied().unwrap_or(0) as f64 / row.seats as f64);
        let mut cells = vec![row.agent.clone(), row.seats.to_string()];
        cells.extend(seen.iter().map(share));
        table.rows.push(cells);
    }
    table.noted(
        "The share of seats in finished games by the cause of their end. Scores are computed from games whose seats \
         all ended by causes that count; games that an endpoint's fault interrupted are played again.",
    )
}

pub(super) fn measurements(measurements: &Measurements) -> Vec<TextTable> {
    let total = Cost { agent: Some("total".to_owned()), ..measurements.total.clone() };
    let has_total = measurements.agents.len() > 1;
    let rows: Vec<&Cost> = measurements.agents.iter().chain(has_total.then_some(&total)).collect();
    let mut costs = costs("Costs", &rows);
    let estimated = measurements.agents.iter().filter(|cost| cost.is_estimated);
    let estimated: Vec<&str> = estimated.filter_map(|cost| cost.agent.as_deref()).collect();
    if !estimated.is_empty() {
        let names = estimated.join(", ");
        costs = costs.noted(format!("Estimated from the number of bytes, four a token: the costs of {names}."));
    }
    let mut voids = TextTable::new("Void games", &["agent", "fault", "games"]);
    for void in &measurements.voids {
        let agent = void.agent.clone().unwrap_or_else(|| "–".to_owned());
        voids.rows.push(vec![agent, void.class.clone(), void.games.to_string()]);
    }
    vec![
        costs,
        voids.noted("Games that were given up without a fault of a player. They don't count and are played again."),
    ]
}

/// Returns the numbers of failed attempts and of unusable answers by agent.
pub(super) fn faults(measurements: &Measurements) -> TextTable {
    let columns = ["agent", "calls", "failed attempts", "invalid answers", "refusals", "truncated answers"];
    let mut table = TextTable::new("Faults", &columns);
    for cost in &measurements.agents {
        let counts = [cost.calls, cost.retries, cost.invalid, cost.refusals, cost.truncated];
        let cells = counts.iter().map(u64::to_string);
        table.rows.push(cost.agent.iter().cloned().chain(cells).collect());
    }
    table.noted("Failed attempts are faults of endpoints and were repeated; the others are answers of the models.")
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
    let mut table = TextTable::new(title, &columns);
    for cost in rows {
        let agent = cost.agent.as_deref().unwrap_or_default();
        table.rows.push(vec![
            cost.challenge.as_ref().map_or_else(|| agent.to_owned(), |challenge| format!("{agent} in {challenge}")),
            cost.games.to_string(),
            cost.calls.to_string(),
            cost.retries.to_string(),
            cost.invalid.to_string(),
            cost.input_tokens.to_string(),
            cost.cached_tokens.to_string(),
            cost.output_tokens.to_string(),
            cost.usd.map_or_else(|| "–".to_owned(), dollars),
            cost.usd_per_game().map_or_else(|| "–".to_owned(), dollars),
            number(cost.seconds / cost.games.max(1) as f64),
            cost.utility_per_usd.map_or_else(|| "–".to_owned(), number),
        ]);
    }
    table
}

pub(super) fn changes(report: &Report) -> TextTable {
    let mut table = TextTable::new("Accepted changes", &["name", "SHA-256 before", "SHA-256 after"]);
    for change in &report.changes {
        table.rows.push(vec![change.name.clone(), change.before.clone(), change.after.clone()]);
    }
    table.noted("The user accepted these changes during the run. The affected games were played again; only the new results count.")
}

pub(super) fn identities(report: &Report) -> TextTable {
    let mut table = TextTable::new("Agents and challenges", &["name", "kind", "SHA-256 of its settings"]);
    for agent in &report.agents {
        table.rows.push(vec![agent.name.clone(), agent.kind.to_owned(), agent.identity.clone()]);
    }
    for challenge in &report.challenges {
        table.rows.push(vec![challenge.challenge.clone(), "challenge".to_owned(), challenge.identity.clone()]);
    }
    table
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

fn mean(mean: Option<&ClusteredMean>) -> String {
    mean.map_or_else(|| "–".to_owned(), |mean| number(mean.mean))
}

fn maybe_interval(mean: Option<&ClusteredMean>) -> String {
    mean.map_or_else(|| "–".to_owned(), interval)
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

/// Returns one line for each challenge and agent. Source: RFC 4180.
pub(super) fn csv(report: &Report) -> String {
    let mut columns: Vec<String> =
        ["challenge", "agent", "games_planned", "games_finished", "games_counted"].map(str::to_owned).to_vec();
    for name in ["utility", "security", "win_rate", "seat_effect"] {
        columns.extend([name.to_owned(), format!("{name}_low"), format!("{name}_high")]);
    }
    columns.extend(["wins", "draws", "losses", "seeds", "elo", "elo_low", "elo_high"].map(str::to_owned));
    columns.extend(Cause::ALL.map(|cause| cause.name().to_owned()));
    let costs = ["calls", "retries", "input_tokens", "cached_tokens", "output_tokens", "usd", "seconds"];
    if report.measurements.is_some() {
        columns.extend(costs.map(str::to_owned));
    }
    let mut lines = vec![columns];
    for challenge in &report.challenges {
        for cell in &challenge.agents {
            let mut line = csv_line(challenge, cell);
            if let Some(measurements) = &report.measurements {
                let is_cell = |cost: &&Cost| {
                    cost.challenge.as_ref() == Some(&challenge.challenge) && cost.agent.as_ref() == Some(&cell.agent)
                };
                let cost = measurements.cells.iter().find(is_cell).cloned().unwrap_or_default();
                let counts = [cost.calls, cost.retries, cost.input_tokens, cost.cached_tokens, cost.output_tokens];
                line.extend(counts.map(|count| count.to_string()));
                line.extend([cost.usd.map(|usd| usd.to_string()).unwrap_or_default(), cost.seconds.to_string()]);
            }
            lines.push(line);
        }
    }
    let line = |cells: &Vec<String>| cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>().join(",") + "\n";
    lines.iter().map(line).collect()
}

fn csv_line(challenge: &ChallengeReport, cell: &Cell) -> Vec<String> {
    let mut line = vec![csv_name(&challenge.challenge), csv_name(&cell.agent)];
    line.extend([cell.games.planned, cell.games.finished, cell.games.counted].map(|count| count.to_string()));
    for mean in [cell.utility, cell.security, cell.win_rate, cell.seat_effect] {
        let interval = mean.and_then(|mean| mean.interval);
        let values = [mean.map(|mean| mean.mean), interval.map(|of| of.low), interval.map(|of| of.high)];
        line.extend(values.map(csv_number));
    }
    line.extend([cell.wins, cell.draws, cell.losses].map(|count| count.to_string()));
    line.push(cell.utility.map_or(0, |utility| utility.clusters).to_string());
    let rating = challenge.ratings.iter().find(|row| row.agent == cell.agent);
    let interval = rating.and_then(|row| row.interval);
    let values = [rating.map(|row| row.elo), interval.map(|of| of.low), interval.map(|of| of.high)];
    line.extend(values.map(csv_number));
    line.extend(Cause::ALL.map(|cause| cell.causes.get(cause.name()).copied().unwrap_or(0).to_string()));
    line
}

/// Formats a number in full. Missing and unbounded values are empty.
fn csv_number(number: Option<f64>) -> String {
    number.filter(|number| number.is_finite()).map(|number| number.to_string()).unwrap_or_default()
}

/// Returns a name with an apostrophe in front if a spreadsheet would evaluate it. Source: OWASP, CSV Injection.
fn csv_name(name: &str) -> String {
    let sign = if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("{sign}{name}")
}

fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

pub(super) fn score(cell: &Cell, measure: Measure) -> Option<ClusteredMean> {
    match measure {
        Measure::Utility => cell.utility,
        Measure::Security => cell.security,
    }
}
