//! `arena tournament`: many matches between many agents, from a plan to standings.

mod ending;
pub mod entrants;
mod fleet;
pub mod tables;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_engine::Environment;
use arena_match::cores;
use arena_model::{ChallengeType, GameType, TimeLimits};
use arena_report::{PgnGame, Picture, cross_table_picture, pgn, progress_picture, ratings_picture, shell_word};
use arena_runner::nats::{NatsExecutor, NatsOptions};
use arena_runner::{
    Ended, EntrantError, Executor, Journal, JournalError, LocalExecutor, REPLAYS, RunError, check_folder, places,
    read_pgn,
};
use arena_script::ScriptChallenge;
use arena_tournament::{GameLine, Line, Plan, PlanError, Record, ScriptPart, Shape};

use crate::args::{Affinity, PictureArg, PlayArgs, ResumeArgs, StandingsArgs, TournamentArgs, TournamentVerb};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::settings::{self, confinement, find_game};
use crate::matches::{cannot_write, explain};
use crate::output::{self, Style, print, printable};
use crate::{rate, scripts};

use fleet::Fleet;
use watch::Watcher;

/// Does what `arena tournament` was asked for.
pub fn run(verb: TournamentVerb, style: Style) -> Result<(), Failure> {
    match verb {
        TournamentVerb::Run(args) => begin(&args, style),
        TournamentVerb::Resume(args) => resume(&args, style),
        TournamentVerb::Standings(args) => show(&args, style),
        TournamentVerb::Rate(args) => rate::run(&args, style),
    }
}

fn begin(args: &TournamentArgs, style: Style) -> Result<(), Failure> {
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        // A challenge's folder has a name also where it is called `.`.
        None => match Path::new(&args.game).canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned())) {
            Some(name) => usual_folder(&name.to_string_lossy()),
            None => usual_folder(&args.game),
        },
    };
    let plan = plan(args, &folder)?;
    // Before the folder is made.
    let checked = match args.fleet.nats_url {
        // Agents of workers see no file of this machine, wherever the folder is.
        Some(_) => check_folder(&plan, &folder),
        None => places(&plan, &folder).map(drop),
    };
    checked.map_err(|error| Failure::new(Exit::Usage, error))?;
    let fleet = fleet::prepare(&args.fleet, &plan, &folder)?;
    let journal = Journal::create(&folder, plan).map_err(|error| match error {
        JournalError::Exists(_) => Failure::new(
            Exit::BadTournament,
            format_args!("{error}; `{}` goes on with it, and another --out begins a new one", resume_line(&folder)),
        ),
        error => refused(&error),
    })?;
    go_on(journal, fleet, args.table_every, style)
}

fn resume(args: &ResumeArgs, style: Style) -> Result<(), Failure> {
    fleet::check_resume(args)?;
    let mut journal = Journal::open(&args.folder).map_err(|error| refused(&error))?;
    if journal.record().cut_off > 0 {
        let bytes = journal.record().cut_off;
        output::note(&format!("the last line wasn't whole ({bytes} bytes) and is dropped; its game is played again"));
    }
    load_rules(&mut journal)?;
    let changed = journal.changed().map_err(|error| no_entrant(&error))?;
    if !changed.is_empty() && !args.accept_changed {
        let names: Vec<&str> = changed.iter().map(|changed| changed.agent.as_str()).collect();
        let sentence = format!(
            "the files of {} aren't what they were when their results were played; --accept-changed goes on with them as they are now",
            names.join(" and ")
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    for changed in changed {
        output::note(&format!("the files of {} were changed; from here on it is another agent", changed.agent));
        journal.append(Line::Changed(changed)).map_err(|error| refused(&error))?;
    }
    if let Some(concurrency) = args.concurrency {
        journal.set_concurrency(concurrency as usize);
    }
    let fleet = fleet::prepare(&args.fleet, &journal.record().plan, &args.folder)?;
    go_on(journal, fleet, args.table_every, style)
}

fn show(args: &StandingsArgs, style: Style) -> Result<(), Failure> {
    let record = Journal::look(&args.folder).map_err(|error| refused(&error))?;
    if record.cut_off > 0 {
        output::note(&format!("the last line isn't whole ({} bytes) and doesn't count", record.cut_off));
    }
    tell_surplus(&record);
    if args.csv {
        return print(arena_report::csv(&record).trim_end());
    }
    if args.markdown {
        return print(arena_report::markdown(&record).trim_end());
    }
    if args.html {
        return print(arena_report::html(&record).trim_end());
    }
    if let Some(which) = args.svg {
        return print(picture(&record, which)?.to_file().trim_end());
    }
    if args.pgn {
        return print_pgn(&record, &args.folder.join(REPLAYS));
    }
    if style == Style::Json {
        return print(&arena_report::json(&record).to_string());
    }
    print(&printable(&arena_report::title(&record)))?;
    print(tables::describe(&record).trim_end())
}

/// The picture that was asked for, or why there is none.
fn picture(record: &Record, which: PictureArg) -> Result<Picture, Failure> {
    let (picture, needs) = match which {
        PictureArg::Ratings => (ratings_picture(record), "games, and at most 2000 agents"),
        PictureArg::CrossTable => (cross_table_picture(record), "games, and 3 to 40 agents"),
        PictureArg::Points => (
            progress_picture(record),
            "at least two games, an agent more than half a point from level, and at most 60 agents",
        ),
    };
    picture.ok_or_else(|| {
        let (agents, games) = (record.plan.agents.len(), record.schedule.games_played());
        Failure::new(
            Exit::Usage,
            format_args!("this picture needs {needs}; here are {agents} agents and {games} games"),
        )
    })
}

/// Prints all games in Portable Game Notation, with the moves of those whose replays were kept. A damaged replay costs the moves of
/// its own game, and is named on stderr.
fn print_pgn(record: &Record, replays: &Path) -> Result<(), Failure> {
    // Most tournaments keep none.
    let replay = |game: &GameLine| read_pgn(&replays.join(format!("{}.jsonl", game.number)));
    let (mut written, mut incomplete) = (0, 0);
    for PgnGame { text, missing } in pgn(record, replay).map_err(|error| Failure::new(Exit::Usage, error))? {
        print(&text)?;
        written += 1;
        if let Some(missing) = missing {
            incomplete += 1;
            output::note(Failure::caused(Exit::BadReplay, &missing).sentence());
        }
    }
    match incomplete {
        0 => Ok(()),
        _ => Err(Failure::new(
            Exit::BadReplay,
            format_args!(
                "{written} games were written, {incomplete} of them without moves, as their replays can't be read"
            ),
        )),
    }
}

/// Plays what is left, here or by workers, and tells how it goes and how it ended.
fn go_on(journal: Journal, fleet: Option<Fleet>, table_every: Option<usize>, style: Style) -> Result<(), Failure> {
    if let Some((prepared, check)) = fleet {
        let [stop, called_off] = &interrupt::flags([
            "waiting for the games that workers play; once more to stop at once",
            "stopping; what workers still play is taken up by `resume`",
        ])?;
        let executor = NatsExecutor { prepared, options: NatsOptions { check, stop, called_off } };
        return play(journal, executor, table_every, style);
    }
    let [stop, called_off] = &interrupt::flags([
        "finishing the games that run; once more to stop at once",
        "stopping, the games that run are lost; once more to kill this program",
    ])?;
    let plan = &journal.record().plan;
    let (concurrency, cores) = (plan.concurrency, if plan.shares_core { cores() } else { Vec::new() });
    let (launcher, replay_bytes) = (&settings::launcher()?, u64::MAX);
    let executor = LocalExecutor { launcher, concurrency, cores: &cores, replay_bytes, stop, called_off };
    play(journal, executor, table_every, style)
}

fn play(
    mut journal: Journal,
    executor: impl Executor<Journal>,
    table_every: Option<usize>,
    style: Style,
) -> Result<(), Failure> {
    let folder = journal.folder().to_owned();
    let mut watcher = Watcher::new(journal.record(), style, table_every);
    watcher.begin(&folder, journal.record())?;
    let played = executor.play(&mut journal, |journal, event| watcher.tell(journal.record(), event));
    let told = watcher.end(journal.record());
    tell_surplus(journal.record());
    match played {
        Ok(Ended::Complete) => told,
        Ok(Ended::Stopped) => Err(broken_off(&folder, journal.record())),
        Err(RunError::Match { number, source }) => Err(explain(source).about(&format_args!("game {number}"))),
        Err(RunError::Open(error)) => {
            let sentence = format!("{error}; the tournament's folder may be moved, and is resumed where it is then");
            Err(Failure::new(Exit::Usage, sentence))
        }
        Err(RunError::Changed(changed)) => {
            let line = resume_line(&folder);
            let sentence = format!("{changed}; put them back, or go on with `{line} --accept-changed`");
            Err(Failure::new(Exit::BadTournament, sentence))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The failure that tells why a tournament or a league can't go on.
pub fn failed(error: RunError<Failure>) -> Failure {
    match error {
        RunError::Caller(failure) => failure,
        RunError::Plan(error) => unplayable(&error),
        RunError::Rules(error) => Failure::caused(Exit::Usage, &error),
        RunError::Journal(error) => refused(&error),
        RunError::Store(error) => Failure::caused(Exit::StoreUnavailable, &error),
        RunError::Commit(error) => Failure::caused(Exit::StoreUnavailable, &error),
        RunError::Fit(error) => Failure::caused(Exit::BadTournament, &error),
        RunError::Match { source, .. } => explain(source),
        RunError::Write { path, source } => cannot_write(&path, &source),
        RunError::Unplayable { number, what } => {
            Failure::new(Exit::NoAgent, format_args!("game {number} can't be played by any worker: {what}"))
        }
        RunError::Changed(error) => Failure::new(Exit::BadTournament, error),
        RunError::Open(error) => Failure::new(Exit::Usage, error),
        RunError::Nats(error) => Failure::new(Exit::Unreachable, error),
        RunError::System(what) => Failure::new(Exit::Internal, what),
    }
}

fn broken_off(folder: &Path, record: &Record) -> Failure {
    let (played, all) = (record.schedule.games_played(), record.schedule.games());
    let line = resume_line(folder);
    Failure::new(Exit::Interrupted, format_args!("stopped after {played} of {all} games; to go on: {line}"))
}

/// Tells of games that don't count. How many there are depends on how games were played beside each other, so this is no part of the
/// standings.
fn tell_surplus(record: &Record) {
    match record.schedule.surplus() {
        0 => {}
        1 => output::note("1 game still ran when the test was decided; it is kept, and doesn't count"),
        games => {
            output::note(&format!("{games} games still ran when the test was decided; they are kept, and don't count"))
        }
    }
}

/// What to type to go on with the tournament in a folder.
fn resume_line(folder: &Path) -> String {
    let text = folder.display().to_string();
    let end = if text.starts_with('-') { "-- " } else { "" };
    format!("arena tournament resume {end}{}", shell_word(&text))
}

/// A folder here that is named after the game and the time.
fn usual_folder(game: &str) -> PathBuf {
    let time: String = output::utc(Environment::system().now().0).chars().filter(char::is_ascii_digit).collect();
    let (day, second) = time.split_at(time.len().min(8));
    PathBuf::from(format!("{game}-{day}-{second}"))
}

fn plan(args: &TournamentArgs, folder: &Path) -> Result<Plan, Failure> {
    fleet::check_run(args)?;
    let script = scripts::find(&args.game).transpose()?;
    let (game, script) = match script {
        Some(challenge) => {
            let part = script_part(Path::new(&args.game), &challenge)?;
            (GameType::of_challenge(Arc::new(challenge)), Some(part))
        }
        None => (find_game(&args.game)?, None),
    };
    let PlayArgs { seed, concurrency, options, dialect, step_ms, bank_ms, sandbox, affinity, model: _ } = &args.play;
    let agents = entrants::find(&args.agents, &args.commands, *dialect, folder)?;
    let format = args.format;
    let stop = ending::stop(args)?;
    let paired = !args.no_pairs;
    let seats = args.seats.map_or_else(|| 2.clamp(*game.seats.start(), *game.seats.end()), |seats| seats as usize);
    let games_a_meeting = if paired { seats } else { 1 };
    let shape = Shape {
        format,
        agents: agents.len(),
        rounds: ending::rounds(args, format, agents.len(), games_a_meeting, stop)?,
        seats,
        paired,
        stop,
        seed: match seed {
            Some(seed) => seed.clone(),
            None => settings::draw_seed()?,
        },
    };
    let mut plan = Plan::new(game, agents, &shape);
    if let Some(script) = script {
        plan.set_rules(script, game);
    }
    plan.options = options.iter().cloned().collect();
    plan.limits =
        TimeLimits { step_ms: step_ms.unwrap_or(game.limits.step_ms), bank_ms: bank_ms.unwrap_or(game.limits.bank_ms) };
    let confinement = confinement(sandbox)?;
    plan.sandbox = confinement.mode;
    plan.sandbox_limits = confinement.limits;
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    plan.expose = confinement.expose.iter().map(absolute).collect();
    plan.replays = args.replays;
    plan.concurrency = *concurrency as usize;
    plan.shares_core = *affinity == Affinity::Share;
    plan.check().map_err(|error| unplayable(&error))?;
    settings::check_players(&plan.options, seats)?;
    ending::tell_rounded(args, games_a_meeting);
    Ok(plan)
}

/// What a plan says of a challenge in a folder.
fn script_part(folder: &Path, challenge: &ScriptChallenge) -> Result<ScriptPart, Failure> {
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::new(Exit::Usage, format_args!("{} can't be found: {error}", folder.display())))?;
    let version = challenge.script().map(|script| script.version().to_string()).unwrap_or_default();
    Ok(ScriptPart { folder, version })
}

/// Loads the rules of a tournament again, where they are a script.
fn load_rules(journal: &mut Journal) -> Result<(), Failure> {
    let Some(script) = journal.record().plan.script.clone() else { return Ok(()) };
    let challenge = scripts::load(&script.folder)?;
    let part = script_part(&script.folder, &challenge)?;
    let rules = GameType::of_challenge(Arc::new(challenge));
    // Another version of the interface of scripts changes every hash, and is told as such below.
    if rules.rules_version == journal.record().plan.rules_version && part != script {
        let folder = script.folder.display();
        let sentence = format!(
            "the challenge in {folder} isn't what it was when the tournament began; put that back, or begin a new one"
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    journal.set_rules(rules).map_err(|error| refused(&error))
}

/// The failure that tells why an agent can't take part.
pub fn no_entrant(error: &EntrantError) -> Failure {
    let exit = match error {
        EntrantError::Files { .. } => Exit::NoAgent,
        EntrantError::NotUtf8(_) => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// The failure that tells why a tournament can't be played.
fn unplayable(error: &PlanError) -> Failure {
    let exit = match error {
        PlanError::Version(_) | PlanError::Seed | PlanError::OtherRules { .. } => Exit::BadTournament,
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

fn refused(error: &JournalError) -> Failure {
    match error {
        JournalError::Plan(error) => unplayable(error),
        JournalError::Write { .. } => Failure::new(Exit::CannotWrite, error),
        _ => Failure::new(Exit::BadTournament, error),
    }
}
