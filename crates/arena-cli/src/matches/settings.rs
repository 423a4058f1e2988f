//! The settings of a match: game, agents and sandbox. Errors are one sentence each.

use std::sync::Arc;

use arena_games::board::Stage;
use arena_match::{Agent, Channel, Confinement, Launcher, Limits, MatchPlan, OutputPath, SandboxMode, private};
use arena_model::{AgentId, AnyGame, GameType, Seat, Seed, Setup};
use arena_players::http::random_bytes;
use serde_json::{Map, Value};

use super::options::{Sandbox, SandboxArgs};
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::scripts;

/// The hidden command that makes this program the launcher of an agent's process.
pub use arena_match::process::LAUNCH;

/// Finds the game named `name`, or loads the scripted challenge in the folder `name`.
pub fn find_game(name: &str) -> Result<&'static GameType, Failure> {
    if let Some(challenge) = scripts::find(name)? {
        return Ok(GameType::of_challenge(Arc::new(challenge)));
    }
    arena_games::game(name).ok_or_else(|| {
        let names: Vec<&str> = arena_games::games().map(|game| game.name).collect();
        Failure::usage(format_args!("there is no game `{name}`; the games are {}", names.join(", ")))
    })
}

/// Finds the agent at a path or a URL, or a built-in one.
pub fn find_agent(text: &str) -> Result<Agent, Failure> {
    let agent = Agent::find(text, &search_path()).map_err(|error| Failure::caused(Exit::NoAgent, &error))?;
    if let Channel::BuiltIn(built_in) = &agent.channel {
        built_in.check_environment().map_err(Failure::usage)?;
    }
    Ok(agent)
}

/// Finds the agents given by these texts, and those given as command lines with `--` between them.
pub fn find_agents(texts: &[String], commands: &[String]) -> Result<Vec<Agent>, Failure> {
    let agents = texts.iter().map(|text| find_agent(text));
    agents.chain(command_lines(commands).map(find_command)).collect()
}

/// Splits words into command lines at each `--`.
pub fn command_lines(words: &[String]) -> impl Iterator<Item = &[String]> {
    words.split(|word| word == "--").filter(|words| !words.is_empty())
}

pub fn find_command(words: &[String]) -> Result<Agent, Failure> {
    Agent::command(words, &search_path()).map_err(|error| Failure::caused(Exit::NoAgent, &error))
}

pub fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// Prints a note for each request in an agent's manifest that isn't granted.
pub fn print_notes(agents: &[Agent]) {
    let mut notes: Vec<&String> = agents.iter().filter_map(|agent| agent.note.as_ref()).collect();
    notes.dedup();
    for text in notes {
        note(text);
    }
}

/// Makes names unique: `bot`, `bot #2`.
pub fn make_names_unique(agents: &mut [Agent]) {
    for number in 1..agents.len() {
        let (before, rest) = agents.split_at_mut(number);
        let same = before.iter().filter(|agent| agent.path == rest[0].path || agent.name == rest[0].name).count();
        if same > 0 {
            rest[0].name = format!("{} #{}", rest[0].name, same + 1);
        }
    }
}

/// Makes the agents' names their ids in matches. Names must be unique.
pub fn make_names_ids(agents: &mut [Agent]) -> Result<(), Failure> {
    for agent in agents {
        let id = agent.name.parse::<AgentId>().ok().filter(|id| !id.is_uuid());
        agent.id = Some(id.ok_or_else(|| {
            let sentence = format!(
                "--agent-ids names: `{}` cannot be an id; rename the agent, with 1 to {} characters that are neither \
                 control characters nor a UUID",
                agent.name,
                AgentId::MAX_CHARS
            );
            Failure::usage(sentence)
        })?);
    }
    Ok(())
}

/// Starts a game with any seed. Fails if the game doesn't accept the options or the number of agents.
pub fn try_start(
    game: &'static GameType,
    options: &Map<String, Value>,
    agents: usize,
) -> Result<Box<dyn AnyGame>, Failure> {
    let seed = Seed::from_number(0);
    start(game, options, Setup { agents: arena_match::agent_ids(&seed, agents), seed })
}

/// Returns the data that the live view needs before the match begins: game, constants, agent ids and sides.
pub fn stage(plan: &MatchPlan<'_>) -> Result<Stage, Failure> {
    let agents = plan.agent_ids();
    let game = start(plan.game, plan.options, Setup { agents: agents.clone(), seed: plan.seed.clone() })?;
    Ok(Stage {
        game: game.game_type().name.to_owned(),
        config: game.config(),
        ids: agents.iter().map(ToString::to_string).collect(),
        sides: (0..agents.len()).map(|seat| game.side(Seat(seat))).collect(),
    })
}

/// Refuses an option `players` that differs from the number of agents.
pub fn check_players(options: &Map<String, Value>, agents: usize) -> Result<(), Failure> {
    match options.get("players") {
        Some(players) if players.as_u64() != Some(agents as u64) => {
            let sentence = format!(
                "players={players} contradicts the {agents} agents; omit the option, since the agents determine it"
            );
            Err(Failure::usage(sentence))
        }
        _ => Ok(()),
    }
}

fn start(game: &'static GameType, options: &Map<String, Value>, setup: Setup) -> Result<Box<dyn AnyGame>, Failure> {
    let agents = setup.agents.len();
    let started = game.start(options, setup).map_err(|error| Failure::caused(Exit::Usage, &error))?;
    check_players(options, agents)?;
    Ok(started)
}

/// Returns the given seed, or an unpredictable one.
pub fn seed_or_random(given: &Option<Seed>) -> Result<Seed, Failure> {
    match given {
        Some(seed) => Ok(seed.clone()),
        None => Ok(Seed(random_bytes()?)),
    }
}

/// Returns this program as the launcher of agents.
pub fn launcher() -> Launcher {
    Launcher::this_program(LAUNCH)
}

pub fn confinement(args: &SandboxArgs) -> Result<Confinement, Failure> {
    let missing = args.expose.iter().find(|path| !path.exists());
    if let Some(path) = missing {
        return Err(Failure::usage(format_args!("--expose: {} doesn't exist", path.display())));
    }
    Ok(Confinement {
        launcher: launcher(),
        mode: match args.sandbox {
            Sandbox::On => SandboxMode::On,
            Sandbox::NoNamespaces => SandboxMode::NoNamespaces,
            Sandbox::Off => SandboxMode::Off,
        },
        limits: Limits { memory_bytes: Some(args.memory << 20), ..Limits::default() },
        expose: args.expose.clone(),
        private: Vec::new(),
        public_only: false,
    })
}

/// Returns the confinement of these agents, which hides the arena's files from them: those at `outputs`, and those in
/// the agents' folders.
pub fn confine(args: &SandboxArgs, agents: &[Agent], outputs: &[OutputPath<'_>]) -> Result<Confinement, Failure> {
    let confinement = confinement(args)?;
    let private = private(agents, &confinement.expose, confinement.mode, outputs).map_err(Failure::usage)?;
    Ok(Confinement { private, ..confinement })
}
