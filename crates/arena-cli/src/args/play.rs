//! The arguments of `arena play`.

use std::path::PathBuf;

use arena_match::Dialect;
use clap::{ArgGroup, Args, ValueEnum};

use super::matches::{Sandbox, SandboxArgs, dialect};
use super::{KeyArgs, base_url};

/// Options of `arena play`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("bot").args(["agent", "command"])))]
pub struct SeatArgs {
    /// The invite whose seat is to be taken. Without it --from says whose seat is taken up again.
    pub invite: Option<String>,
    /// Who takes the seat.
    #[command(flatten)]
    pub join: JoinArgs,
    /// Who speaks, where keys are asked for.
    #[command(flatten)]
    pub key: KeyArgs,
    /// A bot plays, and how it is held in.
    #[command(flatten)]
    pub bot: BotArgs,
    /// A language model plays, and what it may cost.
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Who takes a seat.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Who you are, for scores; the others learn it when the game has ended.
    #[arg(long, value_name = "ID")]
    pub user_id: Option<String>,
    /// Sign with a private key: a file, or a user id of ~/.arena/keys; needless if there is only one in there.
    #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
    pub sign: Option<Option<String>>,
}

/// A bot in a seat.
#[derive(Debug, Args)]
#[command(next_help_heading = "A bot plays")]
pub struct BotArgs {
    /// An agent plays: a file, a folder or an address, as in `arena match run`.
    #[arg(long, value_name = "PATH")]
    pub agent: Option<String>,
    /// The agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// How it is given the state, whatever its manifest says.
    #[arg(long, value_name = "DIALECT", value_parser = dialect, requires = "bot")]
    pub dialect: Option<Dialect>,
    /// Milliseconds for an answer, unless the arena's deadline is sooner [default: 60000]
    #[arg(long, value_name = "MS", requires = "bot", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Milliseconds that all answers together may take beyond that [default: 0]
    #[arg(long, value_name = "MS", requires = "bot", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    /// Write what the agent writes to stderr, and what it gets wrong, to this file.
    #[arg(long, value_name = "FILE", requires = "bot")]
    pub log: Option<PathBuf>,
    /// Whether the agent is kept from the network, your files and other processes [default: on]
    #[arg(long, value_enum, requires = "bot")]
    pub sandbox: Option<Sandbox>,
    /// Megabytes that the agent may take [default: 1024]
    #[arg(long, value_name = "MIB", requires = "bot", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory: Option<u64>,
    /// A file or folder that the agent may read, beside its own.
    #[arg(long, value_name = "PATH", requires = "bot")]
    pub expose: Vec<PathBuf>,
}

impl BotArgs {
    /// The sandbox that was asked for.
    pub fn sandbox(&self) -> SandboxArgs {
        SandboxArgs {
            sandbox: self.sandbox.unwrap_or(Sandbox::On),
            memory: self.memory.unwrap_or(1024),
            expose: self.expose.clone(),
        }
    }
}

/// A language model in a seat.
#[derive(Debug, Args)]
#[command(next_help_heading = "A language model plays")]
pub struct ModelArgs {
    /// A language model plays: its name, as its endpoint knows it.
    #[arg(long, value_name = "NAME", conflicts_with = "bot")]
    pub model: Option<String>,
    /// What the endpoint speaks [default: anthropic for models called claude…, else openai]
    #[arg(long, value_enum, requires = "model")]
    pub api: Option<Api>,
    /// Address of the endpoint, before /chat/completions or /v1/messages [default: that of the API's maker]
    #[arg(long, value_name = "URL", requires = "model", value_parser = base_url)]
    pub api_base: Option<String>,
    /// Requests to the endpoint at most [default: 50]
    #[arg(
        long,
        value_name = "N",
        requires = "model",
        default_value_if("model", clap::builder::ArgPredicate::IsPresent, "50")
    )]
    pub max_turns: Option<u64>,
    /// Tokens at most, of questions and answers together. No request is made once they are used up.
    #[arg(long, value_name = "N", requires = "model")]
    pub max_tokens: Option<u64>,
    /// US dollars at most. No request is made once they are used up.
    #[arg(long, value_name = "USD", requires_all = ["model", "price_in", "price_out"], value_parser = price)]
    pub max_cost: Option<f64>,
    /// US dollars for a million tokens of questions.
    #[arg(long, value_name = "USD", requires_all = ["model", "price_out"], value_parser = price)]
    pub price_in: Option<f64>,
    /// US dollars for a million tokens of answers.
    #[arg(long, value_name = "USD", requires_all = ["model", "price_in"], value_parser = price)]
    pub price_out: Option<f64>,
    /// Seconds at most until the model leaves.
    #[arg(long, value_name = "SECONDS", requires = "model", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub max_time: Option<u64>,
    /// Seconds to hold out while the endpoint is busy or fails, before the seat is parked [default: 600]
    #[arg(long, value_name = "SECONDS", requires = "model", value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub patience: Option<u64>,
    /// Tokens of a question at most: beyond that, the oldest turns are left out, but never the rules, the first and the latest state [default: 100000]
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u64).range(1000..))]
    pub context_tokens: Option<u64>,
    /// How much chance there is in its answers [default: the endpoint's]
    #[arg(long, value_name = "NUMBER", requires = "model", value_parser = price)]
    pub temperature: Option<f64>,
    /// What the chance in its answers comes of, where the endpoint takes a seed.
    #[arg(long, value_name = "N", requires = "model")]
    pub seed: Option<i64>,
    /// Keep from the arena what the model costs. Otherwise it is told the model's name, tokens, cost and time of each request, and
    /// shows them to everybody when the session has ended.
    #[arg(long, requires = "model")]
    pub no_usage_report: bool,
    /// Where all requests, answers and costs are written [default: play-SESSION-seatN.jsonl]
    #[arg(long, value_name = "FILE", requires = "model")]
    pub transcript: Option<PathBuf>,
}

/// What an endpoint of language models speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// Chat Completions of OpenAI, as most servers of models offer it. The key is in OPENAI_API_KEY.
    Openai,
    /// Messages of Anthropic. The key is in ANTHROPIC_API_KEY.
    Anthropic,
}

/// A number that isn't negative.
fn price(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "give a number, 0 or more".to_owned())
}
