//! The cost of a language model, and its limits. Pure.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::turn::Usage;
use crate::args::ModelArgs;

/// The limits of a model.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// The maximum number of requests.
    turns: Option<u64>,
    /// The maximum number of tokens, input and output together.
    tokens: Option<u64>,
    /// The maximum cost, in US dollars.
    cost: Option<f64>,
    /// The maximum time from the first request on.
    pub time: Option<Duration>,
}

/// The cost of a model so far.
#[derive(Debug, Clone, Default)]
pub struct ModelCost {
    /// The number of answered requests.
    pub turns: u64,
    input: u64,
    output: u64,
    /// True if tokens are estimated because the endpoint doesn't count them.
    pub is_estimated: bool,
    /// The prices of a million input and output tokens, in US dollars.
    prices: Option<(f64, f64)>,
}

impl Limits {
    /// Returns the limits given on the command line.
    pub fn of(args: &ModelArgs) -> Limits {
        Limits {
            turns: args.max_turns,
            tokens: args.max_tokens,
            cost: args.max_cost,
            time: args.max_time.map(Duration::from_secs),
        }
    }

    /// Returns the command-line option of a limit that is reached, if any.
    pub fn reached(&self, spent: &ModelCost) -> Option<&'static str> {
        let is_up = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value >= limit);
        if is_up(self.turns, spent.turns) {
            return Some("--max-turns");
        }
        if is_up(self.tokens, spent.input + spent.output) {
            return Some("--max-tokens");
        }
        (self.cost?..).contains(&spent.cost()?).then_some("--max-cost")
    }
}

impl ModelCost {
    /// Creates an empty account with the prices given on the command line.
    pub fn of(args: &ModelArgs) -> ModelCost {
        ModelCost { prices: args.price_in.zip(args.price_out), ..ModelCost::default() }
    }

    /// Adds the usage of a request. Returns the request's cost in US dollars, if prices are known.
    pub fn add(&mut self, usage: Usage) -> Option<f64> {
        self.turns += 1;
        self.input += usage.input;
        self.output += usage.output;
        self.price(usage.input, usage.output)
    }

    /// Returns the cost in US dollars, if prices are known.
    pub fn cost(&self) -> Option<f64> {
        self.price(self.input, self.output)
    }

    fn price(&self, input: u64, output: u64) -> Option<f64> {
        let (price_in, price_out) = self.prices?;
        Some((input as f64 * price_in + output as f64 * price_out) / 1e6)
    }

    /// Returns the account as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "turns": self.turns, "tokens_in": self.input, "tokens_out": self.output, "estimated": self.is_estimated,
            "cost_usd": self.cost(),
        })
    }
}

impl fmt::Display for ModelCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = if self.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", self.turns) };
        write!(f, "{turns}, {} tokens in, {} out", self.input, self.output)?;
        match self.cost() {
            Some(cost) => write!(f, ", {cost:.4} USD"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_reached_is_named() {
        let mut spent = ModelCost { prices: Some((3.0, 15.0)), ..ModelCost::default() };
        let limits = |turns, tokens, cost| Limits { turns, tokens, cost, time: None };
        let loose = limits(Some(3), Some(300_000), Some(1.0));
        assert_eq!(loose.reached(&spent), None);
        assert_eq!(spent.add(Usage { input: 100_000, cached: 0, output: 10_000 }), Some(0.45));
        assert_eq!(loose.reached(&spent), None);
        spent.add(Usage { input: 100_000, cached: 0, output: 20_000 });
        assert_eq!(loose.reached(&spent), Some("--max-cost"));
        assert_eq!(limits(Some(2), None, None).reached(&spent), Some("--max-turns"));
        assert_eq!(limits(None, Some(230_000), None).reached(&spent), Some("--max-tokens"));
        assert_eq!(limits(None, Some(230_001), Some(1.1)).reached(&spent), None);
        assert_eq!(spent.to_string(), "2 turns, 200000 tokens in, 30000 out, 1.0500 USD");
    }
}
