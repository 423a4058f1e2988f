//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Two lower-case digits a byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// Exactly `N` bytes, in digits of either case and nothing else.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode_into(text, &mut bytes)?;
    Some(bytes)
}

/// As many bytes as there are places in `bytes`.
pub(crate) fn decode_into(text: &str, bytes: &mut [u8]) -> Option<()> {
    let digits = text.as_bytes();
    if digits.len() != bytes.len() * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

fn digit(char: u8) -> Option<u8> {
    match char {
        b'0'..=b'9' => Some(char - b'0'),
        b'a'..=b'f' => Some(char - b'a' + 10),
        b'A'..=b'F' => Some(char - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_are_exactly_as_many_as_asked_for_and_nothing_else() {
        assert_eq!(decode::<2>("00fF"), Some([0, 255]));
        for text in ["", "0", "00f", "00fff", "00fg", " 0ff", "+0ff", "0x0f", "00f\u{e9}", "é0f"] {
            assert_eq!(decode::<2>(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: [u8; 32]) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
            prop_assert_eq!(decode(&encode(&bytes).to_uppercase()), Some(bytes));
        }
    }
}
