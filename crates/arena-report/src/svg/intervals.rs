//! Ratings and other values as dots with whiskers for the 95 % intervals.

use arena_tournament::Record;
use arena_tournament::standings;
use plotters::prelude::{ChartBuilder, Circle, Color};
use plotters::style::text_anchor::HPos;

use super::{
    ACCENT, Estimate, INK, LINE, Picture, SMALL, SOFT, TEXT, WIDTH, cut, ends, line, picture, style, tick, whisker,
    write,
};
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

#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// The name of the row; untrusted text.
    pub name: String,
    pub estimate: Estimate,
    /// The text to the right of the axis.
    pub note: String,
    pub rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    #[default]
    None,
    /// A thin rule, such as between ties.
    Thin,
    /// A thick rule, such as between groups that can't be compared.
    Thick,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalLabels<'a> {
    pub title: &'a str,
    /// The heading of the notes.
    pub note: &'a str,
    pub axis: &'a str,
    /// The smallest length of the axis beyond the values, in units of the values.
    pub room: f64,
}

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
            let (name, elo, range) = (record.name(*agent), rating.elo + 0.0, rating.range());
            let ends = ends(rating.interval, |elo| format!("{elo:.0}"));
            format!("{name}: {elo:.0}{ends}, rank range {range}. ")
        })
        .collect::<String>();
    let cut_off = order.len() - shown.len();
    if cut_off > 0 {
        description += &format!("Only the first {MOST} of {} agents are shown. ", order.len());
    }
    let apart = ratings.apart(|agent| record.name(agent));
    description.extend(apart.iter().map(|apart| format!("{apart}.")));
    let axis = match cut_off {
        0 if apart.is_some() => "Elo; 0 is the mean of each group that shares games".to_owned(),
        0 => "Elo; 0 is the mean".to_owned(),
        _ => format!("Elo; the first {} of {} agents", shown.len(), order.len()),
    };
    let rule = |row: usize| match row.checked_sub(1).map(|above| (&shown[above], &shown[row])) {
        Some(((above, _), (agent, _))) if ratings.group(*above) != ratings.group(*agent) => Rule::Thick,
        Some(((_, above), (_, rating))) if above.ranks.tie != rating.ranks.tie => Rule::Thin,
        _ => Rule::None,
    };
    let row = |(row, (agent, rating)): (usize, &(usize, Rating))| IntervalRow {
        name: record.name(*agent).to_owned(),
        estimate: Estimate { value: rating.elo, interval: rating.interval },
        note: rating.range().replace('-', "–"),
        rule: rule(row),
    };
    let rows: Vec<IntervalRow> = shown.iter().enumerate().map(row).collect();
    let labels =
        IntervalLabels { title: "Elo ratings with 95 % intervals", note: "rank range", axis: &axis, room: 50.0 };
    Some(draw(&rows, &labels, description.trim_end().to_owned()))
}

/// Draws values with their intervals in rows. Only the first 60 rows are shown. `None` without rows.
pub fn intervals_picture(rows: &[IntervalRow], labels: &IntervalLabels) -> Option<Picture> {
    if rows.is_empty() {
        return None;
    }
    let shown = &rows[..rows.len().min(MOST)];
    let describe = |row: &IntervalRow| {
        let ends = ends(row.estimate.interval, tick);
        let note = if row.note.is_empty() { String::new() } else { format!(", {} {}", labels.note, row.note) };
        format!("{}: {}{ends}{note}. ", row.name, tick(row.estimate.value))
    };
    let mut description: String = shown.iter().map(describe).collect();
    if shown.len() < rows.len() {
        description += &format!("Only the first {MOST} of {} rows are shown.", rows.len());
    }
    Some(draw(shown, labels, description.trim_end().to_owned()))
}

fn draw(rows: &[IntervalRow], labels: &IntervalLabels, description: String) -> Picture {
    let values =
        rows.iter().flat_map(|row| [row.estimate.value, row.estimate.interval.low, row.estimate.interval.high]);
    let (low, high) = super::scatter::reach(values.filter(|value| value.is_finite()), labels.room);
    let count = rows.len() as i32;
    let size = (WIDTH, HEAD + ROW * count + FOOT);
    picture(labels.title, description, size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(LEFT)
            .margin_right(WIDTH - RIGHT)
            .margin_top(HEAD)
            .margin_bottom(FOOT - 24)
            .x_label_area_size(24)
            .build_cartesian_2d(low..high, 0.0..f64::from(count))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(5)
            .max_light_lines(0)
            .bold_line_style(LINE.rgb())
            .axis_style(LINE.rgb())
            .x_label_style(style(SMALL, SOFT, HPos::Center))
            .x_label_formatter(&|value| tick(*value))
            .draw()?;
        let column = |value: f64| chart.plotting_area().map_coordinate(&(value, 0.0)).0;
        write(area, "agent", (10, HEAD / 2), (SMALL, SOFT, HPos::Left))?;
        write(area, labels.note, (WIDTH - 10, HEAD / 2), (SMALL, SOFT, HPos::Right))?;
        write(area, labels.axis, ((LEFT + RIGHT) / 2, size.1 - 12), (SMALL, SOFT, HPos::Center))?;
        for (at, row) in (0..).zip(rows) {
            let y = HEAD + ROW * at + ROW / 2;
            let (from, to) = ((10, y - ROW / 2), (WIDTH - 10, y - ROW / 2));
            match row.rule {
                Rule::None => {}
                Rule::Thin => line(area, vec![from, to], LINE, 1)?,
                Rule::Thick => line(area, vec![from, to], INK, 2)?,
            }
            let Estimate { value, interval } = row.estimate;
            let dot = (column(value), y);
            for (end, edge) in [(interval.low, LEFT + 2), (interval.high, RIGHT - 2)] {
                // A value without an interval is a dot only.
                if end != value {
                    let to = if end.is_finite() { column(end) } else { edge };
                    whisker(area, dot, (to, y), !end.is_finite(), ACCENT)?;
                }
            }
            area.draw(&Circle::new(dot, 5, ACCENT.rgb().filled()))?;
            write(area, &cut(&row.name, 13), (10, y), (TEXT, INK, HPos::Left))?;
            write(area, &row.note, (WIDTH - 10, y), (TEXT, INK, HPos::Right))?;
        }
        Ok(())
    })
}
