//! `arena scoring`: leaderboards, as tables for people and unchanged for programs.

use std::collections::BTreeMap;

use arena_players::http::{Arena, CallError, HttpAnswer};
use clap::Args;
use serde::Deserialize;

use crate::exit::Failure;
use crate::output::{Style, Table, note, print, print_json};

/// Options of `arena scoring`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena scoring                     all challenge types together
  arena scoring psi                 one board for each scoring strategy
  arena scoring psi --sort win-rate:utility --limit 10

Averages are printed with their 95 % confidence interval. Boards are sorted by the lower end of this interval, so that a few \
lucky games don't rank above many good ones. --sort names another metric; add :low to sort by the lower end of its interval.")]
pub struct ScoringArgs {
    /// Challenge type, such as psi [default: all together]
    name: Option<String>,
    /// Metric to sort by, such as win-rate:utility.
    #[arg(long, value_name = "KEY")]
    sort: Option<String>,
    /// Maximum number of players, up to 100 [default: the server's]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Number of players to skip [default: 0]
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
}

/// A player's entry on a leaderboard. Contains only the fields that the table shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaderboardEntry {
    player_id: String,
    games_played: u64,
    metrics: BTreeMap<String, f64>,
    #[serde(default)]
    intervals: BTreeMap<String, [f64; 2]>,
    username: Option<String>,
    model: Option<String>,
    #[serde(default)]
    is_benchmark: bool,
}

/// A strategy with the state of its count, if it is scripted.
#[derive(Debug, Deserialize)]
pub struct StrategyCount {
    pub name: String,
    pub challenges: Vec<String>,
    #[serde(default)]
    metrics: Vec<MetricColumn>,
    pub count: Option<CountState>,
}

/// A metric's key in entries of leaderboards, and its name for people.
#[derive(Debug, Deserialize)]
struct MetricColumn {
    key: String,
    label: String,
}

/// The state of a scripted strategy's count of games.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountState {
    pub behind: u64,
    pub recomputing_percent: Option<u64>,
    pub error: Option<String>,
}

/// Gets the strategies of a server.
pub fn counts(arena: &Arena) -> Result<Vec<StrategyCount>, CallError> {
    arena.call("/api/scoring/strategies", None)?.read()
}

/// The number of unprocessed games above which a board isn't current.
const SHOWN_BEHIND: u64 = 200;

/// Returns a line about a strategy whose boards aren't as current as those of built-in ones.
fn notice(StrategyCount { name, count, .. }: &StrategyCount) -> Option<String> {
    let CountState { behind, recomputing_percent, error } = count.as_ref()?;
    match (error, recomputing_percent) {
        (Some(error), _) => Some(format!("{name} cannot count its next game ({behind} behind): {error}")),
        (None, Some(percent)) => {
            Some(format!("{name}: recomputing, {percent} %; until then, these are the old numbers"))
        }
        (None, None) if *behind > SHOWN_BEHIND => Some(format!("{name} has still to process {behind} ended games")),
        (None, None) => None,
    }
}

pub fn run(args: &ScoringArgs, arena: &Arena, style: Style) -> Result<(), Failure> {
    let ScoringArgs { name, sort, limit, offset } = args;
    let answer = arena.scoring(name.as_deref(), sort.as_deref(), *limit, *offset)?;
    match style {
        Style::Pretty => {
            let offset = offset.unwrap_or(0);
            let Some(name) = name else { return print(&board(&answer.read::<Vec<LeaderboardEntry>>()?, offset, &[])) };
            // Servers of other programs don't have this route. Labels of scripted strategies and hints come from it.
            let strategies = counts(arena).unwrap_or_default();
            print(&boards(&answer, offset, &strategies)?)?;
            strategies.iter().filter(|of| of.challenges.contains(name)).filter_map(notice).for_each(|text| note(&text));
            Ok(())
        }
        Style::Compact | Style::Json => print_json(answer.text(), style),
    }
}

fn boards(answer: &HttpAnswer, offset: u64, strategies: &[StrategyCount]) -> Result<String, Failure> {
    let boards: BTreeMap<String, Vec<LeaderboardEntry>> = answer.read()?;
    let text = |(strategy, entries): (&String, &Vec<LeaderboardEntry>)| {
        let scripted = strategies.iter().find(|scripted| scripted.name == *strategy && scripted.count.is_some());
        format!("{strategy}\n{}", board(entries, offset, scripted.map_or(&[], |scripted| &scripted.metrics)))
    };
    let texts: Vec<String> = boards.iter().map(text).collect();
    Ok(if texts.is_empty() { "no scores yet".to_owned() } else { texts.join("\n\n") })
}

/// Formats a leaderboard as a table with these columns, or with one for each metric. Metrics with intervals show them.
fn board(entries: &[LeaderboardEntry], offset: u64, columns: &[MetricColumn]) -> String {
    let Some(first) = entries.first() else { return "no players on this board".to_owned() };
    // The part of a key before the colon is the leaderboard's name.
    let short = |key: &'_ String| key.split_once(':').map_or_else(|| key.clone(), |(_, metric)| metric.to_owned());
    let (keys, labels): (Vec<&String>, Vec<String>) = match columns {
        [] => first.metrics.keys().map(|key| (key, short(key))).unzip(),
        columns => columns.iter().map(|MetricColumn { key, label }| (key, label.clone())).unzip(),
    };
    let mut header = vec!["place", "player", "model", "games"];
    header.extend(labels.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for (place, entry) in (offset + 1..).zip(entries) {
        let mut row = vec![place.to_string(), player(entry), entry.model.clone().unwrap_or_default()];
        row.push(entry.games_played.to_string());
        row.extend(keys.iter().map(|key| metric(entry, key)));
        table.row(row);
    }
    let numbers = 4..header.len();
    table.right([0, 3].into_iter().chain(numbers)).to_string()
}

fn player(entry: &LeaderboardEntry) -> String {
    let name = entry.username.as_ref().unwrap_or(&entry.player_id);
    format!("{name}{}", if entry.is_benchmark { " (benchmark)" } else { "" })
}

fn metric(entry: &LeaderboardEntry, key: &str) -> String {
    match (entry.metrics.get(key), entry.intervals.get(key)) {
        (Some(value), Some([low, high])) => format!("{value:.2} [{low:.2}, {high:.2}]"),
        // Most metrics without an interval are whole numbers, such as streaks.
        (Some(value), None) if value.fract() == 0.0 => value.to_string(),
        (Some(value), None) => format!("{value:.2}"),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_board_shows_intervals_where_there_are_some() {
        let entries = r#"[
            {"playerId":"ada","gamesPlayed":12,"metrics":{"red-team:attack":0.25,"red-team:defend":1},
             "intervals":{"red-team:attack":[0.05,0.6],"red-team:defend":[0.75,1]},"username":"Ada\u001b","model":"m","isBenchmark":true},
            {"playerId":"bob","gamesPlayed":3,"metrics":{"red-team:attack":0,"red-team:defend":0.6666666666666666}}
        ]"#;
        let entries: Vec<LeaderboardEntry> = serde_json::from_str(entries).unwrap();
        expect![[r#"
            ┌───────────────────────────────────────────────────────────────────────────────────────┐
            │ place   player                  model   games              attack              defend │
            ╞═══════════════════════════════════════════════════════════════════════════════════════╡
            │    10   Ada\u{1b} (benchmark)   m          12   0.25 [0.05, 0.60]   1.00 [0.75, 1.00] │
            │    11   bob                                 3                   0                0.67 │
            └───────────────────────────────────────────────────────────────────────────────────────┘"#]]
        .assert_eq(&board(&entries, 9, &[]));
        assert_eq!(board(&[], 0, &[]), "no players on this board");
        let columns = [("red-team:defend", "Defense"), ("red-team:attack", "Attack")];
        let columns = columns.map(|(key, label)| MetricColumn { key: key.to_owned(), label: label.to_owned() });
        assert!(board(&entries, 9, &columns).contains("games             Defense              Attack"));
    }

    #[test]
    fn a_strategy_that_is_not_current_has_a_notice() {
        let notice = |count: &str| {
            let strategy = format!(r#"{{"name":"elo","challenges":[],"count":{count}}}"#);
            notice(&serde_json::from_str(&strategy).unwrap())
        };
        assert_eq!(notice("null"), None);
        assert_eq!(notice(r#"{"behind":3}"#), None);
        let recomputing = "elo: recomputing, 40 %; until then, these are the old numbers";
        assert_eq!(notice(r#"{"behind":3,"recomputingPercent":40}"#).as_deref(), Some(recomputing));
        let failing = "elo cannot count its next game (3 behind): index.ts:2: TypeError";
        let faulty = r#"{"behind":3,"recomputingPercent":40,"error":"index.ts:2: TypeError"}"#;
        assert_eq!(notice(faulty).as_deref(), Some(failing));
    }
}
