//! The cost of a language model, and its limits. Pure.

use std::fmt;
use std::time::Duration;

use arena_llm::{Prices, Usage};
use serde_json::{Value, json};

use crate::args::ModelArgs;

/// The default maximum number of requests.
const TURNS: u64 = 50;

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

#[derive(Debug, Clone, Default)]
pub struct ModelCost {
    /// The number of answered requests.
    pub turns: u64,
    /// The tokens of all requests and answers.
    usage: Usage,
    prices: Option<Prices>,
}

impl Limits {
    pub fn of(args: &ModelArgs) -> Limits {
        Limits {
            turns: Some(args.max_turns.unwrap_or(TURNS)),
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
        if is_up(self.tokens, spent.usage.input + spent.usage.output) {
            return Some("--max-tokens");
        }
        (self.cost?..).contains(&spent.cost()?).then_some("--max-cost")
    }
}

impl ModelCost {
    /// Creates an empty account with the prices given on the command line.
    pub fn of(args: &ModelArgs) -> ModelCost {
        let prices = args.price_in.zip(args.price_out);
        let prices = prices.map(|(input, output)| Prices { input, cached: args.price_cached, output });
        ModelCost { prices, ..ModelCost::default() }
    }

    /// Adds the usage of a request. Returns the request's cost in US dollars, if prices are known.
    pub fn add(&mut self, usage: Usage) -> Option<f64> {
        self.turns += 1;
        self.usage += usage;
        Some(self.prices?.cost(&usage))
    }

    /// Returns the cost in US dollars, if prices are known.
    pub fn cost(&self) -> Option<f64> {
        Some(self.prices?.cost(&self.usage))
    }

    /// Returns true if tokens are estimated because the endpoint doesn't count them.
    pub fn is_estimated(&self) -> bool {
        self.usage.is_estimated
    }

    pub fn to_json(&self) -> Value {
        json!({
            "turns": self.turns, "tokens_in": self.usage.input, "tokens_cached": self.usage.cached,
            "tokens_out": self.usage.output, "estimated": self.usage.is_estimated, "cost_usd": self.cost(),
        })
    }
}

impl fmt::Display for ModelCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = if self.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", self.turns) };
        write!(f, "{turns}, {} tokens in, {} out", self.usage.input, self.usage.output)?;
        match self.cost() {
            Some(cost) => write!(f, ", {cost:.4} USD"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(cached: Option<f64>) -> ModelCost {
        ModelCost { prices: Some(Prices { input: 3.0, cached, output: 15.0 }), ..ModelCost::default() }
    }

    fn used(input: u64, cached: u64, output: u64) -> Usage {
        Usage { input, cached, output, ..Usage::default() }
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        for (price, cost) in [(None, 0.6), (Some(0.5), 0.475), (Some(0.0), 0.45)] {
            let mut spent = priced(price);
            let added = spent.add(used(100_000, 50_000, 20_000)).unwrap();
            assert!((added - cost).abs() < 1e-12 && spent.cost() == Some(added), "{price:?}: {added}");
            assert_eq!(spent.to_json()["tokens_cached"], 50_000);
        }
    }

    #[test]
    fn the_limit_that_is_reached_is_named() {
        let mut spent = priced(None);
        let limits = |turns, tokens, cost| Limits { turns, tokens, cost, time: None };
        let loose = limits(Some(3), Some(300_000), Some(1.0));
        assert_eq!(loose.reached(&spent), None);
        assert_eq!(spent.add(used(100_000, 0, 10_000)), Some(0.45));
        assert_eq!(loose.reached(&spent), None);
        spent.add(used(100_000, 0, 20_000));
        assert_eq!(loose.reached(&spent), Some("--max-cost"));
        assert_eq!(limits(Some(2), None, None).reached(&spent), Some("--max-turns"));
        assert_eq!(limits(None, Some(230_000), None).reached(&spent), Some("--max-tokens"));
        assert_eq!(limits(None, Some(230_001), Some(1.1)).reached(&spent), None);
        assert_eq!(spent.to_string(), "2 turns, 200000 tokens in, 30000 out, 1.0500 USD");
    }
}
