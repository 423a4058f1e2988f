//! Amounts as short texts: counts, tokens, dollars and durations.

pub use arena_eval::report::thousands;

/// Formats a number of tokens. Ten million and more are rounded.
pub fn tokens(count: u64) -> String {
    match count {
        0..10_000_000 => thousands(count),
        10_000_000..10_000_000_000 => format!("{:.1} million", count as f64 / 1e6),
        _ => format!("{:.1} billion", count as f64 / 1e9),
    }
}

/// Formats an amount in US dollars, without the unit. Amounts below ten cents have four decimals.
pub fn dollars(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 0.1 { format!("{usd:.4}") } else { format!("{usd:.2}") }
}

/// Formats a duration in seconds.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown".to_owned();
    }
    // The rounding comes first, so that 59.7 seconds are a minute.
    let seconds = seconds.max(0.0).round() as u64;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {:02} s", seconds % 60),
        3600..172_800 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{:.1} days", seconds as f64 / 86_400.0),
    }
}

pub fn of_cap(amount: String, cap: Option<String>) -> String {
    match cap {
        Some(cap) => format!("{amount} of {cap}"),
        None => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_rounded() {
        assert_eq!([0, 7, 999, 1000, 1_234_567].map(thousands), ["0", "7", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 9_999_999, 12_340_000, 98_765_432_100].map(tokens),
            ["0", "9,999,999", "12.3 million", "98.8 billion"]
        );
        assert_eq!([0.0, 0.00123, 0.5, 1234.567].map(dollars), ["0.00", "0.0012", "0.50", "1234.57"]);
        assert_eq!(
            [0.2, 59.7, 125.0, 7260.0, 200_000.0, f64::INFINITY].map(duration),
            ["0 s", "1 min 00 s", "2 min 05 s", "2 h 01 min", "2.3 days", "unknown"]
        );
        assert_eq!(of_cap(dollars(1.5), Some(dollars(50.0))), "1.50 of 50.00");
        assert_eq!(of_cap(dollars(1.5), None), "1.50");
    }
}
