//! `arena admin …`: the actions of an administrator. Answers are printed as tables and sentences, or unchanged with
//! `--json`.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena_match::OutputFile;
use arena_server::{AdminToken, Settings};
use arena_store::{CopiedRows, CopyError, DatabaseUrl, StorePlace, copy_store};
use arena_wire::{
    AddressUse, Archived, AuditEntry, AuditPage, Ban, Bans, Budget, Budgets, Counted, Dismissed, Hidden, ImportReport,
    MessageReport, ReportPage, Restored, SkippedLine,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::args::{AdminArgs, AdminVerb, Global};
use crate::client::{Answer, Arena, CallError, ExportError, is_loopback};
use crate::exit::{Exit, Failure};
use crate::output::{Style, Table, counted, note, print, print_json, utc};
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
    let arena = Arena::of(global)?.administered(&token(args, &global.url)?);
    match verb {
        AdminVerb::Benchmark { user, off } => {
            print_result(arena.set_benchmark(&user, !off), style, |profile: Profile| {
                let is = if profile.is_benchmark { "is" } else { "isn't" };
                format!("{} {is} a benchmark model in games that end from now on", profile.user_id)
            })
        }
        AdminVerb::DeleteUser { user } => print_result(arena.delete_user(&user), style, |deleted: DeletedUser| {
            let games = counted(deleted.sessions, "session", "sessions");
            format!("user {user} is deleted, and its id is erased from {games}")
        }),
        AdminVerb::Hide { channel, index } => print_result(arena.hide(&channel, index), style, |hidden: Hidden| {
            let Hidden { channel, index, content_sha256 } = hidden;
            format!("message {index} of {channel} is hidden; the SHA-256 of its content is {content_sha256}")
        }),
        AdminVerb::Reports { limit, offset } => print_result(arena.reports(limit, offset), style, reports),
        AdminVerb::Dismiss { channel, index, address } => {
            let answer = arena.dismiss(channel.as_deref(), index, address.as_deref());
            print_result(answer, style, |Dismissed { dismissed }: Dismissed| {
                format!("{} dismissed", counted(dismissed, "report", "reports"))
            })
        }
        AdminVerb::Ban { subject, reason } => print_result(arena.ban(&subject, &reason), style, |ban: Ban| {
            format!("{} is banned: {}", banned(&ban), ban.reason)
        }),
        AdminVerb::Unban { subject } => {
            print_result(arena.lift_ban(&subject), style, |_: Value| "the ban is lifted".to_owned())
        }
        AdminVerb::Bans => print_result(arena.bans(), style, bans),
        AdminVerb::Remove { session } => {
            print_result(arena.remove(&session), style, |_: Value| format!("session {session} is removed"))
        }
        AdminVerb::Archive { older_than_days } => print_result(arena.archive(older_than_days), style, archived),
        AdminVerb::Restore { session, all: _ } => {
            print_result(arena.restore(session.as_deref()), style, |Restored { restored }: Restored| match session {
                Some(session) if restored == 0 => format!("session {session} isn't archived"),
                _ => format!("{} restored", counted(restored, "session", "sessions")),
            })
        }
        AdminVerb::Recompute => print_result(arena.recompute(), style, recomputed),
        AdminVerb::Export { out } => export(&arena, out.as_deref(), style),
        AdminVerb::Import { file } => print_result(import(&arena, &file)?, style, imported),
        AdminVerb::Audit { limit, offset } => print_result(arena.audit(limit, offset), style, audit),
        AdminVerb::Budgets { limit, offset } => print_result(arena.budgets(limit, offset), style, budgets),
        AdminVerb::CopyStore { .. } => unreachable!("handled above, because it asks no server"),
    }
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

/// Returns the administrator's token for the server at `url`.
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

/// Prints an answer unchanged, or as formatted by `say`.
fn print_result<T: DeserializeOwned>(
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

#[derive(Deserialize)]
struct DeletedUser {
    sessions: u64,
}

fn banned(ban: &Ban) -> String {
    match (&ban.user_id, &ban.address) {
        (Some(user), _) => format!("user {user}"),
        (None, address) => format!("address {}", address.as_deref().unwrap_or("unknown")),
    }
}

fn bans(Bans { bans }: Bans) -> String {
    if bans.is_empty() {
        return "there are no bans".to_owned();
    }
    let mut table = Table::new(&["banned", "since", "reason"]);
    for ban in bans {
        table.row([banned(&ban), utc(ban.at.0), ban.reason]);
    }
    table.to_string()
}

fn archived(Archived { sessions, messages, left_out }: Archived) -> String {
    let archived = format!(
        "archived {} with {}",
        counted(sessions, "session", "sessions"),
        counted(messages, "message", "messages")
    );
    match left_out {
        0 => archived,
        left_out => {
            let sessions = counted(left_out, "session", "sessions");
            format!(
                "{archived}; {sessions} stay in the store, because they are too long, damaged or were changed meanwhile"
            )
        }
    }
}

fn recomputed(Counted { users, games, wrong }: Counted) -> String {
    let (users, games) = (counted(users, "user", "users"), counted(games, "game", "games"));
    let recomputed = format!("recomputed the standings of {users} from {games}");
    match wrong.len() {
        0 => format!("{recomputed}; all were correct"),
        1 => format!("{recomputed}; the standings of 1 user were wrong and are repaired:\n  {}", wrong.join("\n  ")),
        n => format!("{recomputed}; the standings of {n} users were wrong and are repaired:\n  {}", wrong.join("\n  ")),
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

fn audit(AuditPage { entries, total, .. }: AuditPage) -> String {
    let mut table = Table::new(&["no", "time", "address", "action", "details"]);
    let shown = entries.len();
    for AuditEntry { no, at, address, action, detail } in entries {
        table.row([no.to_string(), utc(at.0), address, action, detail.to_string()]);
    }
    format!("{}\n{shown} of {total} entries", table.right([0]))
}

fn reports(ReportPage { reports, total }: ReportPage) -> String {
    let mut table = Table::new(&["channel", "index", "time", "reporter", "reason"]);
    let shown = reports.len();
    for MessageReport { channel, index, address, reason, at } in reports {
        table.row([channel, index.to_string(), utc(at.0), address, reason]);
    }
    format!("{}\n{shown} of {}", table.right([1]), counted(total, "report", "reports"))
}

fn budgets(Budgets { budgets, addresses, total }: Budgets) -> String {
    let mut table = Table::new(&["budget", "used", "limit", "limit per address", "setting"]);
    for Budget { name, used, limit, setting, of_address } in budgets {
        let text = |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        let of_address = of_address.map(|of_address| of_address.limit);
        table.row([name, used.to_string(), text(limit), text(of_address), setting]);
    }
    let table = table.right([1, 2, 3]);
    let shown = addresses.len();
    let mut by_address = Table::new(&["address", "refusals in a day", "uses"]);
    for AddressUse { address, used, refusals } in addresses {
        let used: Vec<String> = used.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
        by_address.row([address, refusals.to_string(), used.join(", ")]);
    }
    format!("{table}\n\n{}\n{shown} of {}", by_address.right([1]), counted(total, "address", "addresses"))
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

fn import(arena: &Arena, file: &Path) -> Result<Result<Answer, CallError>, Failure> {
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
