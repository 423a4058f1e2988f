//! `arena scoring`: leaderboards, as tables for people and unchanged for programs.

use std::collections::BTreeMap;

use arena_players::http::{Arena, CallError, HttpAnswer};
use serde::Deserialize;

use crate::exit::Failure;
use crate::output::{Style, Table, note, print, print_json};

pub struct Request {
    /// The challenge type; `None` for the global leaderboard.
    pub name: Option<String>,
    pub sort: Option<String>,
    pub limit: Option<u32>,
    pub offset: Option<u64>,
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
    pub count: Option<CountState>,
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

/// Returns a line about a strategy whose boards aren't as current as those of built-in ones.
fn notice(StrategyCount { name, count, .. }: &StrategyCount) -> Option<String> {
    let CountState { behind, recomputing_percent, error } = count.as_ref()?;
    match (error, recomputing_percent) {
        (Some(error), _) => Some(format!("{name} cannot count its next game ({behind} behind): {error}")),
        (None, Some(percent)) => {
            Some(format!("{name}: recomputing, {percent} %; until then, these are the old numbers"))
        }
        (None, None) => None,
    }
}

pub fn run(request: &Request, arena: &Arena, style: Style) -> Result<(), Failure> {
    let Request { name, sort, limit, offset } = request;
    let answer = arena.scoring(name.as_deref(), sort.as_deref(), *limit, *offset)?;
    match style {
        Style::Pretty => {
            print(&boards(&answer, name.is_some(), offset.unwrap_or(0))?)?;
            let Some(name) = name else { return Ok(()) };
            // Servers of other programs don't have this route, and only hints come from it.
            let strategies = counts(arena).unwrap_or_default();
            strategies.iter().filter(|of| of.challenges.contains(name)).filter_map(notice).for_each(|text| note(&text));
            Ok(())
        }
        Style::Compact | Style::Json => print_json(answer.text(), style),
    }
}

fn boards(answer: &HttpAnswer, of_type: bool, offset: u64) -> Result<String, Failure> {
    if !of_type {
        return Ok(board(&answer.read::<Vec<LeaderboardEntry>>()?, offset));
    }
    let boards: BTreeMap<String, Vec<LeaderboardEntry>> = answer.read()?;
    let text =
        |(strategy, entries): (&String, &Vec<LeaderboardEntry>)| format!("{strategy}\n{}", board(entries, offset));
    let texts: Vec<String> = boards.iter().map(text).collect();
    Ok(if texts.is_empty() { "no scores yet".to_owned() } else { texts.join("\n\n") })
}

/// Formats a leaderboard as a table with a column for each metric. Metrics with intervals show them.
fn board(entries: &[LeaderboardEntry], offset: u64) -> String {
    let Some(first) = entries.first() else { return "no players on this board".to_owned() };
    let keys: Vec<&String> = first.metrics.keys().collect();
    let mut header = vec!["place", "player", "model", "games"];
    // The part of a key before the colon is the leaderboard's name.
    header.extend(keys.iter().map(|key| key.split_once(':').map_or(key.as_str(), |(_, metric)| metric)));
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
        // Metrics without an interval, such as streaks, are whole numbers.
        (Some(value), None) => value.to_string(),
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
            {"playerId":"bob","gamesPlayed":3,"metrics":{"red-team:attack":0,"red-team:defend":2}}
        ]"#;
        let entries: Vec<LeaderboardEntry> = serde_json::from_str(entries).unwrap();
        expect![[r#"
            ┌───────────────────────────────────────────────────────────────────────────────────────┐
            │ place   player                  model   games              attack              defend │
            ╞═══════════════════════════════════════════════════════════════════════════════════════╡
            │    10   Ada\u{1b} (benchmark)   m          12   0.25 [0.05, 0.60]   1.00 [0.75, 1.00] │
            │    11   bob                                 3                   0                   2 │
            └───────────────────────────────────────────────────────────────────────────────────────┘"#]]
        .assert_eq(&board(&entries, 9));
        assert_eq!(board(&[], 0), "no players on this board");
    }

    #[test]
    fn a_strategy_that_is_not_current_has_a_notice() {
        let told = |count: &str| {
            let strategy = format!(r#"{{"name":"elo","challenges":[],"count":{count}}}"#);
            notice(&serde_json::from_str(&strategy).unwrap())
        };
        assert_eq!(told("null"), None);
        assert_eq!(told(r#"{"behind":3}"#), None);
        let recomputing = "elo: recomputing, 40 %; until then, these are the old numbers";
        assert_eq!(told(r#"{"behind":3,"recomputingPercent":40}"#).as_deref(), Some(recomputing));
        let failing = "elo cannot count its next game (3 behind): index.ts:2: TypeError";
        let faulty = r#"{"behind":3,"recomputingPercent":40,"error":"index.ts:2: TypeError"}"#;
        assert_eq!(told(faulty).as_deref(), Some(failing));
    }
}
