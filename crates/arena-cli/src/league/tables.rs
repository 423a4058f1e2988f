//! A season on a terminal: tables, and sentences below.

use arena_report::WIDEST_CROSS_TABLE;
use arena_report::season::{Season, cross, grid, numbers_from, played, remarks};

use crate::output::printable;
use crate::tournament::tables::drawn;

/// Formats the season without its title.
pub fn describe(season: &Season) -> String {
    let mut text = format!("{}\n", standings(season));
    if !season.results.is_empty() && (3..=WIDEST_CROSS_TABLE).contains(&season.agents.len()) {
        text += &format!("{}\n", drawn(&cross(season), 1));
    }
    text + &remarks(season).iter().map(|remark| printable(remark).into_owned() + "\n").collect::<String>()
}

/// Formats the standings as a table below a line with the number of games.
pub fn standings(season: &Season) -> String {
    let grid = grid(season);
    format!("{}:\n{}", played(season), drawn(&grid, numbers_from(&grid)))
}
