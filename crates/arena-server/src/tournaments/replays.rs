//! The replays of matches and the logs beside them, as the public may read them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_match::{ChainRepair, logs};
use arena_runner::REPLAYS;

use super::id::TournamentId;
use super::replay_cache::ShownReplay;
use super::{TournamentRefusal, Tournaments};

/// Size in bytes at which a piece of a replay is sent.
const READ_BYTES: usize = 64 * 1024;

/// The tournament or the ladder that a match belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MatchSource {
    Tournament(TournamentId),
    /// The ladder of the game with this name.
    Ladder(&'static str),
}

impl fmt::Display for MatchSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchSource::Tournament(id) => id.fmt(f),
            MatchSource::Ladder(game) => f.write_str(game),
        }
    }
}

impl Tournaments {
    /// Returns the path of a match's replay, if the replay may be shown. The games of a pairing share a seed, so before
    /// their end a replay would help an agent in the next game.
    ///
    /// # Errors
    /// If the tournament is unknown or not over, or the ladder's journal can't be read.
    fn public_replay(&self, source: MatchSource, number: usize) -> Result<Option<PathBuf>, TournamentRefusal> {
        let is_public = match source {
            MatchSource::Tournament(id) if self.find(id)?.is_over() => true,
            MatchSource::Tournament(_) => return Err(TournamentRefusal::NotOver),
            MatchSource::Ladder(game) => self.ladder_game(game, number)?.is_some_and(|view| view.shows_replay(number)),
        };
        Ok(is_public.then(|| self.replay_path(source, number)))
    }

    /// Opens the replay of a match, if it was kept and may be shown.
    ///
    /// # Errors
    /// If the tournament is unknown or not over, or a file can't be read.
    pub(crate) fn open_replay(
        &self,
        source: MatchSource,
        number: usize,
    ) -> Result<Option<ReplayReader>, TournamentRefusal> {
        let Some(path) = self.public_replay(source, number)? else { return Ok(None) };
        match File::open(path) {
            Ok(file) => Ok(Some(ReplayReader {
                lines: BufReader::new(file),
                repair: ChainRepair::default(),
                tournaments: self.clone(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TournamentRefusal::Damaged(error.to_string())),
        }
    }

    /// Returns the prepared replay of a match, if it was kept and may be shown. The first call reads the whole file.
    ///
    /// # Errors
    /// As for [`Tournaments::open_replay`]; or if the index can't be written.
    pub(crate) fn shown_replay(
        &self,
        source: MatchSource,
        number: usize,
    ) -> Result<Option<Arc<ShownReplay>>, TournamentRefusal> {
        // The file is opened on every call, so that a removed replay isn't served from the cache.
        if self.open_replay(source, number)?.is_none() {
            return Ok(None);
        }
        let kept = self.replay_path(source, number);
        self.0.replay_cache.prepare(&self.0.redaction, &kept, format!("{source}-{number}")).map(Some)
    }

    /// Returns the path of the replay of a match. The logs are beside it.
    pub(crate) fn replay_path(&self, source: MatchSource, number: usize) -> PathBuf {
        let folder = match source {
            MatchSource::Tournament(id) => self.folder_of(id),
            MatchSource::Ladder(game) => self.ladder_folder(game),
        };
        folder.join(REPLAYS).join(format!("{number}.jsonl"))
    }

    /// Reads the log of an agent's stderr and protocol violations in the match of a replay; `None` if there is no log.
    pub(crate) fn read_log(&self, replay: &Path, seat: usize) -> Option<String> {
        let bytes = fs::read(logs::path(replay, seat)).ok()?;
        Some(self.redaction().redacted(&String::from_utf8_lossy(&bytes)).into_owned())
    }
}

/// A reader of a replay that redacts its lines.
pub(crate) struct ReplayReader {
    lines: BufReader<File>,
    repair: ChainRepair,
    tournaments: Tournaments,
}

impl ReplayReader {
    /// Reads the next lines of the replay; `None` after the last. This call blocks.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(crate) fn next_lines(&mut self) -> io::Result<Option<String>> {
        let (mut text, mut line) = (String::new(), String::new());
        while text.len() < READ_BYTES && self.lines.read_line(&mut line)? > 0 {
            if let Some(repaired) = self.repair.repair(&line, self.tournaments.redaction().redacted(&line)) {
                text += &repaired;
            }
            line.clear();
        }
        Ok((!text.is_empty()).then_some(text))
    }
}
