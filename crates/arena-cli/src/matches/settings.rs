//! What a match is to be played with: the game, the agents, the sandbox. Each that can't be is told in one sentence.

use std::path::PathBuf;

use arena_games::board::Stage;
use arena_match::{Agent, Confinement, Launcher, Limits, SandboxMode};
use arena_model::{GameType, Seed, Setup};
use serde_json::{Map, Value, json};

use crate::args::{Sandbox, SandboxArgs};
use crate::boards::stage_of_game;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::scripts;

/// The verb, hidden from people, by which this program becomes the launcher of an agent's process.
pub const LAUNCH: &str = "launch-agent";

/// The game of this name, or in this folder.
pub fn find_game(name: &str) -> Result<&'static GameType, Failure> {
    if let Some(game) = scripts::find_game(name) {
        return game;
    }
    arena_games::game(name).ok_or_else(|| {
        let names: Vec<&str> = arena_games::games().map(|game| game.name).collect();
        Failure::new(Exit::Usage, format_args!("there is no game `{name}`; there are {}", names.join(", ")))
    })
}

/// The game of this name, for what is gone on with later: that needs games that will be the same then.
pub fn find_builtin(name: &str) -> Result<&'static GameType, Failure> {
    if scripts::is_folder(name) {
        let sentence = format_args!(
            "{name} is a challenge's folder, whose files may change; leagues are of built-in games. `arena tournament run` \
             plays it"
        );
        return Err(Failure::new(Exit::Usage, sentence));
    }
    find_game(name)
}

/// The agent that the user named by a path or an address.
pub fn find_agent(text: &str) -> Result<Agent, Failure> {
    Agent::find(text, &search_path()).map_err(|error| Failure::caused(Exit::NoAgent, &error))
}

/// The agent that a command line starts.
pub fn find_command(words: &[String]) -> Result<Agent, Failure> {
    Agent::command(words, &search_path()).map_err(|error| Failure::caused(Exit::NoAgent, &error))
}

/// Where programs are looked for.
pub fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// Says what manifests ask for in vain.
pub fn tell_notes(agents: &[Agent]) {
    let mut notes: Vec<&String> = agents.iter().filter_map(|agent| agent.note.as_ref()).collect();
    notes.dedup();
    for text in notes {
        note(text);
    }
}

/// Gives agents of the same name different ones: `bot`, `bot #2`.
pub fn tell_apart(agents: &mut [Agent]) {
    for number in 1..agents.len() {
        let (before, rest) = agents.split_at_mut(number);
        let same = before.iter().filter(|agent| agent.path == rest[0].path || agent.name == rest[0].name).count();
        if same > 0 {
            rest[0].name = format!("{} #{}", rest[0].name, same + 1);
        }
    }
}

/// Refuses options and numbers of agents that the game can't be played with.
pub fn try_start(game: &'static GameType, options: &Map<String, Value>, agents: usize) -> Result<(), Failure> {
    start(game, options, agents, &Seed::from_number(0)).map(|_| ())
}

/// What a view of a match needs to know before it begins.
pub fn stage(
    game: &'static GameType,
    options: &Map<String, Value>,
    agents: usize,
    seed: &Seed,
) -> Result<Stage, Failure> {
    start(game, options, agents, seed).map(|game| stage_of_game(&*game, seed, agents))
}

/// What is told of a game: its name, seats and limits, and each option with its usual value.
pub fn facts(game: &'static GameType) -> Result<Value, Failure> {
    let options = start(game, &Map::new(), *game.seats.start(), &Seed::from_number(0))?.config();
    Ok(json!({
        "name": game.name,
        "description": game.description,
        "update_mode": game.mode,
        "agents": {"least": game.seats.start(), "most": game.seats.end()},
        "limits": game.limits,
        "options": options,
    }))
}

/// Refuses an option `players` that differs from the number of agents, which decides.
pub fn check_players(options: &Map<String, Value>, agents: usize) -> Result<(), Failure> {
    match options.get("players") {
        Some(players) if players.as_u64() != Some(agents as u64) => {
            let sentence =
                format!("players={players}: there are as many players as agents, and {agents} are given; leave it out");
            Err(Failure::new(Exit::Usage, sentence))
        }
        _ => Ok(()),
    }
}

fn start(
    game: &'static GameType,
    options: &Map<String, Value>,
    agents: usize,
    seed: &Seed,
) -> Result<Box<dyn arena_model::AnyGame>, Failure> {
    let setup = Setup { agents: arena_match::agent_ids(seed, agents), seed: seed.clone() };
    let started = game.start(options, setup).map_err(|error| Failure::caused(Exit::Usage, &error))?;
    check_players(options, agents)?;
    Ok(started)
}

/// A seed that nobody can know before.
pub fn draw_seed() -> Result<Seed, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Exit::Internal, format_args!("the system gives no randomness: {error}")))?;
    Ok(Seed(bytes))
}

/// This program, as what starts agents.
pub fn launcher() -> Result<Launcher, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Internal, format_args!("this program can't be found: {error}")))?;
    Ok(Launcher { program, args: vec![LAUNCH.into()] })
}

/// What agents' processes are held in by.
pub fn confinement(args: &SandboxArgs) -> Result<Confinement, Failure> {
    let missing = args.expose.iter().find(|path| !path.exists());
    if let Some(path) = missing {
        return Err(Failure::new(Exit::Usage, format_args!("--expose: there is no {}", path.display())));
    }
    let expose: Vec<PathBuf> = args.expose.clone();
    Ok(Confinement {
        launcher: launcher()?,
        mode: match args.sandbox {
            Sandbox::On => SandboxMode::On,
            Sandbox::NoNamespaces => SandboxMode::NoNamespaces,
            Sandbox::Off => SandboxMode::Off,
        },
        limits: Limits { memory_bytes: Some(args.memory << 20), ..Limits::default() },
        expose,
        private: Vec::new(),
        public_only: false,
    })
}
