//! Arguments of `arena author`.

use std::path::PathBuf;

use arena_check::CHECKS;
use arena_model::Seed;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::SandboxArgs;
use super::matches::{option, seed};

/// Subcommands of `arena author`.
#[derive(Debug, Subcommand)]
pub enum ChallengeVerb {
    /// Create a challenge: a folder with a script, a sample bot and types for your editor; or a scoring strategy.
    #[command(after_help = "\
Examples:
  arena author new number-duel             create ./number-duel, in TypeScript
  arena author new games/number-duel --js  in JavaScript, in another folder
  arena author new my-game --empty         without the sample, to write all of it yourself
  arena author new scoring/elo --scoring   create a scoring strategy

The folder's name is the id of the challenge or strategy: lowercase letters, digits and hyphens. Existing files are never overwritten.")]
    New(NewArgs),
    /// Find faults of a challenge by playing it, or of a scoring strategy by counting random games.
    #[command(after_help = "\
Examples:
  arena author check .
  arena author check number-duel --json
  arena author check psi                   a built-in challenge
  arena author check psi --set players=3   with another option
  arena author check . --allow secrecy     report secrecy findings as advice
  arena author check scoring/elo           a scoring strategy: a folder with a scoring.json

Checks: metadata, determinism, restore, messages, secrecy, ending, scores, bots. `✗` is a fault, `!` may be intended, `✓` \
passed. Each executable file in the folder `bots` plays a match against itself, in the sandbox of `arena match run`. \
Checks of a strategy: script, numbers, determinism, restart. The exit code is 15 if there is a fault, else 0.")]
    Check(CheckChallengeArgs),
    /// Play a challenge at this terminal, alone on all seats or with bots.
    #[command(after_help = "\
Examples:
  arena author play .                            you play all seats; /seat 2 switches
  arena author play . --agent 2=bots/half.py     you are Player 1
  arena author play psi --agent 1=./a --agent 3=./b --set players=3
  printf '/bid 40\\n/seat 2\\n/bid 30\\n' | arena author play .

The challenge runs on a temporary server on this machine, as players would meet it. /help lists the commands.")]
    Play(PlayChallengeArgs),
    /// Measure seat fairness: bots play each deal on every seat.
    #[command(after_help = "\
Examples:
  arena author fairness . --agent bots/half.py
  arena author fairness . --agent bots/half.py --agent bots/nosy.py --games 200 --concurrency 2
  arena author fairness . --agent bots/half.py --seed 1 --max-bias 0.05

One bot plays against itself. With several bots, each deal is played once for each rotation of the bots around the seats. \
The result is each seat's gain over the other seats, with its 95 % confidence interval. A seat whose interval excludes 0 is \
better or worse than the others, for these bots. The exit code is 15 if an interval lies entirely beyond --max-bias. A fair \
challenge fails once in 20 runs; --seed makes the result repeatable.")]
    Fairness(FairnessArgs),
    /// Write TypeScript declarations of the script API, for editors.
    #[command(after_help = "\
Examples:
  arena author types                       write ./types and print the editor's setup
  arena author types --out ../types")]
    Types {
        /// Output folder; existing declarations are overwritten.
        #[arg(long, value_name = "DIR", default_value = "types")]
        out: PathBuf,
    },
}

/// Options of `arena author new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Folder to create; its name is the id.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// Write JavaScript instead of TypeScript.
    #[arg(long)]
    pub js: bool,
    /// Leave out the sample challenge and its bot: only the library of bots, and the types for your editor.
    #[arg(long, conflicts_with = "js")]
    pub empty: bool,
    /// Create a scoring strategy instead of a challenge, in TypeScript.
    #[arg(long, conflicts_with_all = ["js", "empty"])]
    pub scoring: bool,
}

/// Options of `arena author check`.
#[derive(Debug, Args)]
pub struct CheckChallengeArgs {
    /// Challenge: a folder, or the name of a built-in one; or the folder of a strategy.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Report this check's findings as advice, not as faults; may be repeated.
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(checks()))]
    pub allow: Vec<String>,
    /// Number of random games; of a strategy's games, ten times as many are counted.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub games: u32,
    /// Random seed: an integer, or 64 hexadecimal digits [default: 0]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Skip the folder's bots.
    #[arg(long)]
    pub no_bots: bool,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Lists the checks that --allow accepts.
fn checks() -> Vec<&'static str> {
    CHECKS.iter().map(|(name, _)| *name).chain(["bots"]).collect()
}

/// Options of `arena author play`.
#[derive(Debug, Args)]
pub struct PlayChallengeArgs {
    /// Challenge: a folder, or the name of a built-in one.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Bot for a seat (numbered from 1): a file, a folder or a URL. You play the other seats.
    #[arg(long = "agent", value_name = "SEAT=PATH", value_parser = seat_agent)]
    pub agents: Vec<(usize, String)>,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Options of `arena author fairness`.
#[derive(Debug, Args)]
pub struct FairnessArgs {
    /// Challenge: a folder, or the name of a built-in one.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Bot; may be repeated. Fewer bots than seats are repeated in order.
    #[arg(long = "agent", value_name = "PATH", required = true)]
    pub agents: Vec<String>,
    /// Number of deals.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub games: u32,
    /// Number of games in parallel.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Random seed: an integer, or 64 hexadecimal digits [default: chosen at random and printed]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Tolerated difference between seats, as a score.
    #[arg(long, value_name = "SCORE", default_value_t = 0.0, value_parser = bias)]
    pub max_bias: f64,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Parses a score of 0 or more.
fn bias(text: &str) -> Result<f64, String> {
    let score: Option<f64> = text.parse().ok().filter(|score: &f64| score.is_finite() && *score >= 0.0);
    score.ok_or_else(|| "expected a score of 0 or more, such as 0.05".to_owned())
}

/// Parses `SEAT=PATH`; seats are numbered from 1.
fn seat_agent(text: &str) -> Result<(usize, String), String> {
    let parsed = text.split_once('=').and_then(|(seat, path)| Some((seat.parse::<usize>().ok()?, path)));
    match parsed {
        Some((seat @ 1.., path)) if !path.is_empty() => Ok((seat, path.to_owned())),
        _ => Err("expected a seat number from 1 and an agent, such as 2=./bot".to_owned()),
    }
}
