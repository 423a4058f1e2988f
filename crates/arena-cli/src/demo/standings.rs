//! The score table of the demo: means over the games of each house bot.

use arena_house::psi::BOTS;
use serde_json::json;

use super::game::DemoGame;
use crate::exit::Failure;
use crate::output::{Style, Table, print, print_line};

/// Sums over the games so far, in the order of [`BOTS`].
#[derive(Debug, Default)]
pub struct Standings {
    rows: [Row; BOTS.len()],
}

#[derive(Debug, Default, Clone, Copy)]
struct Row {
    games: u32,
    security: f64,
    utility: f64,
}

impl Row {
    fn mean(self, sum: f64) -> f64 {
        sum / f64::from(self.games.max(1))
    }
}

impl Standings {
    pub fn add(&mut self, game: &DemoGame) {
        for seat in &game.seats {
            for (row, _) in self.rows.iter_mut().zip(&BOTS).filter(|(_, bot)| bot.name == seat.bot) {
                row.games += 1;
                row.security += seat.score.security;
                row.utility += seat.score.utility;
            }
        }
    }

    /// Prints the table in the order of [`BOTS`], since there is no single order for two scores.
    pub fn print(&self, style: Style) -> Result<(), Failure> {
        let rows = || self.rows.into_iter().zip(&BOTS);
        if style == Style::Json {
            let standings: Vec<_> = rows()
                .map(|(row, bot)| {
                    let [security, utility] = [row.mean(row.security), row.mean(row.utility)];
                    json!({ "bot": bot.name, "games": row.games, "security": security, "utility": utility })
                })
                .collect();
            return print_line(&json!({ "standings": standings }));
        }
        let mut table = Table::new(&["house bot", "games", "mean security", "mean utility", "strategy"]);
        for (row, bot) in rows() {
            table.row([
                bot.name.to_owned(),
                row.games.to_string(),
                format!("{:+.2}", row.mean(row.security)),
                format!("{:+.2}", row.mean(row.utility)),
                bot.motto.to_owned(),
            ]);
        }
        print(&format!("\n{}\n", table.right(1..=3)))
    }
}
