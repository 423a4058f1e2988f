//! Drawing on a terminal: progress bars, and frames in place, without an alternate screen or raw mode. Each frame is
//! one write, which also restores the terminal settings that it changes. So the program needn't restore anything at its
//! end, and the last frame stays visible.

pub mod frame;

use std::fmt::Write as _;
use std::io::{self, Write};

use arena_games::board::TerminalSize;
use arena_games::board::row::Row;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;

/// The assumed size of a terminal that doesn't report its size.
const DEFAULT_SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// A frame on stdout that is redrawn in place.
pub struct Screen {
    has_colors: bool,
    /// The widths of the rows of the frame on the terminal.
    drawn: Vec<usize>,
}

impl Screen {
    /// Creates the screen at stdout, without a frame.
    pub fn new() -> Screen {
        Screen { has_colors: has_colors(), drawn: Vec::new() }
    }

    /// Draws rows in place of the last frame, cropped to the terminal.
    pub fn draw(&mut self, rows: &[Row]) -> io::Result<()> {
        let picture = self.picture(rows, size());
        let mut stdout = io::stdout().lock();
        stdout.write_all(picture.as_bytes())?;
        stdout.flush()
    }

    /// Before and after each frame, the cursor is at the beginning of the line below the frame.
    fn picture(&mut self, rows: &[Row], size: TerminalSize) -> String {
        // A terminal that became narrower has wrapped the existing lines.
        let columns = size.columns.max(1);
        let above: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        // Hides the cursor, and disables wrapping in case the terminal measures characters differently.
        let mut picture = "\x1b[?25l\x1b[?7l\r".to_owned();
        if above > 0 {
            // Writing to a `String` can't fail.
            let _ = write!(picture, "\x1b[{}A", above.min(size.rows.saturating_sub(1)));
        }
        self.drawn.clear();
        for row in rows.iter().take(size.rows.saturating_sub(1)) {
            let width = row.write(columns, self.has_colors, &mut picture);
            // After a full row, the cursor is still on the last character, which `\x1b[K` would erase.
            picture.push_str(if width < columns { "\x1b[K\r\n" } else { "\r\n" });
            self.drawn.push(width);
        }
        picture + "\x1b[J\x1b[?7h\x1b[?25h"
    }
}

/// Returns a progress bar on stderr for this number of steps. `template` is in the format of `indicatif`.
pub fn progress_bar(steps: usize, is_hidden: bool, template: &str) -> ProgressBar {
    let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Returns true if the terminal supports escape sequences.
pub fn can_draw() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

/// Returns true if colors are enabled. Source: no-color.org.
pub fn has_colors() -> bool {
    can_draw() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the size of the terminal at stdout.
pub fn size() -> TerminalSize {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            TerminalSize { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        _ => DEFAULT_SIZE,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use arena_games::board::row::Ink;

    /// Returns the output for a sequence of frames, each on a terminal of the given size.
    #[track_caller]
    fn check(pictures: &[(&[&str], usize, usize)], expected: Expect) {
        let mut screen = Screen { has_colors: false, drawn: Vec::new() };
        let mut output = String::new();
        for (rows, columns, height) in pictures {
            let rows: Vec<Row> = rows
                .iter()
                .map(|text| {
                    let mut row = Row::default();
                    row.text(Ink::Plain, text);
                    row
                })
                .collect();
            let picture = screen.picture(&rows, TerminalSize { columns: *columns, rows: *height });
            output += &picture.replace('\x1b', "ESC").replace('\r', "\\r").replace('\n', "\\n\n");
            output += "\n";
        }
        expected.assert_eq(&output);
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
