//! Arguments of `arena verify`, `arena record` and `arena log`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::AdminArgs;

/// The text below the options of `arena verify` in the help.
pub const VERIFY_EXAMPLES: &str = "\
Examples:
  arena verify game.jsonl
  arena verify season --log https://arena.example --jobs 4
  arena verify season --log log --log-key arena.json --key arena.json
  arena verify talks.jsonl --challenge ./merger-talks
  arena record get ID | arena verify -

Accepted files: records of sessions, and replays of matches. Folders are searched, except hidden files and links to \
folders. In a folder, files that don't end in .jsonl are skipped, and so are journals of tournaments.

A record is checked in this order: each line and its hash in the next line; the seal; each opening against its commitment; \
the seed against its commitment; and, if the session has ended, every transition, message and score by playing the game \
again from the seed. With --log, the log is read and its hash tree is compared with its checkpoint; then the \
session's start and end must be in it. The output names the parts that can't be checked, with reasons.

A record can't show which program or model sent an action, or that two users are two people.

The exit code is 11 only if a file is false: it contradicts itself, its keys, the rules or the log. It is 16 if no file is \
false and some can't be verified completely: they belong to other rules, their sessions aren't in the log, or the arena's \
keys are newer than the given arena.json. With --strict, it is 16 if any part of a file could not be verified.";

/// Options of `arena verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Record, replay, or folder with them; - for stdin.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Folder of a scripted challenge, for games of it; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Record key of the arena, or a file with it or with /.well-known/arena.json; may be repeated.
    #[arg(long = "key", value_name = "KEY|FILE")]
    pub keys: Vec<String>,
    /// Log of the arena: a folder, or the URL of a server.
    #[arg(long, value_name = "DIR|URL")]
    pub log: Option<String>,
    #[command(flatten)]
    pub log_keys: LogKeyArgs,
    /// Fail if a part of a file could not be verified, such as withheld contents or a missing log.
    #[arg(long)]
    pub strict: bool,
    /// Number of files to check in parallel [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Maximum length of a record in MiB. Each job needs a few times as much memory.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_mib: u64,
}

/// The key that must have signed a log's checkpoint.
#[derive(Debug, Args)]
pub struct LogKeyArgs {
    /// Key of the log, as NAME+ID+KEY, or a file with it or with /.well-known/arena.json [default: the published key]
    #[arg(long, value_name = "KEY|FILE")]
    pub log_key: Option<String>,
}

/// Subcommands of `arena record`.
#[derive(Debug, Subcommand)]
pub enum RecordVerb {
    /// Get the record of a session from a server.
    #[command(after_help = "\
Examples:
  arena record get ID --out game.jsonl
  arena record get ID | arena verify -
  arena record get ID --from inv_…         also opens the messages that this player may see
  arena record get ID --admin --out all.jsonl

The record opens the contents that its reader may see. The other contents are withheld; their commitments stay in the \
record. Before a session ends, only its players and the administrator get its record.")]
    Get {
        /// Session id.
        id: String,
        /// Output file [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Get all openings, with the administrator token from ARENA_ADMIN_TOKEN or the data folder.
        #[arg(long)]
        admin: bool,
        #[command(flatten)]
        credentials: AdminArgs,
    },
    /// Show a record's session, events and contents.
    #[command(after_help = "\
Examples:
  arena record show game.jsonl
  arena record show game.jsonl --event 12      an event with the contents of its messages
  arena record show game.jsonl --json          the header, the end, and all counts as JSON
  arena record get ID | arena record show -

The chain, the commitments and the seal are checked before anything is shown. `arena verify` also plays the game again.")]
    Show {
        /// Record file; - for stdin.
        file: PathBuf,
        /// Number of the event to show, from 1.
        #[arg(long, value_name = "N")]
        event: Option<u64>,
    },
    /// Write a copy of a record without some of its openings.
    #[command(after_help = "\
Examples:
  arena record redact game.jsonl --withhold chat --out public.jsonl            all chat messages
  arena record redact game.jsonl --withhold chat/3 --withhold operator/7 --out public.jsonl
  arena record redact game.jsonl --withhold user --out public.jsonl            the users' ids

The copy has the same chain and the same seal, so it verifies as before. The commitments of the withheld contents remain. \
A commitment doesn't help to guess the content, since the salt is withheld too.")]
    Redact {
        /// Record file; - for stdin.
        file: PathBuf,
        /// Opening to leave out, such as chat/3, or all openings of a kind, such as chat; may be repeated.
        #[arg(long = "withhold", value_name = "WHAT", required = true)]
        withheld: Vec<String>,
        /// Output file; - for stdout.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// Subcommands of `arena log`.
#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// Print the log's newest checkpoint.
    #[command(after_help = "\
Examples:
  arena log checkpoint --log https://arena.example
  arena log checkpoint --out today.txt         keep it: `arena log check --since today.txt` compares the log with it
  arena log checkpoint --log log --log-key arena.json

A checkpoint is a signed note: the log's name, its number of leaves, the root of its hash tree, and a signature.")]
    Checkpoint {
        #[command(flatten)]
        source: LogSourceArgs,
        /// Output file [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print a proof that the log contains a session.
    #[command(after_help = "\
Examples:
  arena log prove ID --log https://arena.example
  arena log prove ID --log log --out game.proof
  arena log prove ID --created                 the leaf of the session's creation

The proof is text in the format C2SP tlog-proof: the leaf's index, the hashes from the leaf to the root, and the checkpoint.")]
    Prove {
        /// Session id.
        id: String,
        #[command(flatten)]
        source: LogSourceArgs,
        /// Prove the leaf of the creation instead of the end.
        #[arg(long)]
        created: bool,
        /// Output file [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Save a whole log to a folder, and check it.
    #[command(after_help = "\
Examples:
  arena log save https://arena.example --out log
  arena log check --log log --log-key arena.json
  arena verify season --log log

The folder gets all leaves and hashes, the checkpoint and arena.json, so --log reads it without the server. If the folder has \
an older state of the log, the new one must continue it. The exit code is 11 if the log is false.")]
    Save {
        /// Log of the arena: the URL of a server, or a folder [default: the server given with --url]
        #[arg(value_name = "URL|DIR")]
        log: Option<String>,
        #[command(flatten)]
        keys: LogKeyArgs,
        /// Folder of the copy.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Read a whole log and check it against its checkpoint.
    #[command(after_help = "\
Examples:
  arena log check --log https://arena.example
  arena log check --log log --log-key arena.json --since today.txt

It computes the hash tree from all leaves, and compares it with the tiles and the checkpoint. Leaves must be in a possible \
order: a session ends once, after its creation. With --since, the log must begin with all leaves of an older checkpoint, so a \
log that was shortened or rewritten is found. The exit code is 11 if the log is false.")]
    Check {
        #[command(flatten)]
        source: LogSourceArgs,
        /// Older checkpoint of the same log; may be repeated.
        #[arg(long, value_name = "FILE")]
        since: Vec<PathBuf>,
    },
}

/// The log and its keys.
#[derive(Debug, Args)]
pub struct LogSourceArgs {
    /// Log: a folder, or the URL of a server [default: the server given with --url]
    #[arg(long, value_name = "DIR|URL")]
    pub log: Option<String>,
    #[command(flatten)]
    pub keys: LogKeyArgs,
}
