//! `arena record`: gets records from a server, shows them, and leaves out openings.

mod show;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use arena_match::OutputFile;
use arena_record::{Parsed, ReadError, ReadLimits, read, strip};
use serde_json::json;

use crate::admin;
use crate::args::{Global, RecordVerb};
use crate::exit::{Exit, Failure};
use crate::matches::cannot_write;
use crate::output::{Style, counted, note, print};
pub use show::RecordCounts;

/// The path that stands for stdin or stdout.
const STANDARD: &str = "-";

/// The kinds of openings.
const KINDS: [&str; 4] = ["chat", "operator", "usage", "user"];

pub fn run(verb: RecordVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        RecordVerb::Get { id, out, admin, credentials } => {
            let mut arena = global.arena()?;
            if admin {
                arena = arena.administered(&admin::token(credentials, &global.url)?);
            }
            // The id of the session's operator channel is accepted too, as in `arena challenges sync`.
            let id = id.strip_prefix("challenge_").unwrap_or(&id);
            let record = arena.record(id)?;
            // An administrator's copy contains private messages.
            write(out.as_deref(), &record, admin, style)
        }
        RecordVerb::Show { file, event } => show::run(&file, event, style),
        RecordVerb::Redact { file, withheld, out } => redact(&file, &withheld, &out, style),
    }
}

/// Reads and checks a record, except its rules.
///
/// # Errors
/// If the file can't be read, or isn't a record, or is false.
pub fn open(path: &Path) -> Result<Parsed, Failure> {
    let limits = ReadLimits::default();
    read(&bytes_within(path, input(path)?, limits)?, limits).map_err(|error| bad(path, &error))
}

/// Reads the bytes of a record up to its limits, and one byte more if it is longer, so that [`read`] refuses it. The
/// memory stays bounded, even for a line without an end.
///
/// # Errors
/// If `from` can't be read.
pub fn bytes_within(path: &Path, mut from: impl BufRead, limits: ReadLimits) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len() as u64;
        let most = limits.line_bytes.min(limits.bytes.saturating_sub(before)).saturating_add(1);
        let line = from.by_ref().take(most).read_until(b'\n', &mut bytes);
        let length = line.map_err(|error| unreadable(path, &error))? as u64;
        if length == 0 || length == most {
            return Ok(bytes);
        }
    }
}

/// Opens a file, or stdin for `-`.
///
/// # Errors
/// If the file can't be opened, or is a folder.
pub fn input(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new(STANDARD) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    match file.metadata().is_ok_and(|data| data.is_dir()) {
        true => Err(unreadable(path, &io::Error::from(io::ErrorKind::IsADirectory))),
        false => Ok(Box::new(BufReader::new(file))),
    }
}

pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, format_args!("{} cannot be read: {error}", shown_path(path).display()))
}

pub fn bad(path: &Path, error: &ReadError) -> Failure {
    let exit = match error {
        // A long record may be true. Only this program refuses it.
        ReadError::Foreign(_) | ReadError::TooLong { .. } => Exit::Usage,
        ReadError::Future(_) => Exit::OtherRules,
        ReadError::Lie(_) => Exit::BadReplay,
    };
    Failure::caused(exit, error).about(&shown_path(path).display())
}

/// Writes a copy of a record without the openings in `withheld`.
fn redact(file: &Path, withheld: &[String], out: &Path, style: Style) -> Result<(), Failure> {
    let limits = ReadLimits::default();
    let bytes = bytes_within(file, input(file)?, limits)?;
    let parsed = read(&bytes, limits).map_err(|error| bad(file, &error))?;
    // A kind may be withheld from records that have none of it.
    let unknown: Vec<&str> = withheld
        .iter()
        .map(String::as_str)
        .filter(|what| !KINDS.contains(what) && !parsed.openings.keys().any(|name| is_named(name, what)))
        .collect();
    if !unknown.is_empty() {
        let sentence = format!(
            "{} has no opening of {}; it opens {}",
            shown_path(file).display(),
            unknown.join(", "),
            kinds(&parsed)
        );
        return Err(Failure::new(Exit::Usage, sentence));
    }
    let text = String::from_utf8(bytes).map_err(|error| Failure::new(Exit::Internal, error).about(&file.display()))?;
    let is_kept = |name: &str| !withheld.iter().any(|what| is_named(name, what));
    let left = parsed.openings.keys().filter(|name| is_kept(name)).count();
    if out != Path::new(STANDARD) {
        note(&format!("{} left out, {left} kept", counted_openings(parsed.openings.len() - left)));
    }
    write(Some(out), strip(&text, &is_kept).as_bytes(), false, style)
}

/// Returns true if `what` is the name of an opening (`chat/3`) or of its kind (`chat`).
fn is_named(name: &str, what: &str) -> bool {
    name == what || name.split('/').next() == Some(what)
}

fn kinds(record: &Parsed) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for name in record.openings.keys() {
        *kinds.entry(name.split('/').next().unwrap_or_default()).or_default() += 1;
    }
    if kinds.is_empty() {
        return "nothing".to_owned();
    }
    kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect::<Vec<_>>().join(", ")
}

fn counted_openings(count: usize) -> String {
    counted(count as u64, "opening", "openings")
}

/// Writes bytes to stdout, or to a file that appears once it is complete. A private file is readable by its owner only.
pub fn write(out: Option<&Path>, bytes: &[u8], is_private: bool, style: Style) -> Result<(), Failure> {
    let Some(path) = out.filter(|path| *path != Path::new(STANDARD)) else {
        let mut stdout = io::stdout().lock();
        return match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            // If the reader closes the pipe, the output ends without an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::new(Exit::Internal, format_args!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        };
    };
    let create = if is_private { OutputFile::create_private } else { OutputFile::create };
    let mut file = create(path).map_err(|error| cannot_write(path, &error))?;
    let is_file = file.write_all(bytes).and_then(|()| file.keep()).map_err(|error| cannot_write(path, &error))?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    match style {
        // No summary follows, since the path may be stdout, whose reader expects only the record.
        _ if !is_file => Ok(()),
        Style::Json => print(&json!({ "lines": lines, "file": path }).to_string()),
        Style::Pretty | Style::Compact => {
            print(&format!("wrote {} to {}", counted(lines, "line", "lines"), path.display()))
        }
    }
}

/// Returns the path of a record for sentences; stdin has a name.
pub fn shown_path(path: &Path) -> PathBuf {
    if path == Path::new(STANDARD) { PathBuf::from("stdin") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_within_the_limits_are_read() {
        let limits = ReadLimits { line_bytes: 4, bytes: 10 };
        for (text, expected) in [
            ("", ""),
            ("abc\nd", "abc\nd"),
            // A line that is too long.
            ("abcdefgh\n", "abcde"),
            ("a\nabcdefgh\n", "a\nabcde"),
            // Too many lines.
            ("abc\nabc\nabc\n", "abc\nabc\nabc"),
            ("abc\nabc\na\n", "abc\nabc\na\n"),
        ] {
            let read = bytes_within(Path::new("x"), text.as_bytes(), limits).unwrap();
            assert_eq!(String::from_utf8(read).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn an_opening_is_named_by_itself_or_by_its_kind() {
        for (name, what, expected) in [
            ("chat/3", "chat", true),
            ("chat/3", "chat/3", true),
            ("chat/31", "chat/3", false),
            ("chat/3", "cha", false),
            ("user/0", "chat", false),
            ("operator/7", "operator/", false),
        ] {
            assert_eq!(is_named(name, what), expected, "{name} {what}");
        }
    }
}
