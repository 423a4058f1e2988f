//! Numbers, times and shell words as text.

/// Formats a number with at most three decimals and no trailing zeros: 3, 2.5, 1.333.
pub fn number_of(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a time in milliseconds since the Unix epoch, to the second: `2023-11-14 22:13:20Z`.
pub fn utc(ms: i64) -> String {
    let seconds = ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March here, so that a leap day is the last day of its year. All eras of 400 years have the same
    // length.
    let day = days + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// Quotes a word for a POSIX shell, unless it needs no quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || "/._-+,:@=".contains(char));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!([3.0, 2.5, 4.0 / 3.0, -10.0, 0.0].map(number_of), ["3", "2.5", "1.333", "-10", "0"]);
    }

    #[test]
    fn times_match_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (1_700_000_000_999, "2023-11-14 22:13:20Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (4_107_542_399_000, "2100-02-28 23:59:59Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00Z"),
            (-1, "1969-12-31 23:59:59Z"),
        ] {
            assert_eq!(utc(ms), expected);
        }
    }
}
