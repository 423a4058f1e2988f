//! A scatter plot of two measures with the Pareto front. Larger is better in both measures.

use arena_ratings::bradley_terry::Interval;
use plotters::prelude::{ChartBuilder, Circle, Color, Polygon};
use plotters::style::text_anchor::HPos;

use super::{
    ACCENT, Area, BEATEN, CURVES, INK, LINE, Picture, SMALL, SOFT, TEXT, Trouble, WIDTH, cut, line, picture, style,
    tick, whisker, width_of, write,
};

/// The maximum length of a name, in columns of text.
const NAME: usize = 14;

const HEIGHT: i32 = 340;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value; finite.
    pub value: f64,
    /// The interval; an unbounded end is infinite. Both ends equal the value if there is no interval.
    pub interval: Interval,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The agent's name; untrusted text.
    pub name: String,
    /// The page about the agent, and the text of the dot's tooltip.
    pub link: Option<DotLink>,
    pub x: Estimate,
    pub y: Estimate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotLink {
    pub path: String,
    /// Untrusted text.
    pub tooltip: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axes<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    /// The range of both axes; `None` for the range of the points.
    pub range: Option<(f64, f64)>,
}

impl Estimate {
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, interval: Interval { low: value, high: value } }
    }
}

/// Returns the indexes of the points on the Pareto front, from left to right. A point is on the front unless another
/// point is higher in one measure and at least as high in the other.
pub fn pareto_front(points: &[Point]) -> Vec<usize> {
    let beats = |a: &Point, b: &Point| {
        let (x, y) = (a.x.value >= b.x.value, a.y.value >= b.y.value);
        x && y && (a.x.value > b.x.value || a.y.value > b.y.value)
    };
    let mut front: Vec<usize> =
        (0..points.len()).filter(|at| !points.iter().any(|other| beats(other, &points[*at]))).collect();
    front.sort_by(|a, b| points[*a].x.value.total_cmp(&points[*b].x.value).then(a.cmp(b)));
    front
}

/// Draws points with their intervals and names, and the Pareto front as steps. `None` without points. If there is no
/// room for a name, only the description has it.
pub fn scatter(points: &[Point], axes: &Axes) -> Option<Picture> {
    if points.is_empty() {
        return None;
    }
    let front = pareto_front(points);
    let describe = |at: usize, point: &Point| {
        let on_front = if front.contains(&at) { ", on the Pareto front" } else { "" };
        let (x, y) = (tick(point.x.value), tick(point.y.value));
        format!("{}: {} {x}, {} {y}{on_front}. ", point.name, axes.x, axes.y)
    };
    let description: String = points.iter().enumerate().map(|(at, point)| describe(at, point)).collect();
    let ends = |of: fn(&Point) -> Estimate| {
        let each = points.iter().map(of).flat_map(|of| [of.value, of.interval.low, of.interval.high]);
        let most = points.iter().map(of).map(|of| of.value.abs()).fold(0.0, f64::max);
        let each = each.chain(axes.range.into_iter().flat_map(|(low, high)| [low, high]));
        reach(each.filter(|value| value.is_finite()), if most > 0.0 { most * 0.05 } else { 0.05 })
    };
    let (x, y) = (ends(|point| point.x), ends(|point| point.y));
    let mut dots = Vec::new();
    let mut drawn = picture(axes.title, description.trim_end().to_owned(), (WIDTH, HEIGHT), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(30)
            .margin_left(6)
            .margin_right(14)
            .margin_bottom(22)
            .x_label_area_size(24)
            .y_label_area_size(40)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        let steps = front_steps(points, &front, (x.0, y.0));
        let pixels: Vec<(i32, i32)> =
            steps.into_iter().map(|(x, y)| chart.plotting_area().map_coordinate(&(x, y))).collect();
        let corner = chart.plotting_area().map_coordinate(&(x.0, y.0));
        area.draw(&Polygon::new([pixels.clone(), vec![corner]].concat(), BEATEN.rgb()))?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .x_labels(5)
            .y_labels(6)
            .bold_line_style(LINE.rgb())
            .axis_style(LINE.rgb())
            .x_label_style(style(SMALL, SOFT, HPos::Center))
            .y_label_style(style(SMALL, SOFT, HPos::Right))
            .x_label_formatter(&|x| tick(*x))
            .y_label_formatter(&|y| tick(*y))
            .draw()?;
        let plot = chart.plotting_area();
        let pixel = |x: f64, y: f64| plot.map_coordinate(&(x, y));
        line(area, pixels, CURVES[1], 1)?;
        let ((left, bottom), (right, top)) = (pixel(x.0, y.0), pixel(x.1, y.1));
        let bounds = Frame { left, top, right, bottom };
        points.iter().try_for_each(|point| draw_intervals(area, point, pixel, &bounds))?;
        dots.extend(points.iter().map(|point| pixel(point.x.value, point.y.value)));
        for (at, point) in points.iter().enumerate() {
            let tone = if front.contains(&at) { CURVES[1] } else { ACCENT };
            area.draw(&Circle::new(pixel(point.x.value, point.y.value), 5, tone.rgb().filled()))?;
        }
        // The names of points on the front are placed first, since they are the most important.
        let others = (0..points.len()).filter(|at| !front.contains(at));
        let names = front.iter().copied().chain(others).map(|at| &points[at]);
        write_names(area, names, pixel, &Frame { right: right + 10, ..bounds })?;
        write(area, "● Pareto front", (WIDTH - 14, 14), (SMALL, CURVES[1], HPos::Right))?;
        write(area, axes.y, (10, 14), (SMALL, SOFT, HPos::Left))?;
        write(area, axes.x, (WIDTH - 14, HEIGHT - 12), (SMALL, SOFT, HPos::Right))
    });
    for (link, (x, y)) in points.iter().zip(dots).filter_map(|(point, dot)| Some((point.link.as_ref()?, dot))) {
        drawn.link((x, y), link);
    }
    Some(drawn)
}

/// Draws the intervals of a point in both measures. `pixel` returns the pixel of a position in the `plot`.
fn draw_intervals<'a>(
    area: &Area<'a>,
    point: &Point,
    pixel: impl Fn(f64, f64) -> (i32, i32),
    plot: &Frame,
) -> Result<(), Trouble<'a>> {
    let dot = pixel(point.x.value, point.y.value);
    let (x, y) = (point.x.interval, point.y.interval);
    for (end, edge) in [(x.low, plot.left + 2), (x.high, plot.right - 2)] {
        let to = if end.is_finite() { pixel(end, 0.0).0 } else { edge };
        if to != dot.0 {
            whisker(area, dot, (to, dot.1), !end.is_finite(), ACCENT)?;
        }
    }
    for (end, edge) in [(y.low, plot.bottom - 2), (y.high, plot.top + 2)] {
        let to = if end.is_finite() { pixel(0.0, end).1 } else { edge };
        if to != dot.1 {
            whisker(area, dot, (dot.0, to), !end.is_finite(), ACCENT)?;
        }
    }
    Ok(())
}

/// Writes the names of all points for which there is room beside the dots and the names before.
fn write_names<'a, 'p>(
    area: &Area<'a>,
    points: impl Iterator<Item = &'p Point> + Clone,
    pixel: impl Fn(f64, f64) -> (i32, i32),
    bounds: &Frame,
) -> Result<(), Trouble<'a>> {
    let dot = |point: &Point| pixel(point.x.value, point.y.value);
    let around = |(x, y): (i32, i32)| Frame { left: x - 5, top: y - 5, right: x + 5, bottom: y + 5 };
    let mut taken: Vec<Frame> = points.clone().map(|point| around(dot(point))).collect();
    for point in points {
        let name = cut(&point.name, NAME);
        let mut frames = places(dot(point), width_of(&name, TEXT)).into_iter();
        let fits = |frame: &Frame| frame.is_in(bounds) && !taken.iter().any(|other| frame.meets(other));
        if let Some(frame) = frames.find(fits) {
            let middle = ((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2);
            write(area, &name, middle, (TEXT, INK, HPos::Center))?;
            taken.push(frame);
        }
    }
    Ok(())
}

/// Returns the steps of the front, from the left edge to the lower edge.
fn front_steps(points: &[Point], front: &[usize], corner: (f64, f64)) -> Vec<(f64, f64)> {
    let mut steps = Vec::new();
    let mut left = corner.0;
    for at in front {
        let (x, y) = (points[*at].x.value, points[*at].y.value);
        steps.extend([(left, y), (x, y)]);
        left = x;
    }
    steps.push((left, corner.1));
    steps
}

/// Returns the range of these values with a margin on both sides. The two margins together are at least `room`.
pub(super) fn reach(values: impl Iterator<Item = f64>, room: f64) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (-room, room);
    }
    let margin = ((high - low) * 0.08).max(room / 2.0);
    (low - margin, high + margin)
}

/// The area that a text covers, in units.
#[derive(Debug, Clone, Copy)]
struct Frame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Frame {
    fn meets(&self, other: &Frame) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn is_in(&self, other: &Frame) -> bool {
        self.left >= other.left && self.right <= other.right && self.top >= other.top && self.bottom <= other.bottom
    }
}

/// Returns possible areas for the name of a dot, the best first: beside the dot, above or below the whiskers.
fn places(dot: (i32, i32), width: i32) -> Vec<Frame> {
    let mut frames = Vec::new();
    for far in [0, 12, 24] {
        let (right, left) = (dot.0 + 8, dot.0 - 8 - width);
        for (left, middle) in
            [(right, dot.1 - 11 - far), (right, dot.1 + 11 + far), (left, dot.1 - 11 - far), (left, dot.1 + 11 + far)]
        {
            frames.push(Frame { left, top: middle - 8, right: left + width, bottom: middle + 8 });
        }
    }
    frames
}
