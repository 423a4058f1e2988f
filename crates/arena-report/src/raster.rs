//! Pictures as PNG files, drawn from SVG. Only the elements, attributes and path commands of this program's pictures of
//! games are known, and colors are `none` or hexadecimal.

use flate2::{Compress, Compression, Crc, FlushCompress};
use roxmltree::{Document, Node};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

/// Maximum width and height of a picture, in pixels.
const MAX_SIDE: f32 = 4096.0;

/// Draws an SVG picture on white as a PNG file. Returns `None` if the text isn't XML or has no usable size.
#[must_use]
pub fn png(svg: &str) -> Option<Vec<u8>> {
    let document = Document::parse(svg).ok()?;
    let root = document.root_element();
    let [width, height] = ["width", "height"].map(|side| number(root, side).filter(|side| *side <= MAX_SIDE));
    let mut canvas = Pixmap::new(width? as u32, height? as u32)?;
    canvas.fill(Color::WHITE);
    let regular = Face::parse(include_bytes!("../fonts/inter-regular.ttf"), 0).ok()?;
    let bold = Face::parse(include_bytes!("../fonts/inter-bold.ttf"), 0).ok()?;
    Canvas { canvas: &mut canvas, fonts: [regular, bold] }.draw(root, &Pen::default());
    Some(encode(&canvas))
}

/// The inherited attributes of an element.
#[derive(Clone, Default)]
struct Pen<'t> {
    at: Transform,
    /// Black if `None`.
    fill: Option<&'t str>,
    opacity: Option<f32>,
    stroke: Option<&'t str>,
    line: Stroke,
    text_size: f32,
    is_bold: bool,
    /// Part of a text's width that is left of its place.
    anchor: f32,
}

impl<'t> Pen<'t> {
    fn inside(&self, node: Node<'t, '_>) -> Pen<'t> {
        let mut pen = self.clone();
        pen.fill = node.attribute("fill").or(pen.fill);
        pen.stroke = node.attribute("stroke").or(pen.stroke);
        pen.opacity = number(node, "fill-opacity").or(pen.opacity);
        pen.line.width = number(node, "stroke-width").unwrap_or(pen.line.width);
        pen.text_size = number(node, "font-size").unwrap_or(pen.text_size);
        pen.is_bold = number(node, "font-weight").map_or(pen.is_bold, |weight| weight >= 600.0);
        if node.attribute("stroke-linecap") == Some("round") {
            pen.line.line_cap = LineCap::Round;
        }
        if node.attribute("stroke-linejoin") == Some("round") {
            pen.line.line_join = LineJoin::Round;
        }
        if let Some(dashes) = node.attribute("stroke-dasharray") {
            pen.line.dash = StrokeDash::new(Numbers(dashes).collect(), 0.0);
        }
        pen.anchor = match node.attribute("text-anchor") {
            Some("middle") => 0.5,
            Some("end") => 1.0,
            Some(_) => 0.0,
            None => pen.anchor,
        };
        for part in node.attribute("transform").into_iter().flat_map(|text| text.split(')')) {
            let Some((kind, values)) = part.split_once('(') else { continue };
            let values: Vec<f32> = Numbers(values).collect();
            pen.at = match (kind.trim(), &values[..]) {
                ("translate", [x, y]) => pen.at.pre_translate(*x, *y),
                ("scale", [factor]) => pen.at.pre_scale(*factor, *factor),
                _ => pen.at,
            };
        }
        if node.tag_name().name() == "svg" {
            pen.enter(node);
        }
        pen
    }

    /// Fits the view box of an `svg` element into its place, in the middle.
    fn enter(&mut self, node: Node<'_, '_>) {
        let [x, y] = ["x", "y"].map(|name| number(node, name).unwrap_or(0.0));
        self.at = self.at.pre_translate(x, y);
        let view: Vec<f32> = node.attribute("viewBox").map_or_else(Vec::new, |text| Numbers(text).collect());
        let [left, top, width, height] = view[..] else { return };
        let parent = node.parent_element();
        // An element without a size fills its parent.
        let side = |name| number(node, name).or_else(|| parent.and_then(|parent| number(parent, name)));
        let [own_width, own_height] = [side("width").unwrap_or(width), side("height").unwrap_or(height)];
        let scale = (own_width / width).min(own_height / height);
        self.at = self
            .at
            .pre_translate((own_width - scale * width) / 2.0, (own_height - scale * height) / 2.0)
            .pre_scale(scale, scale)
            .pre_translate(-left, -top);
    }
}

struct Canvas<'c> {
    canvas: &'c mut Pixmap,
    /// The regular font and the bold one.
    fonts: [Face<'static>; 2],
}

impl Canvas<'_> {
    fn draw<'t>(&mut self, node: Node<'t, '_>, pen: &Pen<'t>) {
        let pen = pen.inside(node);
        let size = |name: &str| number(node, name).unwrap_or(0.0);
        let path = match node.tag_name().name() {
            "path" => node.attribute("d").and_then(path),
            "polyline" => node.attribute("points").and_then(|points| path(&format!("M{points}"))),
            "circle" => ellipse(size("cx"), size("cy"), size("r"), size("r")),
            "ellipse" => ellipse(size("cx"), size("cy"), size("rx"), size("ry")),
            "rect" => rect(size("x"), size("y"), (size("width"), size("height")), size("rx")),
            "text" => self.text(node.text().unwrap_or_default(), (size("x"), size("y")), &pen),
            _ => None,
        };
        if let Some(path) = path {
            self.paint(&path, &pen);
        }
        for child in node.children().filter(Node::is_element) {
            self.draw(child, &pen);
        }
    }

    fn paint(&mut self, path: &Path, pen: &Pen<'_>) {
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        if let Some(mut color) = color(pen.fill.unwrap_or("#000")) {
            color.set_alpha(pen.opacity.unwrap_or(1.0).clamp(0.0, 1.0));
            paint.set_color(color);
            self.canvas.fill_path(path, &paint, FillRule::Winding, pen.at, None);
        }
        if let Some(color) = pen.stroke.and_then(color) {
            paint.set_color(color);
            self.canvas.stroke_path(path, &paint, &pen.line, pen.at, None);
        }
    }

    /// Returns the outlines of a text. Letters that the fonts lack are boxes.
    fn text(&self, text: &str, (x, y): (f32, f32), pen: &Pen<'_>) -> Option<Path> {
        let font = &self.fonts[usize::from(pen.is_bold)];
        let scale = pen.text_size / f32::from(font.units_per_em());
        // Marks of a text's direction and variants of letters have no width.
        let is_shown = |letter: &char| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2066}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}');
        let glyphs = text.chars().filter(is_shown).map(|letter| font.glyph_index(letter).unwrap_or_default());
        let advance = |glyph| scale * f32::from(font.glyph_hor_advance(glyph).unwrap_or_default());
        let width: f32 = glyphs.clone().map(advance).sum();
        let mut outlines = Outlines { builder: PathBuilder::new(), scale, x: x - pen.anchor * width, y };
        for glyph in glyphs {
            font.outline_glyph(glyph, &mut outlines);
            outlines.x += advance(glyph);
        }
        outlines.builder.finish()
    }
}

/// Outlines of letters at a place.
struct Outlines {
    builder: PathBuilder,
    scale: f32,
    x: f32,
    y: f32,
}

impl Outlines {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, self.y - self.scale * y)
    }
}

impl OutlineBuilder for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let [(x1, y1), (x2, y2), (x, y)] = [(x1, y1), (x2, y2), (x, y)].map(|(x, y)| self.place(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

/// The numbers at the beginning of a text, with spaces or commas between them where needed.
struct Numbers<'t>(&'t str);

impl Iterator for Numbers<'_> {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        let text = self.0.trim_start_matches([' ', ',']);
        let mut has_point = false;
        let is_end = |(at, letter): &(usize, char)| match letter {
            '-' => *at > 0,
            '.' => std::mem::replace(&mut has_point, true),
            _ => !letter.is_ascii_digit(),
        };
        let end = text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at);
        let (number, rest) = text.split_at(end);
        self.0 = rest;
        number.parse().ok()
    }
}

fn number(node: Node<'_, '_>, name: &str) -> Option<f32> {
    node.attribute(name)?.parse().ok()
}

fn color(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#')?;
    let value = u32::from_str_radix(digits, 16).ok()?;
    let [red, green, blue] = match digits.len() {
        3 => [8, 4, 0].map(|shift| (value >> shift & 15) as u8 * 17),
        6 => [16, 8, 0].map(|shift| (value >> shift) as u8),
        _ => return None,
    };
    Some(Color::from_rgba8(red, green, blue, 255))
}

fn ellipse(x: f32, y: f32, rx: f32, ry: f32) -> Option<Path> {
    PathBuilder::from_oval(tiny_skia::Rect::from_ltrb(x - rx, y - ry, x + rx, y + ry)?)
}

fn rect(x: f32, y: f32, (width, height): (f32, f32), radius: f32) -> Option<Path> {
    let r = radius.min(width / 2.0).min(height / 2.0);
    let (h, v) = (width - 2.0 * r, height - 2.0 * r);
    if r <= 0.0 {
        return Some(PathBuilder::from_rect(tiny_skia::Rect::from_xywh(x, y, width, height)?));
    }
    path(&format!(
        "M{} {y}h{h}a{r} {r} 0 0 1 {r} {r}v{v}a{r} {r} 0 0 1 -{r} {r}h-{h}a{r} {r} 0 0 1 -{r} -{r}v-{v}a{r} {r} 0 0 1 {r} -{r}z",
        x + r
    ))
}

/// Reads the commands M, L, H, V, C, A and Z of a path, absolute and relative. Arcs aren't rotated.
fn path(text: &str) -> Option<Path> {
    let mut builder = PathBuilder::new();
    // The current place and the beginning of the current line.
    let ((mut x, mut y), mut start) = ((0.0, 0.0), (0.0, 0.0));
    // Each part ends with the command of the next part's numbers.
    let text = format!("{text} ");
    let parts: Vec<&str> = text.split_inclusive(|letter: char| letter.is_ascii_alphabetic()).collect();
    for part in parts.windows(2) {
        let mut command = part[0].chars().last()?;
        let numbers: Vec<f32> = Numbers(part[1]).collect();
        let count = match command.to_ascii_lowercase() {
            'z' => {
                builder.close();
                (x, y) = start;
                continue;
            }
            'm' | 'l' => 2,
            'h' | 'v' => 1,
            'c' => 6,
            'a' => 7,
            _ => return None,
        };
        for values in numbers.chunks_exact(count) {
            let (left, top) = if command.is_ascii_lowercase() { (x, y) } else { (0.0, 0.0) };
            let from = (x, y);
            (x, y) = match (command.to_ascii_lowercase(), values) {
                ('h', _) => (left + values[0], y),
                ('v', _) => (x, top + values[0]),
                (_, [.., to_x, to_y]) => (left + to_x, top + to_y),
                _ => return None,
            };
            match command {
                'M' | 'm' => {
                    builder.move_to(x, y);
                    start = (x, y);
                    // Further places of the command are ends of lines.
                    command = if command == 'M' { 'L' } else { 'l' };
                }
                'C' | 'c' => {
                    builder.cubic_to(left + values[0], top + values[1], left + values[2], top + values[3], x, y)
                }
                'A' | 'a' => {
                    arc(&mut builder, from, (values[0], values[1]), (values[3] != 0.0, values[4] != 0.0), (x, y))
                }
                _ => builder.line_to(x, y),
            }
        }
    }
    builder.finish()
}

/// Adds an arc of an ellipse with two radii as short curves. The flags are SVG's: the longer arc, and clockwise.
fn arc(builder: &mut PathBuilder, from: (f32, f32), (rx, ry): (f32, f32), flags: (bool, bool), to: (f32, f32)) {
    // In units of the radii, the ellipse is a circle with radius 1.
    let [(x1, y1), (x2, y2)] = [from, to].map(|(x, y)| (x / rx, y / ry));
    let (dx, dy) = (x2 - x1, y2 - y1);
    let half = dx.hypot(dy) / 2.0;
    if half == 0.0 || !half.is_finite() {
        return;
    }
    // Radii that are too short grow.
    let grown = half.max(1.0);
    let away = (grown * grown - half * half).sqrt() / (2.0 * half) * if flags.0 == flags.1 { -1.0 } else { 1.0 };
    let (cx, cy) = ((x1 + x2) / 2.0 - dy * away, (y1 + y2) / 2.0 + dx * away);
    let first = (y1 - cy).atan2(x1 - cx);
    let mut turn = (y2 - cy).atan2(x2 - cx) - first;
    match flags.1 {
        true if turn < 0.0 => turn += std::f32::consts::TAU,
        false if turn > 0.0 => turn -= std::f32::consts::TAU,
        _ => {}
    }
    let steps = (turn.abs() / std::f32::consts::FRAC_PI_2).ceil().max(1.0);
    let step = turn / steps;
    let handle = 4.0 / 3.0 * (step / 4.0).tan() * grown;
    let at = |angle: f32, along: f32| {
        let (sin, cos) = angle.sin_cos();
        (rx * (cx + grown * cos - along * sin), ry * (cy + grown * sin + along * cos))
    };
    for number in 0..steps as u32 {
        let angle = first + step * number as f32;
        let ((x1, y1), (x2, y2), (x, y)) = (at(angle, handle), at(angle + step, -handle), at(angle + step, 0.0));
        builder.cubic_to(x1, y1, x2, y2, x, y);
    }
}

/// Encodes an opaque picture as PNG.
fn encode(canvas: &Pixmap) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in canvas.data().chunks_exact(4 * canvas.width() as usize) {
        // Each row begins with its filter: none.
        bytes.push(0);
        bytes.extend(row.chunks_exact(4).flat_map(|pixel| &pixel[..3]));
    }
    // Bytes that can't be compressed become a little longer.
    let mut rows = Vec::with_capacity(bytes.len() + bytes.len() / 1000 + 64);
    let packed = Compress::new(Compression::default(), true).compress_vec(&bytes, &mut rows, FlushCompress::Finish);
    debug_assert!(matches!(packed, Ok(flate2::Status::StreamEnd)), "{packed:?}");
    let mut header = [canvas.width().to_be_bytes(), canvas.height().to_be_bytes()].concat();
    // Eight bits for each of three colors.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [(b"IHDR", &header), (b"IDAT", &rows), (b"IEND", &Vec::new())] {
        let part = [&kind[..], content].concat();
        let mut check = Crc::new();
        check.update(&part);
        file.extend((content.len() as u32).to_be_bytes());
        file.extend(part);
        file.extend(check.sum().to_be_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_no_spaces() {
        assert_eq!(Numbers("3-3.7.9,-6.1 8z1").collect::<Vec<_>>(), [3.0, -3.7, 0.9, -6.1, 8.0]);
    }

    #[test]
    fn two_arcs_are_a_circle() {
        let bounds = |text: &str| path(text).map(|path| path.compute_tight_bounds().expect("bounds"));
        let circle = bounds("M10 20a10 10 0 0 1 20 0A10 10 0 0 1 10 20z").expect("a path");
        let edges = [circle.left(), circle.top(), circle.right(), circle.bottom()];
        assert!(
            edges.iter().zip([10.0, 10.0, 30.0, 30.0]).all(|(edge, wanted)| (edge - wanted).abs() < 0.01),
            "{edges:?}"
        );
        // Counterclockwise, and the longer way.
        let most = bounds("M10 20a10 10 0 1 0 10-10").expect("a path");
        assert!(most.bottom() > 29.9 && most.right() > 29.9, "{most:?}");
        assert!(path("M0 0q1 1 2 2").is_none());
    }

    #[test]
    fn a_picture_has_its_colors_and_letters() {
        let draw = |svg: &str| {
            let document = Document::parse(svg).expect("XML");
            let mut canvas = Pixmap::new(40, 20).expect("a size");
            let font = || Face::parse(include_bytes!("../fonts/inter-bold.ttf"), 0).expect("a font");
            Canvas { canvas: &mut canvas, fonts: [font(), font()] }.draw(document.root_element(), &Pen::default());
            canvas
        };
        let canvas = draw(
            "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20' viewBox='0 0 20 10'><g fill='#f00'><rect x='1' y='1' width='3' height='3'/></g><svg viewBox='0 0 1 1' x='10' width='10' height='10'><circle cx='.5' cy='.5' r='.5' fill='#00ff00'/></svg></svg>",
        );
        let pixel = |x, y| canvas.pixel(x, y).map(|pixel| (pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()));
        assert_eq!(pixel(4, 4), Some((255, 0, 0, 255)));
        assert_eq!((pixel(10, 4), pixel(21, 1)), (Some((0, 0, 0, 0)), Some((0, 0, 0, 0))));
        assert_eq!(pixel(30, 10), Some((0, 255, 0, 255)));
        let inked = |text: &str| {
            let canvas =
                draw(&format!("<svg><text x='20' y='18' font-size='20' text-anchor='middle'>{text}</text></svg>"));
            canvas.pixels().iter().filter(|pixel| pixel.alpha() > 0).count()
        };
        assert_eq!((inked(""), inked("\u{2068}\u{2069}")), (0, 0));
        assert!(inked("I") > 0 && inked("WW") > inked("II") && inked("\u{5d0}") > 0);
    }

    #[test]
    fn a_file_is_a_png() {
        let file = png("<svg width='3' height='2'/>").expect("a file");
        assert!(file.starts_with(b"\x89PNG\r\n\x1a\n") && file[16..24] == [0, 0, 0, 3, 0, 0, 0, 2]);
        assert_eq!((png("<svg"), png("<svg/>"), png("<svg width='9999' height='9'/>")), (None, None, None));
    }
}
