//! `arena verify`: checks records and replays in parallel, and prints one result for each file in their order.

mod check;
mod files;
pub mod result;
mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use arena_match::{cores, spread};
use arena_record::{KeyHandover, KeyKind, ReadLimits, RecordPublicKey, connected_keys};
use clap::Args;

use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::log::source::LogKeyArgs;
use crate::log::{GivenRecordKeys, LogSource, WholeLog, connected_log_keys, log_key, record_keys};
use crate::output::{Style, counted, counted_as, print_for_reader};
use crate::terminal::progress_bar;

use check::{Checks, GivenKeys};
use files::FilesToCheck;
use result::{FileFault, SoundFile};
use summary::{MOST_LINES, VerifyResults};

/// Options of `arena verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena verify game.jsonl
  arena verify season --log https://arena.example --jobs 4
  arena verify season --log log --log-key arena.json --key arena.json
  arena verify talks.jsonl --challenge ./merger-talks
  arena record get ID | arena verify -

Accepted files: records of sessions, and replays of matches. Folders are searched, except hidden files and links to \
folders. In a folder, files that don't end in .jsonl are skipped, and so are journals of tournaments.

A record is checked in this order: each line and its hash in the next line; the seal; each opening against its commitment; \
the seed against its commitment; and, if the session has ended, every transition, message and score by playing the game \
again from the seed. With --log, the log is read and its hash tree is compared with its checkpoint; then the \
session's start and end must be in it. The output names the parts that can't be checked, with reasons.

A record can't show which program or model sent an action, or that two users are two people.

The exit code is 11 only if a file is false: it contradicts itself, its keys, the rules or the log. It is 16 if no file is \
false and some can't be verified completely: they belong to other rules, their sessions aren't in the log, the copy of the \
log is older than they are, or the arena's keys are newer than the given arena.json. With --strict, it is 16 if any part of \
a file could not be verified.")]
pub struct VerifyArgs {
    /// Record, replay, or folder with them; - for stdin.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Folder of a scripted challenge, for games of it; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Record key of the arena, or a file with it or with /.well-known/arena.json; may be repeated.
    #[arg(long = "key", value_name = "KEY|FILE")]
    pub keys: Vec<String>,
    /// Log of the arena: a folder, or the URL of a server.
    #[arg(long, value_name = "DIR|URL")]
    pub log: Option<String>,
    #[command(flatten)]
    pub log_keys: LogKeyArgs,
    /// Fail if a part of a file could not be verified, such as withheld contents or a missing log.
    #[arg(long)]
    pub strict: bool,
    /// Number of files to check in parallel [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Maximum length of a record in MiB. Each job needs a few times as much memory.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_mib: u64,
}

pub fn run(args: &VerifyArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let FilesToCheck { files, skipped } = FilesToCheck::find(&args.paths)?;
    if files.is_empty() {
        return Err(Failure::usage("there is nothing to verify: the folders contain no records and no replays"));
    }
    let given = args.keys.iter().map(|text| record_keys(text)).collect::<Result<Vec<GivenRecordKeys>, Failure>>()?;
    let read_log = |log: &String| WholeLog::read(LogSource::find(Some(log), global)?, &args.log_keys);
    let log = args.log.as_ref().map(read_log).transpose()?;
    let given_log_key = args.log_keys.log_key.as_deref().map(log_key).transpose()?;
    let log_keys = given_log_key.map(|given| connected_log_keys(&given.key, &given.handovers)).unwrap_or_default();
    let logged = log.iter().flat_map(|log| &log.handovers);
    let handovers: Vec<KeyHandover> = given.iter().flat_map(|given| &given.handovers).chain(logged).copied().collect();
    let may_be_old = given.iter().any(|given| given.is_published);
    let keys: Vec<RecordPublicKey> = given.into_iter().flat_map(|given| given.keys).collect();
    let keys = GivenKeys { keys: connected_keys(KeyKind::Record, &keys, &handovers), may_be_old };
    let checks = Checks::new(&args.challenges, keys, log, log_keys, ReadLimits::of_bytes(args.max_mib << 20))?;
    let results = check_all(&files, &checks, args.jobs, style)?;
    let left_out = results.left_out_files;
    results.report(&checks, skipped, style)?;
    if args.strict && left_out > 0 {
        let files = counted_as(left_out, "file has", "files have");
        return Err(Failure::new(Exit::OtherRules, format_args!("{files} parts that weren't verified (--strict)")));
    }
    Ok(())
}

/// Checks all files, and prints the results in the order of the files.
fn check_all(files: &[PathBuf], checks: &Checks, jobs: Option<u32>, style: Style) -> Result<VerifyResults, Failure> {
    let interrupted = interrupt::flag()?;
    let jobs = jobs.map_or_else(|| cores().len().max(1), |jobs| jobs as usize);
    let mut results = VerifyResults::of(files.len());
    let is_hidden = style == Style::Json || files.len() <= MOST_LINES;
    let bar = progress_bar(files.len(), is_hidden, "{wide_bar} {pos} of {len} files, {eta} left");
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
        let sentence = format!("interrupted after {next} of {}", counted(files.len(), "file"));
        return Err(Failure::new(Exit::Interrupted, sentence));
    }
    Ok(results)
}
