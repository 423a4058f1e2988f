//! Prices of tokens. Pure.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// The prices of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The price of input tokens.
    pub input: f64,
    /// The price of cached input tokens; without one, they cost as much as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// The price of output tokens, with reasoning tokens.
    pub output: f64,
}

impl Prices {
    /// Returns the cost in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let input = (usage.input - cached) as f64 * self.input + cached as f64 * self.cached.unwrap_or(self.input);
        (input + usage.output as f64 * self.output) / 1e6
    }

    /// Returns the highest possible cost in US dollars of a request with these numbers of tokens. Nothing is cached.
    pub fn most(&self, input_tokens: u64, output_tokens: u64) -> f64 {
        let input = self.input.max(self.cached.unwrap_or(0.0));
        (input_tokens as f64 * input + output_tokens as f64 * self.output) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let usage = Usage { input: 1_000_000, cached: 400_000, output: 100_000, reasoning: 50_000, ..Usage::default() };
        // The other 600,000 tokens cost 1.2, the output costs 1.5.
        for (cached, expected) in [(None, 3.5), (Some(0.5), 2.9), (Some(0.0), 2.7)] {
            let prices = Prices { input: 2.0, cached, output: 15.0 };
            let (cost, most) = (prices.cost(&usage), prices.most(usage.input, usage.output));
            assert!((most - 3.5).abs() < 1e-9, "{most}");
            assert!((cost - expected).abs() < 1e-9, "{cached:?}: {cost}");
            assert!(cost <= most);
        }
        // Some servers count more cached tokens than input tokens.
        let odd = Usage { input: 10, cached: 20, ..Usage::default() };
        assert_eq!(Prices { input: 1.0, cached: Some(1.0), output: 1.0 }.cost(&odd), 1e-5);
    }

    #[test]
    fn misspelled_prices_are_refused() {
        let refused = serde_json::from_str::<Prices>(r#"{"input": 1, "output": 2, "cache": 0.5}"#);
        assert!(refused.unwrap_err().to_string().contains("unknown field `cache`"));
    }
}
