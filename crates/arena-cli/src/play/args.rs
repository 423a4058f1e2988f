//! Arguments of `arena play`.

use std::path::PathBuf;

use arena_llm::Api;
use arena_match::Dialect;
use clap::{ArgGroup, Args, ValueEnum};

use crate::client::JoinArgs;
use crate::command_line::{KeyArgs, base_url, first_given};
use crate::matches::options::{Sandbox, SandboxArgs, dialect};

/// Options of `arena play`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena play inv_…                                 play at this terminal
  arena play --from inv_…                          return to a seat that you took before
  arena play inv_… --agent ./bot                   let an agent play, in the sandbox of `arena match run`
  arena play inv_… --agent house                   let a house bot play; `random` plays at random
  arena play inv_… --agent model:NAME@ollama       let a language model play
  arena play inv_… --url https://arena.example --sign -- python3 bot.py
  arena play inv_… --model NAME --api-base http://127.0.0.1:8080/v1
  arena play inv_… --model NAME --max-turns 20 --price-in 3 --price-out 15 --max-cost 0.50

At the terminal:
  A line that begins with / is an action or a command: `/guess 1, 2, 3` calls the challenge's method `guess`, and /help \
  lists all of them. Any other line is a chat message to all players; `@2 text` sends it to Player 2 only.
  If the connection breaks or the server restarts, the program retries for up to 5 minutes. Ctrl-C or /quit leaves; the \
  seat stays yours and the session continues without you.

Agents:
  An agent receives the states of games (snake, chess, …) as in a match. docs/agents.md in the repository describes its \
  input in other challenges. An agent that crashes, times out or violates the protocol resigns if the challenge has a method for resigning; \
  the exit code is 12.

Language models:
  The model receives the rules, the challenge's methods as tools, and each message as it arrives. Set the API key in \
  OPENAI_API_KEY or ANTHROPIC_API_KEY.
  If the endpoint is busy or unreachable, requests are retried for --patience seconds. If it still fails, or rejects the \
  key or the payment, the seat is parked: the model doesn't resign, the exit code is 17, and
  `arena play --from INVITE --model NAME` resumes the seat. The game's time limit keeps running, and the server closes \
  idle sessions without counting them.
  A model that reaches a limit, or gives three answers in a row without a tool call, stops; the exit code is 18. It resigns \
  if the challenge has a method for resigning. Otherwise it notifies the other players and stays silent until the session \
  ends or --max-time is reached.")]
#[command(group(ArgGroup::new("bot").args(["agent", "command"])))]
#[command(group(ArgGroup::new("any_model").args(["model", "agent"])))]
pub struct SeatArgs {
    /// Invite of the seat to take. To return to a seat, give --from instead.
    #[arg(conflicts_with = "queue")]
    pub invite: Option<String>,
    /// Wait for an opponent in this challenge, instead of giving an invite.
    #[arg(long, value_name = "CHALLENGE")]
    pub queue: Option<String>,
    /// Accept house bots after this time in the queue, in seconds; the game is then unrated [default: never]
    #[arg(long, value_name = "SECONDS", requires = "queue", value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub house_after: Option<u64>,
    #[command(flatten)]
    pub join: JoinArgs,
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub bot: BotArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A bot that plays a seat.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Agent")]
pub struct BotArgs {
    /// Agent: a file, a folder or a URL, as in `arena match run`; or `house`, `house:GAME`, `house:easy`, `random`, or
    /// `model:NAME@URL` for a language model. An endpoint such as `ollama` may replace the URL.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// Format of the states sent to the agent: both, spec or flat [default: from its manifest]
    #[arg(long, value_name = "DIALECT", value_parser = dialect, requires = "bot")]
    pub dialect: Option<Dialect>,
    /// Time limit of an answer, in milliseconds; an earlier deadline of the server applies [default: 60000]
    #[arg(long, value_name = "MS", requires = "bot", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Time bank for all answers, in milliseconds, used beyond the step limit [default: 0]
    #[arg(long, value_name = "MS", requires = "bot", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    /// Write the agent's stderr and its protocol faults to this file.
    #[arg(long, value_name = "FILE", requires = "bot")]
    pub log: Option<PathBuf>,
    /// Sandbox mode for the agent [default: on]
    #[arg(long, value_enum, requires = "bot")]
    pub sandbox: Option<Sandbox>,
    /// Memory limit of the agent, in MiB [default: 1024]
    #[arg(long, value_name = "MIB", requires = "bot", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory: Option<u64>,
    /// File or folder that the agent may read besides its own; may be repeated.
    #[arg(long, value_name = "PATH", requires = "bot")]
    pub expose: Vec<PathBuf>,
}

impl BotArgs {
    /// Returns the first given option that only programs have, without the program itself.
    pub fn first_option(&self) -> Option<&'static str> {
        first_given(&[
            ("--dialect", self.dialect.is_some()),
            ("--step-ms", self.step_ms.is_some()),
            ("--bank-ms", self.bank_ms.is_some()),
            ("--log", self.log.is_some()),
            ("--sandbox", self.sandbox.is_some()),
            ("--memory", self.memory.is_some()),
            ("--expose", !self.expose.is_empty()),
        ])
    }

    /// Returns the sandbox options, with defaults for those that are missing.
    pub fn sandbox(&self) -> SandboxArgs {
        SandboxArgs {
            sandbox: self.sandbox.unwrap_or(Sandbox::On),
            memory: self.memory.unwrap_or(1024),
            expose: self.expose.clone(),
        }
    }
}

/// A language model that plays a seat.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Language model player")]
pub struct ModelArgs {
    /// Name of the model at its endpoint.
    #[arg(long, value_name = "NAME", conflicts_with = "bot")]
    pub model: Option<String>,
    /// API of the endpoint [default: anthropic-messages for models named claude…, otherwise chat-completions]
    #[arg(long, value_enum, requires = "any_model")]
    pub api: Option<ApiArg>,
    /// URL of the endpoint, without /chat/completions, /responses or /v1/messages [default: the API vendor's]
    #[arg(long, value_name = "URL", requires = "any_model", value_parser = base_url)]
    pub api_base: Option<String>,
    /// Maximum number of requests [default: 50]
    #[arg(long, value_name = "N", requires = "any_model")]
    pub max_turns: Option<u64>,
    /// Maximum number of tokens, input and output together.
    #[arg(long, value_name = "N", requires = "any_model")]
    pub max_tokens: Option<u64>,
    /// Maximum cost, in US dollars.
    #[arg(long, value_name = "USD", requires_all = ["any_model", "price_in", "price_out"], value_parser = non_negative)]
    pub max_cost: Option<f64>,
    /// Price of a million input tokens, in US dollars.
    #[arg(long, value_name = "USD", requires_all = ["any_model", "price_out"], value_parser = non_negative)]
    pub price_in: Option<f64>,
    /// Price of a million cached input tokens, in US dollars [default: the price of input tokens]
    #[arg(long, value_name = "USD", requires_all = ["any_model", "price_in"], value_parser = non_negative)]
    pub price_cached: Option<f64>,
    /// Price of a million output tokens, in US dollars.
    #[arg(long, value_name = "USD", requires_all = ["any_model", "price_in"], value_parser = non_negative)]
    pub price_out: Option<f64>,
    /// Maximum time until the model leaves, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "any_model", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub max_time: Option<u64>,
    /// Time to retry while the endpoint is busy or fails, in seconds; then the seat is parked [default: 600]
    #[arg(long, value_name = "SECONDS", requires = "any_model", value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub patience: Option<u64>,
    /// Maximum number of input tokens of a request; the oldest turns are dropped first [default: 100000]
    #[arg(long, value_name = "N", requires = "any_model", value_parser = clap::value_parser!(u64).range(1000..))]
    pub context_tokens: Option<u64>,
    /// Describe the tools in the prompt and read calls from the text, for endpoints without tools.
    #[arg(long, requires = "any_model")]
    pub no_tools: bool,
    /// Sampling temperature [default: the endpoint's]
    #[arg(long, value_name = "NUMBER", requires = "any_model", value_parser = non_negative)]
    pub temperature: Option<f64>,
    /// Sampling seed, for endpoints that accept one.
    #[arg(long, value_name = "N", requires = "any_model")]
    pub seed: Option<i64>,
    /// Transcript of all requests, answers and costs [default: play-SESSION-seatN.jsonl]
    #[arg(long, value_name = "FILE", requires = "any_model")]
    pub transcript: Option<PathBuf>,
}

impl ModelArgs {
    /// Returns the first given option that only language models have, without the model itself.
    pub fn first_option(&self) -> Option<&'static str> {
        first_given(&[
            ("--api", self.api.is_some()),
            ("--api-base", self.api_base.is_some()),
            ("--max-turns", self.max_turns.is_some()),
            ("--max-tokens", self.max_tokens.is_some()),
            ("--max-cost", self.max_cost.is_some()),
            ("--price-in", self.price_in.is_some()),
            ("--price-cached", self.price_cached.is_some()),
            ("--price-out", self.price_out.is_some()),
            ("--max-time", self.max_time.is_some()),
            ("--patience", self.patience.is_some()),
            ("--context-tokens", self.context_tokens.is_some()),
            ("--no-tools", self.no_tools),
            ("--temperature", self.temperature.is_some()),
            ("--seed", self.seed.is_some()),
            ("--transcript", self.transcript.is_some()),
        ])
    }
}

/// The API of a language model endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApiArg {
    /// Chat Completions (OpenAI and most model servers); key in OPENAI_API_KEY.
    #[value(alias = "openai")]
    ChatCompletions,
    /// Responses (OpenAI); key in OPENAI_API_KEY.
    Responses,
    /// Messages (Anthropic); key in ANTHROPIC_API_KEY.
    #[value(alias = "anthropic")]
    AnthropicMessages,
}

impl From<ApiArg> for Api {
    fn from(api: ApiArg) -> Api {
        match api {
            ApiArg::ChatCompletions => Api::ChatCompletions,
            ApiArg::Responses => Api::Responses,
            ApiArg::AnthropicMessages => Api::AnthropicMessages,
        }
    }
}

/// Parses a number of 0 or more.
fn non_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of 0 or more".to_owned())
}
