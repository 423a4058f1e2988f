//! Arguments of `arena match`, and options shared with tournaments and leagues.

use std::path::PathBuf;
use std::str::FromStr;

use arena_match::{BuiltIn, Dialect};
use arena_model::{GameType, Seed, StartLimits, TimeControl, TimeLimits};
use clap::{Args, ValueEnum};
use serde_json::Value;

/// Returns the help of an argument that names a game.
pub fn game_help(more: &str) -> String {
    let names: Vec<&str> = arena_games::colosseum_games().map(|game| game.name).collect();
    let list = names.split_last().map(|(last, others)| format!("{} or {last}", others.join(", ")));
    format!("Game: {}{more}", list.unwrap_or_default())
}

/// Returns the help of an option that names an agent: `what`, and all forms of agents.
pub fn agent_help(what: &str, more: &str) -> String {
    let forms: Vec<String> =
        ["py:FILE.py:FUNCTION"].into_iter().chain(BuiltIn::forms()).map(|form| format!("`{form}`")).collect();
    let list = forms.split_last().map(|(last, others)| format!("{} or {last}", others.join(", ")));
    format!("{what}: a file, a folder, a URL, {}{more}", list.unwrap_or_default())
}

/// The value of an option that is always refused.
#[derive(Debug, Clone)]
pub enum Never {}

/// Options of matches, single or in tournaments.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// Random seed: an integer, or the 64-digit seed printed with a result [default: chosen at random and printed]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Number of games in parallel.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Set a game option; may be repeated (`arena match games GAME` lists them).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// Format of the states sent to all agents: both, spec or flat [default: from their manifests]
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// Ids of the agents in messages and replays.
    #[arg(long, value_enum, default_value_t = AgentIds::Uuids)]
    pub agent_ids: AgentIds,
    /// Time limit of a step, in milliseconds [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Time bank of an agent in a match, in milliseconds, used beyond the step limit [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    /// Time control of all agents without one of their own, instead of --step-ms and --bank-ms: seconds with an increment
    /// (10+0.1), moves and seconds (40/60, 40/60+0.5), or inf for no clock, only a day for each move
    #[arg(long, value_name = "CONTROL", conflicts_with_all = ["step_ms", "bank_ms", "st"], value_parser = clock)]
    pub tc: Option<TimeControl>,
    /// Fixed time for each move, in seconds, as a time control
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["step_ms", "bank_ms"], value_parser = move_time)]
    pub st: Option<TimeControl>,
    /// Time limit of an agent to start and answer the ping, in milliseconds [default: 5000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=StartLimits::MAX_MS))]
    pub startup_ms: Option<u64>,
    /// Time limit of a chess engine to answer isready before a game, in milliseconds [default: 5000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=StartLimits::MAX_MS))]
    pub ping_ms: Option<u64>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// CPU placement of a match and its agents.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Always refused, since --model is an option of `arena play`.
    #[arg(long, hide = true, value_name = "NAME", value_parser = no_model)]
    pub model: Option<Never>,
}

impl PlayArgs {
    /// Returns the time control of all agents without one of their own.
    pub fn time_control(&self) -> Option<TimeControl> {
        self.tc.or(self.st)
    }

    /// Returns the limits of the first answers of agents without limits of their own.
    pub fn start_limits(&self) -> StartLimits {
        StartLimits { startup_ms: self.startup_ms, ping_ms: self.ping_ms }
    }

    /// Returns the time limits of the matches of a game.
    pub fn limits(&self, game: &GameType) -> TimeLimits {
        let usual = self.time_control().map_or(game.limits, TimeControl::limits);
        TimeLimits { step_ms: self.step_ms.unwrap_or(usual.step_ms), bank_ms: self.bank_ms.unwrap_or(usual.bank_ms) }
    }
}

/// Sandbox of agent processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxArgs {
    /// Sandbox mode for agents.
    #[arg(long, value_enum, default_value_t = Sandbox::On)]
    pub sandbox: Sandbox,
    /// Memory limit of an agent, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory: u64,
    /// File or folder that agents may read besides their own; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub expose: Vec<PathBuf>,
}

/// Ids of agents in matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentIds {
    /// UUIDs that follow from the seed.
    Uuids,
    /// The agents' names in tables: of the file, the folder, its manifest, or before the `=` of --agent.
    Names,
}

/// Sandbox mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sandbox {
    /// Namespaces, Landlock, system call filter and resource limits.
    On,
    /// As `on`, without namespaces.
    NoNamespaces,
    /// Resource limits only: agents can read your files and use the network.
    Off,
}

/// CPU placement of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Affinity {
    /// A match and its agents share one core; fastest unless agents think long.
    Share,
    /// The system's scheduler decides.
    Any,
}

fn no_model(_: &str) -> Result<Never, String> {
    Err("matches are played by agents; to let a language model play, use --agent model:NAME, or `arena play INVITE \
         --model NAME` for a session"
        .to_owned())
}

fn clock(text: &str) -> Result<TimeControl, String> {
    let control = text.parse::<TimeControl>().ok().filter(|_| !text.starts_with("st="));
    control.ok_or_else(|| {
        "expected seconds with an increment, such as 10+0.1; moves and seconds, such as 40/60 or 40/60+0.5; or inf"
            .to_owned()
    })
}

fn move_time(text: &str) -> Result<TimeControl, String> {
    TimeControl::of_move(text).ok_or_else(|| "expected seconds, such as 5 or 0.25, at most a day".to_owned())
}

/// Parses a number of games, from 1.
pub fn games<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    let games = text.parse::<N>().ok().filter(|games| *games >= N::from(1_u8));
    games.ok_or_else(|| "expected a whole number of games, 1 or more".to_owned())
}

/// Parses a seed: an integer, or the 64 digits printed with a result.
pub fn seed(text: &str) -> Result<Seed, String> {
    if let Some(seed) = Seed::from_revealed(text) {
        return Ok(seed);
    }
    let wrong = |_| "expected an integer from 0 to 2^64 - 1, or 64 hexadecimal digits".to_owned();
    text.parse().map(Seed::from_number).map_err(wrong)
}

/// Parses `KEY=VALUE`; a value that isn't JSON is a string.
pub fn option(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as n_epochs=200")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

pub fn dialect(text: &str) -> Result<Dialect, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| "expected both, spec or flat".to_owned())
}
