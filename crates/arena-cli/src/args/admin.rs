//! Arguments of `arena admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::header_text;

/// The administrator's credentials.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Administration")]
pub struct AdminArgs {
    /// Administrator token.
    #[arg(long, global = true, env = "ARENA_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = header_text)]
    pub token: Option<String>,
    /// Data folder of the server, which contains the token.
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Subcommands of `arena admin`.
#[derive(Debug, Subcommand)]
pub enum AdminVerb {
    /// Mark a user as a benchmark model; applies to games that end later.
    #[command(after_help = "\
Examples:
  arena admin benchmark engine-1
  arena admin benchmark engine-1 --off")]
    Benchmark {
        /// User id.
        user: String,
        /// Remove the mark.
        #[arg(long)]
        off: bool,
    },
    /// Delete a user's id and profile; the user's games stay, and count for the other players.
    #[command(after_help = "\
Examples:
  arena admin delete-user ada

The user leaves all leaderboards, which can't be undone. A user with a seat in a running session can't be
deleted. Hide the user's messages with `arena admin hide` if they must go, too.")]
    DeleteUser {
        /// User id.
        user: String,
    },
    /// Delete a message's content permanently; the channel shows its hash instead.
    #[command(after_help = "\
Examples:
  arena admin hide ID 3             message 3 of a session's chat
  arena admin hide challenge_ID 3   message 3 of its operator channel
  arena admin hide invites 3        message 3 of the public channel")]
    Hide {
        /// Channel: a session id, challenge_ID or invites.
        channel: String,
        /// Index of the message, from 1.
        index: u64,
    },
    /// List the messages that readers have reported.
    #[command(after_help = "\
Examples:
  arena admin reports
  arena admin hide ID 3      deletes the message
  arena admin dismiss ID 3   keeps it")]
    Reports {
        /// Maximum number of reports, up to 100 [default: the server's]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Number of newest reports to skip [default: 0]
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Dismiss the reports of a message, or all reports of an address. The messages stay.
    #[command(after_help = "\
Examples:
  arena admin dismiss ID 3                  the reports of message 3 of a session's chat
  arena admin dismiss --address 192.0.2.7   the reports of an address, as `arena admin reports` shows it")]
    Dismiss {
        /// Channel: a session id, challenge_ID or invites.
        #[arg(required_unless_present = "address", requires = "index")]
        channel: Option<String>,
        /// Index of the message, from 1.
        index: Option<u64>,
        /// Address of the reporter.
        #[arg(long, value_name = "ADDRESS", conflicts_with = "channel")]
        address: Option<String>,
    },
    /// Ban a user, a key or an address. A banned user can still read; a banned address receives only the reason.
    #[command(after_help = "\
Examples:
  arena admin ban --user ada --reason 'sells secrets'
  arena admin ban --key 302a3005… --reason 'sells secrets'    the user who holds this public key
  arena admin ban --address 192.0.2.0/24 --reason noise")]
    Ban {
        #[command(flatten)]
        subject: SubjectArgs,
        /// Reason, shown to the banned user.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lift a ban.
    #[command(after_help = "\
Examples:
  arena admin unban --user ada
  arena admin unban --address 192.0.2.0/24")]
    Unban {
        #[command(flatten)]
        subject: SubjectArgs,
    },
    /// List bans.
    #[command(after_help = "\
Examples:
  arena admin bans")]
    Bans,
    /// Remove a session in any state, with its messages, invites and scores.
    #[command(after_help = "\
Examples:
  arena admin remove ID")]
    Remove {
        /// Session id.
        session: String,
    },
    /// Move the messages of sessions that ended long ago to files. All pages and records stay.
    #[command(after_help = "\
Examples:
  arena admin archive --older-than-days 90

The files are in the folder archive of the data folder, or in retention.folder or retention.bucket of the \
settings. With retention.archive_after_days, the server does this by itself every hour.")]
    Archive {
        /// Age of the sessions: days since their end.
        #[arg(long, value_name = "DAYS")]
        older_than_days: u32,
    },
    /// Move the messages of an archived session, or of all, back into the store.
    #[command(after_help = "\
Examples:
  arena admin restore ID
  arena admin restore --all

While retention.archive_after_days is set, the server archives restored sessions again within an hour.")]
    Restore {
        /// Session id.
        #[arg(required_unless_present = "all")]
        session: Option<String>,
        /// All archived sessions.
        #[arg(long, conflicts_with = "session")]
        all: bool,
    },
    /// Recompute all standings from the games and repair those that differ.
    #[command(after_help = "\
Examples:
  arena admin recompute

It lists the users whose standings were wrong. The exit code is 0, since they are repaired.")]
    Recompute,
    /// Export all users, sessions and messages, including private ones, as JSON lines.
    #[command(after_help = "\
Examples:
  arena admin export --out arena.jsonl     readable by its owner only; appears once complete
  arena admin export | gzip > arena.jsonl.gz

Leagues aren't exported: their agents are files of this machine. Move them with the data folder.")]
    Export {
        /// Output file [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Import ended sessions with their messages, and users, from an export.
    #[command(after_help = "\
Examples:
  arena admin import arena.jsonl
  gunzip < arena.jsonl.gz | arena admin import -

Records that exist are skipped, so an import can be repeated. Invalid lines are reported and skipped; the exit code is 0 \
if all other lines were imported.")]
    Import {
        /// Export file; - for stdin.
        file: PathBuf,
    },
    /// List administrators' actions, newest first.
    #[command(after_help = "\
Examples:
  arena admin audit
  arena admin audit --limit 10 --offset 20")]
    Audit {
        /// Maximum number of entries, up to 100 [default: the server's]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Number of newest entries to skip [default: 0]
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// List the node's budgets, and the addresses that use most of them.
    #[command(after_help = "\
Examples:
  arena admin budgets
  arena admin budgets --limit 100

An IPv6 address stands for its /64 network. To keep an address out: arena admin ban --address ADDRESS --reason TEXT.")]
    Budgets {
        /// Maximum number of addresses, up to 100 [default: the server's]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Number of addresses to skip [default: 0]
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Copy a store into an empty one: from SQLite to PostgreSQL, back, or to another place.
    #[command(after_help = "\
Examples:
  arena admin copy-store --from arena-data --to postgres://arena@db.example/arena
  arena admin copy-store --from postgres://arena@db.example/arena --to new-data

Stop the arena first. A place is a data folder or the URL of a database. Running games go on after the next start, and all \
invites, keys, bans, audit entries and leagues stay valid. The store in --from keeps its data; if an older release wrote \
it, it is upgraded.

The command copies the store alone. Copy the data folder's other files too: the secrets, tournaments and the archive.")]
    CopyStore {
        /// Place of the existing store.
        #[arg(long, value_name = "PLACE")]
        from: String,
        /// Place of the new store.
        #[arg(long, value_name = "PLACE")]
        to: String,
    },
}

/// The subject of a ban: exactly one option is given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SubjectArgs {
    /// User id.
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// Public key of the user (hexadecimal SPKI).
    #[arg(long, value_name = "PUBLIC_KEY")]
    pub key: Option<String>,
    /// IP address or range, such as 192.0.2.0/24.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
}
