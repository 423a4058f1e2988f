//! Numbers in players' messages, and sets in operators' messages.

use std::collections::BTreeSet;

/// The reason why digits in a text are no valid number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadNumber {
    /// A minus sign precedes the digits. A minus sign after a word or number, as in `3-5`, doesn't count.
    Negative,
    /// The digits are part of a number that isn't clearly an integer, such as `33.5`.
    NotWhole,
    /// The number doesn't fit in 64 bits.
    TooLarge,
}

/// Returns the runs of digits in a text, in order.
pub(crate) fn numbers_in(text: &str) -> impl Iterator<Item = Result<u64, BadNumber>> {
    runs(text).map(|Run { before, digits, .. }| if is_signed(before) { Err(BadNumber::Negative) } else { read(digits) })
}

/// Returns the runs of digits in a text, in order, as integer amounts. If one of the characters in `joints` stands
/// between two runs, both are [`BadNumber::NotWhole`]. So with the joint `.`, the text `33.5` isn't read as 33 and 5. A
/// dollar sign may precede a number.
pub(crate) fn amounts_in(text: &str, joints: &[char]) -> impl Iterator<Item = Result<u64, BadNumber>> {
    runs(text).map(move |Run { before, digits, after }| {
        let starts_with_digit = |text: &str| text.starts_with(|char: char| char.is_ascii_digit());
        if is_signed(before.strip_suffix('$').unwrap_or(before)) {
            Err(BadNumber::Negative)
        } else if before.ends_with(joints) || after.strip_prefix(joints).is_some_and(starts_with_digit) {
            Err(BadNumber::NotWhole)
        } else {
            read(digits)
        }
    })
}

/// A run of digits with the text before and after it.
struct Run<'t> {
    before: &'t str,
    digits: &'t str,
    after: &'t str,
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end + text[end..].find(|char: char| char.is_ascii_digit())?;
        end = start + text[start..].bytes().take_while(u8::is_ascii_digit).count();
        Some(Run { before: &text[..start], digits: &text[start..end], after: &text[end..] })
    })
}

/// Returns true if the text ends with a minus sign that doesn't follow a word or number.
fn is_signed(before: &str) -> bool {
    let mut backwards = before.chars().rev();
    matches!(backwards.next(), Some('-' | '\u{2212}')) && !backwards.next().is_some_and(char::is_alphanumeric)
}

fn read(digits: &str) -> Result<u64, BadNumber> {
    digits.parse().map_err(|_| BadNumber::TooLarge)
}

/// Formats a set for operators' messages: `{101, 205, 880}`, sorted.
pub(crate) fn set_text(numbers: &BTreeSet<u64>) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&format!("{:?}", numbers_in(text).collect::<Result<Vec<_>, _>>()));
    }

    #[test]
    fn runs_of_digits_are_numbers() {
        check("1, 2, 3", expect!["Ok([1, 2, 3])"]);
        check("{101,205} and 7.", expect!["Ok([101, 205, 7])"]);
        check("101.205", expect!["Ok([101, 205])"]);
        check("none", expect!["Ok([])"]);
        check("007", expect!["Ok([7])"]);
        check("3-5 x-2 35-40", expect!["Ok([3, 5, 2, 35, 40])"]);
        check("١٢ 4", expect!["Ok([4])"]);
    }

    #[test]
    fn a_sign_is_part_of_the_number() {
        check("-5", expect!["Err(Negative)"]);
        check("60 -40", expect!["Err(Negative)"]);
        check("60, −40", expect!["Err(Negative)"]);
        check("60--40", expect!["Err(Negative)"]);
        check("(-1)", expect!["Err(Negative)"]);
        check("99999999999999999999999", expect!["Err(TooLarge)"]);
        check("-99999999999999999999999", expect!["Err(Negative)"]);
    }

    #[test]
    fn amounts_are_whole() {
        let check = |text: &str, joints: &[char], expected: Expect| {
            expected.assert_eq(&format!("{:?}", amounts_in(text, joints).collect::<Vec<_>>()));
        };
        check("60, 40", &['.'], expect!["[Ok(60), Ok(40)]"]);
        check("60,40", &['.'], expect!["[Ok(60), Ok(40)]"]);
        check("60/40.", &['.'], expect!["[Ok(60), Ok(40)]"]);
        check("$60 - $40", &['.'], expect!["[Ok(60), Ok(40)]"]);
        check("- 60\n- 40", &['.'], expect!["[Ok(60), Ok(40)]"]);
        check("60 -$40", &['.'], expect!["[Ok(60), Err(Negative)]"]);
        check("33.5, 66", &['.'], expect!["[Err(NotWhole), Err(NotWhole), Ok(66)]"]);
        check(".5", &['.'], expect!["[Err(NotWhole)]"]);
        check("-33.5", &['.'], expect!["[Err(Negative), Err(NotWhole)]"]);
        check("33,5", &['.', ','], expect!["[Err(NotWhole), Err(NotWhole)]"]);
        check("33, 5", &['.', ','], expect!["[Ok(33), Ok(5)]"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            let numbers = numbers_in(&text).count();
            prop_assert_eq!(amounts_in(&text, &['.', ',']).count(), numbers);
        }
    }
}
