//! Pictures as SVG: what they have in common. Each picture is a file of the folder beside this one.
//!
//! Plotters draws in the colours of a light page. Dark pages are served by a style sheet that looks for those very colours: so a
//! renderer that knows no style sheets shows the light picture, and nothing has to be rewritten. No fonts are loaded; the widths of texts
//! are estimated, with room to spare.

mod cross;
mod intervals;
mod over_time;
mod progress;
mod scatter;

pub use cross::cross_table_picture;
pub use intervals::ratings_picture;
pub use over_time::{Course, Curve, over_time};
pub use progress::progress_picture;
pub use scatter::{Axes, Estimate, Point, pareto_front, scatter};

use maud::html;
use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, DrawingAreaErrorKind, DrawingBackend, IntoDrawingArea, IntoFont, PathElement, Polygon,
    RGBColor, SVGBackend, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use arena_model::printable;

/// How wide pictures are whose contents don't ask for more, in units of the view box. On the narrowest screens a unit is 0.75 pixels,
/// and texts of 12 units can still be read.
const WIDTH: i32 = 430;

/// Pixels for each unit where there is room.
const SCALE: f64 = 1.3;

/// Heights of texts, in units.
const TEXT: f64 = 13.0;
const SMALL: f64 = 12.0;

/// How wide a column of text is at most, in parts of its height. Measured with wide letters in common fonts.
const COLUMN: f64 = 0.65;

/// A colour, on light pages and on dark ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tone {
    light: u32,
    dark: u32,
}

const fn tone(light: u32, dark: u32) -> Tone {
    Tone { light, dark }
}

/// Texts.
const INK: Tone = tone(0x1D2329, 0xE8ECEF);
/// What is less important.
const SOFT: Tone = tone(0x5A6670, 0x9AA7B0);
/// What is drawn on. Pictures bring it along, so that they can be read on any page.
const CARD: Tone = tone(0xFFFFFF, 0x1C2226);
/// Lines that help the eye.
const LINE: Tone = tone(0xDFE3E6, 0x37424A);
/// Dots, and the first curve.
const ACCENT: Tone = tone(0x1F6A8A, 0x74C0DD);
/// Curves. After Okabe and Ito, which can be told apart whatever colours one sees; darker or lighter, for lines on the card.
const CURVES: [Tone; 6] = [
    ACCENT,
    tone(0xC4570A, 0xF0954C),
    tone(0x0B7F5F, 0x35C79A),
    tone(0x9C4A86, 0xE194C8),
    tone(0x8A6D00, 0xDDBB45),
    tone(0x6D5A4B, 0xC2AD9C),
];
/// What lies behind the Pareto front.
const BEATEN: Tone = tone(0xFCF1E8, 0x2B2A26);
/// What is behind the numbers of a cross table: from all lost over equal to all won. Orange and blue can be told apart whatever
/// colours one sees, and [`INK`] can be read on each.
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

/// All tones that pictures are drawn in.
fn tones() -> impl Iterator<Item = Tone> {
    // The accent is among the curves.
    [INK, SOFT, CARD, LINE, BEATEN].into_iter().chain(CURVES).chain(HEAT)
}

/// The style sheet of all pictures: that they fit where there is little room, and what they are on dark pages.
pub fn picture_style() -> String {
    style_of(Theme::Auto)
}

/// On which pages a picture that stands alone is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// On light ones and dark ones, as the reader's screen is.
    #[default]
    Auto,
    /// On light pages, whatever the screen.
    Light,
    /// On dark pages.
    Dark,
}

impl Theme {
    /// The theme of a name: `auto`, `light` or `dark`.
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

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// What it shows, in a few words.
    pub title: String,
    /// The same as its dots and lines say, for those who don't see them.
    pub description: String,
    /// In units of the view box.
    size: (i32, i32),
    /// The elements.
    body: String,
}

impl Picture {
    /// A picture as a file of its own, also for an `img` of a page or a README. It brings its style along.
    pub fn to_file(&self) -> String {
        self.to_file_for(Theme::Auto)
    }

    /// [`Picture::to_file`] for pages of one theme.
    pub fn to_file_for(&self, theme: Theme) -> String {
        self.markup(Some(&style_of(theme))) + "\n"
    }

    /// A picture as an element of a page that has [`picture_style`].
    pub fn to_element(&self) -> String {
        self.markup(None)
    }

    /// How many pixels wide it should be at least where a page can be scrolled.
    pub fn least_width(&self) -> i32 {
        (f64::from(self.size.0) * 0.75).round() as i32
    }

    fn markup(&self, style: Option<&str>) -> String {
        let (width, height) = self.size;
        let pixels = |units: i32| (f64::from(units) * SCALE).round();
        // A style sheet in an SVG is XML: nothing in ours needs escaping but the quotes, which don't.
        let style = style.map(|style| maud::PreEscaped(format!("<style>{style}</style>")));
        let markup = html! {
            svg.picture xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(pixels(width)) height=(pixels(height)) role="img" font-family="system-ui, sans-serif" {
                title { (xml(&self.title)) }
                desc { (xml(&self.description)) }
                @if let Some(style) = style { (style) }
                (maud::PreEscaped(&self.body))
            }
        };
        markup.into_string()
    }
}

/// What plotters draws on.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Why it might not.
type Trouble<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// A picture of this size, as `draw` draws it.
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
            .expect("a text takes whatever is drawn into it");
    }
    // The outermost element is ours: plotters' has neither title nor style.
    let body = text.split_once(">\n").map_or("", |(_, rest)| rest).trim_end().trim_end_matches("</svg>");
    // A font on each text is one too many, and a line end in a text is a space.
    let body =
        body.replace(" font-family=\"sans-serif\"", "").replace(" opacity=\"1\"", "").replace("\n</text>", "</text>");
    Picture { title: title.to_owned(), description, size, body }
}

/// How a text is written: its height in units, its colour, and which of its sides the position is at.
fn style(height: f64, tone: Tone, side: HPos) -> TextStyle<'static> {
    TextStyle {
        // Plotters divides heights by that for SVG.
        font: ("sans-serif", height * 1.24).into_font(),
        color: tone.rgb().to_backend_color(),
        pos: Pos::new(side, VPos::Center),
    }
}

/// Writes a text.
fn write<'a>(
    area: &Area<'a>,
    text: &str,
    at: (i32, i32),
    (height, tone, side): (f64, Tone, HPos),
) -> Result<(), Trouble<'a>> {
    area.draw(&Text::new(xml(text), at, style(height, tone, side)))
}

/// Draws a line through these points.
fn line<'a>(area: &Area<'a>, points: Vec<(i32, i32)>, tone: Tone, width: u32) -> Result<(), Trouble<'a>> {
    area.draw(&PathElement::new(points, tone.rgb().stroke_width(width)))
}

/// Draws what an interval reaches from a dot, along one axis: a line with a stroke at its end, or with an arrow if it has none.
/// `to` is the end, or where the arrow points to.
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

/// The name in at most so many columns.
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

/// How wide a text is about, in units.
fn width_of(text: &str, height: f64) -> i32 {
    (text.width() as f64 * height * COLUMN).ceil() as i32
}

/// A text that XML can hold, and that doesn't steer what reads it.
fn xml(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// A number on an axis, with a minus as wide as a plus.
fn tick(number: f64) -> String {
    crate::text::number_of(number + 0.0).replace('-', "−")
}

#[cfg(test)]
mod tests;
