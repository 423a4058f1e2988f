//! `arena board rebuild`: leaderboards from records alone, without a server's database.
//!
//! `arena-record` decides which games count and computes the standings. This module reads the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use arena_model::{BoardTerms, ChallengeType, Script};
use arena_record::boards::{LeaderboardPolicy, LeaderboardProfile, LoggedSessions, RebuiltBoards, RecordedGame};
use arena_record::{Lie, Parsed, RecordPublicKey, reexecute, unplayable};
use clap::Args;

use super::policy::PolicyFile;
use super::tables::{AllBoards, CheckpointLine};
use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::files::cannot_read;
use crate::log::source::LogKeyArgs;
use crate::log::{LogSource, WholeLog};
use crate::output::{Style, counted, note, print, print_line};
use crate::{record, scripts};

/// Options of `arena board rebuild`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena board rebuild --records season
  arena board rebuild --records season --log https://arena.example --policy policy.toml
  arena board rebuild --records season --users users.json --json > boards.json
  arena board rebuild --records season --challenge ./merger-talks

The result contains the leaderboards, the number of games, and each game that doesn't count with the reason. With --log, \
only games in the log count, and completed games without a record are listed as missing. Without it, records without a \
signature count too, with a note.

A policy file has the sections [scoring] and [[challenges]] of the arena's settings, and may exclude games:
  [[exclude]]
  session = \"018f6b2e-0000-7000-8000-00000000abcd\"     or: user = \"ada\"
  reason = \"the provider failed\"

A record has user ids, but no profiles. --users adds names; its order decides between players with equal values, as on the \
server. Use `arena users get` to fetch the file.

A false record, or one that contradicts the log, ends the command with exit code 11. It is 16 if the log is older than a \
record, or a record has the proof of another log.")]
pub struct RebuildArgs {
    /// Record, or folder with records; may be repeated.
    #[arg(long = "records", value_name = "FILE|DIR", required = true)]
    pub records: Vec<PathBuf>,
    /// Log of the arena: a folder, or the URL of a server.
    #[arg(long, value_name = "DIR|URL")]
    pub log: Option<String>,
    #[command(flatten)]
    pub log_keys: LogKeyArgs,
    /// File with strategies, challenges and excluded games [default: the settings of a new server]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// File with the users of the arena, as JSON.
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Folder of a scripted challenge with its own leaderboards; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Play each game again and compare before it counts.
    #[arg(long)]
    pub verify: bool,
}

pub fn run(args: &RebuildArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let scripts = args.challenges.iter().map(|path| scripts::read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let scripts: Vec<&dyn ChallengeType> = scripts.iter().map(|script| script as &dyn ChallengeType).collect();
    let policy = read_policy(args.policy.as_deref(), &scripts)?;
    let profiles: Vec<LeaderboardProfile> = match &args.users {
        None => Vec::new(),
        Some(path) => serde_json::from_str(&read_text(path)?).map_err(|error| cannot_read(path, error))?,
    };
    let log = args.log.as_deref().map(|log| ReadLog::read(log, &args.log_keys, global)).transpose()?;
    let records = ReadRecords::read(args, &scripts, log.as_ref())?;
    let rebuilt = RebuiltBoards::of(records.games, &policy, log.as_ref().map(|log| &log.sessions))
        .map_err(|error| Failure::caused(Exit::BadReplay, &error))?;
    // The log may lack such a game.
    records.unproven.map_or(Ok(()), Err)?;
    let (unsealed, keys) = (records.unsealed, records.keys.len());
    if unsealed > 0 {
        let records = counted(unsealed, "record");
        note(&format!("{records} without a signature, not checked against a log; --log names the log"));
    }
    if keys > 1 {
        note(&format!("the records have signatures of {keys} keys; one arena has several after key changes"));
    }
    let unfinished = log.as_ref().map(|log| log.sessions.unfinished());
    let log = log.map(|log| {
        let checkpoint = log.whole.head.checkpoint.unverified();
        CheckpointLine { origin: checkpoint.origin.clone(), size: checkpoint.size, root: checkpoint.root.to_string() }
    });
    let mut boards = AllBoards::of(&rebuilt, &policy, &profiles);
    (boards.unsealed, boards.unfinished, boards.log) = (unsealed, unfinished, log);
    match style {
        Style::Json | Style::Compact => print_line(&boards),
        Style::Pretty => print(&boards.describe()),
    }
}

/// Reads the policy file, or returns the settings of a new server.
fn read_policy(file: Option<&Path>, scripts: &[&dyn ChallengeType]) -> Result<LeaderboardPolicy, Failure> {
    let Some(path) = file else { return PolicyFile::default().resolve(scripts).map_err(Failure::usage) };
    let policy = PolicyFile::read(&read_text(path)?).and_then(|policy| policy.resolve(scripts));
    policy.map_err(|why| cannot_read(path, why))
}

/// A whole log that was checked.
struct ReadLog {
    whole: WholeLog,
    sessions: LoggedSessions,
}

impl ReadLog {
    /// Reads all leaves of a log, and compares them with its checkpoint.
    fn read(text: &str, keys: &LogKeyArgs, global: &Global) -> Result<ReadLog, Failure> {
        let source = LogSource::find(Some(text), global)?;
        let mut leaves = Vec::new();
        let whole = WholeLog::read_each(source, keys, |leaf| leaves.push(leaf.to_string()))?;
        whole.head.note_key();
        let sessions = LoggedSessions::read(leaves.iter().map(String::as_str))
            .map_err(|why| Failure::new(Exit::BadReplay, why))?;
        Ok(ReadLog { whole, sessions })
    }
}

/// The games of all records.
#[derive(Default)]
struct ReadRecords {
    games: Vec<RecordedGame>,
    /// The number of records without a signature, if no log confirms them.
    unsealed: u64,
    /// The keys of the signatures, if there is no log.
    keys: BTreeSet<RecordPublicKey>,
    /// The failure for the first record whose proof can't be checked with the log.
    unproven: Option<Failure>,
}

impl ReadRecords {
    fn read(args: &RebuildArgs, scripts: &[&dyn ChallengeType], log: Option<&ReadLog>) -> Result<ReadRecords, Failure> {
        let prompt = |script: &&dyn ChallengeType| {
            let version = script.script().map(Script::version)?;
            Some((version.to_string(), BoardTerms::of(*script).prompt?))
        };
        let prompts: BTreeMap<String, String> = scripts.iter().filter_map(prompt).collect();
        let mut records = ReadRecords::default();
        for path in find_records(&args.records)? {
            let record = record::open(&path)?;
            match (log, &record.seal) {
                (None, None) => records.unsealed += 1,
                (None, Some(seal)) => records.keys.extend([seal.key]),
                (Some(_), _) => {}
            }
            let about = |failure: Failure| failure.about(&path.display());
            let unproven = check(&path, &record, args, log).map_err(about)?;
            records.unproven = records.unproven.or_else(|| Some(about(Failure::new(Exit::OtherRules, unproven?))));
            let game = RecordedGame::of(&record, &prompts);
            records.games.push(game.map_err(|why| about(Failure::new(Exit::BadReplay, why)))?);
        }
        Ok(records)
    }
}

/// Compares a record with the log, and with `--verify` plays the game again. Prints a note if that isn't possible. Returns
/// the reason if the log can't confirm the record's proof.
///
/// # Errors
/// If the record is false.
fn check(path: &Path, record: &Parsed, args: &RebuildArgs, log: Option<&ReadLog>) -> Result<Option<String>, Failure> {
    let is_false = |lie: Lie| Failure::new(Exit::BadReplay, lie);
    if args.verify {
        let challenge = record::find_rules(record, &args.challenges)?;
        let unchecked = match unplayable(&record.header, &*challenge) {
            Some(reason) => Some(reason),
            None => reexecute(record, &*challenge).map_err(is_false)?.unchecked,
        };
        unchecked.iter().for_each(|reason| note(&format!("{}: {reason}", path.display())));
    }
    log.map_or(Ok(None), |log| log.whole.check_proof(record).map_err(is_false))
}

/// Returns the records at these paths, in the order of their names. Folders are searched for `.jsonl` files.
fn find_records(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let unreadable = |error: std::io::Error| cannot_read(path, error);
        let mut inner = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (name, is_folder) = (entry.path(), entry.file_type().map_err(unreadable)?.is_dir());
            // Links to folders aren't followed, since they may lead back. A pipe would have no end.
            let is_record = || name.extension().is_some_and(|extension| extension == "jsonl") && name.is_file();
            if is_folder || is_record() {
                inner.push(name);
            }
        }
        inner.sort();
        found.extend(find_records(&inner)?);
    }
    Ok(found)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| cannot_read(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_in_folders_by_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["c.jsonl", "b/a.jsonl", "b/notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = find_records(&[folder.path().to_owned(), "other".into()]).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("b/loop.jsonl")).unwrap();
        let found_again = find_records(&[folder.path().to_owned(), "other".into()]).unwrap();
        assert_eq!(found_again, found);
        let expected = [folder.path().join("b/a.jsonl"), folder.path().join("c.jsonl"), "other".into()];
        assert_eq!(found, expected);
    }
}
