//! The program `arena`: server, demo and command line. This file dispatches the commands. Each command has a file or a
//! folder with its arguments, its code and its output. The other files are shared: `command_line`, `client`, `exit`,
//! `files`, `interrupt`, `output`, `scripts` and `terminal`. The crate is a library, so that it compiles while its
//! dependencies do; `main.rs` only links it.

mod admin;
mod agent;
mod author;
mod board;
mod challenges;
mod chat;
mod client;
mod command_line;
mod completions;
mod demo;
mod eval;
mod exit;
mod files;
mod identity;
mod interrupt;
mod log;
mod matches;
mod output;
mod play;
mod rate;
mod record;
mod replay;
mod scoring;
mod scripts;
mod serve;
mod session;
mod terminal;
mod tournament;
mod users;
mod verify;
mod worker;

use std::process::ExitCode;

use arena_wire::removed::{self, Kind};
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::command_line::{Cli, Verb};
use crate::exit::Failure;
use crate::matches::LAUNCH;

/// Runs the command that the program's arguments name.
pub fn main() -> ExitCode {
    // The hidden commands are handled before anything else: the launcher must start no thread and open no file, and the
    // script worker drops its privileges.
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(verb) if verb == LAUNCH => return arena_match::launch(args),
        Some(verb) if verb == arena_script::RUN => return arena_script::worker_main(),
        _ => {}
    }
    let matches = command_line::command().try_get_matches().unwrap_or_else(|error| {
        if let Some(failure) = removed_words(&error) {
            failure.print();
            std::process::exit(failure.exit as i32);
        }
        error.exit()
    });
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match Cli::refuse_unused(&matches).and_then(|()| run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit.into()
        }
    }
}

/// Returns the failure for a command or an option of an earlier version.
fn removed_words(error: &clap::Error) -> Option<Failure> {
    let (kind, context) = match error.kind() {
        ErrorKind::InvalidSubcommand => (Kind::Command, ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => (Kind::Option, ContextKind::InvalidArg),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(context) else { return None };
    let option = word.split('=').next()?;
    let args = std::env::args().skip(1).take_while(|arg| arg != word && arg.split('=').next() != Some(option));
    // Words may also be values of options, so each may be the first of the command.
    let words: Vec<String> = args.filter(|arg| !arg.starts_with('-')).collect();
    let places = (0..=words.len()).flat_map(|from| (from..=words.len()).map(move |to| (from, to)));
    let mut names = places.map(|(from, to)| [&words[from..to], &[option.to_owned()]].concat().join(" "));
    Some(Failure::usage(names.find_map(|name| removed::sentence(kind, &name))?))
}

fn run(Cli { global, verb }: Cli) -> Result<(), Failure> {
    let style = global.style();
    match verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Demo(args) => demo::run(&args, style),
        Verb::Play(args) => play::run(&args, global, style),
        Verb::Match(verb) => matches::run(verb, style),
        Verb::Tournament(verb) => tournament::run(verb, style),
        Verb::Eval(verb) => eval::run(verb, style),
        Verb::Worker(args) => worker::run(args, style),
        Verb::Rate(args) => rate::run(&args, style),
        Verb::Agent(verb) => agent::run(verb, &global, style),
        Verb::Replay(verb) => replay::run(verb, style),
        Verb::Verify(args) => verify::run(&args, &global, style),
        Verb::Record { key, verb } => record::run(verb, &global.with(&key), style),
        Verb::Log(verb) => log::run(verb, &global, style),
        Verb::Board(verb) => board::run(verb, &global, style),
        Verb::Session(verb) => session::run(verb, &global, style),
        Verb::Author(verb) => author::run(verb, style),
        Verb::Challenges { key, verb } => challenges::run(verb, &global.with(&key).arena()?, style),
        Verb::Chat { key, verb } => chat::run(verb, &global.with(&key).arena()?, style),
        Verb::Scoring(args) => scoring::run(&args, &global.arena()?, style),
        Verb::Users(verb) => users::run(verb, &global.arena()?, style),
        Verb::Admin { args, verb } => admin::run(verb, args, &global, style),
        Verb::Identity(verb) => identity::run(verb, style),
        Verb::Completions(args) => completions::print(args.shell),
        Verb::Man(args) => completions::write_man_pages(&args.folder),
    }
}
