//! `arena league add`: finds agents and gives each a unique name in the league.

use arena_match::Agent;
use arena_runner::league::facts_of;
use arena_store::{LeagueAgent, NewLeagueAgent};
use serde_json::json;

use super::{LeagueContext, now, unavailable, unwritten};
use crate::args::AddArgs;
use crate::exit::{Exit, Failure};
use crate::matches::settings::{find_agent, find_command, print_notes};
use crate::output::{Style, print, printable};
use crate::tournament::entrants::{check_name, split};
use crate::tournament::no_entrant;

/// Adds the agents to a league: all or none.
pub fn add(context: &LeagueContext, args: &AddArgs, style: Style) -> Result<(), Failure> {
    let agents = find(args)?;
    let (store, league) = context.open(&args.name)?;
    let known = context.wait(store.leagues().list_agents(league.no)).map_err(unavailable)?;
    let mut entering: Vec<NewLeagueAgent> = Vec::new();
    for agent in &agents {
        let facts = facts_of(agent, &context.data).map_err(|error| no_entrant(&error))?;
        if entering.iter().any(|other| other.name == facts.name) {
            let sentence = format!("two agents are named {}; rename one with NAME=PATH", facts.name);
            return Err(Failure::new(Exit::Usage, sentence));
        }
        check_place(&facts, &known, args)?;
        entering.push(facts);
    }
    print_notes(&agents);
    for facts in entering {
        let before = known.iter().filter(|agent| agent.facts.name == facts.name).count();
        let entered = context.wait(store.enter_league_agent(league.no, facts, now())).map_err(unwritten)?;
        print_added(&entered, before, &args.name, style)?;
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
fn check_place(facts: &NewLeagueAgent, known: &[LeagueAgent], args: &AddArgs) -> Result<(), Failure> {
    let namesake = known.iter().find(|agent| agent.facts.name == facts.name && agent.removed_at.is_none());
    let Some(namesake) = namesake else { return Ok(()) };
    let (name, path, league) = (&facts.name, &namesake.facts.path, &args.name);
    if namesake.facts == *facts {
        let others = match args.agents.len() > 1 {
            true => format!("; no agent was added: remove {name} from the command"),
            false => String::new(),
        };
        let sentence = format!("{name} is already in league {league}, unchanged{others}");
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    // An agent at the same path counts as the same agent, even if its files have changed.
    if args.version.is_some() || namesake.facts.path == facts.path {
        return Ok(());
    }
    let sentence = format!(
        "league {league} already has an agent {name}, at {path}; add the next version of {name} with --version V, or rename \
         the new agent with NAME=PATH"
    );
    Err(Failure::new(Exit::BadTournament, sentence))
}

/// Prints the result for an added agent. `before` is the number of earlier versions with its name.
fn print_added(entered: &LeagueAgent, before: usize, league: &str, style: Style) -> Result<(), Failure> {
    let LeagueAgent { generation, facts, .. } = entered;
    let is_new = *generation as usize > before;
    if style == Style::Json {
        let json = json!({
            "league": league, "agent": facts.name, "version": facts.version, "generation": generation, "new": is_new,
            "agent_path": facts.path, "sha256": facts.sha256,
        });
        return print(&json.to_string());
    }
    let (name, version) = (&facts.name, version_of(entered));
    print(&printable(&match (is_new, before) {
        (true, 0) => format!("added {name} to league {league}"),
        (true, _) => format!("added version {version} of {name} to league {league}, without games"),
        (false, _) => format!("{name} is back in league {league} as version {version}, with its results"),
    }))
}

/// Formats a version of an agent: the version's name and number.
pub fn version_of(agent: &LeagueAgent) -> String {
    match &agent.facts.version {
        Some(version) => format!("{version} (#{})", agent.generation),
        None => format!("#{}", agent.generation),
    }
}
