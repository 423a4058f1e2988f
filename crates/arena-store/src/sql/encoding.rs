//! An encoding for texts, since Postgres doesn't store the zero character. Decoding returns the original text.

use std::borrow::Cow;

/// The escape character in encoded texts. It is a code point that ordinary texts don't contain.
const MARK: char = '\u{10FFFF}';

pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '\0' => encoded.extend([MARK, '0']),
            MARK => encoded.extend([MARK, '1']),
            char => encoded.push(char),
        }
    }
    Cow::Owned(encoded)
}

/// Returns a text that isn't a valid encoding, such as one edited by hand, unchanged.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{10FFFF}0", "\0").replace("\u{10FFFF}1", "\u{10FFFF}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(text in "[a0-2\\x00\u{10FFFF}]{0,12}") {
            let encoded = encode(&text);
            prop_assert!(!encoded.contains('\0'));
            prop_assert_eq!(decode(&encoded), text.as_str());
        }
    }
}
