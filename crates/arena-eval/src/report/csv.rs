//! The report as comma-separated values, for other programs.

use arena_report::Grid;

use super::{Cell, ChallengeReport, Cost, Report};
use crate::Cause;

/// Returns one line for each challenge and agent. Source: RFC 4180.
pub(super) fn csv(report: &Report) -> String {
    let mut header: Vec<String> =
        ["challenge", "agent", "games_planned", "games_finished", "games_counted"].map(str::to_owned).to_vec();
    for name in ["utility", "security", "win_rate", "seat_effect"] {
        header.extend([name.to_owned(), format!("{name}_low"), format!("{name}_high")]);
    }
    header.extend(["wins", "draws", "losses", "seeds", "elo", "elo_low", "elo_high"].map(str::to_owned));
    header.extend(Cause::ALL.map(|cause| cause.name().to_owned()));
    let costs = ["calls", "retries", "input_tokens", "cached_tokens", "output_tokens", "usd", "seconds"];
    if report.measurements.is_some() {
        header.extend(costs.map(str::to_owned));
    }
    let mut rows = Vec::new();
    for challenge in &report.challenges {
        for cell in &challenge.agents {
            let mut line = line_of(challenge, cell);
            if let Some(measurements) = &report.measurements {
                let is_cell = |cost: &&Cost| {
                    cost.challenge.as_ref() == Some(&challenge.challenge) && cost.agent.as_ref() == Some(&cell.agent)
                };
                let cost = measurements.cells.iter().find(is_cell).cloned().unwrap_or_default();
                let counts = [cost.calls, cost.retries, cost.input_tokens, cost.cached_tokens, cost.output_tokens];
                line.extend(counts.map(|count| count.to_string()));
                line.extend([cost.usd.map(|usd| usd.to_string()).unwrap_or_default(), cost.seconds.to_string()]);
            }
            rows.push(line);
        }
    }
    Grid { header, rows }.csv()
}

fn line_of(challenge: &ChallengeReport, cell: &Cell) -> Vec<String> {
    let mut line = vec![challenge.challenge.clone(), cell.agent.clone()];
    line.extend([cell.games.planned, cell.games.finished, cell.games.counted].map(|count| count.to_string()));
    for mean in [cell.utility, cell.security, cell.win_rate, cell.seat_effect] {
        let interval = mean.and_then(|mean| mean.interval);
        let values = [mean.map(|mean| mean.mean), interval.map(|of| of.low), interval.map(|of| of.high)];
        line.extend(values.map(number));
    }
    line.extend([cell.wins, cell.draws, cell.losses].map(|count| count.to_string()));
    line.push(cell.utility.map_or(0, |utility| utility.clusters).to_string());
    let rating = challenge.ratings.iter().find(|row| row.agent == cell.agent);
    let interval = rating.and_then(|row| row.interval);
    let values = [rating.map(|row| row.elo), interval.map(|of| of.low), interval.map(|of| of.high)];
    line.extend(values.map(number));
    line.extend(Cause::ALL.map(|cause| cell.causes.get(cause.name()).copied().unwrap_or(0).to_string()));
    line
}

/// Formats a number in full. Missing and unbounded values are empty.
fn number(number: Option<f64>) -> String {
    number.filter(|number| number.is_finite()).map(|number| number.to_string()).unwrap_or_default()
}
