//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Two lower-case digits a byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// Exactly `N` bytes, in digits of either case and nothing else.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode_into(text, &mut bytes)?;
    Some(bytes)
}

/// As many bytes as there are places in `bytes`.
pub fn decode_into(text: &str, bytes: &mut [u8]) -> Option<()> {
    let digits = text.as_bytes();
    if digits.len() != bytes.len() * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(())
}

/// The 32 bytes that 64 lower-case digits stand for: `None` of every other spelling.
pub(crate) fn decode_canonical(text: &str) -> Option<[u8; 32]> {
    decode(text).filter(|_| !text.bytes().any(|digit| digit.is_ascii_uppercase()))
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

    #[test]
    fn thirty_two_bytes_have_one_spelling() {
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8 * 8);
        let text = encode(&bytes);
        assert_eq!(decode_canonical(&text), Some(bytes));
        for other in [text.to_uppercase(), text[2..].to_owned(), format!("{text}00"), text.replacen('0', "+", 1)] {
            assert_eq!(decode_canonical(&other), None, "{other}");
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
