//! JSON as models and endpoints write it: characters that aren't valid are replaced by U+FFFD. Pure.

use serde::de::DeserializeOwned;

/// Parses JSON. Halves of a surrogate pair, such as `\ud83d` alone, and bytes that aren't UTF-8 become U+FFFD: models
/// write half of an emoji when their answer is cut off, and endpoints pass it on.
///
/// # Errors
/// If the text isn't JSON otherwise.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| {
        let text = String::from_utf8_lossy(bytes);
        serde_json::from_str(&without_halves(&text)).map_err(|_| error)
    })
}

/// Replaces the escapes of halves of surrogate pairs.
pub(crate) fn without_halves(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match unit(rest) {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            // An escape of one character, such as `\\`.
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// Reads the escape of a UTF-16 unit at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced() {
        for (text, expected) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\udE00 a""#, "\u{fffd} a"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\n\\ud83d""#, "\u{fffd}\n\\ud83d"),
            (r#""\\\ud83d\u00e9é""#, "\\\u{fffd}éé"),
        ] {
            assert_eq!(parse::<String>(text.as_bytes()).unwrap(), expected, "{text}");
        }
        assert_eq!(parse::<String>(b"\"a\xf0\x9f\x98\"").unwrap(), "a\u{fffd}");
        for broken in [r#""\ud83d"#, r#""\u+123""#, r#""\"#, "\\é", ""] {
            let error = parse::<String>(broken.as_bytes()).unwrap_err().to_string();
            assert_eq!(
                error,
                serde_json::from_str::<String>(broken).unwrap_err().to_string(),
                "the first error is shown"
            );
        }
    }
}
