//! `arena admin …`: requests of an administrator, and what takes more than one request or no server.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena_match::OutputFile;
use arena_players::http::{Arena, ExportError, HttpAnswer, is_loopback};
use arena_server::{AdminToken, Settings};
use arena_store::{CopiedRows, CopyError, DatabaseUrl, StorePlace, copy_store};
use arena_wire::{ImportReport, SkippedLine};
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::command_line::{Global, header_text};
use crate::exit::{Exit, Failure};
use crate::files::{cannot_read, is_standard, print_written};
use crate::output::{Style, counted, note, print, print_json, print_line};
use crate::scoring;
use crate::serve::runtime;

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
#[command(after_help = "\
Examples:
  arena admin api GET /admin/audit --data arena-data      the log of administrators' actions
  arena admin api POST /admin/sessions/SESSION/remove
  arena admin export --out arena.jsonl

The commands need the server's administrator token: from --token, ARENA_ADMIN_TOKEN, or admin.token in the data folder \
(--data). For a server on this machine the default folder is arena-data. Other users of the machine can read a command \
line, so avoid --token.

The output is text for people; --json prints the server's answer.")]
pub enum AdminVerb {
    /// Send a request to a route of the server, and print the answer.
    #[command(after_help = "\
Examples:
  arena admin api GET /admin/bans
  arena admin api POST /admin/bans --body '{\"userId\": \"ada\", \"reason\": \"sells secrets\"}'
  arena admin api POST /admin/sessions/ID/remove
  arena admin api GET '/admin/audit?limit=10'

The page /docs/api of the server lists the routes with their fields.")]
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

/// The time between two lines about the progress of a copy.
const PROGRESS: Duration = Duration::from_secs(5);

pub fn run(verb: AdminVerb, args: AdminArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let has_data = args.data.is_some();
    let arena = || client(args, global);
    match verb {
        AdminVerb::Api { method, path, body } => {
            print_json(arena()?.call(&api_path(&path), api_body(method, body.as_deref())?)?.text(), style)
        }
        AdminVerb::Recompute { strategy } => recompute(&arena()?, strategy.as_deref(), style),
        AdminVerb::Export { out } => export(&arena()?, out.as_deref(), style),
        AdminVerb::Import { file } => print_result(&import(&arena()?, &file)?, style, imported),
        AdminVerb::CopyStore { .. } if has_data => {
            Err(Failure::usage("copy-store has no --data: --from and --to are the places"))
        }
        AdminVerb::CopyStore { from, to } => copy(&from, &to, style),
    }
}

/// Returns the path of a route that was given with or without its beginning, `/api`.
fn api_path(path: &str) -> String {
    let path = path.trim_start_matches('/');
    format!("/api/{}", path.strip_prefix("api/").unwrap_or(path))
}

/// Returns the fields of a POST; `None` for a GET.
fn api_body(method: ApiMethod, body: Option<&str>) -> Result<Option<Map<String, Value>>, Failure> {
    let wrong = |why: &dyn Display| Failure::usage(format_args!("--body: {why}"));
    let text = match (method, body) {
        (ApiMethod::Get, None) => return Ok(None),
        (ApiMethod::Get, Some(_)) => return Err(wrong(&"only a POST has a body")),
        (ApiMethod::Post, None) => return Ok(Some(Map::new())),
        (ApiMethod::Post, Some("-")) => io::read_to_string(io::stdin()).map_err(|error| wrong(&error))?,
        (ApiMethod::Post, Some(text)) => text.to_owned(),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| wrong(&format_args!("expected a JSON object: {error}")))
}

/// Copies the store of a server that isn't running.
fn copy(from: &str, to: &str, style: Style) -> Result<(), Failure> {
    let (source, target) = (place("--from", from)?, place("--to", to)?);
    let mut shown = Instant::now();
    let progress = |copied: CopiedRows| {
        if shown.elapsed() > PROGRESS {
            shown = Instant::now();
            note(&format!("{} so far", rows(copied)));
        }
    };
    let copied = runtime()?.block_on(copy_store(&source, &target, progress)).map_err(|error| match error {
        CopyError::Store(_) | CopyError::NoStore(_) => Failure::caused(Exit::StoreUnavailable, &error),
        CopyError::NotEmpty(_) => Failure::usage(error),
    })?;
    if style == Style::Json {
        let CopiedRows { sessions, users, messages } = copied;
        return print_line(&json!({ "sessions": sessions, "users": users, "messages": messages }));
    }
    print(&format!("copied {}", rows(copied)))
}

fn place(option: &str, text: &str) -> Result<StorePlace, Failure> {
    if !text.contains("://") {
        return Ok(StorePlace::Folder(PathBuf::from(text)));
    }
    let url: DatabaseUrl = text.parse().map_err(|error| Failure::usage(format_args!("{option}: {error}")))?;
    Ok(StorePlace::Database(Box::new(url)))
}

fn rows(CopiedRows { sessions, users, messages }: CopiedRows) -> String {
    let sessions = counted(sessions, "session");
    format!("{sessions}, {} and {}", counted(users, "user"), counted(messages, "message"))
}

/// Returns the client of the administrator.
///
/// # Errors
/// If the token is missing.
pub fn client(args: AdminArgs, global: &Global) -> Result<Arena, Failure> {
    Ok(global.arena()?.administered(&token(args, &global.url)?))
}

fn token(args: AdminArgs, url: &str) -> Result<String, Failure> {
    if let Some(token) = args.token {
        return Ok(token);
    }
    let usual = Settings::default().data.join(AdminToken::FILE);
    let file = match args.data {
        Some(folder) => folder.join(AdminToken::FILE),
        // The token in the default data folder belongs to this machine. It isn't sent to another machine unless the
        // user requests that with an option.
        None if is_loopback(url) && usual.exists() => usual,
        None => {
            let sentence = "the administrator token is missing: set ARENA_ADMIN_TOKEN, or give the server's \
                            data folder with --data";
            return Err(Failure::usage(sentence));
        }
    };
    let token = fs::read_to_string(&file).map_err(|error| {
        Failure::usage(format_args!("cannot read the administrator token in {}: {error}", file.display()))
    })?;
    Ok(token.trim_end().to_owned())
}

/// The result of a recount of all built-in strategies.
#[derive(Deserialize)]
struct Recounted {
    users: u64,
    wrong: Vec<String>,
}

/// Recounts games by a scripted strategy and waits for the end, or by all built-in ones.
fn recompute(arena: &Arena, strategy: Option<&str>, style: Style) -> Result<(), Failure> {
    let Some(name) = strategy else {
        let answer = arena.call("/api/admin/recompute", Some(Map::new()))?;
        return print_result(&answer, style, |Recounted { users, wrong }| {
            format!("counted the games of {}; corrected: {}", counted(users, "user"), wrong.len())
        });
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Failure::usage(format_args!("--strategy: {name:?} cannot be the name of a strategy")));
    }
    arena.call(&format!("/api/admin/strategies/{name}/recompute"), Some(Map::new()))?;
    let mut shown = Instant::now();
    loop {
        let states = scoring::counts(arena)?;
        let gone = || Failure::usage(format_args!("the server no longer has the strategy {name}"));
        let state =
            states.into_iter().find(|state| state.name == name).and_then(|state| state.count).ok_or_else(gone)?;
        match (state.error, state.recomputing_percent) {
            (Some(error), _) => {
                let sentence = format_args!("{name} cannot count its next game: {error}; the old numbers stay");
                return Err(Failure::new(Exit::FaultyChallenge, sentence));
            }
            (None, None) if style == Style::Json => return print_line(&json!({ "strategy": name })),
            (None, None) => return print(&format!("{name}: the boards show the new numbers")),
            (None, Some(percent)) if shown.elapsed() > PROGRESS => {
                shown = Instant::now();
                note(&format!("recomputing, {percent} %"));
            }
            (None, Some(_)) => {}
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Prints an answer unchanged, or as formatted by `describe`.
fn print_result<T: DeserializeOwned>(
    answer: &HttpAnswer,
    style: Style,
    describe: impl FnOnce(T) -> String,
) -> Result<(), Failure> {
    match style {
        Style::Json => print_json(answer.text(), style),
        Style::Pretty | Style::Compact => print(&describe(answer.read()?)),
    }
}

fn imported(ImportReport { users, sessions, messages, skipped, skipped_total }: ImportReport) -> String {
    let (users, sessions) = (counted(users, "user"), counted(sessions, "session"));
    let (messages, lines) = (counted(messages, "message"), counted(skipped_total, "line"));
    let mut text = format!("imported: {users}, {sessions}, {messages}; skipped: {lines}");
    for SkippedLine { line, reason } in skipped {
        text += &format!("\n  line {line}: {reason}");
    }
    text
}

/// Writes an export to stdout, or to a file that appears once it is complete.
fn export(arena: &Arena, out: Option<&Path>, style: Style) -> Result<(), Failure> {
    let Some(file) = out else {
        let mut stdout = BufWriter::new(io::stdout().lock());
        return match arena.export(&mut stdout).and_then(|_| stdout.flush().map_err(ExportError::Write)) {
            // If the reader closes the pipe, the export ends without an error.
            Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(Failure::from),
        };
    };
    let refuse = |error: io::Error| Failure::usage(format_args!("{} cannot be written: {error}", file.display()));
    // The file is readable by its owner only, since it contains private messages.
    let mut out = BufWriter::new(OutputFile::create_private(file).map_err(refuse)?);
    let lines = arena.export(&mut out)?;
    let is_file = out.into_inner().map_err(io::Error::from).and_then(OutputFile::keep).map_err(refuse)?;
    match is_file {
        true => print_written(file, lines, style),
        // No summary follows, since the path may be stdout, whose reader expects only lines of the export.
        false => Ok(()),
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Failure {
        match error {
            ExportError::Call(error) => error.into(),
            ExportError::Write(_) => Failure::new(Exit::Internal, error),
        }
    }
}

fn import(arena: &Arena, file: &Path) -> Result<HttpAnswer, Failure> {
    let mut lines: Box<dyn Read> = match is_standard(file) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(file).map_err(|error| cannot_read(file, error))?),
    };
    Ok(arena.import(&mut lines)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_begin_with_api() {
        for path in ["/api/admin/bans?limit=1", "api/admin/bans?limit=1", "/admin/bans?limit=1", "admin/bans?limit=1"] {
            assert_eq!(api_path(path), "/api/admin/bans?limit=1");
        }
    }
}
