//! `arena eval status`: the progress of a run, also while another process plays it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arena_engine::Environment;
use arena_eval::{BudgetSpec, EvalRun};
use clap::Args;
use serde_json::{Value, json};

use super::live::{LiveState, LiveStatus, spent};
use super::run::resume_line;
use super::{load, matrix, refused, title};
use crate::exit::Failure;
use crate::output::{Style, counted, print, printable, utc};

/// Options of commands that only read a run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval status autumn
  arena eval status autumn --json
  watch arena eval status autumn

It shows the finished games of each agent and challenge, the spend against the caps, paused models with the reason, and the \
time left.")]
pub struct EvalFolderArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

const MOST_VOIDS: usize = 5;

pub fn run(dir: &Path, style: Style) -> Result<(), Failure> {
    let run = load(dir)?;
    let live = LiveStatus::read(dir);
    let now = Environment::system().now().0;
    if style == Style::Json {
        return print(&to_json(&run, live.as_ref(), now).to_string());
    }
    let finished = run.games.len();
    print(&printable(&format!("{}\n{finished} of {} games are finished", title(&run.plan), run.plan.games.len())))?;
    let done: BTreeSet<&str> = run.games.iter().map(|game| game.game.as_str()).collect();
    print(&matrix::finished(&run.plan, |game| done.contains(game.id.as_str())))?;
    let state = match &live {
        Some(live) => sentences(live, &run.plan.file.budget, now, dir),
        None => from_record(&run, dir)?,
    };
    print(&printable(&state))?;
    match voids(&run) {
        Some(text) => print(&printable(&text)),
        None => Ok(()),
    }
}

/// Describes the process that plays or played the run.
fn sentences(live: &LiveStatus, budget: &BudgetSpec, now: i64, dir: &Path) -> String {
    let resume = resume_line(dir, None);
    let state = match &live.state {
        LiveState::Running if live.is_running(now) => {
            format!("running: {} in progress, {}", counted(live.open, "game"), live.pace())
        }
        LiveState::Running => format!("not running: the process was killed after {}; {resume}", utc(live.time)),
        LiveState::Complete => format!("complete since {}", utc(live.time)),
        LiveState::Interrupted => format!("interrupted at {}; {resume}", utc(live.time)),
        LiveState::Cap(cap) => {
            let with_file = resume_line(dir, Some("FILE"));
            format!("the cap `{cap}` was reached at {}; raise it, then {with_file}", utc(live.time))
        }
        LiveState::Paused => {
            let since = utc(live.time);
            format!("models are paused since {since}; repair their endpoints or raise their caps, then {resume}")
        }
        LiveState::Failed => format!("failed at {}; {resume}", utc(live.time)),
    };
    let mut lines = vec![state, live.spend(budget)];
    let is_running = live.is_running(now);
    lines.extend(
        live.model_lines()
            .into_iter()
            .zip(&live.models)
            .filter(|(_, model)| is_running || model.paused.is_some())
            .map(|(line, _)| line),
    );
    lines.join("\n")
}

/// Describes the spend of a run whose process left no status: the folder may be a copy.
fn from_record(run: &EvalRun, dir: &Path) -> Result<String, Failure> {
    let total = run.spent().map_err(refused)?;
    let used = total.usage.input + total.usage.output;
    Ok(format!("not running; {}\n{}", resume_line(dir, None), spent(used, total.usd, &run.plan.file.budget)))
}

/// Lists the last void games, if there are any.
fn voids(run: &EvalRun) -> Option<String> {
    let count = run.voids.len();
    let mut text = format!("{}, to be played again:", counted(count, "void game"));
    for void in run.voids.iter().rev().take(MOST_VOIDS) {
        let agent = void.agent.as_deref().unwrap_or("this machine");
        text += &format!("\n  {} {}: {agent}: {}: {}", utc(void.time), void.game, void.class, void.why);
    }
    (count > 0).then_some(text)
}

fn to_json(run: &EvalRun, live: Option<&LiveStatus>, now: i64) -> Value {
    json!({
        "name": run.plan.file.name, "games": run.plan.games.len(), "finished": run.games.len(), "voids": run.voids,
        "is_running": live.is_some_and(|live| live.is_running(now)), "seconds_left": live.and_then(LiveStatus::seconds_left),
        "budget": run.plan.file.budget, "process": live,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::eval::live::tests::status;

    #[test]
    fn each_state_says_how_to_continue() {
        let budget = BudgetSpec { usd: Some(2.0), ..BudgetSpec::default() };
        let mut text = String::new();
        for (state, now) in [
            (LiveState::Running, 1_001_000),
            (LiveState::Running, 9_000_000),
            (LiveState::Complete, 9_000_000),
            (LiveState::Interrupted, 9_000_000),
            (LiveState::Cap("usd".to_owned()), 9_000_000),
            (LiveState::Paused, 9_000_000),
            (LiveState::Failed, 9_000_000),
        ] {
            let live = LiveStatus { state, ..status() };
            let text_of_state = sentences(&live, &budget, now, Path::new("autumn"));
            text += &format!("{}\n", text_of_state.replace(&live.spend(&budget), "SPEND"));
        }
        expect_file!["status/each_state_says_how_to_continue.txt"].assert_eq(&text);
    }
}
