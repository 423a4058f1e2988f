//! Latencies and their summaries. Every latency is stored, so percentiles are exact.

use std::time::Duration;

use serde::Serialize;

/// Latencies of one kind of request, in nanoseconds, in no particular order.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        self.0.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn merge(&mut self, other: &Latencies) {
        self.0.extend_from_slice(&other.0);
    }

    /// Returns count, percentiles and maximum, which are 0 if there are no latencies.
    pub fn summary(&self) -> LatencySummary {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let us = |rank: f64| percentile(&sorted, rank) as f64 / 1e3;
        LatencySummary {
            count: sorted.len() as u64,
            p50_us: us(0.50),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: us(1.0),
        }
    }
}

/// The summary of latencies in a report, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LatencySummary {
    pub count: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

/// Returns the percentile `rank` (0 to 1) of the sorted values: the smallest value that is greater than or equal to
/// this share of the values. Returns 0 if there are no values.
fn percentile(sorted: &[u64], rank: f64) -> u64 {
    let at = (sorted.len() as f64 * rank).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0)
}

/// Returns the median. For an even count, this is the mean of the two middle values. Returns 0 if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|rank| percentile(&hundred, rank)), [50, 99, 100]);
        assert_eq!([0.5, 0.99, 1.0].map(|rank| percentile(&[7], rank)), [7, 7, 7]);
        assert_eq!(percentile(&[], 0.5), 0);
    }

    #[test]
    fn median_of_an_even_count_lies_between() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }
}
