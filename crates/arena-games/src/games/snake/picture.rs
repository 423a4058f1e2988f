//! The picture of a grid. Heads are discs; a cross marks a dead snake.

use arena_model::{Scene, Seat};
use serde_json::Value;

use crate::board::index;
use crate::svg::{HEIGHT, SvgDrawing, WIDTH, color, letter};

/// The maximum size of a grid, and the maximum number of cells with snakes and food, in a picture.
const MAX_SIZE: u64 = 128;
const MAX_CELLS: usize = 1200;

pub fn draw(scene: &Scene<'_>, states: &[Value]) -> Option<String> {
    let state = states.first()?;
    let side = |key: &str| state["grid"][key].as_u64().filter(|side| (1..=MAX_SIZE).contains(side));
    let (width, height) = (side("width")?, side("height")?);
    let cell = |place: &Value| {
        Some((index(&place[0], width as usize)? as f64 + 0.5, index(&place[1], height as usize)? as f64 + 0.5))
    };
    let cells =
        |places: &Value| -> Vec<(f64, f64)> { places.as_array().into_iter().flatten().filter_map(cell).collect() };
    let scale = ((WIDTH - 20.0) / width as f64).min((HEIGHT - 20.0) / height as f64);
    let (left, top) = ((WIDTH - scale * width as f64) / 2.0, (HEIGHT - scale * height as f64) / 2.0);
    let mut drawing = SvgDrawing::default();
    drawing.add(&format!(
        r#"<g transform="translate({left:.1} {top:.1}) scale({scale:.3})"><rect width="{width}" height="{height}" rx=".3" fill="var(--panel)" stroke="var(--line)" stroke-width=".08"/>"#
    ));
    let foods = cells(&state["foods"]);
    let mut room = MAX_CELLS.checked_sub(foods.len())?;
    for (x, y) in foods {
        drawing.add(&format!(r#"<circle cx="{x}" cy="{y}" r=".3" fill="var(--food)"/>"#));
    }
    let mut told = Vec::new();
    for (seat, id) in scene.players.iter().enumerate() {
        let (seat, snake) = (Seat(seat), &state["snakes"][id]);
        let body = cells(&snake["positions"]);
        room = room.checked_sub(body.len())?;
        let (line, head) = (color(seat), cell(&snake["head_position"]));
        if snake["alive"] == false {
            told.push(format!("{} dead", scene.name(seat)));
            if let Some((x, y)) = head {
                drawing.add(&format!(
                    r#"<path d="M{} {}l.6 .6m0-.6l-.6 .6" stroke="{line}" stroke-width=".16" stroke-linecap="round"/>"#,
                    x - 0.3,
                    y - 0.3
                ));
            }
            continue;
        }
        let points: Vec<String> = body.iter().map(|(x, y)| format!("{x} {y}")).collect();
        drawing.add(&format!(
            r#"<polyline points="{}" fill="none" stroke="{line}" stroke-width=".6" stroke-linecap="round" stroke-linejoin="round"/>"#,
            points.join(" ")
        ));
        if let Some((x, y)) = head {
            drawing.add(&format!(r#"<circle cx="{x}" cy="{y}" r=".46" fill="{line}"/>"#));
            let style = r#"font-size=".6" font-weight="700" fill="var(--panel)""#;
            drawing.text((x, y + 0.2), style, &letter(seat).to_string());
        }
        told.push(format!("{} with length {}", scene.name(seat), body.len()));
    }
    drawing.add("</g>");
    Some(drawing.finish(&format!("Snake on a grid of {width} by {height}: {}", told.join(", "))))
}
