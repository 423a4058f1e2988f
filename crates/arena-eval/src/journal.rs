//! The journal of a run.

use std::collections::BTreeMap;
use std::path::Path;

use arena_match::line_file::scan;
use serde::Deserialize;

use crate::folder::FolderError;
use crate::record::{ChangeRecord, GameRecord, JournalLine, VERSION, VoidRecord};
use crate::run_file::RunFile;

pub(crate) const JOURNAL: &str = "journal.jsonl";

/// Returns the time in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the records of a run have the time of day; no rule depends on it")]
pub fn now() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

#[derive(Debug)]
pub(crate) struct JournalContent {
    /// The run file as accepted last.
    pub(crate) file: RunFile,
    /// The last known identities by kind and name. Names stay after they have left the run file.
    pub(crate) identities: BTreeMap<String, String>,
    pub(crate) games: BTreeMap<String, GameRecord>,
    pub(crate) voids: Vec<VoidRecord>,
    pub(crate) changes: Vec<ChangeRecord>,
    /// The times of the start and of each continuation, in milliseconds since 1970.
    pub(crate) started: Vec<i64>,
    /// The total length of the complete lines, in bytes.
    pub(crate) length: u64,
}

/// The beginning of a journal, which all versions have in common.
#[derive(Deserialize)]
struct First {
    #[serde(rename = "type")]
    kind: String,
    arena_eval: u32,
}

/// Reads the journal in a folder. Ignores an incomplete last line.
pub(crate) fn read(dir: &Path) -> Result<JournalContent, FolderError> {
    let path = dir.join(JOURNAL);
    let mut content: Option<JournalContent> = None;
    let (mut newer, mut is_journal) = (None, true);
    let length = scan(&path, |_, line| {
        let Some(content) = &mut content else {
            if newer.is_some() || !is_journal {
                return Ok(());
            }
            match serde_json::from_slice::<First>(line) {
                Ok(First { kind, arena_eval }) if kind == "start" && arena_eval <= VERSION => {}
                Ok(First { kind, arena_eval }) if kind == "start" => {
                    newer = Some(arena_eval);
                    return Ok(());
                }
                Ok(_) | Err(_) => {
                    is_journal = false;
                    return Ok(());
                }
            }
            if let JournalLine::Start { time, file, identities, .. } = parse(line)? {
                content = Some(JournalContent {
                    file: *file,
                    identities: identities.into_iter().collect(),
                    games: BTreeMap::new(),
                    voids: Vec::new(),
                    changes: Vec::new(),
                    started: vec![time],
                    length: 0,
                });
            }
            return Ok(());
        };
        match parse(line)? {
            JournalLine::Start { .. } => return Err("a journal has only one start".to_owned()),
            JournalLine::Resume { time, file, identities } => {
                content.started.push(time);
                content.identities.extend(identities);
                if let Some(file) = file {
                    content.file = *file;
                }
            }
            JournalLine::Change(change) => content.changes.push(change),
            JournalLine::Game(game) => {
                content.games.insert(game.game.clone(), *game);
            }
            JournalLine::Void(void) => content.voids.push(void),
        }
        Ok(())
    })?;
    if let Some(version) = newer {
        return Err(FolderError::Newer { dir: dir.to_owned(), version });
    }
    match content {
        Some(content) => Ok(JournalContent { length, ..content }),
        None if is_journal => Err(FolderError::Absent(dir.to_owned())),
        None => Err(FolderError::OtherFiles(dir.to_owned())),
    }
}

fn parse(line: &[u8]) -> Result<JournalLine, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
