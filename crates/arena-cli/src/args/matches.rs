//! The arguments of `arena match`.

use std::path::PathBuf;

use arena_match::Dialect;
use arena_model::Seed;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

/// What can be done with matches.
#[derive(Debug, Subcommand)]
pub enum MatchVerb {
    /// Play a match between agents, or several in a row.
    #[command(after_help = "\
Examples:
  arena match run snake --agent ./a --agent ./b
  arena match run chess --agent ./a --agent ./b --seed 7 --replay game.jsonl
  arena match run food_catcher --agent ./a --agent http://127.0.0.1:8000/ --json
  arena match run snake --agent ./a -- python3 bot.py --level 3    the second agent is a command line
  arena match run snake --agent ./a --agent ./b --pace 200    slow enough to look on
  arena match run snake --agent ./a --agent ./b --games 100 --concurrency 2
  arena match run snake --agent ./a --agent ./b --set n_epochs=200 --set grid_width=20

An agent is an executable, a folder with an agent, agent.py or agent.js in it, an address, or a command line behind `--`
(several: each behind a `--` of its own). A manifest.json beside it may say {\"dialect\": \"spec\"}. docs/agents.md tells how
to write one, and `arena agent check` what one gets wrong.

Each of several games has a seed of its own, that comes of --seed; games 1 and 2, 3 and 4 and so on share one, and the agents
change seats. What agents write to stderr is kept next to the replay, a file for each.")]
    Run(Box<RunArgs>),
    /// List the games that can be played, or print the options of one.
    #[command(after_help = "\
Examples:
  arena match games
  arena match games snake")]
    Games {
        /// One game only.
        game: Option<String>,
    },
}

/// Help of an argument that names a game.
pub(super) fn game_help(more: &str) -> String {
    let names: Vec<&str> = arena_games::colosseum_games().map(|game| game.name).collect();
    let list = names.split_last().map(|(last, others)| format!("{} or {last}", others.join(", ")));
    format!("The game: {}{more}", list.unwrap_or_default())
}

/// Options of `arena match run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The game, a challenge, or a script's folder.
    #[arg(help = game_help("; a challenge, such as psi; or the folder of a challenge that is a script"))]
    pub game: String,
    /// An agent, for the next free seat: a file, a folder or an address.
    #[arg(long = "agent", value_name = "PATH")]
    pub agents: Vec<String>,
    /// Further agents as command lines, each behind a `--`.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Write the replay to this file; with several games, to 1.jsonl, 2.jsonl and so on in this folder.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Play so many games, with changing seats.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub games: u32,
    /// Don't draw the game on the terminal.
    #[arg(long)]
    pub no_live: bool,
    /// Milliseconds that each epoch is shown at least, for people who look on.
    #[arg(long, value_name = "MS", conflicts_with = "no_live", value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pace: Option<u64>,
    /// How matches are played.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// The value of an option that is only there to be refused.
#[derive(Debug, Clone)]
pub enum Never {}

/// How matches are played, one or many.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// What all that is random comes of: a number, or the 64 hexadecimal digits of a result [default: drawn and printed]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Play so many games beside each other [default: 1]
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Set a constant of the game: KEY=VALUE (`arena match games GAME` lists them).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// How all agents are given the state, whatever their manifests say.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// Milliseconds for a step [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Milliseconds that all steps of an agent together may take beyond that [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    /// How agents are held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Whether a match and its agents share a core, which is far quicker unless agents think long.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Refused: it belongs to another verb.
    #[arg(long, hide = true, value_name = "NAME", value_parser = no_model)]
    pub model: Option<Never>,
}

/// Confinement of agents' processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxArgs {
    /// Whether agents are kept from the network, your files and each other.
    #[arg(long, value_enum, default_value_t = Sandbox::On)]
    pub sandbox: Sandbox,
    /// Megabytes that an agent may take.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory: u64,
    /// A file or folder that agents may read, beside their own.
    #[arg(long, value_name = "PATH")]
    pub expose: Vec<PathBuf>,
}

/// Whether agents are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sandbox {
    /// By namespaces, Landlock, a filter of system calls, and limits.
    On,
    /// The same without namespaces.
    NoNamespaces,
    /// Only limits: agents can read your files and use the network.
    Off,
}

/// Where a match runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Affinity {
    /// A match and its agents on one core; matches beside each other on different ones.
    Share,
    /// Wherever the system likes.
    Any,
}

fn no_model(_: &str) -> Result<Never, String> {
    Err("matches are played by agents; a language model takes a seat of a session with `arena play INVITE --model NAME`".to_owned())
}

/// A number, or a seed as results tell it.
pub(super) fn seed(text: &str) -> Result<Seed, String> {
    if let Some(seed) = Seed::from_revealed(text) {
        return Ok(seed);
    }
    text.parse()
        .map(Seed::from_number)
        .map_err(|_| "a seed is a number below 2^64, or 64 hexadecimal digits".to_owned())
}

/// `KEY=VALUE`; a value that isn't JSON is a text.
pub(super) fn option(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("an option is KEY=VALUE, such as n_epochs=200")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

pub(super) fn dialect(text: &str) -> Result<Dialect, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| "a dialect is both, spec or flat".to_owned())
}
