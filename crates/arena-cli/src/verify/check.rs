//! The check of one file: a record or a replay. Each part that can't be checked is listed with the reason.

use std::collections::BTreeMap;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_match::{HeaderLine, ReplayError, Verified};
use arena_model::{ChallengeType, GameType};
use arena_record::log::NoteKey;
use arena_record::{
    Header, InputsStored, Lie, Parsed, ReadError, ReadLimits, RecordPublicKey, RecordedRules, Unchecked, has_rules,
    read, reexecute,
};
use serde_json::Map;

use super::result::{FileFault, FileFormat, FilePart, SoundFile};
use crate::exit::{Exit, Failure};
use crate::files::{cannot_read, input, shown_path};
use crate::log::{WholeLog, check_proof};
use crate::record::{RecordCounts, bytes_within, explain};
use crate::replay;
use crate::scripts::{game_of_replay, games_of, load_all};

/// The number of bytes by which a record differs from a replay.
const HEAD: u64 = 32;

/// The beginning of each record.
pub const RECORD: &[u8] = b"{\"arenaRecord\":";

/// The record keys that a user trusts, and those that handovers connect with them.
pub struct GivenKeys {
    pub keys: Vec<RecordPublicKey>,
    /// True if the arena may have newer keys, because these are from a file that it published.
    pub may_be_old: bool,
}

pub struct Checks {
    built_in: BTreeMap<&'static str, Arc<dyn ChallengeType>>,
    scripts: Vec<Arc<dyn ChallengeType>>,
    /// The scripts as games for matches, of each version of the API.
    script_games: Vec<&'static GameType>,
    keys: GivenKeys,
    log: Option<WholeLog>,
    /// The key of the log, if it is given, and those that handovers connect with it.
    log_keys: Vec<NoteKey>,
    limits: ReadLimits,
}

impl Checks {
    /// Loads the rules: the built-in ones, and the scripts in these folders.
    ///
    /// # Errors
    /// If a folder contains no playable challenge.
    pub fn new(
        folders: &[PathBuf],
        keys: GivenKeys,
        log: Option<WholeLog>,
        log_keys: Vec<NoteKey>,
        limits: ReadLimits,
    ) -> Result<Checks, Failure> {
        let built_in = arena_games::challenges()
            // The session's own options are in its record. These would only be defaults, which always fit.
            .filter_map(|name| Some((name, arena_games::challenge(name, &Map::new())?.ok()?)))
            .collect();
        let scripts = load_all(folders)?;
        Ok(Checks { built_in, script_games: games_of(&scripts), scripts, keys, log, log_keys, limits })
    }

    pub fn log(&self) -> Option<&WholeLog> {
        self.log.as_ref()
    }

    /// Checks a file.
    ///
    /// # Errors
    /// If the file can't be read, has another format, or is false.
    pub fn check(&self, path: &Path) -> Result<SoundFile, FileFault> {
        let mut from = input(path)?;
        let mut head = Vec::new();
        from.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| cannot_read(&shown_path(path), error))?;
        let is_record = head.starts_with(RECORD);
        let whole = Cursor::new(head).chain(from);
        if is_record { self.check_record(path, whole) } else { self.check_replay(path, whole) }
    }

    fn check_record(&self, path: &Path, from: impl BufRead) -> Result<SoundFile, FileFault> {
        let limits = self.limits;
        let parsed = read(&bytes_within(path, from, limits)?, limits).map_err(|error| {
            let (line, event) = place(&error);
            FileFault { failure: explain(path, &error), line, event }
        })?;
        let false_record = |lie: Lie| FileFault {
            failure: Failure::new(Exit::BadReplay, format_args!("{}: {lie}", path.display())),
            line: Some(lie.line),
            event: lie.event,
        };
        let counts = RecordCounts::of(&parsed);
        let (game, session) = (parsed.header.challenge.clone(), Some(parsed.header.session));
        let mut found = SoundFile::new(FileFormat::Record, game, session, counts.events, counts.messages);
        found.checked.push(FilePart::Chain);
        self.check_seal(&parsed, &mut found).map_err(false_record)?;
        match (parsed.openings.len(), counts.withheld) {
            (0, 0) => {}
            (0, _) => found.leave_out(FilePart::Openings, "all contents are withheld"),
            (_, 0) => found.checked.push(FilePart::Openings),
            (_, withheld) => {
                found.checked.push(FilePart::Openings);
                found.leave_out(FilePart::Openings, format_args!("{withheld} withheld"));
            }
        }
        match parsed.unverifiable() {
            0 => {}
            count => found.leave_out(
                FilePart::Openings,
                format_args!("{count} hidden without a commitment, so their contents cannot be verified"),
            ),
        }
        if parsed.header.seed_commitment.is_some() && parsed.end.as_ref().is_some_and(|end| end.seed.is_some()) {
            found.checked.push(FilePart::Seed);
        }
        self.check_rules(&parsed, &mut found).map_err(false_record)?;
        match &self.log {
            Some(log) => log.check_record(&parsed, &mut found).map_err(false_record)?,
            None => self.check_proof(&parsed, &mut found).map_err(false_record)?,
        }
        // Without a seal, only the log shows that the arena published the record.
        found.is_complete &= !parsed.needs_log() || found.checked.contains(&FilePart::Log);
        Ok(found)
    }

    /// Checks the proof in a record, if the log isn't given.
    fn check_proof(&self, parsed: &Parsed, found: &mut SoundFile) -> Result<(), Lie> {
        let Some(proof) = &parsed.proof else {
            found.leave_out(FilePart::Log, "give --log");
            return Ok(());
        };
        match check_proof(parsed, proof, &self.log_keys)? {
            Ok(true) => found.checked.push(FilePart::Log),
            Ok(false) => found.leave_out(FilePart::Log, "the signature of the record's proof needs --log or --log-key"),
            Err(error) => found.leave_incomplete(FilePart::Log, error),
        }
        Ok(())
    }

    /// Checks the key of a record's seal. [`read`] has checked the signature.
    fn check_seal(&self, parsed: &Parsed, found: &mut SoundFile) -> Result<(), Lie> {
        let Some(seal) = &parsed.seal else {
            let reason = match parsed.needs_log() {
                true => "the record has no seal, so only a log that has its end can confirm it",
                false => "the record isn't sealed",
            };
            found.leave_out(FilePart::Seal, reason);
            // With a log, the hash of the end confirms a record without a seal. An unfinished record has none.
            let is_confirmed_by_log = self.log.is_none() || parsed.end.is_some();
            found.is_complete &= self.keys.keys.is_empty() && is_confirmed_by_log;
            return Ok(());
        };
        found.checked.push(FilePart::Seal);
        let logged: Vec<RecordPublicKey> = self.log.iter().flat_map(|log| log.record_keys()).collect();
        let GivenKeys { keys, may_be_old } = &self.keys;
        let known = if keys.is_empty() { &logged } else { keys };
        if known.contains(&seal.key) {
            found.checked.push(FilePart::Key);
        } else if known.is_empty() {
            found.leave_out(FilePart::Key, format_args!("give --key; the seal is by {}", seal.key));
        } else if *may_be_old && self.log.is_none() {
            // A forger has another key too. Only a newer file or the log can tell them apart.
            found.leave_incomplete(FilePart::Key, format_args!("{}, or give --log", not_published(&seal.key)));
        } else if keys.is_empty() && !self.is_end_logged(parsed) {
            // A copy of the log may be older than the key, and the record may be of another arena.
            found.leave_incomplete(FilePart::Key, format_args!("the log has no leaf of the seal's key, {}", seal.key));
        } else {
            let known = if keys.is_empty() {
                "a record key in the log"
            } else {
                "a key given with --key, and no handover connects it with one"
            };
            let what = format!("the seal is by {}, which isn't {known}", seal.key);
            return Err(Lie { line: 1, event: None, what });
        }
        Ok(())
    }

    /// Returns true if the log has the end of a record's session.
    fn is_end_logged(&self, parsed: &Parsed) -> bool {
        let logged = self.log.as_ref().and_then(|log| log.sessions.get(&parsed.header.session));
        logged.is_some_and(|logged| logged.ended.is_some())
    }

    /// Checks the key of a replay's seal, whose signature is valid. The keys in a log don't count: they sign records of
    /// sessions only.
    fn check_replay_seal(
        &self,
        path: &Path,
        sealed_by: Option<RecordPublicKey>,
        found: &mut SoundFile,
    ) -> Result<(), FileFault> {
        let Some(key) = sealed_by else {
            found.leave_out(FilePart::Seal, "the replay isn't sealed");
            found.is_complete &= self.keys.keys.is_empty();
            return Ok(());
        };
        found.checked.push(FilePart::Seal);
        let GivenKeys { keys, may_be_old } = &self.keys;
        if keys.contains(&key) {
            found.checked.push(FilePart::Key);
        } else if *may_be_old {
            found.leave_incomplete(FilePart::Key, not_published(&key));
        } else if keys.is_empty() {
            found.leave_out(FilePart::Key, format_args!("give --key; the seal is by {key}"));
        } else {
            let what = format!("{}: the seal is by {key}, which isn't a key given with --key", path.display());
            return Err(Failure::new(Exit::BadReplay, what).into());
        }
        Ok(())
    }

    /// Plays the game of a record again, if its rules are here.
    fn check_rules(&self, parsed: &Parsed, found: &mut SoundFile) -> Result<(), Lie> {
        let header = &parsed.header;
        // These need no rules, so their rules aren't searched.
        let is_seed_known = parsed.end.as_ref().is_some_and(|end| end.seed.is_some());
        let unplayable = match () {
            () if header.inputs == InputsStored::Missing => Some(Unchecked::InputsMissing),
            () if !is_seed_known => Some(Unchecked::NoSeed),
            () => None,
        };
        if let Some(reason) = unplayable {
            // An arena that has all inputs has the seed too, so a record without it hides something.
            found.is_complete &= parsed.end.is_none() || header.inputs == InputsStored::Missing;
            found.leave_out(FilePart::Rules, reason);
            return Ok(());
        }
        let challenge = match self.find_rules(header) {
            Ok(challenge) => challenge,
            Err(reason) => {
                found.leave_incomplete(FilePart::Rules, reason);
                return Ok(());
            }
        };
        let played = reexecute(parsed, challenge)?;
        if played.unchecked.is_none() && !played.has_same_prompt {
            found.leave_out(FilePart::Rules, "the players' instructions have another text in this program");
        }
        if played.failed > 0 {
            found.leave_out(
                FilePart::Rules,
                format_args!("{} deadlines at which the script failed in the arena", played.failed),
            );
        }
        match played.unchecked {
            None => found.checked.push(FilePart::Rules),
            Some(reason) => {
                found.is_complete &= !matches!(reason, Unchecked::OtherRules { .. } | Unchecked::Failed { .. });
                found.leave_out(FilePart::Rules, reason);
            }
        }
        Ok(())
    }

    /// Returns the rules of a session, or the reason that they aren't here.
    fn find_rules(&self, header: &Header) -> Result<&dyn ChallengeType, String> {
        let Header { challenge: name, rules, release, .. } = header;
        match rules {
            RecordedRules::Script { script } => {
                let mut named = self.scripts.iter().map(|loaded| &**loaded).filter(|loaded| loaded.id() == name);
                let same = named.clone().find(|loaded| has_rules(header, *loaded));
                let other = named.next().and_then(|loaded| Some(loaded.script()?.version().to_string()));
                match (same, other) {
                    (Some(loaded), _) => Ok(loaded),
                    (None, Some(other)) => Err(format!(
                        "the rules are version {script} of {name}, but the given folder has version {other}"
                    )),
                    (None, None) => {
                        Err(format!("the rules are version {script} of {name}; give the folder with --challenge"))
                    }
                }
            }
            RecordedRules::Builtin { version, .. } => match self.built_in.get(name.as_str()) {
                None => Err(format!("this program has no rules of {name}; release {release} has them")),
                Some(challenge) if !has_rules(header, &**challenge) => Err(format!(
                    "this program has version {} of the rules; release {release} has version {version}",
                    challenge.rules_version()
                )),
                Some(challenge) => Ok(&**challenge),
            },
        }
    }

    fn check_replay(&self, path: &Path, from: impl BufRead) -> Result<SoundFile, FileFault> {
        let find = |header: &HeaderLine| game_of_replay(header, &self.script_games);
        let verified = match arena_match::verify_by(from, find) {
            Ok(verified) => verified,
            // These don't contradict anything.
            Err(error @ (ReplayError::NoScript { .. } | ReplayError::OtherScript { .. })) => {
                let sentence = format!("{}: {error}; give its folder with --challenge", path.display());
                return Err(Failure::new(Exit::OtherRules, sentence).into());
            }
            Err(ReplayError::Read(error)) => return Err(cannot_read(&shown_path(path), error).into()),
            Err(ReplayError::Foreign(_)) => {
                let sentence = format!("{} is neither a record nor a replay", path.display());
                return Err(Failure::usage(sentence).into());
            }
            Err(error) => {
                let line = if let ReplayError::Line { line, .. } = &error { Some(*line) } else { None };
                return Err(FileFault { failure: replay::explain(path, &error), line, event: None });
            }
        };
        let Verified { game, epochs, states, .. } = verified;
        let mut found = SoundFile::new(FileFormat::Replay, game, None, epochs, states);
        if verified.is_chained {
            found.checked.push(FilePart::Chain);
        } else {
            found.leave_out(FilePart::Chain, "replays of format 1 have no chain");
        }
        self.check_replay_seal(path, verified.sealed_by, &mut found)?;
        found.checked.push(FilePart::Rules);
        if !verified.has_same_texts {
            found.leave_out(FilePart::Rules, "prompt and methods have other texts in this program");
        }
        Ok(found)
    }
}

/// Describes a seal whose key isn't in the given file of an arena.
fn not_published(key: &RecordPublicKey) -> String {
    format!(
        "the seal is by {key}, which isn't in the given arena.json; if the arena has changed its key since, get a newer \
         arena.json"
    )
}

/// Returns the line and the event of an error.
fn place(error: &ReadError) -> (Option<usize>, Option<u64>) {
    match error {
        ReadError::Lie(lie) => (Some(lie.line), lie.event),
        ReadError::TooLong { line } => (Some(*line), None),
        ReadError::Foreign(_) | ReadError::Future(_) => (None, None),
    }
}
