//! Shared parts of the SVG pictures. Each picture is a file in `svg/`.
//!
//! Plotters draws in the colors for light pages. For dark pages, a style sheet selects the elements by these colors and
//! replaces the colors. A renderer without style sheets shows the light picture. No fonts are loaded, so the widths of
//! texts are estimated, with some margin.

mod cross;
mod intervals;
mod over_time;
mod progress;
mod scatter;

pub use cross::{cross_table_picture, shares_picture};
pub use intervals::{IntervalLabels, IntervalRow, Rule, intervals_picture, ratings_picture};
pub use over_time::{Curve, TimeAxis, over_time};
pub use progress::progress_picture;
pub use scatter::{Axes, DotLink, Estimate, Point, pareto_front, scatter};

use maud::html;
use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, DrawingAreaErrorKind, DrawingBackend, IntoDrawingArea, IntoFont, PathElement, Polygon,
    RGBColor, SVGBackend, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use arena_model::printable;
use arena_ratings::bradley_terry::Interval;

/// The default width of a picture, in units of the view box. On the narrowest screens a unit is 0.75 pixels, at which
/// text of 12 units is still readable.
const WIDTH: i32 = 430;

/// Pixels per unit on wide screens.
const SCALE: f64 = 1.3;

/// Text heights, in units.
const TEXT: f64 = 13.0;
const SMALL: f64 = 12.0;

/// The largest width of a column of text, in heights of the text. Measured with wide letters of common fonts.
const COLUMN: f64 = 0.65;

/// A color for light pages and its counterpart for dark pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tone {
    light: u32,
    dark: u32,
}

const fn tone(light: u32, dark: u32) -> Tone {
    Tone { light, dark }
}

/// Text.
const INK: Tone = tone(0x1D2329, 0xE8ECEF);
/// Secondary text.
const SOFT: Tone = tone(0x5A6670, 0x9AA7B0);
/// The background. Each picture draws its background, so that the picture is readable on any page.
const CARD: Tone = tone(0xFFFFFF, 0x191D21);
/// Grid lines.
const LINE: Tone = tone(0xDFE3E6, 0x37424A);
/// Dots, and the first curve.
const ACCENT: Tone = tone(0x1F6A8A, 0x74C0DD);
/// Curves. Based on the palette of Okabe and Ito, which is distinct for every kind of color vision; adjusted for
/// contrast with the card.
const CURVES: [Tone; 6] = [
    ACCENT,
    tone(0xC4570A, 0xF0954C),
    tone(0x0B7F5F, 0x35C79A),
    tone(0x9C4A86, 0xE194C8),
    tone(0x8A6D00, 0xDDBB45),
    tone(0x6D5A4B, 0xC2AD9C),
];
/// The fill of the area that the Pareto front dominates.
const BEATEN: Tone = tone(0xFCF1E8, 0x2B2A26);
/// Cell backgrounds of a cross table, from all points lost to all points won. Orange and blue are distinct for every
/// kind of color vision, and [`INK`] is readable on each.
const HEAT: [Tone; 9] = [
    tone(0xE8924A, 0x9C4E12),
    tone(0xEFAE78, 0x7E4419),
    tone(0xF5CBA7, 0x62401F),
    tone(0xFAE5D3, 0x493A28),
    tone(0xF0F1F2, 0x333B41),
    tone(0xD6E6F3, 0x27405A),
    tone(0xADCDE8, 0x234A70),
    tone(0x84B3DC, 0x1F5487),
    tone(0x5C9ACF, 0x1B5F9E),
];

impl Tone {
    fn rgb(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

fn tones() -> impl Iterator<Item = Tone> {
    // The accent is one of the curves.
    [INK, SOFT, CARD, LINE, BEATEN].into_iter().chain(CURVES).chain(HEAT)
}

/// Returns the style sheet of all pictures: scaling to narrow pages, and the colors for dark pages.
pub fn picture_style() -> String {
    style_of(Theme::Auto)
}

/// The theme of the page that embeds a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light or dark, as the reader's system prefers.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub fn of(name: &str) -> Option<Theme> {
        match name {
            "auto" => Some(Theme::Auto),
            "light" => Some(Theme::Light),
            "dark" => Some(Theme::Dark),
            _ => None,
        }
    }
}

fn style_of(theme: Theme) -> String {
    let dark = || -> String {
        let rule = |Tone { light, dark }| {
            format!(
                ".picture [fill=\"#{light:06X}\"]{{fill:#{dark:06X}}}.picture [stroke=\"#{light:06X}\"]{{stroke:#{dark:06X}}}"
            )
        };
        tones().map(rule).collect()
    };
    let fits = ".picture{max-width:100%;height:auto}";
    match theme {
        Theme::Auto => format!("{fits}@media screen and (prefers-color-scheme:dark){{{}}}", dark()),
        Theme::Light => fits.to_owned(),
        Theme::Dark => format!("{fits}{}", dark()),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub title: String,
    /// The text alternative to the picture's dots and lines.
    pub description: String,
    /// Width and height, in units of the view box.
    size: (i32, i32),
    body: String,
    /// True if dots are links, which elements with the role `img` can't have.
    has_links: bool,
}

impl Picture {
    /// Adds a link over a dot. The keyboard skips it, since tables beside the pictures have the same links.
    fn link(&mut self, (x, y): (i32, i32), link: &DotLink) {
        self.has_links = true;
        let markup = html! {
            a href=(link.path) tabindex="-1" aria-label=(xml(&link.tooltip)) {
                title { (xml(&link.tooltip)) }
                circle cx=(x) cy=(y) r="9" fill="transparent" {}
            }
        };
        self.body += &markup.into_string();
    }

    /// Returns the picture as a standalone file with its style sheet. An `img` element can embed the file.
    pub fn to_file(&self) -> String {
        self.to_file_for(Theme::Auto)
    }

    pub fn to_file_for(&self, theme: Theme) -> String {
        self.markup(Some(&style_of(theme))) + "\n"
    }

    /// Returns the picture as an element for a page with the style sheet [`picture_style`].
    pub fn to_element(&self) -> String {
        self.markup(None)
    }

    /// Returns the picture's minimum width in pixels. On narrower screens, the page scrolls the picture.
    pub fn least_width(&self) -> i32 {
        (f64::from(self.size.0) * 0.75).round() as i32
    }

    fn markup(&self, style: Option<&str>) -> String {
        let (width, height) = self.size;
        let pixels = |units: i32| (f64::from(units) * SCALE).round();
        // The style sheet has no character that XML text has to escape.
        let style = style.map(|style| maud::PreEscaped(format!("<style>{style}</style>")));
        let markup = html! {
            svg.picture xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(pixels(width)) height=(pixels(height)) role=(if self.has_links { "group" } else { "img" }) font-family="system-ui, sans-serif" {
                title { (xml(&self.title)) }
                desc { (xml(&self.description)) }
                @if let Some(style) = style { (style) }
                (maud::PreEscaped(&self.body))
            }
        };
        markup.into_string()
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Trouble<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn picture(
    title: &str,
    description: String,
    size: (i32, i32),
    draw: impl for<'a> FnOnce(&Area<'a>) -> Result<(), Trouble<'a>>,
) -> Picture {
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (size.0.unsigned_abs(), size.1.unsigned_abs()));
        let area = backend.into_drawing_area();
        area.fill(&CARD.rgb())
            .and_then(|()| draw(&area))
            .and_then(|()| area.present())
            .expect("drawing into a string can't fail");
    }
    // The root element from plotters is replaced, since it has neither title nor style.
    let body = text.split_once(">\n").map_or("", |(_, rest)| rest).trim_end().trim_end_matches("</svg>");
    // The new root element sets the font. A line end within a text would be drawn as a space.
    let body =
        body.replace(" font-family=\"sans-serif\"", "").replace(" opacity=\"1\"", "").replace("\n</text>", "</text>");
    Picture { title: title.to_owned(), description, size, body, has_links: false }
}

/// Returns a text style from the height in units, the color, and the side of the text that is at the position.
fn style(height: f64, tone: Tone, side: HPos) -> TextStyle<'static> {
    TextStyle {
        // Plotters divides heights by 1.24 for SVG.
        font: ("sans-serif", height * 1.24).into_font(),
        color: tone.rgb().to_backend_color(),
        pos: Pos::new(side, VPos::Center),
    }
}

fn write<'a>(
    area: &Area<'a>,
    text: &str,
    at: (i32, i32),
    (height, tone, side): (f64, Tone, HPos),
) -> Result<(), Trouble<'a>> {
    area.draw(&Text::new(xml(text), at, style(height, tone, side)))
}

fn line<'a>(area: &Area<'a>, points: Vec<(i32, i32)>, tone: Tone, width: u32) -> Result<(), Trouble<'a>> {
    area.draw(&PathElement::new(points, tone.rgb().stroke_width(width)))
}

/// Draws one side of an interval: a line from a dot at `from` to `to`. The line ends in a bar, or in an arrow if the
/// interval is unbounded on this side.
fn whisker<'a>(
    area: &Area<'a>,
    from: (i32, i32),
    to: (i32, i32),
    is_open: bool,
    tone: Tone,
) -> Result<(), Trouble<'a>> {
    line(area, vec![from, to], tone, 2)?;
    let along = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
    let across = (along.1.abs(), along.0.abs());
    let at = |back: i32, side: i32| (to.0 - along.0 * back + across.0 * side, to.1 - along.1 * back + across.1 * side);
    if is_open {
        area.draw(&Polygon::new(vec![at(0, 0), at(7, 5), at(7, -5)], tone.rgb()))
    } else {
        line(area, vec![at(0, 4), at(0, -4)], tone, 2)
    }
}

fn cut(name: &str, columns: usize) -> String {
    let name = printable(name).replace('\n', " ");
    if name.width() <= columns {
        return name;
    }
    let mut width = 1;
    let fits = |char: &char| {
        width += char.width().unwrap_or(0);
        width <= columns
    };
    name.chars().take_while(fits).collect::<String>().trim_end().to_owned() + "…"
}

/// Estimates the width of a text, in units.
fn width_of(text: &str, height: f64) -> i32 {
    (text.width() as f64 * height * COLUMN).ceil() as i32
}

/// Escapes control characters, and replaces the two other characters that XML doesn't allow.
fn xml(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// Formats a number for an axis, with a minus sign instead of a hyphen.
fn tick(number: f64) -> String {
    crate::text::number_of(number + 0.0).replace('-', "−")
}

/// Describes an interval after its value: `, from 1 to 2`. Empty without an interval.
fn ends(Interval { low, high }: Interval, number: impl Fn(f64) -> String) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) if low == high => String::new(),
        (true, true) => format!(", from {} to {}", number(low), number(high)),
        (true, false) => format!(", at least {}", number(low)),
        (false, true) => format!(", at most {}", number(high)),
        (false, false) => ", unbounded".to_owned(),
    }
}

#[cfg(test)]
mod tests;
