//! Pictures of sessions as SVG, in the colors of the pages. They have no ids and no inline styles, because a page may
//! contain several of them, and browsers ignore inline styles there.

use std::fmt::Write;

use arena_model::Seat;

/// The size of a picture, in its units.
pub(crate) const WIDTH: f64 = 320.0;
pub(crate) const HEIGHT: f64 = 240.0;

/// Number of characters after which a name is cut.
const LONGEST_NAME: usize = 16;

/// A picture of [`WIDTH`] × [`HEIGHT`] units. Texts are centered unless they set `text-anchor`.
#[derive(Debug, Default)]
pub(crate) struct SvgDrawing {
    body: String,
}

impl SvgDrawing {
    /// Adds elements. The markup contains no text from users.
    pub(crate) fn add(&mut self, markup: &str) -> &mut SvgDrawing {
        self.body.push_str(markup);
        self
    }

    /// Adds a text, which is escaped. `style` has further attributes.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), style: &str, text: &str) -> &mut SvgDrawing {
        let _ = write!(self.body, r#"<text x="{x:.1}" y="{y:.1}" {style}>{}</text>"#, escaped(text));
        self
    }

    /// Adds a player's name in the color of its seat.
    pub(crate) fn name(&mut self, place: (f64, f64), seat: Seat, name: &str) -> &mut SvgDrawing {
        let short: String = name.chars().take(LONGEST_NAME).collect();
        let short = if short.len() < name.len() { format!("{short}…") } else { short };
        self.text(place, &format!(r#"fill="{}" font-weight="700""#, color(seat)), &short)
    }

    pub(crate) fn disc(&mut self, (x, y): (f64, f64), radius: f64, seat: Seat) -> &mut SvgDrawing {
        let (line, surface) = (color(seat), surface(seat));
        let disc = format!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{surface}" stroke="{line}" stroke-width="2"/>"#
        );
        self.add(&disc).text((x, y + 5.0), &format!(r#"fill="{line}" font-weight="700""#), &letter(seat).to_string())
    }

    /// Returns the picture. `label` describes it for people who can't see it.
    pub(crate) fn finish(&self, label: &str) -> String {
        format!(
            r#"<svg class="art game" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}" font-size="14" text-anchor="middle">{}</svg>"#,
            escaped(label),
            self.body
        )
    }
}

pub(crate) fn color(seat: Seat) -> String {
    format!("var(--seat-{})", seat.0 % 8)
}

pub(crate) fn surface(seat: Seat) -> String {
    format!("var(--seat-{}-bg)", seat.0 % 8)
}

pub(crate) fn letter(seat: Seat) -> char {
    char::from(b'A' + (seat.0 % 26) as u8)
}

/// Returns places on a circle around the middle of the picture, clockwise from the top.
pub(crate) fn ring(places: usize, radius: f64) -> impl Iterator<Item = (f64, f64)> {
    (0..places).map(move |place| {
        let angle = std::f64::consts::TAU * place as f64 / places as f64;
        (WIDTH / 2.0 + radius * angle.sin(), HEIGHT / 2.0 - radius * angle.cos())
    })
}

/// Escapes a text for an element or an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn texts_are_escaped_and_long_names_are_cut() {
        let mut drawing = SvgDrawing::default();
        drawing.name((1.0, 2.0), Seat(9), "<b>\"&\u{5d0}\u{5d1}").name((3.0, 4.0), Seat(0), "a name of many letters");
        expect![[r#"<svg class="art game" viewBox="0 0 320 240" role="img" aria-label="&lt;&quot;" font-size="14" text-anchor="middle"><text x="1.0" y="2.0" fill="var(--seat-1)" font-weight="700">&lt;b&gt;&quot;&amp;אב</text><text x="3.0" y="4.0" fill="var(--seat-0)" font-weight="700">a name of many l…</text></svg>"#]]
        .assert_eq(&drawing.finish("<\""));
    }

    #[test]
    fn a_ring_begins_at_the_top() {
        let places: Vec<String> = ring(4, 100.0).map(|(x, y)| format!("{x:.0} {y:.0}")).collect();
        assert_eq!(places, ["160 20", "260 120", "160 220", "60 120"]);
    }
}
