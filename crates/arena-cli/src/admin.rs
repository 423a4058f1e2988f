//! `arena admin …`: what an administrator does, told in tables and sentences, or with `--json` as the server answered.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use arena_match::OutputFile;
use arena_server::{AdminToken, Settings};
use arena_wire::{AuditEntry, AuditPage, Ban, Bans, Counted, Hidden, ImportReport, SkippedLine};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::args::{AdminArgs, AdminVerb, Global};
use crate::client::{Answer, Arena, CallError, ExportError, is_loopback};
use crate::exit::{Exit, Failure};
use crate::output::{Style, Table, print, print_json, utc};

/// Does what `verb` says at the arena that the command line names.
pub fn run(verb: AdminVerb, args: AdminArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let arena = Arena::of(global)?.administered(&token(args, &global.url)?);
    match verb {
        AdminVerb::Benchmark { user, off } => tell(arena.set_benchmark(&user, !off), style, |profile: Profile| {
            let is = if profile.is_benchmark { "is" } else { "isn't" };
            format!("{} {is} a benchmark model, from the next ended game on", profile.user_id)
        }),
        AdminVerb::Hide { channel, index } => tell(arena.hide(&channel, index), style, |hidden: Hidden| {
            let Hidden { channel, index, content_sha256 } = hidden;
            format!("message {index} of {channel} is hidden; the SHA-256 of its content is {content_sha256}")
        }),
        AdminVerb::Ban { subject, reason } => {
            tell(arena.ban(&subject, &reason), style, |ban: Ban| format!("{} is banned: {}", banned(&ban), ban.reason))
        }
        AdminVerb::Unban { subject } => {
            tell(arena.lift_ban(&subject), style, |_: Value| "the ban is lifted".to_owned())
        }
        AdminVerb::Bans => tell(arena.bans(), style, bans),
        AdminVerb::Remove { session } => {
            tell(arena.remove(&session), style, |_: Value| format!("session {session} is removed"))
        }
        AdminVerb::Recompute => tell(arena.recompute(), style, recomputed),
        AdminVerb::Export { out } => export(&arena, out.as_deref(), style),
        AdminVerb::Import { file } => tell(import(&arena, &file)?, style, imported),
        AdminVerb::Audit { limit, offset } => tell(arena.audit(limit, offset), style, audit),
    }
}

/// The token that stands for the administrator of the arena at `url`.
fn token(args: AdminArgs, url: &str) -> Result<String, Failure> {
    if let Some(token) = args.token {
        return Ok(token);
    }
    let usual = Settings::default().data.join(AdminToken::FILE);
    let file = match args.data {
        Some(folder) => folder.join(AdminToken::FILE),
        // Another machine isn't sent this one's token unasked.
        None if is_loopback(url) && usual.exists() => usual,
        None => {
            let sentence = "an arena's token stands for its administrator: give it in ARENA_ADMIN_TOKEN, or name the \
                            arena's data folder with --data";
            return Err(Failure::new(Exit::Usage, sentence));
        }
    };
    let token = fs::read_to_string(&file).map_err(|error| {
        Failure::new(Exit::Usage, format_args!("can't read the token in {}: {error}", file.display()))
    })?;
    Ok(token.trim_end().to_owned())
}

/// Prints an answer as the server gave it, or else what `say` makes of it.
fn tell<T: DeserializeOwned>(
    answer: Result<Answer, CallError>,
    style: Style,
    say: impl FnOnce(T) -> String,
) -> Result<(), Failure> {
    let answer = answer?;
    match style {
        Style::Json => print_json(answer.text(), style),
        Style::Pretty | Style::Compact => print(&say(answer.read()?)),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    user_id: String,
    #[serde(default)]
    is_benchmark: bool,
}

fn banned(ban: &Ban) -> String {
    match (&ban.user_id, &ban.address) {
        (Some(user), _) => format!("user {user}"),
        (None, address) => format!("address {}", address.as_deref().unwrap_or("unknown")),
    }
}

fn bans(Bans { bans }: Bans) -> String {
    if bans.is_empty() {
        return "nobody is banned".to_owned();
    }
    let mut table = Table::new(&["who", "since", "why"]);
    for ban in bans {
        table.row([banned(&ban), utc(ban.at.0), ban.reason]);
    }
    table.to_string()
}

fn recomputed(Counted { users, games, wrong }: Counted) -> String {
    let counted = format!("the games of {users} users are counted anew, {games} in all");
    match wrong.len() {
        0 => format!("{counted}; their standings were right"),
        n => format!("{counted}; the standings of {n} were wrong and are mended:\n  {}", wrong.join("\n  ")),
    }
}

fn imported(ImportReport { users, sessions, messages, skipped, skipped_total }: ImportReport) -> String {
    let mut text =
        format!("taken: {users} users, {sessions} sessions, {messages} messages; not taken: {skipped_total}");
    for SkippedLine { line, reason } in skipped {
        text += &format!("\n  line {line}: {reason}");
    }
    text
}

fn audit(AuditPage { entries, total, .. }: AuditPage) -> String {
    let mut table = Table::new(&["no", "when", "from", "what", "how"]);
    let shown = entries.len();
    for AuditEntry { no, at, address, action, detail } in entries {
        table.row([no.to_string(), utc(at.0), address, action, detail.to_string()]);
    }
    format!("{}\n{shown} of {total}", table.right([0]))
}

/// Writes an export to a file, which is there once it is whole, or to stdout.
fn export(arena: &Arena, out: Option<&Path>, style: Style) -> Result<(), Failure> {
    let Some(file) = out else {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        return match arena.export(&mut stdout).and_then(|_| stdout.flush().map_err(ExportError::Write)) {
            // A reader that has gone is not a failure.
            Err(ExportError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(Failure::from),
        };
    };
    let refuse =
        |error: std::io::Error| Failure::new(Exit::Usage, format_args!("{} can't be written: {error}", file.display()));
    // For its owner's eyes only, as there is no telling what was said in private.
    let mut out = BufWriter::new(OutputFile::create_private(file).map_err(refuse)?);
    let lines = arena.export(&mut out)?;
    let is_file = out.into_inner().map_err(std::io::Error::from).and_then(OutputFile::keep).map_err(refuse)?;
    if !is_file {
        // It may be stdout, and what reads it expects lines of the export alone.
        return Ok(());
    }
    match style {
        Style::Json => print(&json!({ "lines": lines, "file": file.display().to_string() }).to_string()),
        Style::Pretty | Style::Compact => print(&format!("{lines} lines are in {}", file.display())),
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

fn import(arena: &Arena, file: &Path) -> Result<Result<Answer, CallError>, Failure> {
    let mut lines: Box<dyn Read> =
        if file == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            let opened = File::open(file);
            Box::new(opened.map_err(|error| {
                Failure::new(Exit::Usage, format_args!("{} can't be read: {error}", file.display()))
            })?)
        };
    Ok(arena.import(&mut lines))
}
