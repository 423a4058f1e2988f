//! Arguments of `arena agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{SandboxArgs, header_text};

/// Subcommands of `arena agent`.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Check that an agent follows the protocol; print each fault with its line and a fix.
    #[command(after_help = "\
Examples:
  arena agent check ./bot                     in all games; it must play at least one
  arena agent check ./bot --game snake        it must play this game
  arena agent check http://127.0.0.1:8000/ --game chess
  arena agent check --game food_catcher -- python3 bot.py --level 3
  arena agent check ./bot --json

The agent is started several times, in the same sandbox as in a match. The runs send usual states, unknown keys, and the \
state in each place of the message where it may be, and then ask the agent to stop. `wrong` loses matches, `advice` \
doesn't, and `fine` lists the checks that passed. The exit code is 12 if something is wrong, else 0.")]
    Check(CheckArgs),
    /// Create a sample agent in a new folder.
    #[command(after_help = format!("\
Examples:
  arena agent new snake mybot                          a bot in Python that plays snake
  arena agent new chess rival --language javascript
  arena agent new ultimatum haggler --template         protocol code only, for games without a sample

Samples in Python: {}
Samples in JavaScript: {}", samples("py"), samples("js")))]
    New(NewAgentArgs),
    /// Upload an agent to a server, for a ladder or for tournaments.
    #[command(after_help = "\
Examples:
  arena agent upload ./bot --game snake                    the ladder of snake on this machine's server
  arena --url https://arena.example agent upload bot.py --game snake --name ada
  arena agent upload ./bot --replaces ID --key o_…         the next version of a bot on a ladder

The answer has the agent's id and its owner's key. Keep the key: with it you upload the next version, remove the agent \
(`DELETE /api/agents/ID`) and read its logs.")]
    Upload(UploadArgs),
}

/// Lists the games with a sample in the language of this file extension.
fn samples(extension: &str) -> String {
    arena_games::sampled(extension).collect::<Vec<_>>().join(", ")
}

/// Options of `arena agent new`.
#[derive(Debug, Args)]
pub struct NewAgentArgs {
    /// Name of the game
    #[arg(value_name = "GAME")]
    pub game: String,
    /// Folder to create
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Programming language
    #[arg(long, value_name = "LANGUAGE", default_value = "python")]
    pub language: Language,
    /// Create an agent without a strategy instead of the sample
    #[arg(long)]
    pub template: bool,
}

/// Programming language of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Python 3
    #[value(alias = "py")]
    Python,
    /// JavaScript, for Node.js
    #[value(name = "javascript", alias = "js")]
    JavaScript,
}

/// Options of `arena agent upload`.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// Agent: a file or a folder
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Game whose ladder the agent joins [default: none]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// Name [default: from the manifest, or the name of the file or folder]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Agent on a ladder that this one replaces; needs --key
    #[arg(long, value_name = "ID", requires = "key")]
    pub replaces: Option<String>,
    /// Owner's key of the replaced agent, or the administrator's token
    #[arg(long, env = "ARENA_OWNER_KEY", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub key: Option<String>,
}

/// Options of `arena agent check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Agent: a file, a folder, a URL or `py:FILE.py:FUNCTION`.
    #[arg(value_name = "PATH", required_unless_present = "command", conflicts_with = "command")]
    pub agent: Option<String>,
    /// Game that the agent must play [default: any one]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// Agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
