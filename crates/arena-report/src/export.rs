//! Standings for other programs: JSON, CSV, Markdown. Equal plans and results give equal bytes.

use std::collections::BTreeMap;

use arena_tournament::Record;
use arena_tournament::{cross_table, standings};
use serde_json::{Value, json};

use crate::ending;
use crate::ratings::{Rating, Ratings};
use crate::scores::means;
use crate::standings::{Grid, cross, fates, grid, numbers, played, remarks, title};
use arena_model::printable;

/// The columns whose texts users have chosen; all others are numbers of ours.
const NAMES: [&str; 2] = ["name", "version"];

/// The plan, the standings, the cross table and the remarks as a JSON object.
pub fn json(record: &Record) -> Value {
    let (fates, ratings, means) = (fates(record), Ratings::of(record), means(record));
    let lines: Vec<Value> = standings(&record.schedule)
        .into_iter()
        .map(|line| {
            let (agent, fate) = (&record.plan.agents[line.agent], &fates[line.agent]);
            let mut told = json!({
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
                "disqualified": fate.verdicts.iter().map(|(verdict, count)| (verdict.name(), *count)).collect::<BTreeMap<_, _>>(),
            });
            if let Some(ratings) = ratings.as_ref().filter(|_| line.games > 0) {
                let Rating { elo, interval, ranks } = ratings.rating(line.agent);
                // An end that is open is null.
                told["elo"] = json!({"rating": elo, "low": interval.low, "high": interval.high});
                told["rank_may_be"] = json!({"best": ranks.best, "worst": ranks.worst});
                // Of the rating in its group; agents that it can't tell from the first of them share a place.
                told["place"] = ranks.place.into();
                // Ratings of different groups can't be compared.
                told["group"] = (1 + ratings.group(line.agent)).into();
            }
            if let Some([utility, security]) = means.as_ref().and_then(|means| means[line.agent]) {
                told["utility"] = utility.json();
                told["security"] = security.json();
            }
            if let Some(survived) = line.survived {
                told["rounds_survived"] = survived.into();
            }
            told
        })
        .collect();
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
    let mut told = json!({
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
        "standings": lines,
        "cross_table": pairs,
        "remarks": remarks(record),
    });
    if let Some(stop) = ending::json(record) {
        told["stop"] = stop;
    }
    told
}

/// The standings as comma-separated values.
pub fn csv(record: &Record) -> String {
    numbers(record).csv()
}

/// The standings and the cross table in Markdown.
pub fn markdown(record: &Record) -> String {
    let trial = ending::trial(record).map(|trial| format!("```\n{trial}\n```\n\n")).unwrap_or_default();
    let remarks: String = remarks(record).iter().map(|remark| format!("- {}\n", plain(remark))).collect();
    format!(
        "{}\n\n{}.\n\n{}\n{trial}{}\n{remarks}",
        plain(&title(record)),
        played(record),
        grid(record).markdown(2),
        cross(record).markdown(1)
    )
}

impl Grid {
    /// As comma-separated values. Source: RFC 4180.
    ///
    /// A spreadsheet takes a text that begins as a formula does for one. Names are other people's, so those that do have an apostrophe in
    /// front. Source: OWASP, CSV Injection.
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
        [&self.header].into_iter().chain(&self.rows).map(line).collect()
    }

    /// As a table in Markdown, whose columns from `numbers` on are numbers.
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

/// A text that means nothing to Markdown but itself.
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
