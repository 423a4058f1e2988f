//! Rows of characters with colors and a known width, so that they can be cut to the terminal's width.

use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use arena_model::printable;

/// The style of a character. The text is understandable without colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// The terminal's default.
    Plain,
    /// Less important text.
    Faint,
    /// More important text.
    Strong,
    Food,
    /// A recent change.
    Fresh,
    /// A problem.
    Alarm,
    /// An item of the agent on this seat.
    Seat(usize),
}

/// The colors of seats: readable on dark and light backgrounds, without the green of food and the red of problems.
const SEATS: [&str; 8] = ["36", "33", "35", "34", "96", "93", "95", "94"];

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "0",
            Ink::Faint => "2",
            Ink::Strong => "1",
            Ink::Food => "32",
            Ink::Fresh => "7",
            Ink::Alarm => "31",
            Ink::Seat(seat) => SEATS[seat % SEATS.len()],
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Row(Vec<(Ink, char)>);

impl Row {
    /// Appends a text, with control characters escaped.
    pub fn text(&mut self, ink: Ink, text: &str) -> &mut Row {
        self.0.extend(printable(text).chars().map(|char| (ink, if char == '\n' { ' ' } else { char })));
        self
    }

    /// Appends a character, which must not be a control character.
    pub fn char(&mut self, ink: Ink, char: char) -> &mut Row {
        self.0.push((ink, char));
        self
    }

    pub fn row(&mut self, other: &Row) -> &mut Row {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Appends spaces up to this width.
    pub fn pad(&mut self, width: usize) -> &mut Row {
        let missing = width.saturating_sub(self.width());
        self.0.extend(std::iter::repeat_n((Ink::Plain, ' '), missing));
        self
    }

    /// Returns the width in columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, char)| char.width().unwrap_or(0)).sum()
    }

    /// Appends the row, cut to `columns`, to `out`, with or without colors. Returns its width.
    pub fn write(&self, columns: usize, has_colors: bool, out: &mut String) -> usize {
        let (mut used, mut last) = (0, Ink::Plain);
        for &(ink, char) in &self.0 {
            let width = char.width().unwrap_or(0);
            if used + width > columns {
                break;
            }
            used += width;
            // A space looks the same in all inks except the inverted one.
            let is_other = ink != last && (char != ' ' || last == Ink::Fresh || ink == Ink::Fresh);
            if has_colors && is_other {
                let reset = if last == Ink::Plain || ink == Ink::Plain { "" } else { "0;" };
                // Writing to a string can't fail.
                let _ = write!(out, "\x1b[{reset}{}m", ink.code());
                last = ink;
            }
            out.push(char);
        }
        if last != Ink::Plain {
            out.push_str("\x1b[0m");
        }
        used
    }

    /// Returns the row as text without colors and trailing spaces.
    pub fn plain(&self) -> String {
        let mut text = String::new();
        self.write(usize::MAX, false, &mut text);
        text.trim_end().to_owned()
    }
}

/// Returns the width of a text in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Formats a number without trailing zeros.
pub fn number(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Draws a frame around rows, which are cut or padded to this width.
pub fn framed(rows: Vec<Row>, width: usize) -> Vec<Row> {
    let edge = |left: char, right: char| {
        let mut row = Row::default();
        row.char(Ink::Faint, left).text(Ink::Faint, &"─".repeat(width)).char(Ink::Faint, right);
        row
    };
    let side = |inner: Row| {
        let mut row = Row::default();
        row.char(Ink::Faint, '│').row(&inner).pad(width + 1).char(Ink::Faint, '│');
        row
    };
    let mut framed = vec![edge('╭', '╮')];
    framed.extend(rows.into_iter().map(side));
    framed.push(edge('╰', '╯'));
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(row: &Row, columns: usize, has_colors: bool) -> String {
        let mut text = String::new();
        row.write(columns, has_colors, &mut text);
        text
    }

    #[test]
    fn rows_are_cut_to_the_columns_that_they_take_not_to_characters() {
        let mut row = Row::default();
        row.text(Ink::Plain, "ab漢字c");
        assert_eq!(row.width(), 7);
        assert_eq!(shown(&row, 5, false), "ab漢");
        assert_eq!(shown(&row, 6, false), "ab漢字");
        assert_eq!(shown(&row, 0, false), "");
    }

    #[test]
    fn colors_end_with_the_row_and_control_characters_are_visible() {
        let mut row = Row::default();
        row.text(Ink::Seat(0), "a\x1b[2J").text(Ink::Plain, " b").text(Ink::Alarm, "c");
        assert_eq!(
            shown(&row, 80, true),
            "\x1b[36ma\\u{1b}[2J\x1b[0m b\x1b[31mc\x1b[0m".replace("\x1b[0m b", " \x1b[0mb")
        );
        assert_eq!(shown(&row, 80, false), "a\\u{1b}[2J bc");
        assert_eq!(shown(&row, 1, true), "\x1b[36ma\x1b[0m");
    }
}
