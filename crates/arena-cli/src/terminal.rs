//! Drawing on a terminal, in place, without taking it over: no alternate screen, no raw mode. Each picture is one write, which
//! restores all that it changes, so there is nothing to be restored when the program ends, however it ends; the last picture stays.

use std::fmt::Write as _;
use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

use arena_games::board::Room;
use arena_games::board::row::Row;

/// What a terminal has that doesn't tell.
const USUAL: Room = Room { columns: 80, rows: 24 };

/// A picture on stdout that is drawn again and again.
pub struct Screen {
    has_colours: bool,
    /// How many columns each row of the picture takes that is on the terminal now.
    drawn: Vec<usize>,
}

impl Screen {
    /// The terminal at stdout, on which nothing has been drawn.
    pub fn new() -> Screen {
        Screen { has_colours: has_colours(), drawn: Vec::new() }
    }

    /// Draws rows in place of those of the last time. What doesn't fit is cut.
    pub fn draw(&mut self, rows: &[Row]) -> io::Result<()> {
        let picture = self.picture(rows, room());
        let mut stdout = io::stdout().lock();
        stdout.write_all(picture.as_bytes())?;
        stdout.flush()
    }

    /// What is to be written. The cursor stands at the beginning of the line below the picture, before and after.
    fn picture(&mut self, rows: &[Row], room: Room) -> String {
        // Terminals that have become narrower break the lines that are there.
        let columns = room.columns.max(1);
        let above: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        // No cursor that runs about, and no wrapping where we and the terminal differ on a character's width.
        let mut picture = "\x1b[?25l\x1b[?7l\r".to_owned();
        if above > 0 {
            // Writing to a text can't fail.
            let _ = write!(picture, "\x1b[{}A", above.min(room.rows.saturating_sub(1)));
        }
        self.drawn.clear();
        for row in rows.iter().take(room.rows.saturating_sub(1)) {
            let width = row.write(columns, self.has_colours, &mut picture);
            // In a full row the cursor is still on its last character, which would be erased too.
            picture.push_str(if width < columns { "\x1b[K\r\n" } else { "\r\n" });
            self.drawn.push(width);
        }
        picture + "\x1b[J\x1b[?7h\x1b[?25h"
    }
}

/// Whether the terminal understands more than text.
pub fn can_draw() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

/// Whether colours are wanted. Source: no-color.org.
pub fn has_colours() -> bool {
    can_draw() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The size of the terminal at stdout.
pub fn room() -> Room {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Room { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        _ => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use arena_games::board::row::Ink;

    /// What is written for these pictures, one after the other, in rooms of these columns and rows.
    #[track_caller]
    fn check(pictures: &[(&[&str], usize, usize)], expected: Expect) {
        let mut screen = Screen { has_colours: false, drawn: Vec::new() };
        let mut told = String::new();
        for (rows, columns, height) in pictures {
            let rows: Vec<Row> = rows
                .iter()
                .map(|text| {
                    let mut row = Row::default();
                    row.text(Ink::Plain, text);
                    row
                })
                .collect();
            let picture = screen.picture(&rows, Room { columns: *columns, rows: *height });
            told += &picture.replace('\x1b', "ESC").replace('\r', "\\r").replace('\n', "\\n\n");
            told += "\n";
        }
        expected.assert_eq(&told);
    }

    #[test]
    fn a_picture_takes_the_place_of_the_one_before() {
        check(
            &[(&["one", "two"], 80, 24), (&["three"], 80, 24), (&["four", "five"], 80, 24)],
            expect![[r#"
                ESC[?25lESC[?7l\roneESC[K\r\n
                twoESC[K\r\n
                ESC[JESC[?7hESC[?25h
                ESC[?25lESC[?7l\rESC[2AthreeESC[K\r\n
                ESC[JESC[?7hESC[?25h
                ESC[?25lESC[?7l\rESC[1AfourESC[K\r\n
                fiveESC[K\r\n
                ESC[JESC[?7hESC[?25h
            "#]],
        );
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        check(
            &[(&["one and a half", "two", "three"], 7, 3), (&["one"], 4, 3)],
            expect![[r#"
                ESC[?25lESC[?7l\rone and\r\n
                twoESC[K\r\n
                ESC[JESC[?7hESC[?25h
                ESC[?25lESC[?7l\rESC[2AoneESC[K\r\n
                ESC[JESC[?7hESC[?25h
            "#]],
        );
    }
}
