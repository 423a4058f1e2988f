//! Arguments of `arena admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
    /// Send a request to a route of the server, and print the answer.
    #[command(after_help = "\
Examples:
  arena admin api GET /admin/bans
  arena admin api POST /admin/bans --body '{\"userId\": \"ada\", \"reason\": \"sells secrets\"}'
  arena admin api POST /admin/sessions/ID/remove
  arena admin api GET '/admin/audit?limit=10'

The page /docs of the server lists the routes with their fields.")]
    Api {
        /// Method.
        #[arg(value_enum, ignore_case = true)]
        method: ApiMethod,
        /// Path of the route, with or without /api.
        path: String,
        /// Fields of a POST: a JSON object, or - for stdin [default: {}]
        #[arg(long, value_name = "JSON")]
        body: Option<String>,
    },
    /// Count all ended games again, and repair the scores that differ.
    #[command(after_help = "\
Examples:
  arena admin recompute
  arena admin recompute --strategy elo     by this scripted strategy, until the boards show the new numbers")]
    Recompute {
        /// Scripted strategy [default: all built-in ones]
        #[arg(long, value_name = "NAME")]
        strategy: Option<String>,
    },
    /// Export all users, sessions and messages, including private ones, as JSON lines.
    #[command(after_help = "\
Examples:
  arena admin export --out arena.jsonl     readable by its owner only; appears once complete
  arena admin export | gzip > arena.jsonl.gz")]
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
    /// Copy a store into an empty one: from SQLite to PostgreSQL, back, or to another place.
    #[command(after_help = "\
Examples:
  arena admin copy-store --from arena-data --to postgres://arena@db.example/arena
  arena admin copy-store --from postgres://arena@db.example/arena --to new-data

Stop the arena first. A place is a data folder or the URL of a database. Running games go on after the next start, and all \
invites, keys, bans and audit entries stay valid. The store in --from keeps its data; if an older release wrote \
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

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApiMethod {
    /// Reads.
    #[value(name = "GET")]
    Get,
    /// Changes something.
    #[value(name = "POST")]
    Post,
}
