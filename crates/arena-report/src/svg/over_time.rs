//! Measures over time with their intervals, such as a rating after each game or in each tournament.

use plotters::prelude::{ChartBuilder, Circle, Color, Polygon};
use plotters::style::text_anchor::HPos;

use super::scatter::reach;
use super::{
    Area, CURVES, Estimate, INK, LINE, Picture, SMALL, SOFT, TEXT, Tone, Trouble, WIDTH, cut, ends, line, picture,
    style, tick, whisker, write,
};

const HEIGHT: i32 = 260;

/// The largest number of points in a curve. More points would be indistinguishable.
const STEPS: usize = 160;

/// The largest number of points for which intervals are drawn as whiskers instead of a band.
const FEW: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAxis<'a> {
    pub title: &'a str,
    /// The unit of the x axis, such as `games`.
    pub x: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub name: String,
    /// The values with their intervals, the oldest first.
    pub values: Vec<Estimate>,
}

/// Draws the first six curves. Intervals are bands, or whiskers if there are at most 12 values. Unbounded intervals end
/// at the edge. `None` if no curve has a value.
pub fn over_time(axis: &TimeAxis<'_>, curves: &[Curve]) -> Option<Picture> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| !curve.values.is_empty()).take(CURVES.len()).collect();
    let longest = curves.iter().map(|curve| curve.values.len()).max()?;
    let describe = |curve: &&Curve| {
        let Estimate { value, interval } = curve.values.last()?;
        let (name, count) = (&curve.name, curve.values.len());
        let is_bounded = interval.low.is_finite() || interval.high.is_finite();
        let ends = if is_bounded { ends(*interval, tick) } else { String::new() };
        Some(format!("{name} after {count} {}: {}{ends}. ", axis.x, tick(*value)))
    };
    let description: String = curves.iter().filter_map(describe).collect();
    let values = || curves.iter().flat_map(|curve| &curve.values);
    let all = values().flat_map(|of| [of.value, of.interval.low, of.interval.high]);
    let (low, high) = reach(all.filter(|value| value.is_finite()), 0.1);
    // The first value is at 1. A single value is in the middle of the axis.
    let (first, last) = if longest == 1 { (0.0, 2.0) } else { (1.0, longest as f64) };
    Some(picture(axis.title, description.trim_end().to_owned(), (WIDTH, HEIGHT), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(34)
            .margin_left(6)
            .margin_right(16)
            .margin_bottom(22)
            .x_label_area_size(24)
            .y_label_area_size(44)
            .build_cartesian_2d(first..last, low..high)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .disable_x_mesh()
            .x_labels(longest.min(6))
            .y_labels(6)
            .bold_line_style(LINE.rgb())
            .axis_style(LINE.rgb())
            .x_label_style(style(SMALL, SOFT, HPos::Center))
            .y_label_style(style(SMALL, SOFT, HPos::Right))
            .x_label_formatter(&|count| if count.fract() == 0.0 { tick(*count) } else { String::new() })
            .y_label_formatter(&|value| tick(*value))
            .draw()?;
        let plot = chart.plotting_area();
        let mut left = 50;
        for (curve, tone) in curves.iter().zip(CURVES) {
            let at = |place: usize, value: f64| plot.map_coordinate(&((place + 1) as f64, value.clamp(low, high)));
            let places = places(curve.values.len());
            let each = || places.iter().map(|place| (*place, curve.values[*place]));
            if longest <= FEW {
                draw_whiskers(area, each(), tone, at)?;
            } else {
                let upper = each().map(|(place, of)| at(place, of.interval.high));
                let lower = each().rev().map(|(place, of)| at(place, of.interval.low));
                area.draw(&Polygon::new(upper.chain(lower).collect::<Vec<_>>(), tone.rgb().mix(0.15)))?;
            }
            line(area, each().map(|(place, of)| at(place, of.value)).collect(), tone, 2)?;
            line(area, vec![(left, 16), (left + 14, 16)], tone, 3)?;
            let name = cut(&curve.name, 16);
            write(area, &name, (left + 20, 16), (TEXT, INK, HPos::Left))?;
            left += 36 + super::width_of(&name, TEXT);
        }
        write(area, axis.x, ((50 + WIDTH) / 2, HEIGHT - 12), (SMALL, SOFT, HPos::Center))
    }))
}

/// Draws values as dots with their intervals. `at` returns the pixel of a value.
fn draw_whiskers<'a>(
    area: &Area<'a>,
    values: impl Iterator<Item = (usize, Estimate)>,
    tone: Tone,
    at: impl Fn(usize, f64) -> (i32, i32),
) -> Result<(), Trouble<'a>> {
    for (place, Estimate { value, interval }) in values {
        let dot = at(place, value);
        for end in [interval.low, interval.high].into_iter().filter(|end| *end != value) {
            whisker(area, dot, at(place, end), !end.is_finite(), tone)?;
        }
        area.draw(&Circle::new(dot, 4, tone.rgb().filled()))?;
    }
    Ok(())
}

/// Returns the indexes of the values to draw, which include the first and the last value.
fn places(count: usize) -> Vec<usize> {
    if count <= STEPS {
        return (0..count).collect();
    }
    (0..STEPS).map(|step| step * (count - 1) / (STEPS - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn long_curves_keep_both_ends() {
        assert_eq!(places(3), [0, 1, 2]);
        let long = places(10_000);
        assert_eq!((long.len(), long[0], long[159]), (160, 0, 9_999));
    }
}
