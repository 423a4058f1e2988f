//! `arena record`: gets records from a server, shows them, and leaves out openings.

mod show;

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::ChallengeType;
use arena_record::{Header, Parsed, ReadError, ReadLimits, RecordedRules, has_rules, read, strip};
use clap::Subcommand;

use crate::admin::{self, AdminArgs};
use crate::client::session_id;
use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::files::{cannot_read, input, is_standard, shown_path, write};
use crate::output::{Style, counted, note};
use crate::scripts;

pub use show::RecordCounts;

/// Subcommands of `arena record`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena record get ID --out game.jsonl
  arena record show game.jsonl
  arena record redact game.jsonl --withhold chat --out public.jsonl

A record is the signed file of a session. `arena verify` checks it without a server.")]
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

/// The kinds of openings.
const KINDS: [&str; 4] = ["chat", "operator", "usage", "user"];

pub fn run(verb: RecordVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        RecordVerb::Get { id, out, admin, credentials } => {
            let arena = if admin { admin::client(credentials, global)? } else { global.arena()? };
            let record = arena.record(session_id(&id))?;
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
    read(&bytes_within(path, input(path)?, limits)?, limits).map_err(|error| explain(path, &error))
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
        let length = line.map_err(|error| cannot_read(&shown_path(path), error))? as u64;
        if length == 0 || length == most {
            return Ok(bytes);
        }
    }
}

pub fn explain(path: &Path, error: &ReadError) -> Failure {
    let exit = match error {
        // A long record may be true. Only this program refuses it.
        ReadError::Foreign(_) | ReadError::TooLong { .. } => Exit::Usage,
        ReadError::Future(_) => Exit::OtherRules,
        ReadError::Lie(_) => Exit::BadReplay,
    };
    Failure::caused(exit, error).about(&shown_path(path).display())
}

/// Finds the rules of a record: built-in ones, or those of a script in one of these folders.
///
/// # Errors
/// If there are no such rules, or they have another version.
pub fn find_rules(record: &Parsed, folders: &[PathBuf]) -> Result<Arc<dyn ChallengeType>, Failure> {
    let Header { challenge: name, rules, options, release, .. } = &record.header;
    match rules {
        RecordedRules::Builtin { version, .. } => {
            let options = options.as_object().cloned().unwrap_or_default();
            let none = || Failure::usage(format_args!("there is no built-in challenge `{name}`"));
            let challenge = arena_games::challenge(name, &options).ok_or_else(none)?.map_err(Failure::usage)?;
            challenge.with_rules(*version).ok_or_else(|| {
                let known = challenge.rules_version();
                let sentence = format_args!(
                    "the game was played by version {version} of the rules of {name}, but this program has version \
                     {known}; release {release} has the other one"
                );
                Failure::new(Exit::OtherRules, sentence)
            })
        }
        RecordedRules::Script { script } => {
            for folder in folders {
                let challenge = scripts::read(folder)?;
                if has_rules(&record.header, &challenge) {
                    return Ok(Arc::new(challenge));
                }
            }
            Err(Failure::usage(format_args!(
                "the game was played by version {script} of the script {name}; give its folder with --challenge DIR"
            )))
        }
    }
}

/// Writes a copy of a record without the openings in `withheld`.
fn redact(file: &Path, withheld: &[String], out: &Path, style: Style) -> Result<(), Failure> {
    let limits = ReadLimits::default();
    let bytes = bytes_within(file, input(file)?, limits)?;
    let parsed = read(&bytes, limits).map_err(|error| explain(file, &error))?;
    // A kind may be withheld from records that have none of it.
    let is_unknown = |what: &&str| !KINDS.contains(what) && !parsed.openings.keys().any(|name| is_named(name, what));
    let unknown: Vec<&str> = withheld.iter().map(String::as_str).filter(is_unknown).collect();
    if !unknown.is_empty() {
        let (file, unknown, kinds) = (shown_path(file), unknown.join(", "), kinds(&parsed));
        let sentence = format!("{} has no opening of {unknown}; it opens {kinds}", file.display());
        return Err(Failure::usage(sentence));
    }
    let text = String::from_utf8(bytes).map_err(|error| Failure::new(Exit::Internal, error).about(&file.display()))?;
    let is_kept = |name: &str| !withheld.iter().any(|what| is_named(name, what));
    let left = parsed.openings.keys().filter(|name| is_kept(name)).count();
    if !is_standard(out) {
        note(&format!("{} left out, {left} kept", counted(parsed.openings.len() - left, "opening")));
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
