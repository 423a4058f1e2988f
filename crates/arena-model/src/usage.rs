//! What players say that their play has cost: tokens, money and time of a language model. It is their word, which nobody verifies,
//! and secret until the end, since it tells what plays.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ProfileText, Timestamp};

/// Most tokens of a kind in one report.
pub const MOST_TOKENS: u64 = 1_000_000_000;

/// Most US dollars in one report.
pub const MOST_USD: f64 = 1e6;

/// Most milliseconds in one report: a day.
pub const MOST_MS: u64 = 86_400_000;

/// Reports of a seat that are kept one by one. Those that follow are in its totals only.
pub const MOST_REPORTS: usize = 500;

/// Names of models that are kept of a seat.
const MOST_MODELS: usize = 8;

/// What a player says that one step has cost it, such as a request to a language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// When it was reported.
    pub at: Timestamp,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ProfileText>,
    /// Tokens of the question, those from a cache included.
    #[schema(maximum = 1_000_000_000)]
    pub input_tokens: u64,
    /// Tokens of the answer.
    #[schema(maximum = 1_000_000_000)]
    pub output_tokens: u64,
    /// Tokens of the question that came from a cache.
    #[schema(maximum = 1_000_000_000)]
    pub cached_tokens: u64,
    /// US dollars, where the player knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1_000_000)]
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds, where the player knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub ms: Option<u64>,
    /// Whether the player has estimated the tokens, as some endpoints don't count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub estimated: bool,
}

/// A report that can't be right. The text names the number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageReport {
    /// Refuses numbers out of bounds.
    ///
    /// # Errors
    /// Names the field, as the wire does, and its bounds.
    pub fn check(&self) -> Result<(), UsageError> {
        let tokens = [
            ("inputTokens", self.input_tokens),
            ("outputTokens", self.output_tokens),
            ("cachedTokens", self.cached_tokens),
        ];
        if let Some((name, _)) = tokens.into_iter().find(|(_, tokens)| *tokens > MOST_TOKENS) {
            return Err(UsageError(format!("{name} must be a whole number from 0 to {MOST_TOKENS}")));
        }
        if self.cached_tokens > self.input_tokens {
            return Err(UsageError("cachedTokens are part of inputTokens, and can't be more".to_owned()));
        }
        if self.cost_usd.is_some_and(|cost| !(0.0..=MOST_USD).contains(&cost)) {
            return Err(UsageError(format!("costUsd must be a number from 0 to {MOST_USD}")));
        }
        if self.ms.is_some_and(|ms| ms > MOST_MS) {
            return Err(UsageError(format!("ms must be a whole number from 0 to {MOST_MS}")));
        }
        Ok(())
    }
}

/// All that the player at one seat has reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeatUsage {
    /// Together.
    pub total: UsageTotal,
    /// The first [`MOST_REPORTS`] one by one, in order.
    pub reports: Vec<UsageReport>,
}

/// What a player's reports come to. Reported by the player, and verified by nobody.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotal {
    /// How many there are.
    pub reports: u64,
    /// Tokens of questions, those from a cache included.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Tokens of questions that came from a cache.
    pub cached_tokens: u64,
    /// US dollars, of the reports that name them; not there if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Milliseconds, of the reports that name them; not there if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Whether some of the tokens are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub estimated: bool,
    /// The models' names, in the order in which they came, the first eight.
    pub models: Vec<ProfileText>,
}

impl UsageTotal {
    /// Refuses totals that no reports come to.
    ///
    /// # Errors
    /// Names the number.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.models.len() > MOST_MODELS {
            return Err(UsageError(format!("models names more than {MOST_MODELS}")));
        }
        // What readers in JavaScript can count. Each addition stays below that too.
        const MOST: u64 = 1 << 53;
        let counts = [self.reports, self.input_tokens, self.output_tokens, self.cached_tokens, self.ms.unwrap_or(0)];
        if counts.iter().any(|count| *count > MOST) || self.cost_usd.is_some_and(|cost| !(0.0..=1e15).contains(&cost)) {
            return Err(UsageError("a total is beyond all bounds".to_owned()));
        }
        Ok(())
    }
}

impl SeatUsage {
    /// Adds a report that was checked.
    pub fn add(&mut self, report: UsageReport) {
        let total = &mut self.total;
        total.reports += 1;
        total.input_tokens += report.input_tokens;
        total.output_tokens += report.output_tokens;
        total.cached_tokens += report.cached_tokens;
        total.cost_usd = sum(total.cost_usd, report.cost_usd, |a, b| a + b);
        total.ms = sum(total.ms, report.ms, |a, b| a + b);
        total.estimated |= report.estimated;
        if let Some(model) = &report.model
            && total.models.len() < MOST_MODELS
            && !total.models.contains(model)
        {
            total.models.push(model.clone());
        }
        if self.reports.len() < MOST_REPORTS {
            self.reports.push(report);
        }
    }
}

fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn report(tokens: u64, cost_usd: Option<f64>) -> UsageReport {
        UsageReport {
            at: Timestamp(5),
            model: Some("opus".parse().expect("short")),
            input_tokens: tokens,
            output_tokens: 2,
            cached_tokens: 1,
            cost_usd,
            ms: None,
            estimated: false,
        }
    }

    #[test]
    fn reports_are_added_up_and_the_first_are_kept() {
        let mut usage = SeatUsage::default();
        for number in 0..MOST_REPORTS as u64 + 10 {
            usage.add(report(number, (number < 4).then_some(0.25)));
        }
        assert_eq!(usage.reports.len(), MOST_REPORTS);
        expect![[
            r#"{"reports":510,"inputTokens":129795,"outputTokens":1020,"cachedTokens":510,"costUsd":1.0,"models":["opus"]}"#
        ]]
        .assert_eq(&serde_json::to_string(&usage.total).expect("JSON"));
    }

    #[test]
    fn numbers_out_of_bounds_are_named() {
        let told: String = [
            report(MOST_TOKENS + 1, None),
            report(0, None),
            report(1, Some(-0.1)),
            report(1, Some(f64::NAN)),
            UsageReport { ms: Some(MOST_MS + 1), ..report(1, None) },
            report(1, Some(MOST_USD)),
        ]
        .iter()
        .map(|report| format!("{:?}\n", report.check().map_err(|error| error.to_string())))
        .collect();
        expect![[r#"
            Err("inputTokens must be a whole number from 0 to 1000000000")
            Err("cachedTokens are part of inputTokens, and can't be more")
            Err("costUsd must be a number from 0 to 1000000")
            Err("costUsd must be a number from 0 to 1000000")
            Err("ms must be a whole number from 0 to 86400000")
            Ok(())
        "#]]
        .assert_eq(&told);
    }
}
