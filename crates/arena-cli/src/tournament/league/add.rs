//! `arena tournament add`: finds agents and gives each a unique name in the league.

use std::path::PathBuf;

use arena_match::{Agent, Dialect};
use arena_runner::{Joined, LeagueFolder};
use arena_tournament::{Entrant, Membership};
use clap::Args;
use serde_json::json;

use super::version_of;
use crate::exit::{Exit, Failure};
use crate::matches::options::dialect;
use crate::matches::settings::{find_agent, find_command, print_notes};
use crate::output::{Style, print, printable};
use crate::tournament::entrants::{check_name, split};
use crate::tournament::failures::{no_entrant, refused};

/// Options of `arena tournament add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena tournament add ladder ./c new=./d
  arena tournament add ladder far=http://127.0.0.1:8000/
  arena tournament add ladder third= -- python3 bot.py --level 3    an agent given as a command line
  arena tournament add ladder a=./a-2 --version 2    the next version of a

An agent is identified by its files. If they changed before the next run, or with --version, a new version begins without \
games; the old version keeps its results. An agent that returns unchanged continues with its results.")]
pub struct AddArgs {
    /// Folder of the league.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Agent: a file, a folder, a URL or `py:FILE.py:FUNCTION`, optionally with a name. A last `AGENT=` without a path
    /// names the command line.
    #[arg(value_name = "[AGENT=]PATH")]
    pub agents: Vec<String>,
    /// Agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// Version of the agent [default: from its manifest]
    #[arg(long, value_name = "V")]
    pub version: Option<String>,
    /// Format of the states sent to the agents: both, spec or flat [default: from their manifests]
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
}

/// Adds the agents to a league: all or none.
pub fn add(args: &AddArgs, style: Style) -> Result<(), Failure> {
    let agents = find(args)?;
    let mut league = LeagueFolder::open(&args.folder).map_err(refused)?;
    let mut entering: Vec<Entrant> = Vec::new();
    for agent in &agents {
        let entrant = league.describe(agent).map_err(no_entrant)?;
        if entering.iter().any(|other| other.name == entrant.name) {
            let sentence = format!("two agents are named {}; rename one with NAME=PATH", entrant.name);
            return Err(Failure::usage(sentence));
        }
        check_name_in(&league, &entrant, args)?;
        entering.push(entrant);
    }
    print_notes(&agents);
    for entrant in entering {
        let joined = league.add_agent(entrant).map_err(refused)?;
        print_added(&joined, style)?;
    }
    Ok(())
}

fn find(args: &AddArgs) -> Result<Vec<Agent>, Failure> {
    let mut texts = args.agents.clone();
    // A last argument `NAME=` without a path is the name for the command line.
    let command_name = match texts.last().and_then(|text| text.strip_suffix('=')) {
        Some(name) if !args.command.is_empty() => {
            let name = name.to_owned();
            texts.pop();
            Some(name)
        }
        _ => None,
    };
    let mut agents = Vec::new();
    let mut take = |mut agent: Agent, name: Option<&str>| -> Result<(), Failure> {
        name.unwrap_or(&agent.name.clone()).clone_into(&mut agent.name);
        agent.dialect = args.dialect.unwrap_or(agent.dialect);
        agent.version = args.version.clone().or(agent.version);
        check_name("an agent's name", &agent.name)?;
        agents.push(agent);
        Ok(())
    };
    for text in &texts {
        let (name, path) = split(text);
        take(find_agent(path)?, name)?;
    }
    if !args.command.is_empty() {
        take(find_command(&args.command)?, command_name.as_deref())?;
    }
    match (agents.len(), &args.version) {
        (0, _) => Err(Failure::usage("no agents given; give a file, a folder, a URL or a command line")),
        (2.., Some(_)) => Err(Failure::usage("--version applies to a single agent; add the others separately")),
        _ => Ok(agents),
    }
}

/// Fails if another agent of the league has the same name, unless the new agent is the next version of that agent.
fn check_name_in(league: &LeagueFolder, entrant: &Entrant, args: &AddArgs) -> Result<(), Failure> {
    let name = &entrant.name;
    let Some((_, namesake)) = league.league().find(name) else { return Ok(()) };
    if namesake.entrant == *entrant {
        if namesake.membership != Membership::Present {
            return Ok(());
        }
        let others = match args.agents.len() > 1 {
            true => format!("; no agent was added: remove {name} from the command"),
            false => String::new(),
        };
        let sentence = format!("{name} is already in the league, unchanged{others}");
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    // An agent at the same path counts as the same agent, even if its files have changed.
    if args.version.is_some() || namesake.entrant.path == entrant.path {
        return Ok(());
    }
    let sentence = format!(
        "the league already has an agent {name}, at {}; add the next version of {name} with --version V, or rename the new \
         agent with NAME=PATH",
        namesake.entrant.path
    );
    Err(Failure::new(Exit::BadTournament, sentence))
}

fn print_added(Joined { agent, is_new }: &Joined, style: Style) -> Result<(), Failure> {
    let entrant = &agent.entrant;
    if style == Style::Json {
        let json = json!({
            "agent": entrant.name, "version": entrant.version, "generation": agent.generation, "new": is_new,
            "agent_path": entrant.path, "sha256": entrant.sha256,
        });
        return print(&json.to_string());
    }
    let (name, version) = (&entrant.name, version_of(agent));
    print(&printable(&match (is_new, agent.generation) {
        (true, 1) => format!("added {name}"),
        (true, _) => format!("added version {version} of {name}, without games"),
        (false, _) => format!("{name} is back as version {version}, with its results"),
    }))
}
