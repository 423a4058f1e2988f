//! `arena eval`: language models in many games against each other, from the run file to the report.

mod amounts;
mod calls;
mod game;
mod live;
mod matrix;
mod plan;
mod report;
mod status;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use arena_engine::Environment;
use arena_eval::{
    EvalFolder, EvalPlan, EvalRun, FolderError, GameRecord, PausedModel, PlanError, Progress, RunEnd, RunError,
    RunFile, RunOptions,
};
use arena_match::line_file::LineFileError;
use arena_report::shell_word;
use arena_wire::removed::{self, Kind};
use parking_lot::Mutex;

use crate::args::{EvalVerb, PlayEvalArgs, ResumeEvalArgs, RunEvalArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, Style, counted, print};
use crate::serve::runtime;

use self::live::{LiveState, LiveStatus};
use self::watch::EvalWatcher;

pub fn run(verb: EvalVerb, style: Style) -> Result<(), Failure> {
    match verb {
        EvalVerb::Plan(args) => plan::run(&args, style),
        EvalVerb::Run(args) => begin(&args, style),
        EvalVerb::Resume(args) => resume(&args, style),
        EvalVerb::Status(args) => status::run(&args.dir, style),
        EvalVerb::Report(args) => report::run(&args, style),
        EvalVerb::Calls(args) => calls::run(&args, style),
        EvalVerb::Game(args) => game::run(&args, style),
        EvalVerb::Diff(args) => game::diff(&args, style),
    }
}

fn begin(args: &RunEvalArgs, style: Style) -> Result<(), Failure> {
    let plan = read_plan(&args.file)?;
    let dir = args.out.clone().unwrap_or_else(|| usual_folder(&plan.file.name));
    check_keys(&plan, &dir)?;
    let mut folder = EvalFolder::create_or_open(&dir, plan, args.play.accept_changed).map_err(refused)?;
    play(&mut folder, &options(&args.play), Some(&args.file), style)
}

/// Checks the keys of all models before a folder is created. A run that is continued needs only the keys of models with
/// open games, which it checks itself.
fn check_keys(plan: &EvalPlan, dir: &Path) -> Result<(), Failure> {
    if EvalFolder::exists(dir) {
        return Ok(());
    }
    plan.file.check_keys().map_err(|error| Failure::new(Exit::Usage, error))
}

fn resume(args: &ResumeEvalArgs, style: Style) -> Result<(), Failure> {
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
    match style {
        Style::Json => {
            print(&serde_json::to_string(&status).map_err(|error| Failure::caused(Exit::Internal, &error))?)?
        }
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
enum Purpose {
    /// The results of a run.
    Results,
    /// An estimate, which is printed instead of the progress.
    Pilot,
}

/// Plays the remaining games of a folder and shows the progress. Returns the end and the last status.
fn play_games(
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
    let mut watcher = EvalWatcher::new(style, &dir, plan.file.budget, games, finished_before);
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
fn reasons(models: &[PausedModel]) -> String {
    models.iter().map(|model| format!("{} ({})", model.name, model.why)).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a run and the sizes of its plan.
fn title(plan: &EvalPlan) -> String {
    format!(
        "{}: {}, {}, {}",
        plan.file.name,
        counted(plan.agents.len() as u64, "agent", "agents"),
        counted(plan.challenges.len() as u64, "challenge", "challenges"),
        counted(plan.games.len() as u64, "game", "games")
    )
}

fn read_plan(file: &Path) -> Result<EvalPlan, Failure> {
    let read = RunFile::read(file).map_err(|error| Failure::new(Exit::Usage, error))?;
    // The folders of earlier runs may have judges, which are ignored there.
    refuse_removed("judges", !read.judges.is_empty(), file)?;
    refuse_removed("stand_in", read.has_stand_in(), file)?;
    EvalPlan::of(read, parent(file)).map_err(|error| unplayable(&error).about(&file.display()))
}

/// Refuses a key of the run files of earlier programs, if it is found. Their runs can be read.
fn refuse_removed(key: &str, is_found: bool, source: &Path) -> Result<(), Failure> {
    match removed::sentence(Kind::Setting, key).filter(|_| is_found) {
        Some(sentence) => Err(Failure::new(Exit::Usage, format_args!("{}: {sentence}", source.display()))),
        None => Ok(()),
    }
}

fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Loads a run for reading, also while another process plays it.
fn load(dir: &Path) -> Result<EvalRun, Failure> {
    EvalRun::load(dir).map_err(refused)
}

/// Finds a finished game by its id or the first digits of its id.
fn find_game<'r>(run: &'r EvalRun, id: &str) -> Result<&'r GameRecord, Failure> {
    let mut found = run.games.iter().filter(|game| game.game.starts_with(id));
    match (found.next(), found.next()) {
        (Some(game), None) => Ok(game),
        (Some(game), Some(_)) if game.game == id => Ok(game),
        (Some(_), Some(_)) => {
            let count = found.count() + 2;
            Err(Failure::new(Exit::Usage, format_args!("{count} games begin with {id}; give more digits")))
        }
        (None, _) => {
            let sentence = match run.plan.games.iter().find(|game| game.id.starts_with(id)) {
                Some(game) => format!("game {} isn't finished", game.id),
                None => format!("the run has no game {id}; `arena eval calls DIR` lists ids"),
            };
            Err(Failure::new(Exit::Usage, sentence))
        }
    }
}

/// Returns the command that continues a run, with the run file if it is given.
fn resume_line(dir: &Path, file: Option<&str>) -> String {
    let text = dir.display().to_string();
    let options = file.map_or_else(String::new, |file| format!(" --file {}", shell_word(file)));
    let dir = shell_word(&text);
    // No option may follow `--`.
    if text.starts_with('-') {
        format!("arena eval resume{options} -- {dir}")
    } else {
        format!("arena eval resume {dir}{options}")
    }
}

/// Returns the default folder name, which consists of the run's name and the time.
fn usual_folder(name: &str) -> PathBuf {
    let time: String = output::utc(Environment::system().now().0).chars().filter(char::is_ascii_digit).collect();
    let (day, second) = time.split_at(time.len().min(8));
    PathBuf::from(format!("{}-{day}-{second}", file_name(name)))
}

/// Returns the name of a run as a part of a file name.
fn file_name(name: &str) -> String {
    let safe: String =
        name.chars().map(|char| if char.is_alphanumeric() || "._-".contains(char) { char } else { '-' }).collect();
    let safe = safe.trim_matches(['.', '-']);
    if safe.is_empty() { "eval".to_owned() } else { safe.to_owned() }
}

fn unplayable(error: &PlanError) -> Failure {
    Failure::caused(Exit::Usage, error)
}

fn refused(error: FolderError) -> Failure {
    let exit = match &error {
        FolderError::RunFile(_) | FolderError::Plan(_) => Exit::Usage,
        FolderError::File(LineFileError::Write { .. }) => Exit::CannotWrite,
        _ => Exit::BadTournament,
    };
    Failure::caused(exit, &error)
}

fn failed(error: RunError) -> Failure {
    match error {
        RunError::Folder(error) => refused(error),
        RunError::Endpoint { .. } => Failure::new(Exit::Usage, error),
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

    #[test]
    fn the_folder_of_a_plain_file_name_is_the_current_one() {
        assert_eq!(parent(Path::new("autumn.toml")), Path::new("."));
        assert_eq!(parent(Path::new("evals/autumn.toml")), Path::new("evals"));
    }
}
