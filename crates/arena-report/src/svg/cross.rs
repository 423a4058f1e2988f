//! The cross table as a picture: each agent's score against each other agent, as a number and a color.

use arena_tournament::Record;
use arena_tournament::{cross_table, standings};
use plotters::prelude::{Color, Rectangle};
use plotters::style::text_anchor::HPos;

use super::{HEAT, INK, LINE, Picture, SMALL, SOFT, TEXT, Tone, WIDTH, cut, picture, write};

/// The largest number of agents in the picture. With more agents, cells are hard to find.
const MOST: usize = 40;

/// Sizes, in units: a cell, the names before the rows, the numbers above the columns, and the legend below the table.
const CELL: (i32, i32) = (34, 28);
const NAMES: i32 = 150;
const HEAD: i32 = 30;
const KEY: i32 = 48;

/// Draws the head-to-head scores in percent, in the order of the standings. `None` with fewer than 3 agents, with more
/// than 40, or without games.
pub fn cross_table_picture(record: &Record) -> Option<Picture> {
    if record.schedule.games_played() == 0 {
        return None;
    }
    let order: Vec<usize> = standings(&record.schedule).iter().map(|line| line.agent).collect();
    let table = cross_table(&record.schedule);
    let share = |row: usize, column: usize| {
        let versus = table[order[row]][order[column]];
        (versus.games > 0).then(|| versus.half_points as f64 / (2 * versus.games) as f64)
    };
    let names: Vec<&str> = order.iter().map(|agent| record.name(*agent)).collect();
    shares_picture(&names, share)
}

/// Draws shares of points, from 0 to 1, of the row's agent against the column's agent. `share` takes the indexes of the
/// row and the column in `names`. `None` with fewer than 3 agents or more than 40.
pub fn shares_picture(names: &[&str], share: impl Fn(usize, usize) -> Option<f64>) -> Option<Picture> {
    let agents = names.len();
    if !(3..=MOST).contains(&agents) {
        return None;
    }
    let describe = |row: usize| {
        let each = (0..agents)
            .filter_map(|column| Some(format!("{} against {}", percent(share(row, column)?), names[column])));
        let each: Vec<String> = each.collect();
        let each = if each.is_empty() { "no games".to_owned() } else { each.join(", ") };
        format!("{}: {each}. ", names[row])
    };
    let description: String = (0..agents).map(describe).collect();
    let count = agents as i32;
    let size = ((NAMES + CELL.0 * count + 10).max(WIDTH), HEAD + CELL.1 * count + KEY);
    let title = "Head-to-head score, %";
    Some(picture(title, description.trim_end().to_owned(), size, |area| {
        let corner = |row: i32, column: i32| (NAMES + CELL.0 * column, HEAD + CELL.1 * row);
        for row in 0..count {
            let (_, top) = corner(row, 0);
            let middle = top + CELL.1 / 2;
            let place = (row + 1).to_string();
            write(area, &place, (26, middle), (SMALL, SOFT, HPos::Right))?;
            write(area, &place, (corner(0, row).0 + CELL.0 / 2, HEAD / 2 + 2), (SMALL, SOFT, HPos::Center))?;
            write(area, &cut(names[row as usize], 13), (34, middle), (TEXT, INK, HPos::Left))?;
            for column in 0..count {
                let (left, top) = corner(row, column);
                let share = share(row as usize, column as usize);
                let tone = share.map_or(LINE, heat);
                if share.is_some() || row == column {
                    let cell = [(left + 1, top + 1), (left + CELL.0 - 1, top + CELL.1 - 1)];
                    area.draw(&Rectangle::new(cell, tone.rgb().filled()))?;
                }
                if row != column {
                    let (text, tone) = share.map_or(("·".to_owned(), SOFT), |share| (percent(share), INK));
                    write(area, &text, (left + CELL.0 / 2, middle), (TEXT, tone, HPos::Center))?;
                }
            }
        }
        let (left, y) = (NAMES + 1, size.1 - KEY + 18);
        write(area, "score, %", (left - 8, y + 8), (SMALL, SOFT, HPos::Right))?;
        for (at, tone) in (0..).zip(HEAT) {
            area.draw(&Rectangle::new([(left + 22 * at, y), (left + 22 * at + 22, y + 16)], tone.rgb().filled()))?;
        }
        for (at, text) in [(0, "0"), (4, "50"), (8, "100")] {
            write(area, text, (left + 22 * at + 11, y + 8), (SMALL, INK, HPos::Center))?;
        }
        Ok(())
    }))
}

fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// The middle tone is for exactly one half, the outer tones for none and all.
pub(super) fn heat(share: f64) -> Tone {
    let last = HEAT.len() - 1;
    let middle = last / 2;
    match share {
        share if share <= 0.0 => HEAT[0],
        share if share >= 1.0 => HEAT[last],
        share if share < 0.5 => HEAT[1 + (share * 2.0 * (middle - 1) as f64) as usize],
        share if share > 0.5 => HEAT[last - 1 - ((1.0 - share) * 2.0 * (middle - 1) as f64) as usize],
        _ => HEAT[middle],
    }
}
