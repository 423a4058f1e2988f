//! Pictures as PNG files, drawn from SVG with one font family, which this package brings.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Maximum width and height of a picture, in pixels.
const MAX_SIDE: f32 = 4096.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(include_bytes!("../fonts/inter-regular.ttf").to_vec());
    fonts.load_font_data(include_bytes!("../fonts/inter-bold.ttf").to_vec());
    Arc::new(fonts)
});

/// Draws an SVG picture on white as a PNG file. Returns `None` if the text isn't an SVG picture, or if the picture is
/// too large.
#[must_use]
pub fn png(svg: &str) -> Option<Vec<u8>> {
    let options = Options { font_family: "Inter".to_owned(), fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).ok()?;
    let size = tree.size();
    if size.width() > MAX_SIDE || size.height() > MAX_SIDE {
        return None;
    }
    let mut canvas = Pixmap::new(size.width() as u32, size.height() as u32)?;
    canvas.fill(Color::WHITE);
    resvg::render(&tree, Transform::identity(), &mut canvas.as_mut());
    canvas.encode_png().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pixels of a picture of 40 x 20 pixels with this content.
    fn pixels(content: &str) -> Pixmap {
        let file = png(&format!("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'>{content}</svg>"));
        Pixmap::decode_png(&file.expect("a picture")).expect("PNG")
    }

    #[test]
    fn a_picture_has_its_colors_and_letters() {
        let canvas = pixels("<rect x='2' y='2' width='6' height='6' fill='#f00'/>");
        let at = |x, y| canvas.pixel(x, y).map(|pixel| (pixel.red(), pixel.green(), pixel.blue()));
        assert_eq!((at(4, 4), at(20, 10)), (Some((255, 0, 0)), Some((255, 255, 255))));
        let inked = |text: &str| {
            let canvas = pixels(&format!("<text x='20' y='18' font-size='20' text-anchor='middle'>{text}</text>"));
            canvas.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        };
        assert_eq!(inked(""), 0);
        assert!(inked("I") > 0 && inked("WW") > inked("II"));
    }

    #[test]
    fn other_texts_are_no_pictures() {
        for text in ["<svg", "<p/>", "<svg xmlns='http://www.w3.org/2000/svg' width='9999' height='9'/>"] {
            assert!(png(text).is_none(), "{text}");
        }
    }
}
