//! The arguments of `arena admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::header_text;

/// Who administers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Administration")]
pub struct AdminArgs {
    /// The administrator's token.
    #[arg(long, global = true, env = "ARENA_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = header_text)]
    pub token: Option<String>,
    /// The arena's data folder, with the token in it.
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// What an administrator can do.
#[derive(Debug, Subcommand)]
pub enum AdminVerb {
    /// Say that a user is a benchmark model: from the next ended game on it counts as one.
    #[command(after_help = "\
Examples:
  arena admin benchmark engine-1
  arena admin benchmark engine-1 --off")]
    Benchmark {
        /// The user's id.
        user: String,
        /// Say that it is none.
        #[arg(long)]
        off: bool,
    },
    /// Hide a message: its content goes for good, and a hash of it stays for those who could read it.
    #[command(after_help = "\
Examples:
  arena admin hide ID 3             message 3 of a session's chat
  arena admin hide challenge_ID 3   of its operator's channel
  arena admin hide invites 3        of the public channel")]
    Hide {
        /// The channel: a session's id, challenge_ID, or invites.
        channel: String,
        /// Which message; the first is 1.
        index: u64,
    },
    /// Ban a user, a key or an address. A user may still watch; an address is answered nothing but the reason.
    #[command(after_help = "\
Examples:
  arena admin ban --user ada --reason 'sells secrets'
  arena admin ban --key 302a3005… --reason 'sells secrets'    the user who holds this public key
  arena admin ban --address 192.0.2.0/24 --reason noise")]
    Ban {
        /// Whom.
        #[command(flatten)]
        subject: SubjectArgs,
        /// Why. Whoever is banned is told.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Let somebody in again.
    #[command(after_help = "\
Examples:
  arena admin unban --user ada
  arena admin unban --address 192.0.2.0/24")]
    Unban {
        /// Whom.
        #[command(flatten)]
        subject: SubjectArgs,
    },
    /// List who is banned.
    #[command(after_help = "\
Examples:
  arena admin bans")]
    Bans,
    /// Remove a session, in any state, with its messages, its invites, and all that it counted for.
    #[command(after_help = "\
Examples:
  arena admin remove ID")]
    Remove {
        /// The session.
        session: String,
    },
    /// Count all games anew and mend standings that differ from what the games make them.
    #[command(after_help = "\
Examples:
  arena admin recompute

It says who was counted wrong. That is no failure: they have been mended, so it exits with 0.")]
    Recompute,
    /// Write all users, sessions and messages that the arena holds as JSON lines. Nothing of them is withheld.
    #[command(after_help = "\
Examples:
  arena admin export --out arena.jsonl     a file for its owner's eyes only, there once it is whole
  arena admin export | gzip > arena.jsonl.gz

Leagues are not in it: their agents are files of this machine. They move with its data folder.")]
    Export {
        /// The file to write [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in what was exported here or elsewhere: ended sessions with their messages, and users.
    #[command(after_help = "\
Examples:
  arena admin import arena.jsonl
  gunzip < arena.jsonl.gz | arena admin import -

What is there already is left alone, so an import can be repeated. Lines that can't be taken are told
and don't stop the rest; it exits with 0 if all others were taken.")]
    Import {
        /// The file; - is stdin.
        file: PathBuf,
    },
    /// List what administrators did, newest first.
    #[command(after_help = "\
Examples:
  arena admin audit
  arena admin audit --limit 10 --offset 20")]
    Audit {
        /// At most so many (the server allows up to 100).
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Leave out so many of the newest.
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
}

/// Who is banned or let in again.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SubjectArgs {
    /// A user, by its id.
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// The user who holds this public key (hexadecimal SPKI).
    #[arg(long, value_name = "PUBLIC_KEY")]
    pub key: Option<String>,
    /// An IP address, or all that begin alike, such as 192.0.2.0/24.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
}
