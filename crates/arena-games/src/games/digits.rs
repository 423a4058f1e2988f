//! Fast formatting of numbers and strings into bytes. A state contains many small numbers, and the standard
//! formatting of a small number costs more than writing its digits.

pub(crate) fn write_number(out: &mut Vec<u8>, number: i64) {
    let mut rest = number.unsigned_abs();
    if number < 0 {
        out.push(b'-');
    }
    if rest < 10 {
        return out.push(digit(rest));
    }
    // 2⁶⁴ has twenty digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    while rest > 0 {
        start -= 1;
        digits[start] = digit(rest % 10);
        rest /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("text is JSON, and memory takes all");
}

fn digit(number: u64) -> u8 {
    b'0' + number as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everywhere_else() {
        for number in [0, 1, 9, 10, 11, 99, 100, 101, 12345, -1, -10, -99, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
