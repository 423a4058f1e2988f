//! Standings on a terminal: tables, and sentences below.

use arena_report::season::{self, Season};
use arena_report::{Grid, WIDEST_CROSS_TABLE, cross, grid, remarks, sequential_test};
use arena_tournament::Record;

use crate::output::{Table, printable};

/// Formats the standings without a title.
pub fn describe(record: &Record) -> String {
    let has_games = record.schedule.games_played() > 0;
    let head_to_head = is_crossed(has_games, record.plan.agents.len()).then(|| cross(record));
    join(&standings(record), head_to_head, &remarks(record))
}

fn is_crossed(has_games: bool, agents: usize) -> bool {
    has_games && (3..=WIDEST_CROSS_TABLE).contains(&agents)
}

fn join(standings: &str, head_to_head: Option<Grid>, remarks: &[String]) -> String {
    let table = head_to_head.map(|grid| drawn(&grid, 1));
    let remarks = remarks.iter().map(|remark| printable(remark).into_owned());
    let parts = [standings.to_owned()].into_iter().chain(table).chain(remarks);
    parts.map(|part| part + "\n").collect()
}

/// Formats the standings as a table, below a line with the number of games and above the state of a test.
pub fn standings(record: &Record) -> String {
    let (played, all) = (record.schedule.games_played(), record.schedule.games());
    let state = if record.schedule.is_complete() { "Standings" } else { "Standings so far" };
    let test = sequential_test(record).map(|test| format!("\n{test}")).unwrap_or_default();
    format!("{state}, {played} of {all} games:\n{}{test}", drawn(&grid(record), 2))
}

/// Formats a season of a league without its title.
pub fn describe_season(season: &Season) -> String {
    let head_to_head = is_crossed(!season.results.is_empty(), season.agents.len()).then(|| season::cross(season));
    join(&season_standings(season), head_to_head, &season::remarks(season))
}

/// Formats a season's standings as a table below a line with the number of games.
pub fn season_standings(season: &Season) -> String {
    let grid = season::grid(season);
    format!("{}:\n{}", season::played(season), drawn(&grid, season::numbers_from(&grid)))
}

/// Draws a grid as a table. The columns from index `numbers` on contain numbers and are aligned to the right.
pub fn drawn(grid: &Grid, numbers: usize) -> String {
    let header: Vec<&str> = grid.header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    for row in &grid.rows {
        table.row(row.iter().cloned());
    }
    let left = numbers.saturating_sub(1);
    table.right((0..left).chain(numbers..grid.header.len())).to_string()
}
