//! Usage reports: tokens, money and time that players said they spent on language models. Sessions, records and exports
//! of earlier versions may contain them. The reports aren't verified. They are secret until the session's end, because
//! they reveal the model.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ProfileText, Timestamp};

/// The maximum number of tokens of each kind in one report.
pub const MOST_TOKENS: u64 = 1_000_000_000;

/// The maximum number of US dollars in one report.
pub const MOST_USD: f64 = 1e6;

/// The maximum number of milliseconds in one report: one day.
pub const MOST_MS: u64 = 86_400_000;

/// The number of reports that are stored per seat. Later reports count in the totals only.
pub const MOST_REPORTS: usize = 500;

/// The maximum number of model names stored per seat.
const MOST_MODELS: usize = 8;

/// A player's report of the cost of one step, such as a request to a language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// The time of the report.
    pub at: Timestamp,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ProfileText>,
    /// Input tokens, including cached ones.
    #[schema(maximum = 1_000_000_000)]
    pub input_tokens: u64,
    /// Output tokens.
    #[schema(maximum = 1_000_000_000)]
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    #[schema(maximum = 1_000_000_000)]
    pub cached_tokens: u64,
    /// US dollars, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1_000_000)]
    pub cost_usd: Option<f64>,
    /// The duration in milliseconds, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub ms: Option<u64>,
    /// True if the player estimated the tokens, because some endpoints don't count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub estimated: bool,
}

/// The error for an impossible report. The text names the number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageReport {
    /// Checks the bounds of all numbers.
    ///
    /// # Errors
    /// The text names the field, as on the wire, and its bounds.
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
            return Err(UsageError("cachedTokens must not exceed inputTokens, which includes them".to_owned()));
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

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeatUsage {
    pub total: UsageTotal,
    /// The first [`MOST_REPORTS`] reports, in order.
    pub reports: Vec<UsageReport>,
}

/// The totals of a player's reports, unverified.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotal {
    /// The number of reports.
    pub reports: u64,
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    pub cached_tokens: u64,
    /// US dollars, over the reports with a cost; absent if no report has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Milliseconds, over the reports with a duration; absent if no report has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// True if some of the tokens are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub estimated: bool,
    /// The first eight models' names, in the order of the reports.
    pub models: Vec<ProfileText>,
}

impl UsageTotal {
    /// Checks the bounds of totals from an imported record.
    ///
    /// # Errors
    /// If there are too many models, or a total is too large.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.models.len() > MOST_MODELS {
            return Err(UsageError(format!("models has more than {MOST_MODELS} entries")));
        }
        // JavaScript represents all integers up to 2^53 exactly.
        const MOST: u64 = 1 << 53;
        let counts = [self.reports, self.input_tokens, self.output_tokens, self.cached_tokens, self.ms.unwrap_or(0)];
        if counts.iter().any(|count| *count > MOST) || self.cost_usd.is_some_and(|cost| !(0.0..=1e15).contains(&cost)) {
            return Err(UsageError("a total is too large".to_owned()));
        }
        Ok(())
    }
}

impl SeatUsage {
    /// Adds a checked report.
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
        let actual: String = [
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
            Err("cachedTokens must not exceed inputTokens, which includes them")
            Err("costUsd must be a number from 0 to 1000000")
            Err("costUsd must be a number from 0 to 1000000")
            Err("ms must be a whole number from 0 to 86400000")
            Ok(())
        "#]]
        .assert_eq(&actual);
    }
}
