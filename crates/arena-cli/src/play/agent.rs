//! The grammar of `--agent`: a program, a built-in agent or a language model.

use std::path::Path;

use arena_match::BuiltIn;

use crate::exit::{Exit, Failure};
use crate::matches::settings::search_path;

/// The beginning of an agent that is a language model.
const MODEL: &str = "model:";

#[derive(Debug, PartialEq, Eq)]
pub enum AgentSpec<'a> {
    /// A file, a folder, a URL, or a chess engine.
    Program,
    /// A house bot or a random one.
    BuiltIn(BuiltIn),
    /// The address of a language model.
    Model(&'a str),
}

impl AgentSpec<'_> {
    /// Parses an agent. An existing file wins over another agent of the same name, as in `arena match run`.
    ///
    /// # Errors
    /// If a built-in agent doesn't exist.
    pub fn parse(text: &str) -> Result<AgentSpec<'_>, Failure> {
        if Path::new(text).exists() {
            return Ok(AgentSpec::Program);
        }
        if let Some(address) = text.strip_prefix(MODEL) {
            return Ok(AgentSpec::Model(address));
        }
        match BuiltIn::parse(text, &search_path()) {
            // A driver plays a program's moves, like a program of its own.
            Some(Ok(built_in)) if built_in.command().is_some() => Ok(AgentSpec::Program),
            Some(Ok(built_in)) => Ok(AgentSpec::BuiltIn(built_in)),
            Some(Err(error)) => Err(Failure::new(Exit::NoAgent, error)),
            None => Ok(AgentSpec::Program),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn each_kind_of_agent_has_its_form() {
        let file = expect_file!["agent/each_kind_of_agent_has_its_form.txt"];
        let agents = file.data();
        let agents = agents.lines().filter_map(|line| line.split_once(": "));
        let lines: String = agents
            .map(|(text, _)| match AgentSpec::parse(text) {
                Ok(AgentSpec::Program) => format!("{text}: a program\n"),
                Ok(AgentSpec::BuiltIn(agent)) => format!("{text}: the built-in agent {agent}\n"),
                Ok(AgentSpec::Model(address)) => format!("{text}: the model {address}\n"),
                Err(failure) => format!("{text}: {}\n", failure.sentence()),
            })
            .collect();
        file.assert_eq(&lines);
    }
}
