//! The arguments of `arena challenge`.

use std::path::PathBuf;

use arena_check::CHECKS;
use arena_model::Seed;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::SandboxArgs;
use super::matches::{option, seed};

/// What can be done with challenges of one's own.
#[derive(Debug, Subcommand)]
pub enum ChallengeVerb {
    /// Begin a challenge: a folder with a script to start from, a bot that plays it, and the types for your editor.
    #[command(after_help = "\
Examples:
  arena challenge new number-duel             ./number-duel, in TypeScript
  arena challenge new games/number-duel --js  in JavaScript, in another folder

The folder's name is the challenge's: small letters, digits and hyphens. Nothing that is there is overwritten.")]
    New(NewArgs),
    /// Tell what a challenge gets wrong: by playing it, again and again.
    #[command(after_help = "\
Examples:
  arena challenge check .
  arena challenge check number-duel --json
  arena challenge check psi                   one that is built in
  arena challenge check psi --set players=3   with another option than its usual one
  arena challenge check . --allow secrecy     what it tells is meant so: no reason to fail

Checks: metadata, determinism, restore, messages, secrecy, ending, scores, bots. `✗` has to be mended, `!` may be meant so, and what is
`✓` was tried. Each bot in the folder `bots` (files that can be executed) plays a match against itself, in the sandbox of
`arena match run`. The exit code is 15 if something is wrong, else 0.")]
    Check(CheckChallengeArgs),
    /// Try a challenge out at this terminal, on all seats yourself or with bots on some.
    #[command(after_help = "\
Examples:
  arena challenge play .                            all seats are yours: /seat 2 changes
  arena challenge play . --agent 2=bots/half.py     you are Player 1
  arena challenge play psi --agent 1=./a --agent 3=./b --set players=3
  printf '/bid 40\\n/seat 2\\n/bid 30\\n' | arena challenge play .

It is played in an arena of its own, on this machine and in a temporary folder, as players would meet it. /help lists what can
be typed.")]
    Play(PlayChallengeArgs),
    /// Tell whether seats are equally good: bots play each deal on all seats.
    #[command(after_help = "\
Examples:
  arena challenge fairness . --agent bots/half.py
  arena challenge fairness . --agent bots/half.py --agent bots/nosy.py --games 200 --concurrency 2
  arena challenge fairness . --agent bots/half.py --seed 1 --max-bias 0.05

With one bot, it plays against itself. With several, each deal is played once for each way in which they can be shifted along
the seats. What a seat gains over the others is told with an interval that holds the truth with 95 % confidence; a seat whose
interval leaves 0 out is better or worse than others, for these bots. The exit code is 15 if a whole interval is beyond
--max-bias. Of fair challenges that is so once in 20 times; --seed makes it the same each time.")]
    Fairness(FairnessArgs),
    /// Write the types of what scripts can import, for editors.
    #[command(after_help = "\
Examples:
  arena challenge types                       ./types, and how to tell your editor of them
  arena challenge types --out ../types")]
    Types {
        /// The folder to write to. What it has of these files is overwritten.
        #[arg(long, value_name = "DIR", default_value = "types")]
        out: PathBuf,
    },
}

/// Options of `arena challenge new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The folder to make; its name is the challenge's.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// Write JavaScript rather than TypeScript.
    #[arg(long)]
    pub js: bool,
}

/// Options of `arena challenge check`.
#[derive(Debug, Args)]
pub struct CheckChallengeArgs {
    /// The folder of a challenge, or the name of one that is built in.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// A check that shall not fail: what it finds wrong is told as advice.
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(checks()))]
    pub allow: Vec<String>,
    /// Games that are played at random.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub games: u32,
    /// What all that is random comes of: a number, or 64 hexadecimal digits [default: 0, so that what was found is found again]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Don't let the folder's bots play.
    #[arg(long)]
    pub no_bots: bool,
    /// Set an option of the challenge: KEY=VALUE.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// How bots are held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// The checks that may be allowed to fail.
fn checks() -> Vec<&'static str> {
    CHECKS.iter().map(|(name, _)| *name).chain(["bots"]).collect()
}

/// Options of `arena challenge play`.
#[derive(Debug, Args)]
pub struct PlayChallengeArgs {
    /// The folder of a challenge, or the name of one that is built in.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// A bot on a seat, from 1: a file, a folder or an address, as in `arena match run`. The other seats are yours.
    #[arg(long = "agent", value_name = "SEAT=PATH", value_parser = seat_agent)]
    pub agents: Vec<(usize, String)>,
    /// Set an option of the challenge: KEY=VALUE.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// How bots are held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Options of `arena challenge fairness`.
#[derive(Debug, Args)]
pub struct FairnessArgs {
    /// The folder of a challenge, or the name of one that is built in.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// A bot; with a single one it plays against itself. More than one and fewer than seats begin again with the first.
    #[arg(long = "agent", value_name = "PATH", required = true)]
    pub agents: Vec<String>,
    /// Deals that are played.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub games: u32,
    /// Play so many games beside each other.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// What all that is random comes of: a number, or 64 hexadecimal digits [default: drawn and printed]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// What a seat may gain over the others, or lose: a score.
    #[arg(long, value_name = "SCORE", default_value_t = 0.0, value_parser = bias)]
    pub max_bias: f64,
    /// Set an option of the challenge: KEY=VALUE.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// How bots are held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// A score from 0.
fn bias(text: &str) -> Result<f64, String> {
    let score: Option<f64> = text.parse().ok().filter(|score: &f64| score.is_finite() && *score >= 0.0);
    score.ok_or_else(|| "give a score from 0, such as 0.05".to_owned())
}

/// `2=PATH`: a seat from 1, and an agent.
fn seat_agent(text: &str) -> Result<(usize, String), String> {
    let parsed = text.split_once('=').and_then(|(seat, path)| Some((seat.parse::<usize>().ok()?, path)));
    match parsed {
        Some((seat @ 1.., path)) if !path.is_empty() => Ok((seat, path.to_owned())),
        _ => Err("give a seat from 1 and an agent, such as 2=./bot".to_owned()),
    }
}
