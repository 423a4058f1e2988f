//! `arena log`: the checkpoint of an arena's log, proofs, and the check of the whole log.

mod compare;
mod head;
mod prove;
pub mod source;
mod whole;

use std::path::{Path, PathBuf};

use arena_model::hex;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::files::{write, write_below};
use crate::output::{Style, counted, counted_as, print, print_line, printable};

pub use compare::check_proof;
pub use source::{GivenRecordKeys, LogSource, connected_log_keys, log_key, record_keys};
pub use whole::WholeLog;

use head::{LogHead, signer_of};
use prove::ProveArgs;
use source::{CHECKPOINT, KEYS_FILE, LogKeyArgs, checkpoint_in};

/// Subcommands of `arena log`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena log checkpoint --log https://arena.example --out today.txt
  arena log check --log https://arena.example --since today.txt
  arena log prove ID --log https://arena.example

The log has a leaf for each session's creation, and one for its end or removal. Leaves are never changed or removed, so \
a session that was played can't be left out unnoticed.")]
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
        place: LogPlaceArgs,
        /// Output file [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print a proof that the log contains a session.
    Prove(ProveArgs),
    /// Save a whole log to a folder, and check it.
    #[command(after_help = "\
Examples:
  arena log save --log https://arena.example --out log
  arena log check --log log --log-key arena.json
  arena verify season --log log

The folder gets all leaves and hashes, the checkpoint and arena.json, so --log reads it without the server. If the folder has \
an older state of the log, the new one must continue it. The exit code is 11 if the log is false.")]
    Save {
        #[command(flatten)]
        place: LogPlaceArgs,
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
        place: LogPlaceArgs,
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

/// The log and its keys, for a command without other positional arguments.
#[derive(Debug, Args)]
pub struct LogPlaceArgs {
    /// Log, as with --log.
    #[arg(value_name = "DIR|URL", hide = true, conflicts_with = "log")]
    place: Option<String>,
    #[command(flatten)]
    source: LogSourceArgs,
}

impl LogPlaceArgs {
    fn find(&self, global: &Global) -> Result<(LogSource, &LogKeyArgs), Failure> {
        let LogPlaceArgs { place, source } = self;
        Ok((LogSource::find(place.as_deref().or(source.log.as_deref()), global)?, &source.keys))
    }
}

pub fn run(verb: LogVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        LogVerb::Checkpoint { place, out } => print_checkpoint(place.find(global)?, out.as_deref(), style),
        LogVerb::Prove(args) => prove::run(&args, global, style),
        LogVerb::Save { place, out } => save(place.find(global)?, &out, style),
        LogVerb::Check { place, since } => check(place.find(global)?, &since, style),
    }
}

fn print_checkpoint((source, keys): (LogSource, &LogKeyArgs), out: Option<&Path>, style: Style) -> Result<(), Failure> {
    let head = LogHead::read(&source, keys)?;
    if style == Style::Json && out.is_none() {
        return print_line(&head_json(&head));
    }
    write(out, head.checkpoint.to_string().as_bytes(), false, style)
}

/// Returns a checkpoint and its verified signature as JSON.
fn head_json(head: &LogHead) -> Value {
    let checkpoint = head.checkpoint.unverified();
    json!({
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root,
        "key": head.key.as_ref().map(ToString::to_string),
        "isKeyGiven": head.is_key_given,
        "checkpoint": head.checkpoint.to_string(),
    })
}

/// Checks a whole log, and that it continues older checkpoints.
fn check((source, keys): (LogSource, &LogKeyArgs), since: &[PathBuf], style: Style) -> Result<(), Failure> {
    let log = WholeLog::read(source, keys)?;
    let mut older = Vec::new();
    for path in since {
        older.push((path, check_since(&log, path)?));
    }
    if style == Style::Json {
        let since: Vec<_> = older.iter().map(|(path, size)| json!({ "file": path, "size": size })).collect();
        let mut shown = head_json(&log.head);
        shown["leaves"] = json!(log.counts);
        shown["unfinished"] = json!(log.unfinished());
        shown["continues"] = json!(since);
        return print_line(&shown);
    }
    print(&describe(&log))?;
    for (path, size) in older {
        print(&format!("it continues {}, which has {}", path.display(), counted_as(size, "leaf", "leaves")))?;
    }
    Ok(())
}

/// Checks that the log continues the checkpoint in a file. Returns the size of that checkpoint.
fn check_since(log: &WholeLog, path: &Path) -> Result<u64, Failure> {
    let signed = checkpoint_in(path)?;
    let (older, newer) = (signed.unverified(), log.head.checkpoint.unverified());
    let (exit, what) = match (signer_of(&signed, &log.head.keys), log.continues(older.size, older.root)) {
        (Err(error), _) => (if error.is_lie() { Exit::BadReplay } else { Exit::Usage }, error.to_string()),
        (Ok(_), _) if older.origin != newer.origin => {
            let what = format!("the checkpoint is of the log {} instead of {}", older.origin, newer.origin);
            (Exit::Usage, what)
        }
        (Ok(_), Some(true)) => return Ok(older.size),
        (Ok(_), Some(false)) => {
            let what = format!("the log forked: its first {} leaves have another root now", older.size);
            (Exit::BadReplay, what)
        }
        (Ok(_), None) => (Exit::BadReplay, format!("the log went back from {} leaves to {}", older.size, newer.size)),
    };
    Err(Failure::new(exit, format_args!("{}: {what}", path.display())))
}

/// Saves a whole log to a folder. If the folder has the log already, the new one must continue it.
fn save((source, keys): (LogSource, &LogKeyArgs), folder: &Path, style: Style) -> Result<(), Failure> {
    let log = WholeLog::read(source.copied_to(folder), keys)?;
    let checkpoint = folder.join(CHECKPOINT);
    let before = match checkpoint.exists() {
        true => Some(check_since(&log, &checkpoint)?),
        false => None,
    };
    if let Some(keys) = log.source.keys_file()? {
        write_below(&folder.join(KEYS_FILE), &keys)?;
    }
    // The checkpoint is the last file, so an interrupted copy isn't taken for a log.
    write_below(&checkpoint, log.head.checkpoint.to_string().as_bytes())?;
    if style == Style::Json {
        return print_line(&json!({ "folder": folder, "size": log.size(), "sizeBefore": before }));
    }
    log.head.note_key();
    let continued = before.map(|size| format!("; it continues the {size} that the folder had")).unwrap_or_default();
    let leaves = counted_as(log.size(), "leaf", "leaves");
    print(&format!("saved the log {} with {leaves} to {}{continued}", printable(log.origin()), folder.display()))
}

fn describe(log: &WholeLog) -> String {
    let (head, name) = (&log.head, log.source.name());
    let checkpoint = head.checkpoint.unverified();
    let counts = log.counts;
    let mut lines = vec![format!(
        "log {} at {name}: {}, root {}",
        printable(&checkpoint.origin),
        counted_as(checkpoint.size, "leaf", "leaves"),
        hex::encode(&checkpoint.root.0)
    )];
    lines.push(match (&head.key, head.is_key_given) {
        (Some(key), true) => format!("signed by {key}"),
        (Some(key), false) => {
            format!("signed by {key}, which the log itself publishes; --log-key names a key you trust")
        }
        (None, _) => "the signature wasn't checked: give the log's key with --log-key".to_owned(),
    });
    lines.push(format!(
        "{} created, {} ended, {} removed, {} unfinished; {}; {}",
        counted(counts.created, "session"),
        counts.ended,
        counts.removed,
        log.unfinished(),
        counted(counts.excluded, "exclusion"),
        counted(counts.keys, "record key"),
    ));
    lines.join("\n")
}
