//! Numbers in what players write, and sets in what operators write.

use std::collections::BTreeSet;

/// The runs of digits in a text, in order. `None` if one of them can't be a number of any game: it has a minus sign
/// (one that doesn't join it to a word or number before, as in `3-5`), or it is beyond 64 bits.
pub(crate) fn numbers_in(text: &str) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut before_that = None;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((start, char)) = chars.next() {
        if char.is_ascii_digit() {
            let mut end = start + 1;
            while let Some((next, _)) = chars.next_if(|(_, char)| char.is_ascii_digit()) {
                end = next + 1;
            }
            let signed = matches!(before, Some('-' | '\u{2212}')) && !before_that.is_some_and(char::is_alphanumeric);
            if signed {
                return None;
            }
            numbers.push(text[start..end].parse().ok()?);
        }
        before_that = before;
        before = Some(char);
    }
    Some(numbers)
}

/// A set as operators write it: `{101, 205, 880}`, sorted.
pub(crate) fn set_text(numbers: &BTreeSet<u64>) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&format!("{:?}", numbers_in(text)));
    }

    #[test]
    fn runs_of_digits_are_numbers() {
        check("1, 2, 3", expect!["Some([1, 2, 3])"]);
        check("{101,205} and 7.", expect!["Some([101, 205, 7])"]);
        check("none", expect!["Some([])"]);
        check("007", expect!["Some([7])"]);
        check("3-5 x-2", expect!["Some([3, 5, 2])"]);
        check("١٢ 4", expect!["Some([4])"]);
    }

    #[test]
    fn a_sign_is_part_of_the_number() {
        check("-5", expect!["None"]);
        check("60 -40", expect!["None"]);
        check("60, −40", expect!["None"]);
        check("(-1)", expect!["None"]);
        check("99999999999999999999999", expect!["None"]);
    }
}
