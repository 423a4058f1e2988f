//! `arena tournament`: many matches between many agents, from plan to standings.

mod chess;
mod ending;
pub mod entrants;
mod league;
pub mod tables;
mod watch;
pub mod workers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arena_engine::Environment;
use arena_match::line_file::LineFileError;
use arena_match::{MatchError, ReplayError, cores};
use arena_model::{ChallengeType, GameType};
use arena_record::RecordKey;
use arena_report::{PgnGame, Picture, cross_table_picture, pgn, progress_picture, ratings_picture, shell_word};
use arena_runner::nats::{NatsExecutor, NatsOptions};
use arena_runner::{
    Competition, Ended, EntrantError, Event, Executor, Journal, JournalError, LocalExecutor, REPLAYS, RunError,
    check_folder, format_of, private_paths, read_pgn,
};
use arena_script::ScriptChallenge;
use arena_tournament::{GameLine, JournalLine, PlanError, Record, ScriptPart, Shape, TournamentPlan};

use crate::args::{Affinity, PictureArg, PlayArgs, ResumeArgs, StandingsArgs, TournamentArgs, TournamentVerb};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::settings::{self, confinement, find_game};
use crate::matches::{cannot_write, explain};
use crate::output::{self, Style, counted, print, printable};
use crate::{rate, scripts, sign};

use watch::Watcher;
use workers::WorkerPool;

pub fn run(verb: TournamentVerb, style: Style) -> Result<(), Failure> {
    match verb {
        TournamentVerb::Run(args) => begin(&args, style),
        TournamentVerb::Resume(args) => resume(&args, style),
        TournamentVerb::Add(args) => league::add(&args, style),
        TournamentVerb::Remove { folder, agents } => league::remove(&folder, &agents, style),
        TournamentVerb::Season { folder } => league::close_season(&folder, style),
        TournamentVerb::Standings(args) => show(&args, style),
        TournamentVerb::Rate(args) => rate::run(&args, style),
    }
}

fn begin(args: &TournamentArgs, style: Style) -> Result<(), Failure> {
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        // The path is made absolute, since the folder may be given as `.`.
        None => match Path::new(&args.game).canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned())) {
            Some(name) => usual_folder(&name.to_string_lossy()),
            None => usual_folder(&args.game),
        },
    };
    let sign_key = args.sign_key.as_deref().map(sign::read_key).transpose()?;
    let plan = plan(args, &folder)?;
    // The plan is checked before the folder is created.
    let checked = match args.pool.nats_url {
        // On workers, agents can't see this machine's files.
        Some(_) => check_folder(&plan, &folder),
        None => private_paths(&plan, &folder).map(drop),
    };
    checked.map_err(|error| Failure::new(Exit::Usage, error))?;
    if plan.format.is_open_ended() {
        return league::begin(args, plan, &folder, sign_key.as_ref(), style);
    }
    let pool = workers::prepare(&args.pool, &plan, &folder)?;
    let journal = Journal::create(&folder, plan).map_err(|error| match error {
        JournalError::Exists(_) => exists(&error, &folder),
        error => refused(&error),
    })?;
    play(journal, pool, args.table_every, sign_key.as_ref(), style)
}

fn exists(error: &JournalError, folder: &Path) -> Failure {
    let line = resume_line(folder);
    Failure::new(
        Exit::BadTournament,
        format_args!("{error}; resume it with `{line}`, or begin a new one with another --out"),
    )
}

fn resume(args: &ResumeArgs, style: Style) -> Result<(), Failure> {
    workers::check_resume(args)?;
    let sign_key = args.sign_key.as_deref().map(sign::read_key).transpose()?;
    if format_of(&args.folder).map_err(|error| refused(&error))?.is_open_ended() {
        return league::resume(args, sign_key.as_ref(), style);
    }
    ending::check_resume(args)?;
    let mut journal = Journal::open(&args.folder).map_err(|error| refused(&error))?;
    check_sign_key(sign_key.as_ref(), &journal.record().plan)?;
    note_cut_off(journal.record().cut_off);
    if let Some(rules) = load_rules(&journal.record().plan)? {
        journal.set_rules(rules).map_err(|error| refused(&error))?;
    }
    let changed = journal.changed().map_err(|error| no_entrant(&error))?;
    if !changed.is_empty() && !args.accept_changed {
        let names: Vec<&str> = changed.iter().map(|changed| changed.agent.as_str()).collect();
        let sentence = format!(
            "the files of {} have changed since their results were played; use --accept-changed to continue with the current files",
            names.join(" and ")
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    for changed in changed {
        output::note(&format!("the files of {} have changed; later games count for the same name", changed.agent));
        journal.append(JournalLine::Changed(changed)).map_err(|error| refused(&error))?;
    }
    if let Some(concurrency) = args.concurrency {
        journal.set_concurrency(concurrency as usize);
    }
    let pool = workers::prepare(&args.pool, &journal.record().plan, &args.folder)?;
    play(journal, pool, args.table_every, sign_key.as_ref(), style)
}

fn check_sign_key(sign_key: Option<&RecordKey>, plan: &TournamentPlan) -> Result<(), Failure> {
    match sign_key.is_some() && !plan.replays {
        true => Err(Failure::new(Exit::Usage, "the tournament keeps no replays, so --sign-key has nothing to sign")),
        false => Ok(()),
    }
}

fn note_cut_off(bytes: usize) {
    if bytes > 0 {
        output::note(&format!("dropped the incomplete last line ({bytes} bytes); its game is played again"));
    }
}

fn show(args: &StandingsArgs, style: Style) -> Result<(), Failure> {
    if format_of(&args.folder).map_err(|error| refused(&error))?.is_open_ended() {
        return league::show(args, style);
    }
    if args.season.is_some() {
        return Err(Failure::new(Exit::Usage, "--season is for leagues; this tournament has no seasons"));
    }
    let record = Journal::load_record(&args.folder).map_err(|error| refused(&error))?;
    if record.cut_off > 0 {
        output::note(&format!("ignored the incomplete last line ({} bytes)", record.cut_off));
    }
    note_surplus(&record);
    if let Some(exporter) = args.export.0 {
        return print((exporter.write)(&record).trim_end());
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

/// Draws the requested chart, or fails with the reason why it can't be drawn.
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
        let agents = counted(record.plan.agents.len() as u64, "agent", "agents");
        let games = counted(record.schedule.games_played() as u64, "game", "games");
        Failure::new(Exit::Usage, format_args!("this chart needs {needs}; the tournament has {agents} and {games}"))
    })
}

/// Prints all games as PGN. The moves come from the replays, if the tournament kept them. A damaged replay affects only
/// its own game; a note on stderr names it.
fn print_pgn(record: &Record, replays: &Path) -> Result<(), Failure> {
    // Most tournaments keep no replays.
    let replay = |game: &GameLine| {
        let path = replays.join(format!("{}.jsonl", game.number));
        Ok::<_, ReplayError>(read_pgn(&path)?.map(|text| dated(&text, &path)))
    };
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
                "wrote {}, {incomplete} of them without moves because their replays are unreadable",
                counted(written, "game", "games")
            ),
        )),
    }
}

/// Adds the date of a replay's file to its PGN. A replay contains no times of day.
fn dated(pgn: &str, replay: &Path) -> String {
    let written = fs::metadata(replay).and_then(|data| data.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_millis());
    match since.and_then(|ms| i64::try_from(ms).ok()).map(output::utc) {
        Some(time) if time.len() >= 10 => {
            pgn.replacen("[Date \"????.??.??\"]", &format!("[Date \"{}\"]", time[..10].replace('-', ".")), 1)
        }
        _ => pgn.to_owned(),
    }
}

/// Plays a competition, here or on workers.
fn execute<C: Competition + Send>(
    competition: &mut C,
    pool: Option<WorkerPool>,
    sign_key: Option<&RecordKey>,
    on_event: impl FnMut(&C, Event) -> Result<(), Failure> + Send,
) -> Result<Ended, RunError<Failure>> {
    if let Some((prepared, check)) = pool {
        let [stop, called_off] = &interrupt::flags([
            "waiting for the workers' games in progress; press Ctrl-C again to stop at once",
            "stopping; `resume` collects the workers' games in progress",
        ])
        .map_err(RunError::Caller)?;
        let options = NatsOptions { check, stop, called_off, replay_bytes: u64::MAX, sign_key };
        return NatsExecutor { prepared, options }.play(competition, on_event);
    }
    let [stop, called_off] = &interrupt::flags([
        "finishing the games in progress; press Ctrl-C again to stop at once",
        "stopping; the games in progress are lost; press Ctrl-C again to kill this program",
    ])
    .map_err(RunError::Caller)?;
    let plan = competition.plan();
    let (concurrency, cores) = (plan.concurrency, if plan.shares_core { cores() } else { Vec::new() });
    let (launcher, replay_bytes) = (&settings::launcher(), u64::MAX);
    LocalExecutor { launcher, concurrency, cores: &cores, replay_bytes, stop, called_off, sign_key }
        .play(competition, on_event)
}

/// Plays the remaining games, here or on workers, and reports progress and result.
fn play(
    mut journal: Journal,
    pool: Option<WorkerPool>,
    table_every: Option<usize>,
    sign_key: Option<&RecordKey>,
    style: Style,
) -> Result<(), Failure> {
    let folder = journal.folder().to_owned();
    let mut watcher = Watcher::new(journal.record(), style, table_every);
    watcher.begin(&folder, journal.record())?;
    let played =
        execute(&mut journal, pool, sign_key, |journal: &Journal, event| watcher.print_event(journal.record(), event));
    let summary = watcher.end(journal.record());
    note_surplus(journal.record());
    match played {
        Ok(Ended::Complete) => summary,
        Ok(Ended::Stopped) => Err(broken_off(&folder, journal.record())),
        Err(error) => Err(explain_end(error, &folder)),
    }
}

/// Converts the error that ended a run into a failure.
fn explain_end(error: RunError<Failure>, folder: &Path) -> Failure {
    let line = resume_line(folder);
    match error {
        RunError::Match { number, source: source @ MatchError::Outage(_) } => {
            let sentence = format!("game {number}: {source}; the game doesn't count; to resume: {line}");
            Failure::new(Exit::ModelFailed, sentence)
        }
        RunError::Match { number, source } => explain(source).about(&format_args!("game {number}")),
        RunError::ExposedOutput(error) => {
            let sentence = format!("{error}; you can move the tournament's folder and resume it there");
            Failure::new(Exit::Usage, sentence)
        }
        RunError::Changed(changed) => {
            let sentence = format!("{changed}; restore them, or continue with `{line} --accept-changed`");
            Failure::new(Exit::BadTournament, sentence)
        }
        RunError::Caller(failure) => failure,
        RunError::Plan(error) => unplayable(&error),
        RunError::Journal(error) => refused(&error),
        RunError::Fit(error) => Failure::caused(Exit::BadTournament, &error),
        RunError::Write { path, source } => cannot_write(&path, &source),
        RunError::Unplayable { number, what } => {
            Failure::new(Exit::NoAgent, format_args!("no worker can play game {number}: {what}"))
        }
        RunError::Nats(error) => Failure::new(Exit::Unreachable, error),
        RunError::System(what) => Failure::new(Exit::Internal, what),
    }
}

fn broken_off(folder: &Path, record: &Record) -> Failure {
    let (played, all) = (record.schedule.games_played(), record.schedule.games());
    let line = resume_line(folder);
    Failure::new(Exit::Interrupted, format_args!("stopped after {played} of {all} games; to resume: {line}"))
}

/// Prints a note about finished games that don't count because the test was already decided. The number of such games
/// depends on the concurrency, so the standings don't contain it.
fn note_surplus(record: &Record) {
    match record.schedule.surplus() {
        0 => {}
        1 => output::note("1 game was in progress when the test was decided; it is kept but doesn't count"),
        games => output::note(&format!(
            "{games} games were in progress when the test was decided; they are kept but don't count"
        )),
    }
}

/// Returns the command that resumes a tournament.
fn resume_line(folder: &Path) -> String {
    let text = folder.display().to_string();
    let end = if text.starts_with('-') { "-- " } else { "" };
    format!("arena tournament resume {end}{}", shell_word(&text))
}

/// Returns the default folder name, which consists of the game and the time.
fn usual_folder(game: &str) -> PathBuf {
    let time: String = output::utc(Environment::system().now().0).chars().filter(char::is_ascii_digit).collect();
    let (day, second) = time.split_at(time.len().min(8));
    PathBuf::from(format!("{game}-{day}-{second}"))
}

fn plan(args: &TournamentArgs, folder: &Path) -> Result<TournamentPlan, Failure> {
    workers::check_run(args)?;
    let script = scripts::find(&args.game).transpose()?;
    let (game, script) = match script {
        Some(challenge) => {
            let part = script_part(Path::new(&args.game), &challenge)?;
            (GameType::of_challenge(Arc::new(challenge)), Some(part))
        }
        None => (find_game(&args.game)?, None),
    };
    let PlayArgs { seed, concurrency, options, dialect, agent_ids, sandbox, affinity, .. } = &args.play;
    let agents = entrants::find(&args.agents, &args.commands, *dialect, *agent_ids, folder)?;
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
    let mut plan = TournamentPlan::new(game, agents, &shape);
    if let Some(script) = script {
        plan.set_rules(script, game);
    }
    plan.options = options.iter().cloned().collect();
    plan.limits = args.play.limits(game);
    plan.time_control = args.play.time_control();
    plan.start_limits = args.play.start_limits();
    plan.adjudication = chess::adjudication(args)?;
    if plan.adjudication.is_some() && game.name == "chess" {
        plan.options.insert("agreements".to_owned(), true.into());
    }
    let meetings = match format.is_open_ended() {
        true => usize::MAX,
        false => shape.rounds.saturating_mul(shape.agents * shape.agents.saturating_sub(1) / 2),
    };
    let from_position = |fen: &str| {
        if game.name != "chess" {
            // The check of the plan refuses openings then.
            return Ok(());
        }
        let mut options = plan.options.clone();
        options.insert("fen".to_owned(), fen.into());
        settings::try_start(game, &options, seats)
    };
    plan.openings = chess::openings(args, meetings, &shape.seed, from_position)?;
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
    ending::note_rounded(args, games_a_meeting);
    Ok(plan)
}

/// Returns the entry in the plan for a challenge in a folder.
fn script_part(folder: &Path, challenge: &ScriptChallenge) -> Result<ScriptPart, Failure> {
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::new(Exit::Usage, format_args!("{} cannot be found: {error}", folder.display())))?;
    let version = challenge.script().map(|script| script.version().to_string()).unwrap_or_default();
    Ok(ScriptPart { folder, version })
}

/// Loads the script with the rules of a tournament, if there is one.
fn load_rules(plan: &TournamentPlan) -> Result<Option<&'static GameType>, Failure> {
    let Some(script) = &plan.script else { return Ok(None) };
    let challenge = scripts::load(&script.folder)?;
    let part = script_part(&script.folder, &challenge)?;
    let rules = GameType::of_challenge(Arc::new(challenge));
    // A new version of the script interface also changes the hash of every script; the check of the rules reports that.
    if rules.rules_version == plan.rules_version && part != *script {
        let folder = script.folder.display();
        let sentence = format!(
            "the challenge in {folder} has changed since the tournament began; restore it, or begin a new tournament"
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    Ok(Some(rules))
}

/// Converts the error of an agent that can't take part into a failure.
pub fn no_entrant(error: &EntrantError) -> Failure {
    let exit = match error {
        EntrantError::Files { .. } => Exit::NoAgent,
        EntrantError::NotUtf8(_) => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Converts the error of a plan that can't be played into a failure.
fn unplayable(error: &PlanError) -> Failure {
    let exit = match error {
        PlanError::Version(_) | PlanError::Seed | PlanError::OtherRules { .. } | PlanError::OtherTexts { .. } => {
            Exit::BadTournament
        }
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

fn refused(error: &JournalError) -> Failure {
    match error {
        JournalError::Plan(error) => unplayable(error),
        JournalError::File(LineFileError::Write { .. }) => Failure::new(Exit::CannotWrite, error),
        _ => Failure::new(Exit::BadTournament, error),
    }
}
