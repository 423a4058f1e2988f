//! A mean with its interval by Student's t-distribution, for repeated measurements.

use serde::Serialize;

use crate::distributions::{LEVEL, student_quantile_at};

/// A mean with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Mean {
    /// Computes the mean of independent measurements; `None` for fewer than two. The interval is widened so that
    /// `questions` such intervals together have 95 % confidence (Bonferroni correction). For a single interval,
    /// `questions` is 1.
    pub fn of(values: &[f64], questions: usize) -> Option<Mean> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let outside = (1.0 - LEVEL) / questions.max(1) as f64;
        let reach = student_quantile_at(count - 1.0, outside) * (variance / count).sqrt();
        Some(Mean { mean, low: mean - reach, high: mean + reach })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // From R: t.test(c(1, 2, 4, 5)), and the same with conf.level = 1 - 0.05 / 4.
    #[test]
    fn intervals_are_those_of_students_test() {
        let values = [1.0, 2.0, 4.0, 5.0];
        let Mean { mean, low, high } = Mean::of(&values, 1).unwrap();
        assert!((mean - 3.0).abs() < 1e-12);
        assert!((high - 5.905_2).abs() < 1e-3 && (low - 0.094_8).abs() < 1e-3, "{low} {high}");
        let wide = Mean::of(&values, 4).unwrap();
        assert!(wide.high > high && wide.low < low);
        assert_eq!(Mean::of(&[1.0], 1), None);
        let same = Mean::of(&[2.0; 5], 1).unwrap();
        assert_eq!((same.low, same.high), (2.0, 2.0));
    }
}
