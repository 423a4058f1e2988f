//! Ratings as dots with whiskers for the 95 % intervals.

use arena_tournament::Record;
use arena_tournament::standings;
use plotters::prelude::{ChartBuilder, Circle, Color};
use plotters::style::text_anchor::HPos;

use super::{ACCENT, INK, LINE, Picture, SMALL, SOFT, TEXT, WIDTH, cut, line, picture, style, tick, whisker, write};
use crate::ratings::{Rating, Ratings};

/// The largest number of agents shown.
const MOST: usize = 60;

/// Heights, in units: an agent's row, the heading above the rows, and the axis below them.
const ROW: i32 = 26;
const HEAD: i32 = 30;
const FOOT: i32 = 44;

/// The left and right ends of the axis, in units. Names are to the left of the axis, and ranks to the right.
const LEFT: i32 = 122;
const RIGHT: i32 = WIDTH - 52;

/// Draws the ratings of a tournament with their intervals, the highest first. Only the first 60 agents are shown.
/// `None` before the first game.
pub fn ratings_picture(record: &Record) -> Option<Picture> {
    let ratings = Ratings::of(record)?;
    let mut games = vec![0; record.plan.agents.len()];
    for line in standings(&record.schedule) {
        games[line.agent] = line.games;
    }
    // An agent without games has no rating.
    let order: Vec<usize> = ratings.order().into_iter().filter(|agent| games[*agent] > 0).collect();
    let shown: Vec<(usize, Rating)> = order.iter().take(MOST).map(|agent| (*agent, ratings.rating(*agent))).collect();
    let mut description = shown
        .iter()
        .map(|(agent, rating)| {
            format!(
                "{}: {:.0}, {}, rank range {}. ",
                record.name(*agent),
                rating.elo + 0.0,
                span(rating),
                rating.range()
            )
        })
        .collect::<String>();
    let cut_off = order.len() - shown.len();
    if cut_off > 0 {
        description += &format!("Only the first {MOST} of {} agents are shown. ", order.len());
    }
    let apart = ratings.apart(|agent| record.name(agent));
    description.extend(apart.iter().map(|apart| format!("{apart}.")));
    let (low, high) = ends(&shown);
    let rows = shown.len() as i32;
    let size = (WIDTH, HEAD + ROW * rows + FOOT);
    let title = "Elo ratings with 95 % intervals";
    let picture = picture(title, description.trim_end().to_owned(), size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(LEFT)
            .margin_right(WIDTH - RIGHT)
            .margin_top(HEAD)
            .margin_bottom(FOOT - 24)
            .x_label_area_size(24)
            .build_cartesian_2d(low..high, 0.0..f64::from(rows))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(5)
            .max_light_lines(0)
            .bold_line_style(LINE.rgb())
            .axis_style(LINE.rgb())
            .x_label_style(style(SMALL, SOFT, HPos::Center))
            .x_label_formatter(&|elo| tick(*elo))
            .draw()?;
        let column = |elo: f64| chart.plotting_area().map_coordinate(&(elo, 0.0)).0;
        write(area, "agent", (10, HEAD / 2), (SMALL, SOFT, HPos::Left))?;
        write(area, "rank range", (WIDTH - 10, HEAD / 2), (SMALL, SOFT, HPos::Right))?;
        let note = match cut_off {
            0 if apart.is_some() => "Elo; 0 is the mean of each group that shares games".to_owned(),
            0 => "Elo; 0 is the mean".to_owned(),
            _ => format!("Elo; the first {rows} of {} agents", order.len()),
        };
        write(area, &note, ((LEFT + RIGHT) / 2, size.1 - 12), (SMALL, SOFT, HPos::Center))?;
        for (row, (agent, rating)) in (0..).zip(&shown) {
            let y = HEAD + ROW * row + ROW / 2;
            // A thin rule separates ties; a thick rule separates groups between which no games were played.
            if let Some((above, before)) = shown[..row as usize].last() {
                let (from, to) = ((10, y - ROW / 2), (WIDTH - 10, y - ROW / 2));
                if ratings.group(*above) != ratings.group(*agent) {
                    line(area, vec![from, to], INK, 2)?;
                } else if before.ranks.tie != rating.ranks.tie {
                    line(area, vec![from, to], LINE, 1)?;
                }
            }
            let dot = (column(rating.elo), y);
            for (end, edge) in [(rating.interval.low, LEFT + 2), (rating.interval.high, RIGHT - 2)] {
                let to = if end.is_finite() { column(end) } else { edge };
                whisker(area, dot, (to, y), !end.is_finite(), ACCENT)?;
            }
            area.draw(&Circle::new(dot, 5, ACCENT.rgb().filled()))?;
            write(area, &cut(record.name(*agent), 13), (10, y), (TEXT, INK, HPos::Left))?;
            write(area, &rating.range().replace('-', "–"), (WIDTH - 10, y), (TEXT, INK, HPos::Right))?;
        }
        Ok(())
    });
    Some(picture)
}

/// Describes an interval in words.
fn span(rating: &Rating) -> String {
    match (rating.interval.low, rating.interval.high) {
        (low, high) if low.is_finite() && high.is_finite() => format!("from {low:.0} to {high:.0}"),
        (low, _) if low.is_finite() => format!("at least {low:.0}"),
        (_, high) if high.is_finite() => format!("at most {high:.0}"),
        _ => "unbounded".to_owned(),
    }
}

/// Returns the ends of the axis.
fn ends(shown: &[(usize, Rating)]) -> (f64, f64) {
    let values = || {
        let each = shown.iter().flat_map(|(_, rating)| [rating.elo, rating.interval.low, rating.interval.high]);
        each.filter(|value| value.is_finite())
    };
    super::scatter::reach(values(), 50.0)
}
