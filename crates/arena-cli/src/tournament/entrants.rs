//! The agents of a tournament, each with a unique name.

use std::path::Path;

use arena_match::Agent;
use arena_runner::enter;
use arena_tournament::Entrant;

use super::args::TournamentArgs;
use super::failures::no_entrant;
use crate::exit::Failure;
use crate::matches::options::AgentIds;
use crate::matches::settings::{command_lines, find_agent, find_command, make_names_ids, make_names_unique};

/// The longest name, in characters, since names are printed in tables.
const LONGEST: usize = 64;

/// Finds the agents given as `[NAME=]PATH` and as command lines. `folder` is the tournament's folder.
pub fn find(args: &TournamentArgs, folder: &Path) -> Result<Vec<Entrant>, Failure> {
    let mut agents: Vec<Agent> = Vec::new();
    let mut is_named = Vec::new();
    for text in &args.agents {
        let (name, path) = split(text);
        let mut agent = find_agent(path)?;
        if let Some(name) = name {
            check_name("an agent's name", name)?;
            name.clone_into(&mut agent.name);
        }
        agents.push(agent);
        is_named.push(name.is_some());
    }
    for words in command_lines(&args.commands) {
        agents.push(find_command(words)?);
        is_named.push(false);
    }
    for number in 0..agents.len() {
        let agent = &agents[number];
        let twin = (0..number).find(|other| agents[*other].channel == agent.channel);
        if let Some(twin) = twin.filter(|twin| !is_named[*twin] || !is_named[number]) {
            let paths = if agents[twin].path == agent.path { "twice" } else { "twice, under two paths" };
            let sentence = format!(
                "{} is given {paths}; to let an agent play itself, name both: --agent one=PATH --agent two=PATH",
                agent.path
            );
            return Err(Failure::usage(sentence));
        }
    }
    name_by_folder(&mut agents, &is_named);
    number_equal_names(&mut agents, &is_named)?;
    if args.play.agent_ids == AgentIds::Names {
        make_names_ids(&mut agents)?;
    }
    for agent in &mut agents {
        agent.dialect = args.play.dialect.unwrap_or(agent.dialect);
    }
    let entrant = |agent: &Agent| enter(agent, folder).map_err(no_entrant);
    agents.iter().map(entrant).collect()
}

/// Splits `NAME=PATH` into name and path. If the whole text is an existing path, there is no name.
pub fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, path)) if !name.contains(['/', ':']) && !Path::new(text).exists() => (Some(name), path),
        _ => (None, text),
    }
}

/// Refuses a name that can't be printed in tables. `what` is the kind of name, such as `an agent's name`.
pub fn check_name(what: &str, name: &str) -> Result<(), Failure> {
    let length = name.chars().count();
    if name.trim() != name || !(1..=LONGEST).contains(&length) || name.contains(char::is_control) {
        let sentence = format!("{what} must have 1 to {LONGEST} characters without surrounding spaces, not `{name}`");
        return Err(Failure::usage(sentence));
    }
    Ok(())
}

/// Prefixes equal names with the names of the agents' parent folders: `python/snake`, `c/snake`.
fn name_by_folder(agents: &mut [Agent], is_named: &[bool]) {
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    for (number, agent) in agents.iter_mut().enumerate().filter(|(number, _)| !is_named[*number]) {
        let has_twin = names.iter().enumerate().any(|(other, name)| other != number && *name == agent.name);
        let above = Path::new(&agent.path).canonicalize().ok();
        let above = above.as_deref().and_then(Path::parent).and_then(Path::file_name);
        if let Some(above) = above.filter(|_| has_twin) {
            agent.name = format!("{}/{}", above.to_string_lossy(), agent.name);
        }
    }
}

/// Appends numbers to names that are still equal. Names that the user gave don't change.
fn number_equal_names(agents: &mut [Agent], is_named: &[bool]) -> Result<(), Failure> {
    let given: Vec<Option<String>> =
        agents.iter().zip(is_named).map(|(agent, is_named)| is_named.then(|| agent.name.clone())).collect();
    make_names_unique(agents);
    for (agent, given) in agents.iter_mut().zip(&given) {
        if let Some(name) = given {
            name.clone_into(&mut agent.name);
        }
    }
    for (number, agent) in agents.iter().enumerate() {
        if agents[..number].iter().any(|other| other.name == agent.name) {
            let sentence = format!("two agents are named {}; rename one with --agent NAME=PATH", agent.name);
            return Err(Failure::usage(sentence));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_before_paths() {
        assert_eq!(split("new=./bot"), (Some("new"), "./bot"));
        assert_eq!(split("./a=b"), (None, "./a=b"));
        assert_eq!(split("http://host/?level=3"), (None, "http://host/?level=3"));
        assert_eq!(split("far=http://host/?level=3"), (Some("far"), "http://host/?level=3"));
        assert_eq!(split("=x"), (Some(""), "x"));
        assert!(
            ["", " x"].iter().all(|name| check_name("a name", name).is_err()) && check_name("a name", "ä b").is_ok()
        );
    }
}
