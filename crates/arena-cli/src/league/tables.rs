//! A season as people read it on a terminal: drawn tables, and sentences below.

use arena_report::WIDEST_CROSS_TABLE;
use arena_report::season::{Season, cross, grid, numbers_from, played, remarks};

use crate::output::printable;
use crate::tournament::tables::drawn;

/// All that there is to say, but for the title.
pub fn describe(season: &Season) -> String {
    let mut told = format!("{}\n", standings(season));
    if !season.results.is_empty() && (3..=WIDEST_CROSS_TABLE).contains(&season.agents.len()) {
        told += &format!("{}\n", drawn(&cross(season), 1));
    }
    told + &remarks(season).iter().map(|remark| printable(remark).into_owned() + "\n").collect::<String>()
}

/// The standings as a table, under a line that says how many games they are of.
pub fn standings(season: &Season) -> String {
    let grid = grid(season);
    format!("{}:\n{}", played(season), drawn(&grid, numbers_from(&grid)))
}
