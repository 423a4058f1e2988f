//! Text that is safe to print on a terminal.

use std::borrow::Cow;

/// Returns true if a character controls a terminal or changes the writing direction, which could swap a name with the
/// number after it. A line break isn't one.
pub fn steers(char: char) -> bool {
    let turns = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() && char != '\n' || turns
}

/// Returns the text with control characters escaped, because its author may be untrusted.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len());
    for char in text.chars() {
        if steers(char) {
            visible.extend(char.escape_default());
        } else {
            visible.push(char);
        }
    }
    Cow::Owned(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(printable("a\nb\u{1b}[2J\r\u{9b}"), "a\nb\\u{1b}[2J\\r\\u{9b}");
        assert_eq!(printable("a\u{202e}b\u{2069}"), "a\\u{202e}b\\u{2069}");
        assert_eq!(printable("ä ☃ א"), "ä ☃ א");
    }
}
