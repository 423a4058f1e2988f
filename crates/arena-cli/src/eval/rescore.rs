//! `arena eval rescore`: judges score the stored transcripts.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use arena_eval::rescore::{LoadedJudge, RescoreError, RescoreProgress, judges_of, read_judges, rescore};
use arena_eval::{BudgetSpec, EvalFolder, RunEnd};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use serde_json::json;

use super::live::spent;
use super::{parent, reasons, refused, resume_line};
use crate::args::RescoreArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, Style, counted, print};
use crate::serve::runtime;

/// The time between two updates of the bar.
const UPDATE: Duration = Duration::from_millis(250);

pub fn run(args: &RescoreArgs, style: Style) -> Result<(), Failure> {
    let mut folder = EvalFolder::open_for_judges(&args.dir).map_err(refused)?;
    let judges = judges(args, &folder)?;
    let budget = folder.plan().file.budget;
    let [stop] = interrupt::flags(["stopping after the calls in progress; press Ctrl-C again to stop at once"])?;
    let progress = Mutex::new(RescoreProgress::default());
    let runtime = runtime()?;
    let judged = thread::scope(|scope| {
        let (judging, ended) = mpsc::channel::<()>();
        let progress = &progress;
        scope.spawn(move || watch(progress, &ended, budget, style));
        let patience = Duration::from_secs(args.patience);
        let judged = runtime.block_on(rescore(&mut folder, judges, patience, progress, &stop));
        drop(judging);
        judged
    });
    let end = judged.map_err(failed)?;
    let progress = progress.lock().clone();
    match style {
        Style::Json => print(&to_json(&progress).to_string())?,
        Style::Pretty | Style::Compact => print(&summary(&progress, &budget))?,
    }
    outcome(&end, &progress, args)
}

fn judges(args: &RescoreArgs, folder: &EvalFolder) -> Result<Vec<LoadedJudge>, Failure> {
    let Some(file) = &args.judges else { return Ok(judges_of(folder.plan())) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Exit::Usage, format_args!("cannot read {}: {error}", file.display())))?;
    let judges = read_judges(&text, parent(file)).map_err(|error| Failure::new(Exit::Usage, error));
    judges.map_err(|failure| failure.about(&file.display()))
}

/// Shows the progress until the sender of `ended` is dropped.
fn watch(progress: &Mutex<RescoreProgress>, ended: &Receiver<()>, budget: BudgetSpec, style: Style) {
    let target = if style == Style::Json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} judgments, {msg}, {eta} left") {
        bar.set_style(style);
    }
    let mut reported = 0;
    loop {
        let now = progress.lock().clone();
        for (judge, reason) in now.paused.iter().skip(reported) {
            bar.suspend(|| output::note(&format!("judge {judge} is paused: {reason}")));
        }
        reported = now.paused.len();
        bar.set_length(now.all);
        bar.set_position(now.judged);
        bar.set_message(spend(&now, &budget));
        if ended.recv_timeout(UPDATE) == Err(RecvTimeoutError::Disconnected) {
            return bar.finish_and_clear();
        }
    }
}

fn spend(progress: &RescoreProgress, budget: &BudgetSpec) -> String {
    spent(progress.spent.usage.input + progress.spent.usage.output, progress.spent.usd, budget)
}

fn summary(progress: &RescoreProgress, budget: &BudgetSpec) -> String {
    if progress.all == 0 {
        return "all finished games are judged already".to_owned();
    }
    let mut text = format!("{} of {} made", progress.judged, counted(progress.all, "judgment", "judgments"));
    if progress.cached > 0 {
        text += &format!(", {} from the store", progress.cached);
    }
    if progress.without_score > 0 {
        text += &format!(", {} without a score", progress.without_score);
    }
    format!("{text}; players and judges: {}", spend(progress, budget))
}

fn to_json(progress: &RescoreProgress) -> serde_json::Value {
    json!({
        "judgments": progress.all, "judged": progress.judged, "without_score": progress.without_score,
        "cached": progress.cached, "retries": progress.retries, "spent": progress.spent, "paused": progress.paused,
    })
}

fn outcome(end: &RunEnd, progress: &RescoreProgress, args: &RescoreArgs) -> Result<(), Failure> {
    let judged = format!("{} of {} made", progress.judged, counted(progress.all, "judgment", "judgments"));
    let again = "the same command continues";
    match end {
        RunEnd::Complete => Ok(()),
        RunEnd::Interrupted => Err(Failure::new(Exit::Interrupted, format_args!("stopped: {judged}; {again}"))),
        RunEnd::Budget(cap) => Err(Failure::new(
            Exit::OverBudget,
            format_args!(
                "reached the cap `{cap}`: {judged}; to raise it: {}; then {again}",
                resume_line(&args.dir, Some("FILE"), None)
            ),
        )),
        RunEnd::Paused(judges) => Err(Failure::new(
            Exit::Parked,
            format_args!("{judged}; paused: {}; after the repair, {again}", reasons(judges)),
        )),
    }
}

fn failed(error: RescoreError) -> Failure {
    match error {
        RescoreError::Judge(..) | RescoreError::NoJudge => Failure::caused(Exit::Usage, &error),
        RescoreError::NoGame => Failure::caused(Exit::BadTournament, &error),
        RescoreError::Folder(error) => refused(error),
        RescoreError::StandIn(_) => Failure::caused(Exit::CannotListen, &error),
        RescoreError::Task(_) => Failure::caused(Exit::Internal, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_judgments_without_a_score() {
        let progress =
            RescoreProgress { all: 10, judged: 8, without_score: 1, cached: 2, ..RescoreProgress::default() };
        assert_eq!(
            summary(&progress, &BudgetSpec::default()),
            "8 of 10 judgments made, 2 from the store, 1 without a score; players and judges: 0 tokens, 0.00 USD"
        );
        assert_eq!(
            summary(&RescoreProgress::default(), &BudgetSpec::default()),
            "all finished games are judged already"
        );
    }
}
