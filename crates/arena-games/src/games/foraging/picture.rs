//! The pictures of the maps: bases are squares, actors discs, and a source's size shows its food.

use arena_model::{Scene, Seat};
use serde_json::Value;

use crate::svg::{HEIGHT, SvgDrawing, WIDTH, color, letter};

/// The maximum number of maps in a picture.
const MAX_WORLDS: usize = 4;

/// The space around a map.
const GAP: f64 = 8.0;

/// Draws the maps of `states` side by side. `usual` is the default of the map's width and height.
pub fn draw(scene: &Scene<'_>, states: &[Value], usual: f64) -> Option<String> {
    let side = |key: &str| match scene.options.get(key) {
        Some(value) => value.as_f64().filter(|side| *side >= 1.0),
        None => Some(usual),
    };
    let size = (side("grid_width")?, side("grid_height")?);
    let worlds: Vec<&Value> = states.iter().filter(|state| state["bases"].is_array()).take(MAX_WORLDS).collect();
    let columns = match worlds.len() {
        0 => return None,
        1 => 1,
        _ => 2,
    };
    let rows = worlds.len().div_ceil(columns);
    let (width, height) = (WIDTH / columns as f64, HEIGHT / rows as f64);
    let scale = ((width - 2.0 * GAP) / size.0).min((height - 2.0 * GAP) / size.1);
    let mut drawing = SvgDrawing::default();
    for (place, world) in worlds.iter().enumerate() {
        let left = width * ((place % columns) as f64 + 0.5) - scale * size.0 / 2.0;
        let top = height * ((place / columns) as f64 + 0.5) - scale * size.1 / 2.0;
        draw_world(&mut drawing, scene, world, ((left, top), size, scale));
    }
    let maps = if worlds.len() == 1 { "A map" } else { "Maps" };
    Some(drawing.finish(&format!("{maps} with bases, actors and sources of food")))
}

/// Draws one map at a place, of a size in units of the game, with a scale.
fn draw_world(
    drawing: &mut SvgDrawing,
    scene: &Scene<'_>,
    world: &Value,
    ((left, top), size, scale): ((f64, f64), (f64, f64), f64),
) {
    let (right, bottom) = (left + scale * size.0, top + scale * size.1);
    drawing.add(&format!(
        r#"<rect x="{left:.1}" y="{top:.1}" width="{:.1}" height="{:.1}" rx="4" fill="var(--panel)" stroke="var(--line)"/>"#,
        right - left,
        bottom - top
    ));
    let things = |key: &str| world[key].as_array().into_iter().flatten();
    // Positions beyond the map are drawn on its edge.
    let place = |thing: &Value| {
        let (x, y) = (thing["position"][0].as_f64()?, thing["position"][1].as_f64()?);
        Some(((left + scale * x).clamp(left, right), (top + scale * y).clamp(top, bottom)))
    };
    let owner = |thing: &Value| scene.seat_of(thing["owner_id"].as_str()?);
    for food in things("foods") {
        let Some((x, y)) = place(food) else { continue };
        let radius = (food["quantity"].as_f64().unwrap_or(0.0).clamp(0.0, 100.0).sqrt() * 0.8).max(2.0);
        drawing.add(&format!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="var(--food)" fill-opacity=".75"/>"#
        ));
    }
    for base in things("bases") {
        let (Some((x, y)), Some(seat)) = (place(base), owner(base)) else { continue };
        let (left, top, paint) = (x - 8.0, y - 8.0, color(seat));
        drawing.add(&format!(r#"<rect x="{left:.1}" y="{top:.1}" width="16" height="16" rx="3" fill="{paint}"/>"#));
        mark(drawing, (x, y), seat, 12);
    }
    for actor in things("actors") {
        let (Some((x, y)), Some(seat)) = (place(actor), owner(actor)) else { continue };
        let paint = color(seat);
        drawing.add(&format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="6" fill="{paint}" stroke="var(--panel)"/>"#));
        mark(drawing, (x, y), seat, 8);
    }
}

/// Writes a seat's letter on its color.
fn mark(drawing: &mut SvgDrawing, (x, y): (f64, f64), seat: Seat, size: u32) {
    let style = format!(r#"font-size="{size}" font-weight="700" fill="var(--panel)""#);
    drawing.text((x, y + 0.36 * f64::from(size)), &style, &letter(seat).to_string());
}
