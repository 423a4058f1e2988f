//! The results of all files: a line for each file, and the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arena_model::SessionId;
use serde_json::{Value, json};

use super::check::Checks;
use super::result::{FileFault, FileFormat, FilePart, SoundFile};
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, counted_as, note, print, print_line, printable};

/// The maximum number of files for which sound files have a line each. With more, only the others have one.
pub const MOST_LINES: usize = 20;

/// The maximum number of sessions that a note lists.
const MOST_LISTED: usize = 10;

#[derive(Default)]
pub struct VerifyResults {
    files: usize,
    sound: u64,
    incomplete: u64,
    /// The failures of single files, by their exit code.
    failures: BTreeMap<u8, u64>,
    /// The failure, if there was one file only.
    only: Option<Failure>,
    events: u64,
    messages: u64,
    /// The sessions of all sound records.
    sessions: BTreeSet<SessionId>,
    /// The sessions with several records.
    repeated: u64,
    /// The number of files without a contradiction in which some part wasn't checked, or not completely.
    pub left_out_files: u64,
    /// The number of such files by part.
    left_out: BTreeMap<FilePart, u64>,
}

impl VerifyResults {
    /// Begins the results of this number of files.
    pub fn of(files: usize) -> VerifyResults {
        VerifyResults { files, ..VerifyResults::default() }
    }

    /// Adds the result of a file. Returns the line to print.
    pub fn add(&mut self, path: &Path, checked: Result<SoundFile, FileFault>, style: Style) -> Option<String> {
        match checked {
            Ok(found) => {
                *if found.is_complete { &mut self.sound } else { &mut self.incomplete } += 1;
                self.events += found.events;
                self.messages += found.messages;
                let parts: BTreeSet<FilePart> = found.unchecked.iter().map(|left| left.part).collect();
                self.left_out_files += u64::from(!parts.is_empty());
                for part in parts {
                    *self.left_out.entry(part).or_default() += 1;
                }
                if let Some(session) = found.session
                    && !self.sessions.insert(session)
                {
                    self.repeated += 1;
                }
                if style == Style::Json {
                    return Some(sound_json(path, &found).to_string());
                }
                let is_listed = !found.is_complete || self.files <= MOST_LINES;
                is_listed.then(|| printable(&describe(path, &found)).to_string())
            }
            Err(FileFault { failure, line, event }) => {
                *self.failures.entry(failure.exit as u8).or_default() += 1;
                let printed = match style {
                    Style::Json => Some(fault_json(path, &failure, line, event).to_string()),
                    // The failure of the only file is the program's.
                    _ if self.files == 1 => None,
                    _ => Some(printable(failure.sentence()).to_string()),
                };
                self.only = Some(failure).filter(|_| self.files == 1);
                printed
            }
        }
    }

    /// Prints the summary, and returns the failure with the exit code of the worst file.
    pub fn report(self, checks: &Checks, skipped: u64, style: Style) -> Result<(), Failure> {
        let missing: Vec<SessionId> = match checks.log() {
            Some(log) => log.ended().filter(|session| !self.sessions.contains(session)).collect(),
            None => Vec::new(),
        };
        let count = |exit: Exit| self.failures.get(&(exit as u8)).copied().unwrap_or(0);
        let false_files = count(Exit::BadReplay);
        let failed: u64 = self.failures.values().sum();
        let unverifiable = self.incomplete + count(Exit::OtherRules);
        if style == Style::Json {
            let log = checks.log().map(|log| {
                let checkpoint = log.head.checkpoint.unverified();
                json!({
                    "origin": checkpoint.origin,
                    "size": checkpoint.size,
                    "key": log.head.key.as_ref().map(ToString::to_string),
                    "isKeyGiven": log.head.is_key_given,
                    "withoutRecord": missing.len(),
                })
            });
            let summary = json!({
                "files": self.files,
                "verified": self.sound,
                "false": false_files,
                "notVerifiable": unverifiable,
                "unreadable": failed - false_files - count(Exit::OtherRules),
                "skipped": skipped,
                "repeatedSessions": self.repeated,
                "unchecked": self.left_out,
                "log": log,
            });
            print_line(&json!({ "summary": summary }))?;
        } else {
            self.describe(checks, &missing, skipped)?;
        }
        if let Some(failure) = self.only {
            return Err(failure);
        }
        let all = self.files;
        if false_files > 0 {
            return Err(Failure::new(Exit::BadReplay, format_args!("{false_files} of {all} files are false")));
        }
        if failed > count(Exit::OtherRules) {
            let unreadable = failed - count(Exit::OtherRules);
            let sentence = format!("{unreadable} of {all} files cannot be read as records or replays");
            return Err(Failure::usage(sentence));
        }
        if unverifiable > 0 {
            let sentence = format!("{unverifiable} of {all} files cannot be verified completely");
            return Err(Failure::new(Exit::OtherRules, sentence));
        }
        Ok(())
    }

    fn describe(&self, checks: &Checks, missing: &[SessionId], skipped: u64) -> Result<(), Failure> {
        if self.files > 1 {
            print(&format!(
                "{} of {} verified: {}, {}",
                self.sound,
                counted(self.files, "file"),
                counted_as(self.events, "event or epoch", "events or epochs"),
                counted_as(self.messages, "message or state", "messages or states"),
            ))?;
        }
        if skipped > 0 {
            note(&format!("{} without the extension .jsonl skipped", counted(skipped, "file")));
        }
        if self.repeated > 0 {
            note(&format!("{} of a session that another file has too", counted(self.repeated, "record")));
        }
        // The lines of sound files, which name these parts, are left out.
        if self.files > MOST_LINES && !self.left_out.is_empty() {
            let part = |(part, files): (&FilePart, &u64)| format!("{} ({})", part.as_str(), counted(*files, "file"));
            let parts: Vec<String> = self.left_out.iter().map(part).collect();
            note(&format!("not verified, or not completely: {}; --json shows the reasons", parts.join(", ")));
        }
        if let Some(log) = checks.log() {
            log.head.note_key();
        }
        // One record says nothing about the other sessions of its arena.
        if checks.log().is_some() && self.sessions.len() > 1 && !missing.is_empty() {
            let listed: Vec<String> = missing.iter().take(MOST_LISTED).map(ToString::to_string).collect();
            let rest = if missing.len() > MOST_LISTED { ", …" } else { "" };
            note(&format!(
                "{} of the log without a record here: {}{rest}",
                counted(missing.len(), "ended session"),
                listed.join(", ")
            ));
        }
        Ok(())
    }
}

fn sound_json(path: &Path, found: &SoundFile) -> Value {
    let mut line = json!(found);
    line["file"] = json!(path);
    // A file that can't be verified completely is neither verified nor refuted.
    line["ok"] = if found.is_complete { json!(true) } else { Value::Null };
    line
}

fn fault_json(path: &Path, failure: &Failure, line: Option<usize>, event: Option<u64>) -> Value {
    // Other failures refute nothing.
    let ok = if failure.exit == Exit::BadReplay { json!(false) } else { Value::Null };
    let mut shown = json!({ "file": path, "ok": ok, "error": failure.sentence() });
    if let Some(line) = line {
        shown["line"] = json!(line);
    }
    if let Some(event) = event {
        shown["event"] = json!(event);
    }
    shown
}

/// Describes a file for people: the parts that were checked, and the others with reasons.
fn describe(path: &Path, found: &SoundFile) -> String {
    let amounts = match found.format {
        FileFormat::Record => {
            let messages = counted(found.messages, "message");
            format!("{} and {messages}", counted(found.events, "event"))
        }
        FileFormat::Replay => {
            let states = counted(found.messages, "state");
            format!("{} and {states}", counted(found.events, "epoch"))
        }
    };
    let checked: Vec<&str> = found.checked.iter().map(|part| part.as_str()).collect();
    let mut text = format!("{}: {}, {amounts}; verified: {}", path.display(), found.game, checked.join(", "));
    if !found.unchecked.is_empty() {
        let unchecked: Vec<String> =
            found.unchecked.iter().map(|left| format!("{} ({})", left.part.as_str(), left.reason)).collect();
        text += &format!("; not verified: {}", unchecked.join(", "));
    }
    for remark in &found.remarks {
        text += &format!("; {remark}");
    }
    text
}
