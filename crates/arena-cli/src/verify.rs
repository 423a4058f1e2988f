//! `arena verify`: checks records and replays in parallel, and prints one result for each file in their order.

pub mod check;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use arena_match::{cores, spread};
use arena_model::SessionId;
use arena_record::{KeyHandover, KeyKind, ReadLimits, RecordPublicKey, connected_keys};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::args::{Global, VerifyArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::log::{GivenRecordKeys, LogSource, WholeLog, connected_log_keys, log_key, record_keys};
use crate::output::{Style, counted, note, print, print_for_reader, printable};

use check::{Checks, FileFault, FileFormat, FilePart, GivenKeys, SoundFile};
use files::FilesToCheck;

/// The maximum number of files for which sound files have a line each. With more, only the others have one.
const MOST_LINES: usize = 20;

const MOST_LISTED: usize = 10;

pub fn run(args: &VerifyArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let FilesToCheck { files, skipped } = FilesToCheck::find(&args.paths)?;
    if files.is_empty() {
        let sentence = "there is nothing to verify: the folders contain no records and no replays";
        return Err(Failure::new(Exit::Usage, sentence));
    }
    let given = args.keys.iter().map(|text| record_keys(text)).collect::<Result<Vec<GivenRecordKeys>, Failure>>()?;
    let log = match &args.log {
        Some(log) => Some(WholeLog::read(&LogSource::find(Some(log), global)?, &args.log_keys)?),
        None => None,
    };
    let given_log_key = args.log_keys.log_key.as_deref().map(log_key).transpose()?;
    let log_keys = given_log_key.map(|given| connected_log_keys(&given.key, &given.handovers)).unwrap_or_default();
    let logged = log.iter().flat_map(|log| &log.handovers);
    let handovers: Vec<KeyHandover> = given.iter().flat_map(|given| &given.handovers).chain(logged).copied().collect();
    let may_be_old = given.iter().any(|given| given.is_published);
    let keys: Vec<RecordPublicKey> = given.into_iter().flat_map(|given| given.keys).collect();
    let keys = connected_keys(KeyKind::Record, &keys, &handovers);
    let keys = GivenKeys { keys, may_be_old };
    let checks = Checks::new(&args.challenges, keys, log, log_keys, ReadLimits::of_bytes(args.max_mib << 20))?;
    let results = check_all(&files, &checks, args.jobs, style)?;
    let left_out: u64 = results.left_out_files;
    results.report(&checks, skipped, style)?;
    if args.strict && left_out > 0 {
        let files = counted(left_out, "file has", "files have");
        return Err(Failure::new(Exit::OtherRules, format_args!("{files} parts that weren't verified (--strict)")));
    }
    Ok(())
}

#[derive(Default)]
struct VerifyResults {
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
    left_out_files: u64,
    /// The number of such files by part.
    left_out: BTreeMap<FilePart, u64>,
}

/// Checks all files, and prints the results in the order of the files.
fn check_all(files: &[PathBuf], checks: &Checks, jobs: Option<u32>, style: Style) -> Result<VerifyResults, Failure> {
    let interrupted = interrupt::flag()?;
    let jobs = jobs.map_or_else(|| cores().len().max(1), |jobs| jobs as usize);
    let mut results = VerifyResults { files: files.len(), ..VerifyResults::default() };
    let bar = progress_bar(files.len(), style);
    let mut waiting: BTreeMap<usize, Result<SoundFile, FileFault>> = BTreeMap::new();
    let mut next = 0;
    let mut end = Ok(());
    let job = |number: usize| checks.check(&files[number]);
    spread(files.len(), jobs, &[], job, |number, checked| {
        waiting.insert(number, checked);
        // Results wait for those of earlier files, so that the output doesn't depend on the number of jobs.
        while let Some(checked) = waiting.remove(&next) {
            let path = &files[next];
            next += 1;
            bar.inc(1);
            // Without a reader of the output, the exit code still tells the result.
            if let Some(line) = results.add(path, checked, style)
                && let Err(failure) = bar.suspend(|| print_for_reader(&line))
            {
                end = Err(failure);
                return false;
            }
        }
        !interrupted.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    end?;
    if interrupted.load(Ordering::Relaxed) {
        let sentence = format!("interrupted after {next} of {}", counted(files.len() as u64, "file", "files"));
        return Err(Failure::new(Exit::Interrupted, sentence));
    }
    Ok(results)
}

fn progress_bar(files: usize, style: Style) -> ProgressBar {
    let is_hidden = style == Style::Json || files <= MOST_LINES;
    let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(files as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} files, {eta} left") {
        bar.set_style(style);
    }
    bar
}

impl VerifyResults {
    /// Adds the result of a file. Returns the line to print.
    fn add(&mut self, path: &Path, checked: Result<SoundFile, FileFault>, style: Style) -> Option<String> {
        match checked {
            Ok(found) => {
                if found.is_complete {
                    self.sound += 1;
                } else {
                    self.incomplete += 1;
                }
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
    fn report(self, checks: &Checks, skipped: u64, style: Style) -> Result<(), Failure> {
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
            print(&json!({ "summary": summary }).to_string())?;
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
            return Err(Failure::new(Exit::Usage, sentence));
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
                counted(self.files as u64, "file", "files"),
                counted(self.events, "event or epoch", "events or epochs"),
                counted(self.messages, "message or state", "messages or states"),
            ))?;
        }
        if skipped > 0 {
            note(&format!("{} without the extension .jsonl skipped", counted(skipped, "file", "files")));
        }
        if self.repeated > 0 {
            note(&format!("{} of a session that another file has too", counted(self.repeated, "record", "records")));
        }
        // The lines of sound files, which name these parts, are left out.
        if self.files > MOST_LINES && !self.left_out.is_empty() {
            let part =
                |(part, files): (&FilePart, &u64)| format!("{} ({})", part.as_str(), counted(*files, "file", "files"));
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
                counted(missing.len() as u64, "ended session", "ended sessions"),
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
            let messages = counted(found.messages, "message", "messages");
            format!("{} and {messages}", counted(found.events, "event", "events"))
        }
        FileFormat::Replay => {
            let states = counted(found.messages, "state", "states");
            format!("{} and {states}", counted(found.events, "epoch", "epochs"))
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
