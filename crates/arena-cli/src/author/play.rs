//! `arena author play`: a temporary server for one session, with the author at the keyboard.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_players::http::{Arena, HttpSeat, Identity, OUTAGE};
use arena_server::{ChallengeSettings, Settings};
use arena_wire::Session;
use clap::Args;
use serde_json::{Map, Value};

use super::find::{FoundChallenge, find};
use crate::exit::{Exit, Failure};
use crate::files::temporary_folder;
use crate::matches::options::{SandboxArgs, option};
use crate::output::Style;
use crate::play::args::BotArgs;
use crate::play::{BotPlayer, play_together};
use crate::serve::{self, LogArgs, LogFormat};
use crate::{interrupt, scripts};

/// Options of `arena author play`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena author play .                            you play all seats; /seat 2 switches
  arena author play . --agent 2=bots/half.py     you are Player 1
  arena author play psi --agent 1=./a --agent 3=./b --set players=3
  printf '/bid 40\\n/seat 2\\n/bid 30\\n' | arena author play .

The challenge runs on a temporary server on this machine, as players would meet it. /help lists the commands.")]
pub struct PlayChallengeArgs {
    /// Challenge: a folder, or the name of a built-in one.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Agent for a seat (numbered from 1): a file, a folder or a URL. You play the other seats.
    #[arg(long = "agent", value_name = "SEAT=PATH", value_parser = seat_agent)]
    pub agents: Vec<(usize, String)>,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Parses `SEAT=PATH`; seats are numbered from 1.
fn seat_agent(text: &str) -> Result<(usize, String), String> {
    let parsed = text.split_once('=').and_then(|(seat, path)| Some((seat.parse::<usize>().ok()?, path)));
    match parsed {
        Some((seat @ 1.., path)) if !path.is_empty() => Ok((seat, path.to_owned())),
        _ => Err("expected a seat number from 1 and an agent, such as 2=./bot".to_owned()),
    }
}

/// Starts a server, creates a session, fills the seats and plays.
pub fn run(args: &PlayChallengeArgs, style: Style) -> Result<(), Failure> {
    let found = find(&args.challenge, &Map::new())?;
    let options: Map<String, Value> = args.options.iter().cloned().collect();
    let settings = settings(&found, &options)?;
    // Arguments are checked here, before a server starts.
    let bots = find_bots(args)?;
    // The log shows the faults of a script, since the player here is its author.
    serve::start_log(&LogArgs { log_format: LogFormat::Text, level: None }, "warn,arena_server=error")?;
    let folder = temporary_folder("arena-play-", Exit::StoreUnavailable)?;
    let runtime = serve::runtime()?;
    let called_off = interrupt::flag()?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve::start(Settings { listen, data: folder.path().to_owned(), ..settings });
    let server = runtime.block_on(server)?;
    let arena = Arena::at(&format!("http://{}", server.address()));
    let stop_server = serve::run_in_background(server, &runtime);
    // The options of a script belong to the session.
    let session = arena.create(found.challenge.id(), found.folder.is_some().then_some(&options));
    let played =
        session.map_err(Failure::from).and_then(|session| play(&arena, &session.read()?, bots, style, &called_off));
    played.and(stop_server())
}

/// Returns the settings of a server that offers the challenge. For a built-in challenge, the settings contain the
/// options, since the operator of a server may set more options than the creator of a session.
fn settings(found: &FoundChallenge, options: &Map<String, Value>) -> Result<Settings, Failure> {
    let id = found.challenge.id();
    let mut settings = Settings::default();
    settings.scripts.worker = Some(scripts::worker()?);
    match &found.folder {
        Some(folder) => {
            found.challenge.resolve(options).map_err(Failure::usage)?;
            settings.scripts.folders.push(folder.clone());
        }
        None => {
            arena_games::challenge(id, options).transpose().map_err(Failure::usage)?;
            let hosted = ChallengeSettings { name: id.to_owned(), options: options.clone(), scoring: Vec::new() };
            settings.challenges = vec![hosted];
        }
    }
    Ok(settings)
}

/// Returns the bots with their seats, from 1.
fn find_bots(args: &PlayChallengeArgs) -> Result<Vec<(usize, BotPlayer)>, Failure> {
    let mut bots: Vec<(usize, BotPlayer)> = Vec::new();
    for (seat, path) in &args.agents {
        if bots.iter().any(|(other, _)| other == seat) {
            return Err(Failure::usage(format_args!("seat {seat} has two agents; give one")));
        }
        let args = BotArgs {
            agent: Some(path.clone()),
            sandbox: Some(args.sandbox.sandbox),
            memory: Some(args.sandbox.memory),
            expose: args.sandbox.expose.clone(),
            ..BotArgs::default()
        };
        bots.push((*seat, BotPlayer::of(&args)?));
    }
    Ok(bots)
}

fn play(
    arena: &Arena,
    Session { invites, .. }: &Session,
    mut bots: Vec<(usize, BotPlayer)>,
    style: Style,
    called_off: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let seats = invites.len();
    if let Some((seat, _)) = bots.iter().find(|(seat, _)| *seat > seats) {
        return Err(Failure::usage(format_args!("there is no seat {seat}; the challenge has {seats} seats")));
    }
    if bots.len() == seats {
        let sentence = "all seats have agents and none is left for you; use `arena match run` to let agents play alone";
        return Err(Failure::usage(sentence));
    }
    let arena = arena.clone().with_retries_for(OUTAGE);
    let take = |(number, invite): (usize, &String)| {
        let seat = HttpSeat::take(&arena, invite, Identity::Name(None))?;
        Ok((seat, bots.iter().position(|(seat, _)| *seat == number).map(|at| bots.swap_remove(at).1)))
    };
    let seats = (1..).zip(invites).map(take).collect::<Result<Vec<_>, Failure>>()?;
    play_together(seats, style, called_off)
}
