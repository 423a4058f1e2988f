//! Texts that are safe to show, and numbers as people write them.

use std::borrow::Cow;

/// The text with control characters other than line breaks made visible, so that what strangers wrote can't steer a
/// terminal. Nor can it turn the direction of writing, in which a name would change places with the number behind it.
pub fn printable(text: &str) -> Cow<'_, str> {
    let turns =
        |char| matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let steers = |char: char| char.is_control() && char != '\n' || turns(char);
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

/// A number with as many digits as it needs, at most three of them behind the point: 3, 2.5, 1.333.
pub fn number_of(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A word as a shell takes it for one: in quotes unless it is plain.
pub fn shell_word(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || "/._-+,:@=".contains(char));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
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

    #[test]
    fn numbers_have_no_needless_digits() {
        assert_eq!([3.0, 2.5, 4.0 / 3.0, -10.0, 0.0].map(number_of), ["3", "2.5", "1.333", "-10", "0"]);
    }
}
