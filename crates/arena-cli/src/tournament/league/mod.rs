//! Leagues: open-ended tournaments, which agents join and leave between runs.

pub mod add;

use std::path::Path;
use std::time::{Duration, Instant};

use arena_record::RecordKey;
use arena_report::season::{self, Season};
use arena_runner::{Change, Ended, Event, LeagueFolder, Until};
use arena_tournament::{League, LeagueAgent, ShapeError, TournamentPlan};
use serde_json::json;

use super::args::{ResumeArgs, TournamentArgs};
use super::failures::{explain_end, not_created, refused, stopped, unplayable};
use super::plan::load_rules;
use super::play::{check_sign_key, execute, note_cut_off};
use super::standings::StandingsArgs;
use super::tables;
use super::watch::HeldLines;
use super::workers::{self, WorkerPool};
use crate::exit::{Exit, Failure};
use crate::matches::open_files;
use crate::matches::settings::search_path;
use crate::output::{Style, counted, note, print, print_line, printable};

/// The number of games between two standings.
const TABLE_EVERY: usize = 50;

/// Creates a league with this plan and plays it.
pub fn begin(
    args: &TournamentArgs,
    plan: TournamentPlan,
    folder: &Path,
    sign_key: Option<&RecordKey>,
    style: Style,
) -> Result<(), Failure> {
    let (agents, seats) = (plan.agents.len(), plan.seats);
    if agents < seats {
        return Err(unplayable(ShapeError::TooManySeats { seats, agents }));
    }
    let until = until(args.games, args.time, args.until_margin)?;
    let pool = workers::prepare(&args.pool, &plan, folder)?;
    let mut league = LeagueFolder::create(folder, plan).map_err(|error| not_created(error, folder))?;
    league.set_limits(until);
    play(league, folder, pool, args.table_every, sign_key, style)
}

/// Plays on in an existing league.
pub fn resume(args: &ResumeArgs, sign_key: Option<&RecordKey>, style: Style) -> Result<(), Failure> {
    if args.accept_changed {
        let sentence =
            "--accept-changed is for tournaments with an end; in a league, changed files are another version";
        return Err(Failure::usage(sentence));
    }
    let until = until(args.games, args.time, args.until_margin)?;
    let mut league = open(&args.folder)?;
    check_sign_key(sign_key, &league.league().plan)?;
    league.check_rules().map_err(refused)?;
    if let Some(concurrency) = args.concurrency {
        league.set_concurrency(concurrency as usize);
    }
    for change in league.check_files(&search_path()).map_err(refused)? {
        note(&describe(change));
    }
    check_enough(league.league(), &args.folder)?;
    let pool = match &args.pool.nats_url {
        Some(address) => Some(workers::pool(&args.pool, league.prepare(address, &search_path()))?),
        None => None,
    };
    league.set_limits(until);
    play(league, &args.folder, pool, args.table_every, sign_key, style)
}

fn describe(change: Change) -> String {
    match change {
        Change::NextVersion { before, now } => {
            let (name, old, new) = (&before.entrant.name, version_of(&before), version_of(&now.agent));
            let goes_on = if now.is_new { "begins" } else { "continues" };
            format!("the files of {name} have changed: its version {new} {goes_on}; {old} keeps its results")
        }
        Change::Absent { name, reason } => format!("{name} cannot play for now: {reason}"),
    }
}

/// Formats a version of an agent: the version's name and number.
fn version_of(agent: &LeagueAgent) -> String {
    match &agent.entrant.version {
        Some(version) => format!("{version} (#{})", agent.generation),
        None => format!("#{}", agent.generation),
    }
}

fn until(games: Option<u32>, time: Option<Duration>, margin: Option<f64>) -> Result<Until, Failure> {
    if let Some(margin) = margin.filter(|margin| !margin.is_finite() || *margin <= 0.0) {
        return Err(unplayable(ShapeError::Margin(margin)));
    }
    Ok(Until { games: games.map(u64::from), at: time.map(|time| Instant::now() + time), margin })
}

/// Opens a league to change it, with its rules.
fn open(folder: &Path) -> Result<LeagueFolder, Failure> {
    let mut league = LeagueFolder::open(folder).map_err(refused)?;
    note_cut_off(league.league().cut_off);
    if let Some(rules) = load_rules(&league.league().plan)? {
        league.set_rules(rules);
    }
    Ok(league)
}

/// Fails if there are fewer agents than a game needs.
fn check_enough(league: &League, folder: &Path) -> Result<(), Failure> {
    let (ready, seats) = (league.season().ready().count(), league.plan.seats);
    if ready >= seats {
        return Ok(());
    }
    let agents = match ready {
        0 => "no agent".to_owned(),
        ready => counted(ready, "agent"),
    };
    let sentence = format!(
        "the league has {agents} that can play, but a game needs {seats}; add agents with `arena tournament add {} PATH…`",
        folder.display()
    );
    Err(Failure::new(Exit::BadTournament, sentence))
}

fn play(
    mut league: LeagueFolder,
    folder: &Path,
    pool: Option<WorkerPool>,
    table_every: Option<usize>,
    sign_key: Option<&RecordKey>,
    style: Style,
) -> Result<(), Failure> {
    if pool.is_none() {
        let plan = &league.league().plan;
        open_files::allow(plan.concurrency, plan.seats)?;
    }
    if style != Style::Json {
        let title = season::title(&Season::of(league.league()));
        print(&printable(&format!("{title}\nfolder: {}", folder.display())))?;
    }
    let before = league.league().games().len();
    let mut watcher =
        LeagueWatcher { style, before, table_every: table_every.unwrap_or(TABLE_EVERY), held: HeldLines::default() };
    let played = execute(&mut league, pool, sign_key, |folder: &LeagueFolder, event| {
        watcher.print_event(folder.league(), event)
    });
    let league = league.league();
    watcher.end(league)?;
    match played.map_err(|error| explain_end(error, folder))? {
        Ended::Complete => check_enough(league, folder),
        Ended::Stopped => Err(stopped(counted(league.games().len() - before, "game"), folder)),
    }
}

/// Prints the progress of a run.
struct LeagueWatcher {
    style: Style,
    /// The number of games before this run.
    before: usize,
    table_every: usize,
    held: HeldLines,
}

impl LeagueWatcher {
    fn print_event(&mut self, league: &League, event: Event) -> Result<(), Failure> {
        match (event, self.style) {
            (Event::Note(text), _) => note(&text),
            (Event::Changed(agent), _) => {
                let name = &league.member(agent).entrant.name;
                note(&format!(
                    "the files of {name} changed during play; this run continues without {name}, the next one with the new files"
                ));
            }
            (Event::Played(number), Style::Json) => {
                self.held.add(number);
                return self.print_held(league, false);
            }
            (Event::Played(number), Style::Pretty | Style::Compact) => {
                let Some(game) = league.game(number) else { return Ok(()) };
                print(&season::line(league, game))?;
                if self.table_every > 0 && (league.games().len() - self.before).is_multiple_of(self.table_every) {
                    print(&tables::season_standings(&Season::of(league)))?;
                }
            }
            (Event::Begun(_) | Event::Workers { .. }, _) => {}
        }
        Ok(())
    }

    /// Prints the held games of finished pairings, or all of them.
    fn print_held(&mut self, league: &League, all: bool) -> Result<(), Failure> {
        let season = league.season();
        let is_over =
            |number: usize| season.pairing(number).is_some_and(|pairing| !season.is_unfinished(pairing.meeting));
        self.held.print(&league.plan, |number| league.game(number), |number| all || is_over(number))
    }

    fn end(&mut self, league: &League) -> Result<(), Failure> {
        let season = Season::of(league);
        match self.style {
            Style::Json => {
                self.print_held(league, true)?;
                print(&season::json(&season).to_string())
            }
            Style::Pretty | Style::Compact => print(tables::describe_season(&season).trim_end()),
        }
    }
}

/// Removes agents: all or none.
pub fn remove(folder: &Path, agents: &[String], style: Style) -> Result<(), Failure> {
    let mut league = LeagueFolder::open(folder).map_err(refused)?;
    // All names are checked first, so that the command removes all agents or none.
    if let Some(stranger) = agents.iter().find(|agent| league.league().find(agent).is_none()) {
        return Err(Failure::new(Exit::BadTournament, format_args!("there is no agent {stranger} in the league")));
    }
    for agent in agents {
        // A name may be given twice.
        if league.league().find(agent).is_some() {
            league.remove(agent).map_err(refused)?;
        }
    }
    match style {
        Style::Json => print_line(&json!({"removed": agents})),
        Style::Pretty | Style::Compact => {
            let lines: Vec<String> = agents.iter().map(|agent| format!("removed {agent}; its results stay")).collect();
            print(&printable(&lines.join("\n")))
        }
    }
}

/// Closes the season and begins the next.
pub fn close_season(folder: &Path, style: Style) -> Result<(), Failure> {
    let mut league = open(folder)?;
    let (season, games) = (league.league().season().number(), league.league().games().len());
    // A season without games can be closed to change the rules.
    if games == 0 && league.check_rules().is_ok() {
        let sentence = format!("season {season} has no games yet, so there is nothing to close");
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    let next = league.close_season().map_err(refused)?;
    match style {
        Style::Json => print_line(&json!({"closed": season, "games_played": games, "season": next})),
        Style::Pretty | Style::Compact => {
            let games = counted(games, "game");
            print(&format!("season {season} is closed after {games}; season {next} begins"))
        }
    }
}

/// Prints the standings of a season.
pub fn show(args: &StandingsArgs, style: Style) -> Result<(), Failure> {
    let wanted = args.season.map(|season| season as usize);
    let league = LeagueFolder::load(&args.folder, wanted).map_err(refused)?;
    note_cut_off(league.cut_off);
    let current = league.season().number();
    if let Some(season) = wanted.filter(|season| *season > current) {
        let sentence = format!("there is no season {season} of the league: the current season is {current}");
        return Err(Failure::usage(sentence));
    }
    let season = Season::of(&league);
    match (args.export.0.map(|exporter| exporter.name), style) {
        _ if args.pgn || args.svg.is_some() => Err(no_export(if args.pgn { "pgn" } else { "svg" })),
        (Some("csv"), _) => print(season::csv(&season).trim_end()),
        (Some("markdown"), _) => print(season::markdown(&season).trim_end()),
        (Some(other), _) => Err(no_export(other)),
        (None, Style::Json) => print(&season::json(&season).to_string()),
        (None, Style::Pretty | Style::Compact) => {
            print(&printable(&season::title(&season)))?;
            print(tables::describe_season(&season).trim_end())
        }
    }
}

fn no_export(option: &str) -> Failure {
    let sentence = format!("--{option} is for tournaments with an end; a league has --csv, --markdown and --json");
    Failure::usage(sentence)
}
