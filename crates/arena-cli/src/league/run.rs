//! `arena league run`: checks the agents, plays, and reports progress.

use std::time::Instant;

use arena_match::cores;
use arena_report::season;
use arena_runner::league::{Change, LeagueRun, Season, Until, check_agents, check_season, line, report};
use arena_runner::nats::{NatsExecutor, NatsOptions};
use arena_runner::{Ended, Event, Executor, LocalExecutor};
use arena_store::{League, Store};
use serde_json::{Value, json};

use super::add::version_of;
use super::{LeagueContext, now, tables, unavailable, unplayable};
use crate::args::{Affinity, RunLeagueArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::files;
use crate::matches::settings::{self, search_path};
use crate::output::{Style, counted, note, print, printable};
use crate::tournament::{failed, workers};

pub fn run(context: &LeagueContext, args: &RunLeagueArgs, style: Style) -> Result<(), Failure> {
    let began = Instant::now();
    workers::check_league(args)?;
    let (store, league) = context.open(&args.name)?;
    check_season(&league).map_err(|error| unplayable(&error))?;
    files::allow(args.concurrency as usize, league.rules.seats)?;
    let season = ready(context, &store, league)?;
    check_enough(&season)?;
    let pool = workers::prepare_league(&args.pool, &season, &context.data)?;
    let until = Until { games: args.games, at: args.time.map(|time| began + time), margin: args.until_margin };
    if style != Style::Json {
        print(&printable(&season::title(&report(&season))))?;
    }
    let before = season.games().len();
    let mut run = LeagueRun::new(&store, context.runtime.handle(), season, until, &now, &context.data);
    let on_event =
        |run: &LeagueRun<'_>, event: Event| print_event(run.season(), &event, before, args.table_every, style);
    let played = match pool {
        Some((prepared, check)) => {
            let [stop, called_off] = &interrupt::flags([
                "waiting for the workers' games in progress; press Ctrl-C again to stop at once",
                "stopping; the next run collects the workers' games in progress",
            ])?;
            let options = NatsOptions { check, stop, called_off, replay_bytes: u64::MAX, sign_key: None };
            NatsExecutor { prepared, options }.play(&mut run, on_event)
        }
        None => {
            let [stop, called_off] = &interrupt::flags([
                "finishing the games in progress; press Ctrl-C again to stop at once",
                "stopping; the games in progress are lost; press Ctrl-C again to kill this program",
            ])?;
            let cores = match args.affinity {
                Affinity::Share => cores(),
                Affinity::Any => Vec::new(),
            };
            let (launcher, concurrency) = (&settings::launcher(), args.concurrency as usize);
            let (cores, replay_bytes, sign_key) = (&cores[..], u64::MAX, None);
            LocalExecutor { launcher, concurrency, cores, replay_bytes, stop, called_off, sign_key }
                .play(&mut run, on_event)
        }
    };
    let season = run.season();
    let games = season.games().len().saturating_sub(before);
    end(season, style)?;
    match played.map_err(failed)? {
        Ended::Complete => check_enough(season),
        Ended::Stopped => {
            let (games, line) = (counted(games as u64, "game", "games"), context.run_line(&args.name));
            Err(Failure::new(Exit::Interrupted, format_args!("stopped after {games}; to resume: {line}")))
        }
    }
}

/// Checks the agents' files and loads the current season. Prints a note for each agent that has changed or can't play.
fn ready(context: &LeagueContext, store: &Store, league: League) -> Result<Season, Failure> {
    let checked = context.wait(check_agents(store, league.no, &context.data, &search_path(), now()));
    let changes = checked.map_err(|error| Failure::caused(Exit::StoreUnavailable, &error))?;
    let number = league.season;
    let mut season = context.wait(Season::load(&store.leagues(), league, number)).map_err(unavailable)?;
    for change in changes {
        match change {
            Change::NextVersion { before, now } => {
                let (name, old, new) = (&now.facts.name, version_of(&before), version_of(&now));
                let goes_on = if now.no < before.no { "continues" } else { "begins" };
                note(&format!(
                    "the files of {name} have changed: its version {new} {goes_on}; {old} keeps its results"
                ));
            }
            Change::Absent { agent, reason } => {
                note(&format!("{} can't play for now: {reason}", agent.facts.name));
                season.exclude(agent.no);
            }
        }
    }
    Ok(season)
}

/// Fails if there are fewer agents than a game needs.
fn check_enough(season: &Season) -> Result<(), Failure> {
    let (ready, seats, name) = (season.ready().count(), season.league().rules.seats, &season.league().name);
    if ready >= seats {
        return Ok(());
    }
    let agents = match ready {
        0 => "no agent".to_owned(),
        1 => "1 agent".to_owned(),
        ready => format!("{ready} agents"),
    };
    let sentence = format!(
        "league {name} has {agents} that can play, but a game needs {seats}; add agents with `arena league add {name} PATH…`"
    );
    Err(Failure::new(Exit::BadTournament, sentence))
}

fn print_event(season: &Season, event: &Event, before: usize, table_every: usize, style: Style) -> Result<(), Failure> {
    match (event, season.games().last(), style) {
        (Event::Note(text), ..) => {
            note(text);
            Ok(())
        }
        (Event::Changed(agent), ..) => {
            let name = &season.agents()[*agent].facts.name;
            note(&format!(
                "the files of {name} changed during play; this run continues without {name}, the next one with the new files"
            ));
            Ok(())
        }
        (Event::Played(_), Some(game), Style::Json) => {
            let result = &game.result;
            let seats = result.seats.iter().filter_map(|seat| {
                let agent = &season.agents()[season.index_of(seat.agent)?];
                Some(json!({
                    "agent": agent.facts.name, "version": agent.facts.version, "generation": agent.generation, "rank": seat.rank,
                    "score": seat.score, "verdict": seat.verdict, "detail": seat.detail, "faults": seat.faults,
                }))
            });
            // The other games of a pairing use the same seed, which must stay secret until all of them are over.
            let is_over = season.unfinished().all(|(meeting, ..)| meeting != game.meeting);
            let seed = is_over.then(|| result.seed.reveal());
            let json = json!({
                "number": game.number, "season": game.season, "meeting": game.meeting, "leg": game.leg, "seed": seed,
                "epochs": result.epochs, "termination": result.outcome.termination, "winner": result.outcome.winner, "took_ms": result.took_ms,
                "seats": seats.collect::<Vec<Value>>(),
            });
            print(&json.to_string())
        }
        (Event::Played(_), Some(game), Style::Pretty | Style::Compact) => {
            print(&line(season, game))?;
            let played = season.games().len().saturating_sub(before);
            match table_every > 0 && played.is_multiple_of(table_every) {
                true => print(&tables::standings(&report(season))),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn end(season: &Season, style: Style) -> Result<(), Failure> {
    let season_report = report(season);
    match style {
        Style::Json => print(&season::json(&season_report).to_string()),
        Style::Pretty | Style::Compact => print(tables::describe(&season_report).trim_end()),
    }
}
