//! Arguments of `arena board` and `arena session`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::records::LogKeyArgs;
use super::{AdminArgs, header_text};

/// Subcommands of `arena board`.
#[derive(Debug, Subcommand)]
pub enum BoardVerb {
    /// Compute all leaderboards from records.
    #[command(after_help = "\
Examples:
  arena board rebuild --records season
  arena board rebuild --records season --log https://arena.example --policy policy.toml
  arena board rebuild --records season --users users.json --json > boards.json
  arena board rebuild --records season --challenge ./merger-talks

The result contains the leaderboards, the number of games, and each game that doesn't count with the reason. With --log, \
only games in the log count, and completed games without a record are listed as missing. Without it, records without a \
signature count too, with a note.

A policy file has the sections [scoring] and [[challenges]] of the arena's settings, and may exclude games:
  [[exclude]]
  session = \"018f6b2e-0000-7000-8000-00000000abcd\"     or: user = \"ada\"
  reason = \"the provider failed\"

A record has user ids, but no profiles. --users adds names; its order decides between players with equal values, as on the \
server. Use `arena users get` to fetch the file.

A false record, or one that contradicts the log, ends the command with exit code 11.")]
    Rebuild(RebuildArgs),
}

/// Options of `arena board rebuild`.
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// Record, or folder with records; may be repeated.
    #[arg(long = "records", value_name = "FILE|DIR", required = true)]
    pub records: Vec<PathBuf>,
    /// Log of the arena: a folder, or the URL of a server.
    #[arg(long, value_name = "DIR|URL")]
    pub log: Option<String>,
    #[command(flatten)]
    pub log_keys: LogKeyArgs,
    /// File with strategies, challenges and excluded games [default: the settings of a new server]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// File with the users of the arena, as JSON.
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Folder of a scripted challenge with its own leaderboards; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Play each game again and compare before it counts.
    #[arg(long)]
    pub verify: bool,
}

/// Subcommands of `arena session`.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// Continue a recorded session from one of its events.
    #[command(after_help = "\
Examples:
  arena session fork game.jsonl --at 12                       repeat the rest of the game
  arena session fork game.jsonl --at 12 --swap 1=house --out fork.jsonl
  arena session fork game.jsonl --at 12 --swap 1=model:NAME@ollama --others random
  arena session fork game.jsonl --at 12 --swap 1=house --count 100 --reseed --out forks

The fork has the same past as the original up to the event, and the same randomness after it; --reseed draws other random \
numbers. Time stands still while agents think, and moves on to a deadline when no agent acts. Each fork is a new session \
with a record of its own, which names the original and never counts on a leaderboard.

Agents: house, house:easy, random, or a language model (model:NAME, model:NAME@URL, model:NAME@PRESET). Seats are numbered \
from 1. Without --swap, --others and --reseed, all players repeat their recorded actions.

The record must be of an ended session and open all contents up to the event.")]
    Fork(ForkSessionArgs),
    /// Remove a session that hasn't ended. The arena's log shows the removal.
    #[command(after_help = "\
Examples:
  arena session cancel ID --creator-key o_…
  ARENA_CREATOR_KEY=o_… arena session cancel ID
  arena session cancel ID --admin

Once all players have joined a rated game, only an administrator can cancel it.")]
    Cancel {
        /// Session id.
        id: String,
        #[command(flatten)]
        creator: CreatorArgs,
    },
    /// Take a session that hasn't ended from all lists. Its game becomes unrated.
    #[command(after_help = "\
Examples:
  arena session unlist ID --creator-key o_…
  arena session unlist ID --admin

Once all players have joined a rated game, only an administrator can unlist it.")]
    Unlist {
        /// Session id.
        id: String,
        #[command(flatten)]
        creator: CreatorArgs,
    },
    /// List the invites of a session's free seats.
    #[command(after_help = "\
Examples:
  arena session invites ID --creator-key o_…
  arena session invites ID --admin

Invites that were announced to the public are left out.")]
    Invites {
        /// Session id.
        id: String,
        #[command(flatten)]
        creator: CreatorArgs,
    },
}

/// The credentials of a session's creator or of the administrator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct CreatorArgs {
    /// Key of the session's creator, which `arena challenges create` prints.
    #[arg(long, env = "ARENA_CREATOR_KEY", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub creator_key: Option<String>,
    /// Use the administrator token from ARENA_ADMIN_TOKEN or the data folder instead.
    #[arg(long)]
    pub admin: bool,
    #[command(flatten)]
    pub credentials: AdminArgs,
}

/// Options of `arena session fork`.
#[derive(Debug, Args)]
pub struct ForkSessionArgs {
    /// Record of an ended session.
    pub file: PathBuf,
    /// Number of the last event that the fork shares with the original.
    #[arg(long, value_name = "EVENT")]
    pub at: u64,
    /// Agent for a seat, counted from 1; may be repeated.
    #[arg(long = "swap", value_name = "SEAT=AGENT")]
    pub swaps: Vec<SeatSwap>,
    /// Agent for all other seats [default: house, if any seat has another agent or with --reseed]
    #[arg(long, value_name = "AGENT")]
    pub others: Option<String>,
    /// Draw other random numbers after the event.
    #[arg(long)]
    pub reseed: bool,
    /// Number of forks.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Output file; with --count, a folder for 1.jsonl, 2.jsonl and so on.
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Folder of a scripted challenge, for records of it; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
}

/// An agent for one seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatSwap {
    /// The seat, from 0.
    pub seat: usize,
    /// The agent.
    pub agent: String,
}

impl FromStr for SeatSwap {
    type Err = String;

    fn from_str(text: &str) -> Result<SeatSwap, String> {
        let (seat, agent) = text.split_once('=').ok_or("expected SEAT=AGENT, such as 2=house")?;
        let seat = seat.parse::<usize>().ok().and_then(|seat| seat.checked_sub(1));
        match seat {
            Some(seat) if !agent.is_empty() => Ok(SeatSwap { seat, agent: agent.to_owned() }),
            Some(_) => Err("expected an agent after the =, such as 2=house".to_owned()),
            None => Err("expected the number of a seat, from 1, such as 2=house".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_from_1() {
        let swap = |seat, agent: &str| Ok(SeatSwap { seat, agent: agent.to_owned() });
        for (text, expected) in [
            ("1=house", swap(0, "house")),
            ("12=model:m@http://a.example/?x=1", swap(11, "model:m@http://a.example/?x=1")),
            ("0=house", Err("expected the number of a seat, from 1, such as 2=house".to_owned())),
            ("x=house", Err("expected the number of a seat, from 1, such as 2=house".to_owned())),
            ("1=", Err("expected an agent after the =, such as 2=house".to_owned())),
            ("house", Err("expected SEAT=AGENT, such as 2=house".to_owned())),
        ] {
            assert_eq!(text.parse::<SeatSwap>(), expected, "{text}");
        }
    }
}
