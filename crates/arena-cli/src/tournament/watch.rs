//! The progress of a tournament: a line for each game, the standings at intervals, and on a terminal the remaining
//! time.

use std::path::Path;

use arena_report::{line, title, title_without_seed};
use arena_runner::Event;
use arena_tournament::{GameLine, Record, TournamentPlan};
use indicatif::ProgressBar;
use serde::Serialize;

use super::tables;
use crate::exit::Failure;
use crate::output::{self, Style, counted, print, print_line, printable};
use crate::terminal::progress_bar;

pub struct Watcher {
    style: Style,
    table_every: usize,
    bar: ProgressBar,
    held: HeldLines,
}

/// Games whose JSON lines aren't printed yet, since a line reveals the seed of its pairing's unplayed games.
#[derive(Default)]
pub struct HeldLines(Vec<usize>);

impl HeldLines {
    pub fn add(&mut self, game: usize) {
        self.0.push(game);
    }

    /// Prints the lines of the games in `games` for which `is_due` is true, in the order of their ends.
    pub fn print<'g>(
        &mut self,
        plan: &TournamentPlan,
        games: impl Fn(usize) -> Option<&'g GameLine>,
        is_due: impl Fn(usize) -> bool,
    ) -> Result<(), Failure> {
        let due: Vec<usize> = self.0.extract_if(.., |number| is_due(*number)).collect();
        due.into_iter()
            .filter_map(games)
            .try_for_each(|line| print_line(&GameJson { game: &plan.game, rules_version: plan.rules_version, line }))
    }
}

/// A JSON line: the game as in the journal, with the fields of the plan that a reader needs without the journal.
#[derive(Serialize)]
struct GameJson<'a> {
    game: &'a str,
    rules_version: u32,
    #[serde(flatten)]
    line: &'a GameLine,
}

impl Watcher {
    /// Creates the progress display of a tournament. `table_every` is the number of games between two standings; 0
    /// prints none.
    pub fn new(record: &Record, style: Style, table_every: Option<usize>) -> Watcher {
        // The default interval grows with the number of games, so that ratings don't take longer than the games
        // themselves.
        let part = match record.schedule.sequential_test() {
            // Most tests end long before their last game.
            Some(_) => 0,
            None => record.schedule.games().div_ceil(50),
        };
        let table_every = table_every.unwrap_or(part.max(50));
        let template = "{wide_bar} {pos} of {len} games{msg}, {eta} left";
        let bar = progress_bar(record.schedule.games(), style == Style::Json, template);
        Watcher { style, table_every, bar, held: HeldLines::default() }
    }

    pub fn begin(&mut self, folder: &Path, record: &Record) -> Result<(), Failure> {
        if self.style == Style::Json {
            return Ok(());
        }
        let text = format!("{}\nfolder: {}", title_without_seed(record), folder.display());
        print(&printable(&text))?;
        // The remaining time is estimated from the games of this run.
        self.bar.set_position(record.schedule.games_played() as u64);
        self.bar.reset_eta();
        self.bar.tick();
        Ok(())
    }

    pub fn print_event(&mut self, record: &Record, event: Event) -> Result<(), Failure> {
        match event {
            Event::Played(number) => return self.print_game(record, number),
            Event::Note(text) => self.bar.suspend(|| output::note(&text)),
            Event::Workers { workers, playing } => self.show_workers(workers, playing),
            // The executor's error reports the change.
            Event::Begun(_) | Event::Changed(_) => {}
        }
        Ok(())
    }

    fn print_game(&mut self, record: &Record, number: usize) -> Result<(), Failure> {
        let Some(game) = record.game(number) else { return Ok(()) };
        let played = record.schedule.games_played();
        let line = match self.style {
            Style::Json => {
                self.held.add(number);
                return self.print_held(record, false);
            }
            Style::Pretty | Style::Compact => {
                let is_due = self.table_every > 0 && played.is_multiple_of(self.table_every);
                let table = is_due && !record.schedule.is_complete();
                let table = if table { format!("\n{}", tables::standings(record)) } else { String::new() };
                line(record, game) + &table
            }
        };
        let (played, all) = (played as u64, record.schedule.games() as u64);
        let printed = self.bar.suspend(|| print(&line));
        self.bar.set_length(all);
        self.bar.set_position(played);
        printed
    }

    /// Prints the held lines of finished pairings, or all of them.
    fn print_held(&mut self, record: &Record, all: bool) -> Result<(), Failure> {
        let pairings = record.schedule.pairings();
        let is_over = |number: usize| {
            let meeting = record.schedule.pairing(number).map(|pairing| pairing.meeting);
            let first = pairings.partition_point(|pairing| Some(pairing.meeting) < meeting);
            let mut games = pairings[first..].iter().take_while(|pairing| Some(pairing.meeting) == meeting);
            games.all(|pairing| record.game(pairing.number).is_some())
        };
        self.held.print(&record.plan, |number| record.game(number), |number| all || is_over(number))
    }

    fn show_workers(&self, workers: usize, playing: usize) {
        let text = format!(", {}, {playing} in progress", counted(workers, "worker"));
        if self.bar.message() != text {
            self.bar.set_message(text);
        }
    }

    /// Prints the final standings, or the current ones after an interruption.
    pub fn end(&mut self, record: &Record) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        match self.style {
            Style::Json => {
                self.print_held(record, true)?;
                print(&arena_report::json(record).to_string())
            }
            Style::Pretty | Style::Compact => {
                if record.schedule.is_complete() {
                    print(&printable(&title(record)))?;
                }
                print(tables::describe(record).trim_end())
            }
        }
    }
}
