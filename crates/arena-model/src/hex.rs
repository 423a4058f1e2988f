//! Bytes as lower-case hex digits, and back.

use std::fmt::Write as _;

/// The bytes in lower-case hex.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The 32 bytes that 64 lower-case hex digits stand for; `None` if the text is anything else.
pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let canonical = digits.len() == 64 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !canonical {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_two_bytes_have_one_spelling() {
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8 * 8);
        let text = encode(&bytes);
        assert_eq!(decode(&text), Some(bytes));
        for other in [text.to_uppercase(), text[2..].to_owned(), format!("{text}00"), text.replacen('0', "+", 1)] {
            assert_eq!(decode(&other), None, "{other}");
        }
    }
}
