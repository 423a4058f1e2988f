//! `arena eval run` and `arena eval resume`: the play of a run's remaining games.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use arena_eval::{EvalFolder, EvalPlan, PausedModel, Progress, RunEnd, RunError, RunOptions};
use arena_report::shell_word;
use clap::Args;
use parking_lot::Mutex;

use super::live::{LiveState, LiveStatus};
use super::watch::{self, EvalWatcher};
use super::{load, read_plan, refuse_removed, refused, report, title};
use crate::exit::{Exit, Failure};
use crate::files::{self, dated_folder};
use crate::interrupt;
use crate::output::{Style, print, print_line};
use crate::serve::runtime;

/// Options of `arena eval run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval run autumn.toml
  arena eval run autumn.toml --out autumn                    create the folder, or continue it
  arena eval run autumn.toml --out autumn --accept-changed   even if a prompt or an option has changed
  arena eval run autumn.toml --json > progress.jsonl

Each call is stored before its answer is used. Ctrl-C lets the calls in progress finish and stops; a second Ctrl-C stops at \
once. After either, and after a crash, the same command continues, and no stored call is paid again.

A failing endpoint never counts as a loss. Calls are repeated for --patience seconds; then the model is paused, and the other \
games go on. An endpoint that rejects the key or the payment pauses its model at once. The exit code is 17 if models are paused, \
and 19 if a cap of the whole run stopped it. A model that reaches its own cap is paused. After the repair, or with a higher cap, \
the same command plays the remaining games.

You may add models, seeds and challenges to the run file, and change caps and concurrency, at any time. Only new games are \
played. With another prompt or other options, the earlier games would not be comparable, so --accept-changed is needed, and the \
report names the change.

docs/evaluations.md in the repository describes the run file.")]
pub struct RunEvalArgs {
    /// Run file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of the run, new or to be continued [default: a new one here, named after the run and the time]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub play: PlayEvalArgs,
}

/// Options of `arena eval resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval resume autumn
  arena eval resume autumn --file autumn.toml      with a changed run file
  arena eval resume autumn --patience 3600         wait longer for failing endpoints

Without --file, the run continues with the run file that it accepted last.")]
pub struct ResumeEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Run file [default: as accepted last]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub play: PlayEvalArgs,
}

/// Options of `arena eval run` and `arena eval resume`.
#[derive(Debug, Args)]
pub struct PlayEvalArgs {
    /// Maximum number of games in progress [default: sum of the models' `concurrency`, from 8 to 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub open_games: Option<u32>,
    /// Time to repeat a failing call before its model is paused, in seconds.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=604_800))]
    pub patience: u64,
    /// Continue even if prompts, options or rules have changed; the report names the changes.
    #[arg(long)]
    pub accept_changed: bool,
}

pub fn begin(args: &RunEvalArgs, style: Style) -> Result<(), Failure> {
    let plan = read_plan(&args.file)?;
    let dir = args.out.clone().unwrap_or_else(|| dated_folder(&file_name(&plan.file.name)));
    check_keys(&plan, &dir)?;
    let mut folder = EvalFolder::create_or_open(&dir, plan, args.play.accept_changed).map_err(refused)?;
    play(&mut folder, &options(&args.play), Some(&args.file), style)
}

/// Checks the keys of all models before a folder is created. A run that is continued needs only the keys of models with
/// open games, which it checks itself.
pub fn check_keys(plan: &EvalPlan, dir: &Path) -> Result<(), Failure> {
    if EvalFolder::exists(dir) {
        return Ok(());
    }
    plan.file.check_keys().map_err(Failure::usage)
}

pub fn resume(args: &ResumeEvalArgs, style: Style) -> Result<(), Failure> {
    let accept = args.play.accept_changed;
    let folder = match &args.file {
        // `create_or_open` would create a missing folder.
        Some(file) if args.dir.is_dir() => EvalFolder::create_or_open(&args.dir, read_plan(file)?, accept),
        _ => EvalFolder::resume(&args.dir, accept),
    };
    let mut folder = folder.map_err(refused)?;
    refuse_removed("stand_in", folder.plan().file.has_stand_in(), &args.dir)?;
    play(&mut folder, &options(&args.play), args.file.as_deref(), style)
}

fn options(args: &PlayEvalArgs) -> RunOptions {
    let open_games = args.open_games.map(|most| most as usize);
    RunOptions { open_games, patience: Duration::from_secs(args.patience) }
}

/// Plays the remaining games, shows the progress, and prints the results.
fn play(folder: &mut EvalFolder, options: &RunOptions, file: Option<&Path>, style: Style) -> Result<(), Failure> {
    let dir = folder.dir().to_owned();
    let budget = folder.plan().file.budget;
    watch::begin(style, &title(folder.plan()), &dir)?;
    let (end, status) = play_games(folder, options, style, Purpose::Results)?;
    let run = load(&dir)?;
    report::rewrite_pages(&run)?;
    match style {
        Style::Json => print_line(&status)?,
        Style::Pretty | Style::Compact => {
            print(&format!("{} of {} games, {}", status.finished, status.games, status.spend(&budget)))?;
            if status.finished > 0 {
                report::print_tables(&run)?;
            }
        }
    }
    outcome(&end, &status, &dir, file)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The results of a run.
    Results,
    /// An estimate, which is printed instead of the progress.
    Pilot,
}

/// Plays the remaining games of a folder and shows the progress. Returns the end and the last status.
pub fn play_games(
    folder: &mut EvalFolder,
    options: &RunOptions,
    style: Style,
    purpose: Purpose,
) -> Result<(RunEnd, LiveStatus), Failure> {
    let [stop] = interrupt::flags(["stopping after the calls in progress; press Ctrl-C again to stop at once"])?;
    let dir = folder.dir().to_owned();
    let plan = folder.plan();
    let games = plan.games.len() as u64;
    let finished_before = plan.games.iter().filter(|game| folder.finished(&game.id).is_some()).count() as u64;
    let mut watcher = EvalWatcher::new(style, &dir, plan.file.budget, options.patience, (finished_before, games));
    if purpose == Purpose::Pilot && style == Style::Json {
        watcher = watcher.without_lines();
    }
    let progress = Mutex::new(Progress::new(folder));
    let runtime = runtime()?;
    let played = thread::scope(|scope| {
        // The sender is dropped when the run ends, also by a panic, and ends the display.
        let (playing, ended) = mpsc::channel::<()>();
        let (watcher, progress) = (&mut watcher, &progress);
        scope.spawn(move || watcher.watch(progress, &ended));
        let stop: &AtomicBool = &stop;
        let played = runtime.block_on(arena_eval::run(folder, options, progress, stop));
        drop(playing);
        played
    });
    let state = played.as_ref().map_or(LiveState::Failed, LiveState::of);
    let status = watcher.end(&progress, state);
    Ok((played.map_err(failed)?, status))
}

/// Converts the end of a run into the result of the command, with the command that continues the run.
fn outcome(end: &RunEnd, status: &LiveStatus, dir: &Path, file: Option<&Path>) -> Result<(), Failure> {
    let played = format!("{} of {} games are finished", status.finished, status.games);
    let resume = || resume_line(dir, None);
    let resume_with_file = || {
        let file = file.map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
        resume_line(dir, Some(&file))
    };
    match end {
        RunEnd::Complete => Ok(()),
        RunEnd::Interrupted => {
            Err(Failure::new(Exit::Interrupted, format_args!("stopped: {played}; to continue: {}", resume())))
        }
        RunEnd::Budget(cap) => Err(Failure::new(
            Exit::OverBudget,
            format_args!(
                "reached the cap `{cap}`: {played}; to continue, raise the cap in the run file: {}",
                resume_with_file()
            ),
        )),
        RunEnd::Paused(models) => {
            let (capped, failing): (Vec<PausedModel>, Vec<PausedModel>) =
                models.iter().cloned().partition(|model| model.is_capped);
            let mut remedies = Vec::new();
            if !capped.is_empty() {
                let its = if capped.len() == 1 { "its cap" } else { "their caps" };
                remedies.push(format!("raise {its} `usd` in the run file: {}", reasons(&capped)));
            }
            if !failing.is_empty() {
                remedies.push(format!("repair: {}", reasons(&failing)));
            }
            let resume = if capped.is_empty() { resume() } else { resume_with_file() };
            let remedies = remedies.join("; ");
            Err(Failure::new(
                Exit::Parked,
                format_args!("{played}; the others wait until you {remedies}; to continue after it: {resume}"),
            ))
        }
    }
}

/// Formats the names of paused models with their reasons.
pub fn reasons(models: &[PausedModel]) -> String {
    models.iter().map(|model| format!("{} ({})", model.name, model.why)).collect::<Vec<_>>().join(", ")
}

/// Returns the command that continues a run, with the run file if it is given.
pub fn resume_line(dir: &Path, file: Option<&str>) -> String {
    let options = file.map_or_else(String::new, |file| format!(" --file {}", shell_word(file)));
    files::resume_line("eval", dir, &options)
}

/// Returns the name of a run as a part of a file name.
pub fn file_name(name: &str) -> String {
    let safe: String =
        name.chars().map(|char| if char.is_alphanumeric() || "._-".contains(char) { char } else { '-' }).collect();
    let safe = safe.trim_matches(['.', '-']);
    if safe.is_empty() { "eval".to_owned() } else { safe.to_owned() }
}

pub fn failed(error: RunError) -> Failure {
    match error {
        RunError::Folder(error) => refused(error),
        RunError::Endpoint { .. } => Failure::usage(error),
        RunError::Program { .. } => Failure::new(Exit::NoAgent, error),
        RunError::Failed(_) => Failure::new(Exit::CannotWrite, error),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::eval::live::tests::status;

    #[test]
    fn each_end_has_an_exit_code_and_the_command_that_continues() {
        let paused =
            |name: &str, why: &str, is_capped| PausedModel { name: name.to_owned(), why: why.to_owned(), is_capped };
        let failing = || paused("large", "HTTP 402: no credit", false);
        let capped = || paused("small", "its cap of 2 US dollars is reached", true);
        let ends = [
            RunEnd::Interrupted,
            RunEnd::Budget("usd"),
            RunEnd::Paused(vec![failing()]),
            RunEnd::Paused(vec![capped()]),
            RunEnd::Paused(vec![capped(), failing()]),
        ];
        let mut text = String::new();
        for end in &ends {
            let failure =
                outcome(end, &status(), Path::new("my evals/autumn"), Some(Path::new("autumn.toml"))).unwrap_err();
            text += &format!("{} {}\n", failure.exit as u8, failure.sentence());
        }
        expect![[r#"
            130 stopped: 160 of 400 games are finished; to continue: arena eval resume 'my evals/autumn'
            19 reached the cap `usd`: 160 of 400 games are finished; to continue, raise the cap in the run file: arena eval resume 'my evals/autumn' --file autumn.toml
            17 160 of 400 games are finished; the others wait until you repair: large (HTTP 402: no credit); to continue after it: arena eval resume 'my evals/autumn'
            17 160 of 400 games are finished; the others wait until you raise its cap `usd` in the run file: small (its cap of 2 US dollars is reached); to continue after it: arena eval resume 'my evals/autumn' --file autumn.toml
            17 160 of 400 games are finished; the others wait until you raise its cap `usd` in the run file: small (its cap of 2 US dollars is reached); repair: large (HTTP 402: no credit); to continue after it: arena eval resume 'my evals/autumn' --file autumn.toml
        "#]]
        .assert_eq(&text);
        assert!(outcome(&RunEnd::Complete, &status(), Path::new("autumn"), None).is_ok());
    }

    #[test]
    fn the_folder_of_a_run_is_named_after_it() {
        for (name, expected) in [
            ("autumn-privacy", "autumn-privacy"),
            ("a/b c", "a-b-c"),
            ("../..", "eval"),
            ("héllo", "héllo"),
            ("", "eval"),
        ] {
            assert_eq!(file_name(name), expected);
        }
    }

    #[test]
    fn the_command_that_continues_has_the_options_of_the_run() {
        for (dir, file, expected) in [
            ("a", None, "arena eval resume a"),
            ("a", Some("b c"), "arena eval resume a --file 'b c'"),
            ("-x", None, "arena eval resume -- -x"),
            ("-x", Some("b"), "arena eval resume --file b -- -x"),
        ] {
            assert_eq!(resume_line(Path::new(dir), file), expected);
        }
    }
}
