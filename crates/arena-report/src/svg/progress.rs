//! The progress picture: each agent's points above half of its games, over the games of the tournament.

use arena_tournament::Record;
use plotters::prelude::ChartBuilder;
use plotters::style::text_anchor::HPos;

use super::{CURVES, INK, LINE, Picture, SMALL, SOFT, TEXT, Tone, WIDTH, cut, line, picture, style, tick, write};

/// The largest number of points in a curve. More points would be indistinguishable.
const STEPS: usize = 160;

/// The largest number of agents in the picture. With more agents, the curves would be too dense.
const MOST: usize = 60;

const HEIGHT: i32 = 300;
const NAMES: i32 = 114;

/// Draws each agent's points above half of its games, (wins − losses) / 2, over the games in the order of their
/// numbers. The six leading agents have colors and names. `None` with fewer than two games, with more than 60 agents,
/// or if all curves stay within half a point of 0.
pub fn progress_picture(record: &Record) -> Option<Picture> {
    let agents = record.plan.agents.len();
    let games = record.schedule.games_played();
    if games < 2 || agents > MOST {
        return None;
    }
    let curves = curves(record, games);
    let mut order: Vec<usize> = (0..agents).collect();
    let last = |agent: usize| curves[agent].last().map_or(0.0, |(_, points)| *points);
    order.sort_by(|a, b| last(*b).total_cmp(&last(*a)).then(a.cmp(b)));
    let description: String = order
        .iter()
        .map(|agent| format!("{}: {} after {games} games. ", record.name(*agent), tick(last(*agent))))
        .collect();
    let all = || curves.iter().flatten().map(|(_, points)| *points);
    if all().all(|points| points.abs() <= 0.5) {
        return None;
    }
    let (low, high) = super::scatter::reach(all(), 1.0);
    let title = "Points above 50 %, by games played";
    Some(picture(title, description.trim_end().to_owned(), (WIDTH, HEIGHT), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(14)
            .margin_left(6)
            .margin_right(NAMES)
            .margin_bottom(22)
            .x_label_area_size(24)
            .y_label_area_size(34)
            .build_cartesian_2d(0.0..games as f64, low..high)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .disable_x_mesh()
            .x_labels(5)
            .y_labels(6)
            .bold_line_style(LINE.rgb())
            .axis_style(LINE.rgb())
            .x_label_style(style(SMALL, SOFT, HPos::Center))
            .y_label_style(style(SMALL, SOFT, HPos::Right))
            // Only whole numbers of games have labels.
            .x_label_formatter(&|games| if games.fract() == 0.0 { tick(*games) } else { String::new() })
            .y_label_formatter(&|points| tick(*points))
            .draw()?;
        let plot = chart.plotting_area();
        let pixels = |agent: usize| curves[agent].iter().map(|at| plot.map_coordinate(at)).collect::<Vec<_>>();
        // The best agents are drawn last, on top.
        for (place, agent) in order.iter().enumerate().rev() {
            let (tone, width) = CURVES.get(place).map_or((SOFT, 1), |tone| (*tone, 2));
            line(area, pixels(*agent), tone, width)?;
        }
        let named: Vec<(usize, Tone)> = order.iter().copied().zip(CURVES).collect();
        let wanted: Vec<i32> = named.iter().map(|(agent, _)| plot.map_coordinate(&(0.0, last(*agent))).1).collect();
        let right = WIDTH - NAMES;
        for ((agent, tone), y) in named.iter().zip(apart(&wanted, 17, 12, HEIGHT - 50)) {
            let end = plot.map_coordinate(&(games as f64, last(*agent)));
            line(area, vec![end, (right + 8, y), (right + 12, y)], *tone, 1)?;
            write(area, &cut(record.name(*agent), 10), (right + 15, y), (TEXT, INK, HPos::Left))?;
        }
        write(area, "games played", ((40 + right) / 2, HEIGHT - 12), (SMALL, SOFT, HPos::Center))
    }))
}

/// Returns each agent's curve as points (games of the tournament so far, the agent's points above half of its own).
fn curves(record: &Record, games: usize) -> Vec<Vec<(f64, f64)>> {
    let agents = record.plan.agents.len();
    // The order in which games end differs from run to run, so the curves use the order of the numbers.
    let mut played: Vec<_> = record.schedule.played().collect();
    played.sort_by_key(|(pairing, _)| pairing.number);
    let mut points = vec![0.0; agents];
    let mut curves = vec![vec![(0.0, 0.0)]; agents];
    for (count, (pairing, ranks)) in (1..).zip(played) {
        let others = (ranks.len() - 1).max(1) as f64;
        for (seat, agent) in pairing.agents.iter().enumerate() {
            let beaten = ranks.iter().filter(|rank| **rank > ranks[seat]).count() as f64;
            let lost = ranks.iter().filter(|rank| **rank < ranks[seat]).count() as f64;
            points[*agent] += (beaten - lost) / (2.0 * others);
        }
        if (count * STEPS) / games > ((count - 1) * STEPS) / games || count == games {
            for (agent, curve) in curves.iter_mut().enumerate() {
                curve.push((count as f64, points[agent]));
            }
        }
    }
    curves
}

/// Returns positions near the wanted positions, from top to bottom, at least `gap` apart. They are within the bounds if
/// there is room.
fn apart(wanted: &[i32], gap: i32, top: i32, bottom: i32) -> Vec<i32> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut least = top;
    for place in wanted {
        places.push((*place).max(least));
        least = places[places.len() - 1] + gap;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn names_that_would_overlap_are_moved_apart() {
        assert_eq!(apart(&[50, 90], 17, 10, 200), [50, 90]);
        assert_eq!(apart(&[50, 50, 50], 17, 10, 200), [50, 67, 84]);
        assert_eq!(apart(&[5, 190, 199], 17, 10, 200), [10, 183, 200]);
    }
}
