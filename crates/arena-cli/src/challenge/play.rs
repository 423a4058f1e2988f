//! `arena author play`: a temporary server for one session, with the author at the keyboard.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_players::http::{Arena, HttpSeat, Identity, OUTAGE};
use arena_server::{ChallengeSettings, Settings};
use arena_wire::Session;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::find::{FoundChallenge, find};
use crate::args::{BotArgs, LogArgs, LogFormat, PlayChallengeArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::Style;
use crate::play::{BotPlayer, Sitter, sit_down};
use crate::{scripts, serve};

/// Starts a server, creates a session, fills the seats and plays.
pub fn run(args: &PlayChallengeArgs, style: Style) -> Result<(), Failure> {
    let found = find(&args.challenge, &Map::new())?;
    let options: Map<String, Value> = args.options.iter().cloned().collect();
    let mut settings = hosting(&found, &options)?;
    // Arguments are checked here, before a server starts.
    let mut bots: Vec<(usize, BotPlayer)> = Vec::new();
    for (seat, path) in &args.agents {
        if bots.iter().any(|(other, _)| other == seat) {
            return Err(Failure::new(Exit::Usage, format_args!("seat {seat} has two agents; give one")));
        }
        bots.push((*seat, BotPlayer::of(&bot_args(path, args))?));
    }
    // The log shows the faults of a script, since the player here is its author.
    serve::start_log(&LogArgs { log_format: LogFormat::Text, level: None }, "warn,arena_server=error")?;
    let folder = tempfile::Builder::new().prefix("arena-play-").tempdir();
    let folder = folder.map_err(|error| {
        Failure::new(Exit::StoreUnavailable, format_args!("cannot create a temporary folder: {error}"))
    })?;
    let runtime = serve::runtime()?;
    let called_off = interrupt::flag()?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings.listen = listen;
    settings.data = folder.path().to_owned();
    settings.scripts.worker = Some(scripts::worker()?);
    let server = runtime.block_on(serve::start(settings))?;
    let arena = Arena::at(&format!("http://{}", server.address()));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(server.run(async {
        // An error means that the sender was dropped, which stops the server too.
        let _ = stopped.await;
    }));
    let wished = found.folder.is_some().then_some(&options);
    let played = play(&found, &arena, bots, wished, style, &called_off);
    drop(stop);
    let served = runtime.block_on(serving);
    played?;
    served.map_err(|panic| Failure::new(Exit::Internal, format_args!("the server ended in a panic: {panic}")))
}

/// Returns the settings of a server that offers the challenge. For a built-in challenge, the settings contain the
/// options, since the operator of a server may set more options than the creator of a session. The options of a script
/// belong to the session instead.
fn hosting(found: &FoundChallenge, options: &Map<String, Value>) -> Result<Settings, Failure> {
    let id = found.challenge.id();
    let refused = |error| Failure::new(Exit::Usage, error);
    let mut settings = Settings::default();
    let Some(folder) = &found.folder else {
        arena_games::challenge(id, options).transpose().map_err(refused)?;
        let hosted = ChallengeSettings { name: id.to_owned(), options: options.clone(), scoring: Vec::new() };
        settings.challenges = vec![hosted];
        return Ok(settings);
    };
    found.challenge.resolve(options).map_err(refused)?;
    settings.scripts.folders.push(folder.clone());
    Ok(settings)
}

fn play(
    found: &FoundChallenge,
    arena: &Arena,
    mut bots: Vec<(usize, BotPlayer)>,
    options: Option<&Map<String, Value>>,
    style: Style,
    called_off: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let Session { invites, .. } = arena.create(found.challenge.id(), options)?.read()?;
    if let Some((seat, _)) = bots.iter().find(|(seat, _)| *seat > invites.len()) {
        let seats = invites.len();
        return Err(Failure::new(
            Exit::Usage,
            format_args!("there is no seat {seat}; the challenge has {seats} seats"),
        ));
    }
    if bots.len() == invites.len() {
        let sentence = "all seats have bots and none is left for you; use `arena match run` to let bots play alone";
        return Err(Failure::new(Exit::Usage, sentence));
    }
    let arena = arena.clone().with_retries_for(OUTAGE);
    let mut table = Vec::new();
    for (number, invite) in (1..).zip(&invites) {
        let seat = HttpSeat::take(&arena, invite, Identity::Name(None))?;
        let bot = bots.iter().position(|(seat, _)| *seat == number).map(|place| bots.swap_remove(place).1);
        table.push((seat, bot.map_or(Sitter::Person, |bot| Sitter::Bot(Box::new(bot)))));
    }
    sit_down(table, style, called_off)
}

fn bot_args(path: &str, args: &PlayChallengeArgs) -> BotArgs {
    BotArgs {
        agent: Some(path.to_owned()),
        command: Vec::new(),
        dialect: None,
        step_ms: None,
        bank_ms: None,
        log: None,
        sandbox: Some(args.sandbox.sandbox),
        memory: Some(args.sandbox.memory),
        expose: args.sandbox.expose.clone(),
    }
}
