//! The arguments of `arena agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::SandboxArgs;

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Tell what an agent gets wrong in the protocol, with the line that it sent and how to mend it.
    #[command(after_help = "\
Examples:
  arena agent check ./bot                     in each game: it has to play one of them
  arena agent check ./bot --game snake        it has to play this one
  arena agent check http://127.0.0.1:8000/ --game chess
  arena agent check --game food_catcher -- python3 bot.py --level 3
  arena agent check ./bot --json

The agent is started some times, in the same sandbox as in a match. Each time it is spoken to for some steps: as usual, with
keys that it can't know, with the state in each place where it may be, and then it is told to stop. `wrong` costs matches,
`advice` doesn't, and what is `fine` was tried. The exit code is 12 if something is wrong, else 0.")]
    Check(CheckArgs),
    /// Write a sample agent into a new folder.
    #[command(after_help = format!("\
Examples:
  arena agent new snake mybot                          a bot in Python that plays snake
  arena agent new chess rival --language javascript
  arena agent new ultimatum haggler --template         for a game without a sample: the protocol, and a place for your code

Samples in Python: {}
Samples in JavaScript: {}", samples("py"), samples("js")))]
    New(NewAgentArgs),
}

/// The games with samples in the language of this file ending.
fn samples(extension: &str) -> String {
    arena_games::sampled(extension).collect::<Vec<_>>().join(", ")
}

/// Options of `arena agent new`.
#[derive(Debug, Args)]
pub struct NewAgentArgs {
    /// Name of the game
    #[arg(value_name = "GAME")]
    pub game: String,
    /// Folder to make
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Programming language
    #[arg(long, value_name = "LANGUAGE", default_value = "python")]
    pub language: Language,
    /// Write an agent that does nothing yet instead of the sample
    #[arg(long)]
    pub template: bool,
}

/// A language that agents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Python 3
    #[value(alias = "py")]
    Python,
    /// JavaScript, for Node.js
    #[value(name = "javascript", alias = "js")]
    JavaScript,
}

/// Options of `arena agent check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The agent: a file, a folder or an address.
    #[arg(value_name = "PATH", required_unless_present = "command", conflicts_with = "command")]
    pub agent: Option<String>,
    /// The game that it has to play [default: one of all]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// The agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// How it is held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
