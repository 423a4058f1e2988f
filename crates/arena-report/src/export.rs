//! Standings as JSON, CSV and Markdown.

use arena_tournament::{Record, TournamentStanding, cross_table, standings};
use serde_json::{Value, json};

use crate::ending;
use crate::exporters::Exporter;
use crate::ratings::Ratings;
use crate::scores::means;
use crate::standings::{Grid, RANK_RANGE, cross, disqualifications_by_agent, grid, numbers, played, remarks, title};
use arena_model::printable;

pub(crate) const CSV: Exporter = Exporter {
    name: "csv",
    label: "CSV",
    content_type: "text/csv; charset=utf-8",
    help: "Print comma-separated values",
    has_seed: false,
    policy: None,
    write: csv,
};

pub(crate) const MARKDOWN: Exporter = Exporter {
    name: "markdown",
    label: "Markdown",
    content_type: "text/markdown; charset=utf-8",
    help: "Print Markdown tables",
    has_seed: true,
    policy: None,
    write: markdown,
};

/// The columns with untrusted text from users. All other columns contain numbers that this program has formatted.
const NAMES: [&str; 4] = ["agent", "challenge", "name", "version"];

/// The heading in CSV, by which other programs find the column, so it must not change.
const RANK_RANGE_KEY: &str = "rank may be";

pub fn json(record: &Record) -> Value {
    let table = cross_table(&record.schedule);
    let mut pairs = Vec::new();
    for (a, row) in table.iter().enumerate() {
        for (b, versus) in row.iter().enumerate().filter(|(_, versus)| versus.games > 0) {
            let points = versus.half_points as f64 / 2.0;
            pairs.push(
                json!({"name": record.name(a), "against": record.name(b), "games": versus.games, "points": points}),
            );
        }
    }
    let plan = &record.plan;
    let mut report = json!({
        "game": plan.game,
        "rules_version": plan.rules_version,
        "options": plan.options,
        "format": plan.format,
        "rounds": plan.rounds,
        "seats": plan.seats,
        "paired": plan.paired,
        "seed": plan.seed,
        "complete": record.schedule.is_complete(),
        "games_played": record.schedule.games_played(),
        "games_repeated": record.schedule.repeats().iter().flatten().count(),
        "games": record.schedule.games(),
        "standings": standings_json(record),
        "cross_table": pairs,
        "remarks": remarks(record),
    });
    if let Some(stop) = ending::json(record) {
        report["stop"] = stop;
    }
    report
}

fn standings_json(record: &Record) -> Vec<Value> {
    let (disqualifications, ratings, means) = (disqualifications_by_agent(record), Ratings::of(record), means(record));
    let row = |line: TournamentStanding| {
        let agent = &record.plan.agents[line.agent];
        let mut row = json!({
            "rank": line.rank,
            "name": agent.name,
            "version": agent.version,
            "agent_path": agent.path,
            "games": line.games,
            "wins": line.wins,
            "losses": line.losses,
            "draws": line.draws,
            "byes": line.byes,
            "points": line.points,
            "share": line.share,
            "disqualified": disqualifications[line.agent].by_name(),
        });
        if let Some(ratings) = ratings.as_ref().filter(|_| line.games > 0) {
            let rating = ratings.rating(line.agent);
            rating.add_to(&mut row, ratings.group(line.agent));
            // The rank by Elo within the group. Agents share a rank if their intervals overlap with the interval of the
            // best agent of that rank.
            row["place"] = rating.ranks.place.into();
        }
        if let Some([utility, security]) = means.as_ref().and_then(|means| means[line.agent]) {
            row["utility"] = utility.json();
            row["security"] = security.json();
        }
        if let Some(survived) = line.survived {
            row["rounds_survived"] = survived.into();
        }
        row
    };
    standings(&record.schedule).into_iter().map(row).collect()
}

pub fn csv(record: &Record) -> String {
    numbers(record).csv()
}

pub fn markdown(record: &Record) -> String {
    let test = ending::sequential_test(record).map(|test| format!("```\n{test}\n```\n\n")).unwrap_or_default();
    let remarks: String = remarks(record).iter().map(|remark| format!("- {}\n", plain(remark))).collect();
    format!(
        "{}\n\n{}.\n\n{}\n{test}{}\n{remarks}",
        plain(&title(record)),
        played(record),
        grid(record).markdown(2),
        cross(record).markdown(1)
    )
}

impl Grid {
    /// Returns the table as comma-separated values. Source: RFC 4180.
    ///
    /// A spreadsheet evaluates a cell that begins like a formula. Names come from users, so a name that begins like a
    /// formula gets an apostrophe in front. Source: OWASP, CSV Injection.
    pub fn csv(&self) -> String {
        let cell = |(column, text): (usize, &String)| {
            let is_name = NAMES.contains(&self.header[column].as_str());
            let sign = if is_name && text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
            match text.contains([',', '"', '\n', '\r']) {
                true => format!("\"{sign}{}\"", text.replace('"', "\"\"")),
                false => format!("{sign}{text}"),
            }
        };
        let line = |cells: &Vec<String>| cells.iter().enumerate().map(cell).collect::<Vec<_>>().join(",") + "\n";
        let key = |text: &String| if text == RANK_RANGE { RANK_RANGE_KEY.to_owned() } else { text.clone() };
        let header: Vec<String> = self.header.iter().map(key).collect();
        [&header].into_iter().chain(&self.rows).map(line).collect()
    }

    /// Returns the table as Markdown. The columns from `numbers` on are numbers, aligned right.
    pub fn markdown(&self, numbers: usize) -> String {
        let row = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = |column: usize| if column >= numbers { "--:|" } else { "---|" };
        let rules: String = (0..self.header.len()).map(rule).collect();
        format!("{}|{rules}\n{}", row(&self.header), self.rows.iter().map(row).collect::<String>())
    }
}

/// Escapes a text so that Markdown shows it literally.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    for char in printable(text).replace('\n', " ").chars() {
        if "\\`*_[]<>|#".contains(char) {
            plain.push('\\');
        }
        plain.push(char);
    }
    plain
}
