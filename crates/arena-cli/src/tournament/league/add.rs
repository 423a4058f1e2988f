//! `arena tournament add`: finds agents and gives each a unique name in the league.

use arena_match::Agent;
use arena_runner::{Joined, LeagueFolder};
use arena_tournament::{Entrant, Membership};
use serde_json::json;

use super::version_of;
use crate::args::AddArgs;
use crate::exit::{Exit, Failure};
use crate::matches::settings::{find_agent, find_command, print_notes};
use crate::output::{Style, print, printable};
use crate::tournament::entrants::{check_name, split};
use crate::tournament::{no_entrant, refused};

/// Adds the agents to a league: all or none.
pub fn add(args: &AddArgs, style: Style) -> Result<(), Failure> {
    let agents = find(args)?;
    let mut league = LeagueFolder::open(&args.folder).map_err(|error| refused(&error))?;
    let mut entering: Vec<Entrant> = Vec::new();
    for agent in &agents {
        let entrant = league.describe(agent).map_err(|error| no_entrant(&error))?;
        if entering.iter().any(|other| other.name == entrant.name) {
            let sentence = format!("two agents are named {}; rename one with NAME=PATH", entrant.name);
            return Err(Failure::new(Exit::Usage, sentence));
        }
        check_name_in(&league, &entrant, args)?;
        entering.push(entrant);
    }
    print_notes(&agents);
    for entrant in entering {
        let joined = league.add_agent(entrant).map_err(|error| refused(&error))?;
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
        (0, _) => Err(Failure::new(Exit::Usage, "no agents given; give a file, a folder, a URL or a command line")),
        (2.., Some(_)) => {
            Err(Failure::new(Exit::Usage, "--version applies to a single agent; add the others separately"))
        }
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
