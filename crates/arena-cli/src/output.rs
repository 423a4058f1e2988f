//! Output to stdout and stderr. All output uses these functions instead of `println!`, which panics if the reader has
//! closed the pipe (`arena … | head`).

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use arena_players::http::HttpAnswer;
use arena_report::steers;
use serde::Serialize;
use serde_json::Value;

use crate::exit::{Exit, Failure};

pub use arena_report::{printable, utc};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For a person: tables and sentences, or indented JSON.
    Pretty,
    /// For a program that reads stdout through a pipe: JSON on one line.
    Compact,
    /// JSON on one line, requested with `--json`. Commands that otherwise print tables or progress print JSON lines.
    Json,
}

impl Style {
    /// Returns the style for the current stdout; `json` is true with `--json`.
    pub fn choose(json: bool) -> Style {
        match json {
            true => Style::Json,
            false if is_terminal() => Style::Pretty,
            false => Style::Compact,
        }
    }
}

/// Prints a JSON text in the given style. The order of fields and the notation of numbers don't change.
pub fn print_json(json: &str, style: Style) -> Result<(), Failure> {
    match style {
        Style::Pretty => print(&pretty(json)),
        Style::Compact | Style::Json => print(json.trim_end()),
    }
}

/// Prints a value as JSON on one line.
pub fn print_line(value: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string(value).map_err(|error| Failure::caused(Exit::Internal, &error))?)
}

/// Prints a server's answer. On a terminal, prints the text that `describe` returns; elsewhere, or if `describe` returns
/// `None`, prints JSON.
pub fn print_answer(
    answer: &HttpAnswer,
    style: Style,
    describe: impl FnOnce(&Value) -> Option<String>,
) -> Result<(), Failure> {
    let printed = match style {
        Style::Pretty => answer.read().ok().and_then(|answer| describe(&answer)),
        Style::Compact | Style::Json => None,
    };
    match printed {
        Some(text) => print(text.trim_end()),
        None => print_json(answer.text(), style),
    }
}

/// Makes a text safe for a terminal by escaping control characters. The escapes are those of JSON, so JSON text keeps
/// its meaning. Line breaks, tabs and this program's color sequences stay.
pub fn guarded(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let end = if char == '\x1b' { color(rest).unwrap_or(0) } else { 0 };
        if end > 0 {
            safe.push_str(&rest[..end]);
        } else if steers(char) && char != '\t' {
            // All control characters are below 65,536, so four digits suffice.
            safe.push_str(&format!("\\u{:04x}", u32::from(char)));
        } else {
            safe.push(char);
        }
        rest = &rest[end.max(char.len_utf8())..];
    }
    Cow::Owned(safe)
}

/// Returns the length of the color sequence at the start of a text.
fn color(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let length = numbers.find(|char: char| !char.is_ascii_digit() && char != ';')?;
    numbers[length..].starts_with('m').then_some(length + 3)
}

fn is_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| std::io::stdout().is_terminal())
}

/// Prints `text` and a line end to stdout and flushes. If the reader has closed the pipe, the function succeeds. On a
/// terminal, the text is first [`guarded`].
pub fn print(text: &str) -> Result<(), Failure> {
    print_for_reader(text).map(|_| ())
}

/// Prints like [`print`]. Returns false once the reader has closed the pipe.
pub fn print_for_reader(text: &str) -> Result<bool, Failure> {
    let text = if is_terminal() { guarded(text) } else { Cow::Borrowed(text) };
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::cannot("write to stdout", error)),
    }
}

/// Makes a text that others wrote safe for a part of a line.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

/// A table for people. Control characters are escaped, since cells may contain text by other users.
pub struct Table(comfy_table::Table);

impl Table {
    pub fn new(header: &[&str]) -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
        table.set_header(header);
        Table(table)
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().map(|cell| one_line(&cell)));
    }

    /// Aligns these columns to the right, for numbers.
    pub fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        for column in columns {
            if let Some(column) = self.0.column_mut(column) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        self
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Formats a number with its noun, such as `1 game` or `2 games`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1_u8) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a number with one of two words, such as `1 leaf` or `2 leaves`.
pub fn counted_as<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let word = if count == N::from(1_u8) { one } else { many };
    format!("{count} {word}")
}

/// Prints a note to stderr.
pub fn note(text: &str) {
    // A failure to print a note is ignored.
    let _ = writeln!(std::io::stderr(), "note: {}", printable(text));
}

/// Indents a valid JSON text by two spaces per level. The function doesn't parse the JSON, since parsing would sort the
/// fields and round long numbers.
fn pretty(json: &str) -> String {
    let mut indented = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    // True if the last token opened a list or an object. The line break is delayed, since an empty `[]` or `{}`
    // contains none.
    let mut opened = false;
    for char in json.chars() {
        if in_string {
            indented.push(char);
            in_string = escaped || char != '"';
            escaped = char == '\\' && !escaped;
            continue;
        }
        if char.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(char, '}' | ']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        if opened != closes {
            break_line(&mut indented, depth);
        }
        opened = matches!(char, '{' | '[');
        indented.push(char);
        match char {
            '{' | '[' => depth += 1,
            ',' => break_line(&mut indented, depth),
            ':' => indented.push(' '),
            '"' => in_string = true,
            _ => {}
        }
    }
    indented
}

fn break_line(indented: &mut String, depth: usize) {
    indented.push('\n');
    indented.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn a_terminal_gets_our_colors_and_nothing_else_that_steers_it() {
        let check = |text: &str, expected: Expect| expected.assert_eq(&guarded(text));
        check("\x1b[1;32mgreen\x1b[0m\tא\n", expect!["\u{1b}[1;32mgreen\u{1b}[0m\tא\n"]);
        check("a\x1b[2Jb\x1b]0;title\x07\r\u{9b}31m", expect![[r#"a\u001b[2Jb\u001b]0;title\u0007\u000d\u009b31m"#]]);
        check("\x1b", expect![[r#"\u001b"#]]);
        let json = serde_json::json!({"name": "\u{202e}Ada\u{9d}"});
        assert_eq!(serde_json::from_str::<Value>(&guarded(&json.to_string())).unwrap(), json);
    }

    #[track_caller]
    fn check(json: &str, expected: Expect) {
        expected.assert_eq(&pretty(json));
    }

    #[test]
    fn pretty_keeps_order_numbers_and_strings() {
        check(
            r#"{"b":[1.50,{"x":{}},[]],"a":"{\"q\": [1,2]}\\"}"#,
            expect![[r#"
                {
                  "b": [
                    1.50,
                    {
                      "x": {}
                    },
                    []
                  ],
                  "a": "{\"q\": [1,2]}\\"
                }"#]],
        );
        check("[ ]\n", expect!["[]"]);
        check("12345678901234567890123", expect!["12345678901234567890123"]);
    }
}
