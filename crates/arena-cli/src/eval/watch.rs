//! The live progress of a run: a bar with lines of models on a terminal, and plain lines elsewhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use arena_engine::Environment;
use arena_eval::{BudgetSpec, Progress};
use indicatif::ProgressBar;
use parking_lot::Mutex;

use super::live::{LiveState, LiveStatus};
use crate::exit::Failure;
use crate::output::{self, Style, one_line, print, printable};
use crate::terminal::progress_bar;

/// The time between two updates of the bar.
const UPDATE: Duration = Duration::from_millis(250);

/// The time between two updates of `status.json`.
const WRITE: Duration = Duration::from_secs(2);

/// The time between two plain lines, in which a game has finished.
const LINE: Duration = Duration::from_secs(10);

/// The largest number of models below the bar. A terminal has few lines.
const MOST_MODELS: usize = 12;

pub struct EvalWatcher<'w> {
    style: Style,
    dir: &'w Path,
    budget: BudgetSpec,
    finished_before: u64,
    bar: ProgressBar,
    /// The paused models that were reported.
    reported: Vec<String>,
    /// The failing models that were reported.
    failing: BTreeSet<String>,
    /// The time for which a failing endpoint is asked again.
    patience: Duration,
    /// True if plain lines may be printed: stdout doesn't belong to another output.
    prints: bool,
    /// The number of finished games in the last plain line.
    printed: u64,
}

impl<'w> EvalWatcher<'w> {
    pub fn new(
        style: Style,
        dir: &'w Path,
        budget: BudgetSpec,
        patience: Duration,
        (finished_before, games): (u64, u64),
    ) -> EvalWatcher<'w> {
        // The message has lines of its own, since the bar takes the remaining width of its line.
        let template = "{wide_bar} {pos} of {len} games{prefix}\n{msg}";
        let bar = progress_bar(games as usize, style == Style::Json, template);
        bar.set_position(finished_before);
        EvalWatcher {
            style,
            dir,
            budget,
            finished_before,
            bar,
            reported: Vec::new(),
            failing: BTreeSet::new(),
            patience,
            prints: true,
            printed: finished_before,
        }
    }

    /// Keeps stdout for another output.
    pub fn without_lines(self) -> EvalWatcher<'w> {
        EvalWatcher { prints: false, ..self }
    }

    /// Shows the progress until the sender of `ended` is dropped.
    pub fn watch(&mut self, progress: &Mutex<Progress>, ended: &Receiver<()>) {
        let (mut written, mut lined): (Option<Instant>, Instant) = (None, Instant::now());
        loop {
            let status = self.status(progress, LiveState::Running);
            if written.is_none_or(|written| written.elapsed() >= WRITE) {
                status.write(self.dir);
                written = Some(Instant::now());
            }
            self.report_faults(&status);
            if !self.bar.is_hidden() {
                self.draw(&status);
            } else if self.prints && lined.elapsed() >= LINE && status.finished != self.printed {
                lined = Instant::now();
                self.printed = status.finished;
                // A reader that has closed the pipe doesn't stop the run.
                let _ = print(&self.line(&status));
            }
            if ended.recv_timeout(UPDATE) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Removes the bar, writes the last status and returns it.
    pub fn end(&mut self, progress: &Mutex<Progress>, state: LiveState) -> LiveStatus {
        let status = self.status(progress, state);
        status.write(self.dir);
        self.report_faults(&status);
        self.bar.finish_and_clear();
        status
    }

    fn status(&self, progress: &Mutex<Progress>, state: LiveState) -> LiveStatus {
        let now = Environment::system().now().0;
        LiveStatus::of(&progress.lock(), self.finished_before, now, state)
    }

    /// Prints a note for each model that has been paused since the last call, or whose endpoint fails for the first
    /// time.
    fn report_faults(&mut self, status: &LiveStatus) {
        for model in &status.models {
            if let (Some(fault), None) = (&model.failing, &model.paused)
                && self.failing.insert(model.name.clone())
            {
                let seconds = self.patience.as_secs();
                self.bar.suspend(|| output::note(&format!("{}: {fault}; retrying for {seconds} s", model.name)));
            }
            let Some(reason) = &model.paused else { continue };
            if !self.reported.contains(&model.name) {
                self.reported.push(model.name.clone());
                self.bar.suspend(|| output::note(&format!("{} is paused: {reason}", model.name)));
            }
        }
    }

    fn draw(&self, status: &LiveStatus) {
        let in_progress = format!(", {} in progress, {}", status.open, status.pace());
        if self.bar.prefix() != in_progress {
            self.bar.set_prefix(in_progress);
        }
        self.bar.set_message(lower_lines(status, &self.budget));
        self.bar.set_length(status.games);
        self.bar.set_position(status.finished);
    }

    /// Returns a line for a log: JSON in that style.
    fn line(&self, status: &LiveStatus) -> String {
        match self.style {
            Style::Json => serde_json::to_string(status).unwrap_or_default(),
            Style::Pretty | Style::Compact => plain_line(status, &self.budget),
        }
    }
}

/// Prints the folder and the number of games before the first call.
pub fn begin(style: Style, title: &str, dir: &Path) -> Result<(), Failure> {
    match style {
        Style::Json => Ok(()),
        Style::Pretty | Style::Compact => print(&printable(&format!("{title}\nfolder: {}", dir.display()))),
    }
}

/// Returns the lines below the bar: the spend, and the models with the paused ones first.
fn lower_lines(status: &LiveStatus, budget: &BudgetSpec) -> String {
    let mut models: Vec<_> = status.model_lines().into_iter().zip(&status.models).collect();
    models.sort_by_key(|(_, model)| model.paused.is_none());
    let more = models.len().saturating_sub(MOST_MODELS);
    let mut lines = vec![status.spend(budget)];
    lines.extend(models.into_iter().take(MOST_MODELS).map(|(line, _)| one_line(&line)));
    if more > 0 {
        lines.push(format!("and {more} more models"));
    }
    lines.join("\n")
}

fn plain_line(status: &LiveStatus, budget: &BudgetSpec) -> String {
    format!("{} of {} games, {}, {}", status.finished, status.games, status.spend(budget), status.pace())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::eval::live::tests::status;

    #[test]
    fn paused_models_are_above_the_others() {
        let budget = BudgetSpec { usd: Some(2.0), ..BudgetSpec::default() };
        expect![[r#"
            12,345 calls, 1,000 answers from the store, 17 failed attempts, 3,200,000 tokens, 1.50 of 2.00 USD
            large: paused: HTTP 402: no credit
            small: 1 call, up to 24 at once"#]]
        .assert_eq(&lower_lines(&status(), &budget));
        expect!["160 of 400 games, 12,345 calls, 1,000 answers from the store, 17 failed attempts, 3,200,000 tokens, 1.50 of 2.00 USD, 30 games a minute, 8 min 00 s left"]
            .assert_eq(&plain_line(&status(), &budget));
    }

    #[test]
    fn many_models_are_counted() {
        let mut many = status();
        many.models = vec![many.models[0].clone(); 15];
        let lines = lower_lines(&many, &BudgetSpec::default());
        assert_eq!(lines.lines().count(), 1 + MOST_MODELS + 1);
        assert!(lines.ends_with("and 3 more models"), "{lines}");
    }
}
