//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes bytes in lower-case hexadecimal, two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = vec![0; bytes.len() * 2];
    encode_into(bytes, &mut text);
    String::from_utf8(text).expect("digits are ASCII")
}

/// Encodes bytes in a part of `buffer`, without an allocation. Returns `None` if the buffer is too short.
pub fn encode_in<'b>(bytes: &[u8], buffer: &'b mut [u8]) -> Option<&'b str> {
    let text = buffer.get_mut(..bytes.len() * 2)?;
    encode_into(bytes, text);
    std::str::from_utf8(text).ok()
}

fn encode_into(bytes: &[u8], text: &mut [u8]) {
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Decodes exactly `N` bytes from digits of either case.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode_into(text, &mut bytes)?;
    Some(bytes)
}

/// Decodes digits into `bytes`. Returns `None` unless the digits fill `bytes` exactly.
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

/// Decodes 32 bytes from 64 lower-case digits, and returns `None` for any other spelling.
pub(crate) fn decode_canonical(text: &str) -> Option<[u8; 32]> {
    decode(text).filter(|_| !text.bytes().any(|digit| digit.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decoding_needs_the_exact_number_of_digits() {
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
        fn decoding_inverts_encoding(bytes: [u8; 32]) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
            prop_assert_eq!(decode(&encode(&bytes).to_uppercase()), Some(bytes));
            let (text, mut longer, mut shorter) = (encode(&bytes), [0; 70], [0; 63]);
            prop_assert_eq!(encode_in(&bytes, &mut longer), Some(text.as_str()));
            prop_assert_eq!(encode_in(&bytes, &mut shorter), None);
        }
    }
}
