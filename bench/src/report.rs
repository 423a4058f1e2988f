//! The report: measured values beside the goals of the design, as a table for people and as JSON.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::faults::Faults;
use crate::latency::LatencySummary;
use crate::machine::Machine;

/// A limit from the design.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// One measured value.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    scenario: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    goal: Option<Goal>,
    met: Option<bool>,
    note: String,
}

impl Row {
    /// Sets the goal, in the unit of the row.
    pub fn goal(&mut self, goal: Goal) -> &mut Row {
        self.goal = Some(goal);
        self.met = Some(match goal {
            Goal::AtMost(bound) => self.value <= bound,
            Goal::AtLeast(bound) => self.value >= bound,
        });
        self
    }

    pub fn note(&mut self, note: impl Into<String>) -> &mut Row {
        self.note = note.into();
        self
    }

    /// Returns `met` or the deviation from the goal; empty without a goal.
    fn verdict(&self) -> String {
        let (Some(goal), Some(met)) = (self.goal, self.met) else { return String::new() };
        if met {
            return "met".to_owned();
        }
        let (Goal::AtMost(bound) | Goal::AtLeast(bound)) = goal;
        let factor = self.value / bound;
        if !factor.is_finite() {
            "missed".to_owned()
        } else if (0.5..2.0).contains(&factor) {
            format!("missed by {} %", significant_to((factor - 1.0).abs() * 100.0, 2))
        } else {
            format!("missed: {factor:.2} × the goal")
        }
    }
}

/// All results of a run.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    details: Map<String, Value>,
    faults: Vec<(String, Faults)>,
    failures: Vec<(String, String)>,
}

impl Report {
    pub fn row(&mut self, scenario: &'static str, what: impl Into<String>, value: f64, unit: &'static str) -> &mut Row {
        let (what, note) = (what.into(), String::new());
        self.rows.push(Row { scenario, what, value, unit, goal: None, met: None, note });
        self.rows.last_mut().expect("a row was just added")
    }

    /// Adds a row with the 99th percentile in milliseconds. The remark of the row contains the median and the maximum.
    pub fn p99(&mut self, scenario: &'static str, what: &str, summary: LatencySummary) -> &mut Row {
        let ms = |us: f64| significant(us / 1e3);
        let note = format!("p50 {} ms, max {} ms, n = {}", ms(summary.p50_us), ms(summary.max_us), summary.count);
        let row = self.row(scenario, format!("{what}, p99"), summary.p99_us / 1e3, "ms");
        row.note(note)
    }

    /// Adds the details of a measurement, which are only in the JSON report.
    pub fn detail(&mut self, scenario: &'static str, name: impl Into<String>, value: Value) {
        let details = self.details.entry(scenario).or_insert_with(|| json!({}));
        details.as_object_mut().expect("details are an object").insert(name.into(), value);
    }

    /// Adds the faults of a completed measurement.
    pub fn faults(&mut self, measurement: impl Into<String>, faults: &Faults) {
        if faults.count() > 0 {
            self.faults.push((measurement.into(), faults.clone()));
        }
    }

    pub fn failure(&mut self, scenario: &str, error: &anyhow::Error) {
        self.failures.push((scenario.to_owned(), format!("{error:#}")));
    }

    /// Returns a sentence about all failures and faults, or `None` if there are none. A missed goal isn't a fault.
    pub fn trouble(&self) -> Option<String> {
        let failures = self.failures.iter().map(|(scenario, error)| format!("{scenario} failed: {error}"));
        let faults = self.faults.iter().map(|(measurement, faults)| {
            let sentences: Vec<String> =
                faults.sentences().map(|(sentence, count)| format!("{count} × {sentence}")).collect();
            format!("{measurement} had {} errors ({})", faults.count(), sentences.join("; "))
        });
        let all: Vec<String> = failures.chain(faults).collect();
        if all.is_empty() { None } else { Some(all.join(". ")) }
    }

    /// Returns the rows as a table in Markdown.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::ASCII_MARKDOWN)
            .set_header(["scenario", "what", "measured", "goal", "verdict", "remark"]);
        let mut before = "";
        for row in &self.rows {
            let scenario = if row.scenario == before { "" } else { row.scenario };
            before = row.scenario;
            table.add_row([
                Cell::new(scenario),
                Cell::new(&row.what),
                Cell::new(with_unit(row.value, row.unit)).set_alignment(CellAlignment::Right),
                Cell::new(match row.goal {
                    None => String::new(),
                    Some(Goal::AtMost(bound)) => format!("≤ {}", with_unit(bound, row.unit)),
                    Some(Goal::AtLeast(bound)) => format!("≥ {}", with_unit(bound, row.unit)),
                }),
                Cell::new(row.verdict()),
                Cell::new(&row.note),
            ]);
        }
        table.to_string()
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write_json(&self, path: &Path, machine: &Machine, settings: &Value) -> anyhow::Result<()> {
        let faults: Vec<Value> = self
            .faults
            .iter()
            .map(|(measurement, faults)| {
                let sentences: Vec<(&str, u64)> = faults.sentences().collect();
                json!({ "measurement": measurement, "count": faults.count(), "sentences": sentences })
            })
            .collect();
        let whole = json!({
            "machine": machine,
            "settings": settings,
            "rows": self.rows,
            "details": self.details,
            "faults": faults,
            "failures": self.failures,
        });
        let mut text = serde_json::to_string_pretty(&whole).context("could not write the report as JSON")?;
        text.push('\n');
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        }
        fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() { significant(value) } else { format!("{} {unit}", significant(value)) }
}

/// Formats a number with at least three significant digits and a thousands separator: `0.0123`, `4.57`, `117,000`.
fn significant(value: f64) -> String {
    significant_to(value, 3)
}

fn significant_to(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size < 100.0 {
        let decimals = (digits - 1 - size.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{value:.decimals$}");
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    let digits = format!("{:.0}", size);
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown = [0.0, 0.01234, 4.567, 99.95, 117_123.4, -1_234.0, 20.0].map(significant);
        assert_eq!(shown, ["0", "0.0123", "4.57", "100", "117,123", "-1,234", "20"]);
    }

    #[test]
    fn the_verdict_contains_the_deviation_from_the_goal() {
        let mut report = Report::default();
        let mut verdict = |value, goal| report.row("games", "x", value, "ms").goal(goal).verdict();
        assert_eq!(verdict(10.0, Goal::AtMost(10.0)), "met");
        assert_eq!(verdict(12.5, Goal::AtMost(10.0)), "missed by 25 %");
        assert_eq!(verdict(40.0, Goal::AtMost(10.0)), "missed: 4.00 × the goal");
        assert_eq!(verdict(0.498, Goal::AtLeast(0.5)), "missed by 0.4 %");
        assert_eq!(verdict(0.4, Goal::AtLeast(0.5)), "missed by 20 %");
        assert_eq!(verdict(0.1, Goal::AtLeast(0.5)), "missed: 0.20 × the goal");
    }

    #[test]
    fn faults_and_failures_form_one_sentence() {
        let mut report = Report::default();
        assert_eq!(report.trouble(), None);
        let mut faults = Faults::default();
        faults.add(&anyhow::anyhow!("the end of a game is missing"));
        report.faults("games", &faults);
        report.failure("tail", &anyhow::anyhow!("the server has ended"));
        assert_eq!(
            report.trouble().unwrap(),
            "tail failed: the server has ended. games had 1 errors (1 × the end of a game is missing)"
        );
    }
}
