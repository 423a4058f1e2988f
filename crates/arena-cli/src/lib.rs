//! The program `arena`: server, demo and command line. This file dispatches the commands; `args`, `client` and `exit`
//! contain their shared parts. It is a library, so that it compiles while its dependencies do; `main.rs` only links it.

mod admin;
mod agent;
mod answers;
mod args;
mod boards;
mod challenge;
mod challenges;
mod chat;
mod client;
mod completions;
mod demo;
mod eval;
mod exit;
mod fork;
mod house;
mod identity;
mod interrupt;
mod keys;
mod last_line;
mod local_pages;
mod log;
mod matches;
mod notify;
mod output;
mod play;
mod rate;
mod rebuild;
mod record;
mod replay;
mod scoring;
mod scripts;
mod serve;
mod session;
mod sign;
mod terminal;
mod tournament;
mod users;
mod verify;
mod worker;

use std::process::ExitCode;

use arena_wire::removed::{self, Kind};
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::{Cli, Verb};
use crate::exit::{Exit, Failure};
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
    let matches = args::command().try_get_matches().unwrap_or_else(|error| {
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
    Some(Failure::new(Exit::Usage, names.find_map(|name| removed::sentence(kind, &name))?))
}

fn run(cli: Cli) -> Result<(), Failure> {
    let style = cli.global.style();
    match cli.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Demo(args) => demo::run(&args, style),
        Verb::Play(args) => play::run(*args, cli.global, style),
        Verb::Match { verb } => matches::run(verb, style),
        Verb::Tournament { verb } => tournament::run(verb, style),
        Verb::Eval { verb } => eval::run(verb, style),
        Verb::Worker(args) => worker::run(args, style),
        Verb::Rate(args) => rate::run(&args, style),
        Verb::Agent { verb } => agent::run(verb, &cli.global, style),
        Verb::Replay { verb } => replay::run(verb, style),
        Verb::Verify(args) => verify::run(&args, &cli.global, style),
        Verb::Record { key, verb } => record::run(verb, &cli.global.with(key), style),
        Verb::Log { verb } => log::run(verb, &cli.global, style),
        Verb::Board { verb } => rebuild::run(verb, &cli.global, style),
        Verb::Session { verb } => session::run(verb, &cli.global, style),
        Verb::Author { verb } => challenge::run(verb, style),
        Verb::Challenges { key, verb } => challenges::run(verb, &cli.global.with(key).arena()?, style),
        Verb::Chat { key, verb } => chat::run(verb, &cli.global.with(key).arena()?, style),
        Verb::Scoring { name, sort, limit, offset } => {
            scoring::run(&scoring::Request { name, sort, limit, offset }, &cli.global.arena()?, style)
        }
        Verb::Users { verb } => users::run(verb, &cli.global.arena()?, style),
        Verb::Admin { args, verb } => admin::run(verb, args, &cli.global, style),
        Verb::Identity { verb } => identity::run(verb, style),
        Verb::Completions { shell } => completions::print(shell),
        Verb::Man { folder } => completions::write_man_pages(&folder),
    }
}
