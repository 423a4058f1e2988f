//! `arena admin …`: requests of an administrator, and what takes more than one request or no server.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena_match::OutputFile;
use arena_players::http::{Arena, CallError, ExportError, HttpAnswer, is_loopback};
use arena_server::{AdminToken, Settings};
use arena_store::{CopiedRows, CopyError, DatabaseUrl, StorePlace, copy_store};
use arena_wire::{ImportReport, SkippedLine};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::args::{AdminArgs, AdminVerb, ApiMethod, Global};
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, note, print, print_json};
use crate::scoring;
use crate::serve::runtime;

/// The time between two lines about the progress of a copy.
const PROGRESS: Duration = Duration::from_secs(5);

pub fn run(verb: AdminVerb, args: AdminArgs, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        AdminVerb::CopyStore { .. } if args.data.is_some() => {
            return Err(Failure::new(Exit::Usage, "copy-store has no --data: --from and --to are the places"));
        }
        AdminVerb::CopyStore { from, to } => return copy(&from, &to, style),
        _ => {}
    }
    let arena = global.arena()?.administered(&token(args, &global.url)?);
    match verb {
        AdminVerb::Api { method, path, body } => {
            print_json(arena.call(&api_path(&path), api_body(method, body.as_deref())?)?.text(), style)
        }
        AdminVerb::Recompute { strategy } => recompute(&arena, strategy.as_deref(), style),
        AdminVerb::Export { out } => export(&arena, out.as_deref(), style),
        AdminVerb::Import { file } => print_result(import(&arena, &file)?, style, imported),
        AdminVerb::CopyStore { .. } => unreachable!("handled above, because it asks no server"),
    }
}

/// Returns the path of a route that was given with or without its beginning, `/api`.
fn api_path(path: &str) -> String {
    let path = path.trim_start_matches('/');
    format!("/api/{}", path.strip_prefix("api/").unwrap_or(path))
}

/// Returns the fields of a POST; `None` for a GET.
fn api_body(method: ApiMethod, body: Option<&str>) -> Result<Option<Map<String, Value>>, Failure> {
    let wrong = |why: &dyn Display| Failure::new(Exit::Usage, format_args!("--body: {why}"));
    let text = match (method, body) {
        (ApiMethod::Get, None) => return Ok(None),
        (ApiMethod::Get, Some(_)) => return Err(wrong(&"only a POST has a body")),
        (ApiMethod::Post, None) => return Ok(Some(Map::new())),
        (ApiMethod::Post, Some("-")) => std::io::read_to_string(std::io::stdin()).map_err(|error| wrong(&error))?,
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
        CopyError::NotEmpty(_) => Failure::new(Exit::Usage, error),
    })?;
    if style == Style::Json {
        let CopiedRows { sessions, users, messages } = copied;
        return print(&json!({ "sessions": sessions, "users": users, "messages": messages }).to_string());
    }
    print(&format!("copied {}", rows(copied)))
}

fn place(option: &str, text: &str) -> Result<StorePlace, Failure> {
    if !text.contains("://") {
        return Ok(StorePlace::Folder(PathBuf::from(text)));
    }
    let url: DatabaseUrl =
        text.parse().map_err(|error| Failure::new(Exit::Usage, format_args!("{option}: {error}")))?;
    Ok(StorePlace::Database(Box::new(url)))
}

fn rows(CopiedRows { sessions, users, messages }: CopiedRows) -> String {
    let sessions = counted(sessions, "session", "sessions");
    format!("{sessions}, {} and {}", counted(users, "user", "users"), counted(messages, "message", "messages"))
}

pub fn token(args: AdminArgs, url: &str) -> Result<String, Failure> {
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
            return Err(Failure::new(Exit::Usage, sentence));
        }
    };
    let token = fs::read_to_string(&file).map_err(|error| {
        Failure::new(Exit::Usage, format_args!("cannot read the administrator token in {}: {error}", file.display()))
    })?;
    Ok(token.trim_end().to_owned())
}

/// The result of a recount of all built-in strategies.
#[derive(Deserialize)]
struct Recounted {
    users: u64,
    games: u64,
    wrong: Vec<String>,
}

/// Recounts games by a scripted strategy and waits for the end, or by all built-in ones.
fn recompute(arena: &Arena, strategy: Option<&str>, style: Style) -> Result<(), Failure> {
    let Some(name) = strategy else {
        let answer = arena.call("/api/admin/recompute", Some(Map::new()));
        return print_result(answer, style, |Recounted { users, games, wrong }| {
            let users = counted(users, "user", "users");
            format!("counted {} of {users}; corrected: {}", counted(games, "game", "games"), wrong.len())
        });
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Failure::new(Exit::Usage, format_args!("--strategy: {name:?} cannot be the name of a strategy")));
    }
    arena.call(&format!("/api/admin/strategies/{name}/recompute"), Some(Map::new()))?;
    let mut shown = Instant::now();
    loop {
        let states = scoring::counts(arena)?;
        let gone = || Failure::new(Exit::Usage, format_args!("the server no longer has the strategy {name}"));
        let state =
            states.into_iter().find(|state| state.name == name).and_then(|state| state.count).ok_or_else(gone)?;
        match (state.error, state.recomputing_percent) {
            (Some(error), _) => {
                let sentence = format_args!("{name} cannot count its next game: {error}; the old numbers stay");
                return Err(Failure::new(Exit::FaultyChallenge, sentence));
            }
            (None, None) if style == Style::Json => return print(&json!({ "strategy": name }).to_string()),
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

/// Prints an answer unchanged, or as formatted by `say`.
fn print_result<T: DeserializeOwned>(
    answer: Result<HttpAnswer, CallError>,
    style: Style,
    say: impl FnOnce(T) -> String,
) -> Result<(), Failure> {
    let answer = answer?;
    match style {
        Style::Json => print_json(answer.text(), style),
        Style::Pretty | Style::Compact => print(&say(answer.read()?)),
    }
}

fn imported(ImportReport { users, sessions, messages, skipped, skipped_total }: ImportReport) -> String {
    let mut text = format!(
        "imported: {}, {}, {}; skipped: {}",
        counted(users, "user", "users"),
        counted(sessions, "session", "sessions"),
        counted(messages, "message", "messages"),
        counted(skipped_total, "line", "lines"),
    );
    for SkippedLine { line, reason } in skipped {
        text += &format!("\n  line {line}: {reason}");
    }
    text
}

/// Writes an export to stdout, or to a file that appears once it is complete.
fn export(arena: &Arena, out: Option<&Path>, style: Style) -> Result<(), Failure> {
    let Some(file) = out else {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        return match arena.export(&mut stdout).and_then(|_| stdout.flush().map_err(ExportError::Write)) {
            // If the reader closes the pipe, the export ends without an error.
            Err(ExportError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(Failure::from),
        };
    };
    let refuse = |error: std::io::Error| {
        Failure::new(Exit::Usage, format_args!("{} cannot be written: {error}", file.display()))
    };
    // The file is readable by its owner only, since it contains private messages.
    let mut out = BufWriter::new(OutputFile::create_private(file).map_err(refuse)?);
    let lines = arena.export(&mut out)?;
    let is_file = out.into_inner().map_err(std::io::Error::from).and_then(OutputFile::keep).map_err(refuse)?;
    if !is_file {
        // No summary follows, since the path may be stdout, whose reader expects only lines of the export.
        return Ok(());
    }
    match style {
        Style::Json => print(&json!({ "lines": lines, "file": file.display().to_string() }).to_string()),
        Style::Pretty | Style::Compact => {
            print(&format!("wrote {} to {}", counted(lines, "line", "lines"), file.display()))
        }
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

fn import(arena: &Arena, file: &Path) -> Result<Result<HttpAnswer, CallError>, Failure> {
    let mut lines: Box<dyn Read> =
        if file == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            let opened = File::open(file);
            Box::new(opened.map_err(|error| {
                Failure::new(Exit::Usage, format_args!("{} cannot be read: {error}", file.display()))
            })?)
        };
    Ok(arena.import(&mut lines))
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
