//! `arena log`: the checkpoint of an arena's log, proofs, and the check of the whole log.

mod source;
mod whole;

use std::path::{Path, PathBuf};

use arena_model::{SessionId, hex};
use arena_record::log::{Leaf, LogError, LogReader, TlogProof};
use serde_json::json;

use crate::args::{Global, LogKeyArgs, LogSourceArgs, LogVerb};
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, print, printable};
use crate::record::write;

pub use source::{GivenRecordKeys, LogSource, connected_log_keys, log_key, record_keys};
pub use whole::{LogHead, WholeLog, check_proof};

use source::{CHECKPOINT, KEYS_FILE, checkpoint_in, write_below};
use whole::signer_of;

pub fn run(verb: LogVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        LogVerb::Checkpoint { source, out } => print_checkpoint(&source, out.as_deref(), global, style),
        LogVerb::Prove { id, source, created, out } => prove(&id, &source, created, out.as_deref(), global, style),
        LogVerb::Save { log, keys, out } => save(log.as_deref(), &keys, &out, global, style),
        LogVerb::Check { source, since } => check(&source, &since, global, style),
    }
}

fn print_checkpoint(args: &LogSourceArgs, out: Option<&Path>, global: &Global, style: Style) -> Result<(), Failure> {
    let source = LogSource::find(args.log.as_deref(), global)?;
    let head = LogHead::read(&source, &args.keys)?;
    if style == Style::Json && out.is_none() {
        return print(&head_json(&head).to_string());
    }
    write(out, head.checkpoint.to_string().as_bytes(), false, style)
}

/// Returns a checkpoint and its verified signature as JSON.
fn head_json(head: &LogHead) -> serde_json::Value {
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

/// Prints the proof that the log contains a session's creation or end.
fn prove(
    id: &str,
    args: &LogSourceArgs,
    is_creation: bool,
    out: Option<&Path>,
    global: &Global,
    style: Style,
) -> Result<(), Failure> {
    let session: SessionId = id.parse().map_err(|error| Failure::new(Exit::Usage, format_args!("{id} is {error}")))?;
    let source = LogSource::find(args.log.as_deref(), global)?;
    let kind = if is_creation { "created" } else { "ended" };
    let missing =
        || Failure::new(Exit::OtherRules, format_args!("log {}: it has no leaf {kind} of session {id}", source.name()));
    // A server finds the leaf by an index. Otherwise, all leaves are read.
    let (proof, leaf) = match source.find_proof(session, kind)? {
        Some(proof) => {
            let head = LogHead::read(&source, &args.keys)?;
            let proof = TlogProof::of_record(&proof).map_err(|error| source.explain(&LogError::Note(error)))?;
            signer_of(&proof.checkpoint, &head.keys).map_err(|error| source.explain(&LogError::Note(error)))?;
            let checkpoint = proof.checkpoint.unverified();
            let mut reader = LogReader::new(checkpoint.size, |path: &str| source.fetch(path));
            let read = reader.leaf(proof.index, &checkpoint.root);
            let (leaf, path) = read.map_err(|error| source.explain(&error))?;
            (TlogProof { path, ..proof }, leaf)
        }
        None => {
            let log = WholeLog::read(&source, &args.keys)?;
            let index = log.find_leaf(session, is_creation).ok_or_else(missing)?;
            let proof = log.prove(index).ok_or_else(missing)?;
            let mut reader = LogReader::new(log.size(), |path: &str| source.fetch(path));
            let read = reader.leaf(index, &log.head.checkpoint.unverified().root);
            (proof, read.map_err(|error| source.explain(&error))?.0)
        }
    };
    // The proof is about the bytes of a leaf, so the leaf must be about the session.
    let parsed = Leaf::from_bytes(&leaf).ok();
    if parsed.as_ref().is_none_or(|leaf| leaf.session() != Some(session) || leaf.kind() != kind) {
        let sentence = format!("log {}: leaf {} isn't the leaf {kind} of session {id}", source.name(), proof.index);
        return Err(Failure::new(Exit::BadReplay, sentence));
    }
    if style == Style::Json && out.is_none() {
        let checkpoint = proof.checkpoint.unverified();
        let shown = json!({
            "session": session,
            "leaf": proof.index,
            "size": checkpoint.size,
            "path": proof.path,
            "data": String::from_utf8_lossy(&leaf),
            "checkpoint": proof.checkpoint.to_string(),
        });
        return print(&shown.to_string());
    }
    write(out, proof.to_string().as_bytes(), false, style)
}

/// Checks a whole log, and that it continues older checkpoints.
fn check(args: &LogSourceArgs, since: &[PathBuf], global: &Global, style: Style) -> Result<(), Failure> {
    let source = LogSource::find(args.log.as_deref(), global)?;
    let log = WholeLog::read(&source, &args.keys)?;
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
        return print(&shown.to_string());
    }
    print(&describe(&log, &source.name()))?;
    for (path, size) in older {
        print(&format!("it continues {}, which has {}", path.display(), counted(size, "leaf", "leaves")))?;
    }
    Ok(())
}

/// Checks that the log continues the checkpoint in a file. Returns the size of that checkpoint.
fn check_since(log: &WholeLog, path: &Path) -> Result<u64, Failure> {
    let signed = checkpoint_in(path)?;
    let about = |exit: Exit, what: String| Failure::new(exit, format_args!("{}: {what}", path.display()));
    signer_of(&signed, &log.head.keys)
        .map_err(|error| about(if error.is_lie() { Exit::BadReplay } else { Exit::Usage }, error.to_string()))?;
    let (older, newer) = (signed.unverified(), log.head.checkpoint.unverified());
    if older.origin != newer.origin {
        let what = format!("the checkpoint is of the log {} instead of {}", older.origin, newer.origin);
        return Err(about(Exit::Usage, what));
    }
    match log.continues(older.size, older.root) {
        Some(true) => Ok(older.size),
        Some(false) => {
            let what = format!("the log forked: its first {} leaves have another root now", older.size);
            Err(about(Exit::BadReplay, what))
        }
        None => {
            let what = format!("the log went back from {} leaves to {}", older.size, newer.size);
            Err(about(Exit::BadReplay, what))
        }
    }
}

/// Saves a whole log to a folder. If the folder has the log already, the new one must continue it.
fn save(log: Option<&str>, keys: &LogKeyArgs, folder: &Path, global: &Global, style: Style) -> Result<(), Failure> {
    let source = LogSource::find(log, global)?.copied_to(folder);
    let log = WholeLog::read(&source, keys)?;
    let checkpoint = folder.join(CHECKPOINT);
    let before = match checkpoint.exists() {
        true => Some(check_since(&log, &checkpoint)?),
        false => None,
    };
    if let Some(keys) = source.keys_file()? {
        write_below(&folder.join(KEYS_FILE), &keys)?;
    }
    // The checkpoint is the last file, so an interrupted copy isn't taken for a log.
    write_below(&checkpoint, log.head.checkpoint.to_string().as_bytes())?;
    if style == Style::Json {
        let shown = json!({ "folder": folder, "size": log.size(), "sizeBefore": before });
        return print(&shown.to_string());
    }
    log.head.note_key();
    let continued = before.map(|size| format!("; it continues the {size} that the folder had")).unwrap_or_default();
    let leaves = counted(log.size(), "leaf", "leaves");
    print(&format!("saved the log {} with {leaves} to {}{continued}", printable(log.origin()), folder.display()))
}

pub fn describe(log: &WholeLog, name: &str) -> String {
    let head = &log.head;
    let checkpoint = head.checkpoint.unverified();
    let counts = log.counts;
    let mut lines = vec![format!(
        "log {} at {name}: {}, root {}",
        printable(&checkpoint.origin),
        counted(checkpoint.size, "leaf", "leaves"),
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
        counted(counts.created, "session", "sessions"),
        counts.ended,
        counts.removed,
        log.unfinished(),
        counted(counts.excluded, "exclusion", "exclusions"),
        counted(counts.keys, "record key", "record keys"),
    ));
    lines.join("\n")
}
