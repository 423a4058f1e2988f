//! The sources of results. This module searches folders, detects file types from their content, and reports every
//! omission.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use arena_match::JOURNAL;
use arena_report::listed;
use arena_runner::REPLAYS;
use arena_tournament::{Entrant, GameLine, InvalidLine, League, Record, TournamentPlan};

use super::games::{Games, PlayedGame, is_seed};
use super::lines::{self, About, LineError, LineKind, SeatedGame, Sides, next_line};
use super::pgn::{self, End, is_pgn};
use crate::exit::{Exit, Failure};
use crate::files::numbered_files;
use crate::output::counted_as;
use crate::replay::last_line;

/// The size of the read buffer, in bytes; enough to detect a file's type.
const BUFFER: usize = 64 << 10;

/// The maximum number of games of a file that are named because they have two results.
const MAX_CONFLICTS: usize = 10;

#[derive(Debug, Default)]
pub struct Sources {
    pub games: Games,
    /// The number of files of each kind.
    pub files: Files,
    /// Unfinished games, or games without a result.
    pub unfinished: u64,
    /// Games without names of players.
    pub nameless: u64,
    /// Games with a disqualified agent.
    pub tainted: u64,
    /// Games played by other versions of the rules than the requested one.
    pub other_rules: u64,
    /// Forks of matches. They begin with the moves of another game, so they don't count.
    pub forks: u64,
    /// Replays without a result, because the file ends early.
    pub broken_replays: u64,
    /// Files that are copies of other files.
    copies: Vec<PathBuf>,
    /// Files without results that were found in folders.
    pub passed_over: Vec<PathBuf>,
    /// The names of the games (chess, snake, …) that the results mention.
    pub played: BTreeSet<String>,
    /// For each game: the versions of its rules, each with the first file that names it.
    rules: BTreeMap<String, BTreeMap<u32, PathBuf>>,
    /// The requested version of the rules; `None` for any version.
    only: Option<u32>,
    /// Further remarks on the files, a sentence each.
    file_remarks: Vec<String>,
    sides: Sides,
    /// The device and inode numbers of the files that were read.
    read: HashSet<(u64, u64)>,
    /// The PGN files that were read, by length in bytes.
    pgn: HashMap<u64, Vec<PathBuf>>,
    /// The fingerprint of each agent's files, and the journal that names it.
    fingerprints: BTreeMap<String, (String, PathBuf)>,
    /// The agents already reported as having differing fingerprints.
    differing: BTreeSet<String>,
}

/// The number of files of each kind with results.
#[derive(Debug, Default, Clone, Copy, serde::Serialize)]
pub struct Files {
    pub journals: u64,
    /// JSON lines, as matches and tournaments print them.
    pub json_lines: u64,
    pub replays: u64,
    /// Portable Game Notation.
    pub pgn: u64,
}

enum FileKind {
    /// A file with results, which have been added.
    Results,
    /// A replay, which hasn't been read yet.
    Replay,
    /// A file that was read before, or a copy of one.
    Known,
    /// A file without results.
    Nothing,
}

impl Sources {
    /// Reads all results in these files and folders, in this order. Files in a folder are read in the order of their
    /// names. `only` is the requested version of the rules.
    ///
    /// # Errors
    /// If a path can't be read, a given file contains no results, or results are damaged. Also if the results of a game
    /// come from several versions of its rules, since these results can't be compared.
    pub fn of(paths: &[PathBuf], only: Option<u32>) -> Result<Sources, Failure> {
        let mut sources = Sources { only, ..Sources::default() };
        for path in paths {
            let data = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
            if data.is_dir() {
                sources.folder(path)?;
                continue;
            }
            let found = match sources.file(path, &data)? {
                FileKind::Replay => {
                    sources.games.begin_source();
                    sources.replay(path)?
                }
                found => found,
            };
            if let FileKind::Nothing = found {
                return Err(wrong(path, "no results found; `arena rate --help` lists the accepted files"));
            }
        }
        sources.check_rules()?;
        Ok(sources)
    }

    /// Returns the remarks on the files and on the games that don't count, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.played.len() > 1 {
            let played: Vec<&str> = self.played.iter().map(String::as_str).collect();
            remarks.push(format!("different games are rated together: {}", played.join(", ")));
        }
        remarks.extend(counted_each(&[
            (
                self.tainted,
                "game with a disqualified agent counts as its loss",
                "games with a disqualified agent count as its losses",
            ),
            (
                self.games.repeated,
                "game is in several files, with the same seed, agents and result, and counts once",
                "games are in several files, with the same seed, agents and result, and count once",
            ),
            (self.unfinished, "game without a result doesn't count", "games without a result don't count"),
            (
                self.nameless,
                "game without names of players doesn't count",
                "games without names of players don't count",
            ),
            (
                self.games.against_itself,
                "game of an agent against itself doesn't count",
                "games of an agent against itself don't count",
            ),
            (self.games.void, "void game doesn't count", "void games don't count"),
            (self.forks, "fork of a game doesn't count", "forks of games don't count"),
            (
                self.other_rules,
                "game by another version of the rules doesn't count",
                "games by other versions of the rules don't count",
            ),
            (
                self.broken_replays,
                "replay ends before its result and doesn't count",
                "replays end before their results and don't count",
            ),
        ]));
        let copies: Vec<String> = self.copies.iter().map(|path| path.display().to_string()).collect();
        match copies.len() {
            0 => {}
            1 => remarks.push(format!("{} is a copy of another file and doesn't count", listed(&copies))),
            _ => remarks.push(format!("{} are copies of other files and don't count", listed(&copies))),
        }
        remarks.extend(self.file_remarks.iter().cloned());
        remarks
    }

    fn check_rules(&self) -> Result<(), Failure> {
        let Some((game, versions)) = self.rules.iter().find(|(_, versions)| versions.len() > 1) else { return Ok(()) };
        let names: Vec<String> =
            versions.iter().map(|(version, path)| format!("version {version} in {}", path.display())).collect();
        let sentence = format!(
            "the results of {game} belong to different versions of its rules, which cannot be compared: {}; choose one with --rules-version N",
            names.join(", ")
        );
        Err(Failure::new(Exit::BadTournament, sentence))
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Failure> {
        // Some ratings depend on the order of the matches.
        let entries = numbered_files(folder).map_err(|error| unreadable(folder, &error))?;
        let has_journal = folder.join(JOURNAL).is_file();
        let (mut folders, mut replays) = (Vec::new(), Vec::new());
        for (path, kind) in entries {
            if kind.is_dir() {
                // The replays of a tournament are skipped, since its journal contains their results.
                if !(has_journal && path.ends_with(REPLAYS)) {
                    folders.push(path);
                }
                continue;
            }
            // Links to folders aren't followed, since a link may lead back to this folder.
            let data = fs::metadata(&path).ok().filter(Metadata::is_file);
            match data.map(|data| self.file(&path, &data)).transpose()? {
                Some(FileKind::Replay) => replays.push(path),
                Some(FileKind::Results | FileKind::Known) => {}
                Some(FileKind::Nothing) | None => self.passed_over.push(path),
            }
        }
        // The replays in a folder come from one run of matches, so they count as one source.
        self.games.begin_source();
        for path in replays {
            self.replay(&path)?;
        }
        for folder in folders {
            self.folder(&folder)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, data: &Metadata) -> Result<FileKind, Failure> {
        if data.is_file() && !self.read.insert((data.dev(), data.ino())) {
            return Ok(FileKind::Known);
        }
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut from = BufReader::with_capacity(BUFFER, file);
        let start = from.fill_buf().map_err(|error| unreadable(path, &error))?;
        let is_json = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start().starts_with(b"{");
        // A PGN file may begin with a comment in braces, which looks like JSON. In that case, the file name decides.
        let is_named_pgn = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pgn"));
        if is_pgn(start) || is_named_pgn {
            if data.is_file() && self.is_copy(path, data)? {
                return Ok(FileKind::Known);
            }
            self.pgn(path, from)
        } else if is_json {
            self.json(path, from)
        } else {
            Ok(FileKind::Nothing)
        }
    }

    /// Returns true if a PGN file is a copy of an earlier one. Whole files are compared, since PGN games may contain
    /// nothing that identifies them.
    fn is_copy(&mut self, path: &Path, data: &Metadata) -> Result<bool, Failure> {
        let before = self.pgn.entry(data.len()).or_default();
        for other in before.iter() {
            if is_same(path, other).map_err(|error| unreadable(path, &error))? {
                self.copies.push(path.to_owned());
                return Ok(true);
            }
        }
        before.push(path.to_owned());
        Ok(false)
    }

    fn pgn(&mut self, path: &Path, from: impl BufRead) -> Result<FileKind, Failure> {
        self.games.begin_source();
        let (mut count, mut conflicts, mut named) = (0_u64, 0_usize, Vec::new());
        let (games, unfinished, nameless) = (&mut self.games, &mut self.unfinished, &mut self.nameless);
        let end = pgn::read(from, |tags| {
            count += 1;
            if let Some(other) = tags.other_result() {
                conflicts += 1;
                if conflicts <= MAX_CONFLICTS {
                    let tag = tags.result();
                    named.push(format!(
                        "has two results in game {count}: the tag `{tag}`, which counts, and `{other}` after the moves"
                    ));
                }
            }
            let is_known = |name: &str| !name.is_empty() && name != "?";
            let (white, black) = (tags.white(), tags.black());
            let ranks = match &*tags.result() {
                "1-0" => [1, 2],
                "0-1" => [2, 1],
                "1/2-1/2" => [1, 1],
                _ => {
                    *unfinished += 1;
                    return Ok(());
                }
            };
            if !is_known(&white) || !is_known(&black) {
                *nameless += 1;
                return Ok(());
            }
            let seed = tags.seed();
            let seed = is_seed(&seed).then_some(&*seed);
            let names: [&str; 2] = [&white, &black];
            let alike = tags.moves().map(|moves| games.alike(&names, moves));
            let added = games.add(&PlayedGame { names: &names, ranks: &ranks, seed, alike });
            added.map_err(io::Error::other)
        });
        match end.map_err(|error| unreadable(path, &error))? {
            End::Whole => {}
            End::InTag => self.remark(path, "ends in the middle of a tag; the games before it count"),
            End::InComment(line) => {
                let what = format!("has an unclosed comment; the text from line {line} on doesn't count");
                self.remark(path, &what);
            }
        }
        for conflict in &named {
            self.remark(path, conflict);
        }
        if conflicts > named.len() {
            self.remark(path, &format!("has {} more games with two results", conflicts - named.len()));
        }
        let found = count > 0;
        self.files.pgn += u64::from(found);
        Ok(if found { FileKind::Results } else { FileKind::Nothing })
    }

    fn json(&mut self, path: &Path, mut from: impl BufRead) -> Result<FileKind, Failure> {
        self.games.begin_source();
        let (mut line, mut found, mut others) = (Vec::new(), false, 0);
        for number in 1.. {
            let is_whole = next_line(&mut from, &mut line).map_err(|error| unreadable(path, &error))?;
            let Some(is_whole) = is_whole else { break };
            let text = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
            if text.is_empty() {
                continue;
            }
            match lines::take(text, self.only, &mut self.games, &mut self.sides) {
                Ok(LineKind::Journal) if number == 1 => return self.journal(path),
                Ok(LineKind::Replay) if number == 1 => return Ok(FileKind::Replay),
                Ok(LineKind::Game(about)) => {
                    found = true;
                    self.about(about, path);
                }
                Ok(LineKind::OtherRules) => {
                    found = true;
                    self.other_rules += 1;
                }
                Ok(LineKind::Fork) => {
                    found = true;
                    self.forks += 1;
                }
                // Standings are skipped, since they follow from the games before them.
                Ok(LineKind::Standings) => {}
                Ok(_) => others += 1,
                Err(LineError::NoJson) if found && !is_whole => {
                    self.remark(path, "ends in the middle of a line; the lines before it count");
                }
                // No result precedes this line, so the file isn't a file of results.
                Err(LineError::NoJson) if !found => return Ok(FileKind::Nothing),
                Err(LineError::NoJson) => return Err(wrong(path, &format!("line {number} isn't valid JSON"))),
                Err(LineError::Result(what)) => return Err(wrong(path, &format!("line {number}: {what}"))),
            }
        }
        if found && others > 0 {
            let lines = if others == 1 { "line that isn't a result" } else { "lines that aren't results" };
            self.remark(path, &format!("has {others} {lines}"));
        }
        self.files.json_lines += u64::from(found);
        Ok(if found { FileKind::Results } else { FileKind::Nothing })
    }

    /// Reads the journal of a tournament with the tournament's own parser, so that both count the same games. Of a
    /// league, the current season counts.
    fn journal(&mut self, path: &Path) -> Result<FileKind, Failure> {
        let text = fs::read(path).map_err(|error| unreadable(path, &error))?;
        let invalid = |error: InvalidLine| wrong(path, &format!("line {}: {}", error.line, error.what));
        if TournamentPlan::read(&text).map_err(invalid)?.format.is_open_ended() {
            let league = League::read(&text, None).map_err(invalid)?;
            drop(text);
            let agents = league.members().map(|agent| (&agent.entrant, Some(agent.generation)));
            return self.journal_games(path, &league.plan, league.cut_off, agents, league.games().iter());
        }
        let record = Record::read(&text).map_err(invalid)?;
        drop(text);
        for changed in &record.changes {
            self.remark(path, &format!("records that the files of {} changed during the tournament", changed.agent));
        }
        let agents = record.plan.agents.iter().map(|agent| (agent, None));
        self.journal_games(path, &record.plan, record.cut_off, agents, record.games())
    }

    /// Adds the games of a journal. `agents` have the number of their version in a league.
    fn journal_games<'j>(
        &mut self,
        path: &Path,
        plan: &TournamentPlan,
        cut_off: usize,
        agents: impl Iterator<Item = (&'j Entrant, Option<u32>)>,
        games: impl Iterator<Item = &'j GameLine>,
    ) -> Result<FileKind, Failure> {
        if cut_off > 0 {
            self.remark(path, "ends in the middle of a line; the lines before it count");
        }
        self.files.journals += 1;
        let (void, games): (Vec<&GameLine>, Vec<&GameLine>) = games.partition(|game| game.result.outcome.is_void());
        if self.only.is_some_and(|only| only != plan.rules_version) {
            self.other_rules += games.len() as u64;
            return Ok(FileKind::Results);
        }
        for (agent, version) in agents {
            self.fingerprint(&version_name(&agent.name, version), agent.sha256.as_deref(), path);
        }
        for game in &games {
            let (result, outcome) = (&game.result, &game.result.outcome);
            let versions = game.generations.iter().copied().map(Some).chain(iter::repeat(None));
            let names: Vec<Cow<'_, str>> =
                result.names().into_iter().zip(versions).map(|(name, version)| version_name(name, version)).collect();
            let seated = SeatedGame {
                game: Some(&plan.game),
                options: &plan.options,
                names: names.iter().map(Cow::as_ref).collect(),
                ranks: result.ranks().iter().map(|rank| u32::try_from(*rank).unwrap_or(u32::MAX)).collect(),
                result: outcome.result.as_deref(),
                seed: &result.seed.reveal(),
                moves: result.moves.as_ref(),
                is_void: false,
            };
            let added = seated.add_to(&mut self.games, &mut self.sides);
            added.map_err(|what| wrong(path, &format!("game {}: {what}", game.number)))?;
            self.tainted += u64::from(outcome.tainted_reason.is_some());
        }
        if games.is_empty() {
            self.remark(path, "belongs to a tournament without games");
        } else {
            self.played.insert(plan.game.clone());
            self.note_rules(&plan.game, plan.rules_version, path);
        }
        self.games.void += void.len() as u64;
        Ok(FileKind::Results)
    }

    /// Records an agent's fingerprint, and reports a difference from another journal.
    fn fingerprint(&mut self, name: &str, sha256: Option<&str>, path: &Path) {
        let Some(sha256) = sha256 else { return };
        match self.fingerprints.get(name) {
            None => {
                self.fingerprints.insert(name.to_owned(), (sha256.to_owned(), path.to_owned()));
            }
            Some((before, _)) if before == sha256 => {}
            Some((_, other)) if self.differing.insert(name.to_owned()) => {
                let (one, two) = (other.display(), path.display());
                self.file_remarks
                    .push(format!("the files of {name} differ between {one} and {two}; {name} is rated as one agent"));
            }
            Some(_) => {}
        }
    }

    /// Reads the first line and the result of a replay.
    fn replay(&mut self, path: &Path) -> Result<FileKind, Failure> {
        let ends = File::open(path).and_then(|file| {
            let mut from = BufReader::with_capacity(BUFFER, file);
            let mut header = Vec::new();
            next_line(&mut from, &mut header)?;
            Ok((header, last_line(&mut from.into_inner())?))
        });
        let (header, result) = ends.map_err(|error| unreadable(path, &error))?;
        match lines::take_replay(&header, &result, self.only, &mut self.games, &mut self.sides) {
            Ok(LineKind::Game(about)) => self.about(about, path),
            Ok(LineKind::Fork) => self.forks += 1,
            Ok(_) => self.other_rules += 1,
            Err(LineError::NoJson) => {
                self.broken_replays += 1;
                return Ok(FileKind::Nothing);
            }
            Err(LineError::Result(what)) => return Err(wrong(path, &what)),
        }
        self.files.replays += 1;
        Ok(FileKind::Results)
    }

    fn about(&mut self, about: About, path: &Path) {
        self.tainted += u64::from(about.is_tainted);
        if let (Some(game), Some(version)) = (&about.game, about.rules_version) {
            self.note_rules(game, version, path);
        }
        if let Some(game) = about.game.filter(|game| !self.played.contains(game)) {
            self.played.insert(game);
        }
    }

    fn note_rules(&mut self, game: &str, version: u32, path: &Path) {
        if !self.rules.contains_key(game) {
            self.rules.insert(game.to_owned(), BTreeMap::new());
        }
        if let Some(versions) = self.rules.get_mut(game)
            && !versions.contains_key(&version)
        {
            versions.insert(version, path.to_owned());
        }
    }

    fn remark(&mut self, path: &Path, what: &str) {
        self.file_remarks.push(format!("{} {what}", path.display()));
    }
}

/// Formats the counts above 0, each with the first of two words for one and with the second for more.
pub fn counted_each(counts: &[(u64, &str, &str)]) -> Vec<String> {
    counts.iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| counted_as(*count, one, many)).collect()
}

/// Returns the name of a version of an agent. In a league, each version has a rating of its own.
fn version_name(name: &str, version: Option<u32>) -> Cow<'_, str> {
    match version {
        Some(version @ 2..) => format!("{name} (version {version})").into(),
        _ => name.into(),
    }
}

fn is_same(one: &Path, two: &Path) -> io::Result<bool> {
    let open = |path: &Path| Ok::<_, io::Error>(BufReader::with_capacity(BUFFER, File::open(path)?));
    let (mut one, mut two) = (open(one)?, open(two)?);
    loop {
        let (a, b) = (one.fill_buf()?, two.fill_buf()?);
        let length = a.len().min(b.len());
        if a[..length] != b[..length] || (length == 0 && a.len() != b.len()) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        two.consume(length);
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::BadTournament, format_args!("cannot read {}: {error}", path.display()))
}

fn wrong(path: &Path, what: &str) -> Failure {
    Failure::new(Exit::BadTournament, format_args!("{}: {what}", path.display()))
}
