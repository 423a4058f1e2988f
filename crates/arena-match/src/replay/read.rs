//! The reader of replays. It reads line by line, because a replay may be larger than the memory.

use std::io::{self, BufRead, Read};

use arena_model::{
    AgentId, Disqualified, MatchOutcome, MatchResult, Rejected, Seat, Seed, Setup, TimeControl, UpdateMode,
};
use arena_record::{Cause, Hash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::cause::causes;
use super::chain::{self, ReplaySeal};
use super::{FIRST_VERSION, MAX_LINE, VERSION};

/// The reason that a replay can't be read, exported or verified.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("the replay cannot be read")]
    Read(#[from] io::Error),
    #[error("the records cannot be written")]
    Write(#[source] io::Error),
    #[error("this format doesn't support {0}")]
    OtherGame(String),
    #[error("not an arena replay: {0}")]
    Foreign(String),
    #[error(
        "the replay has format {0}, but this program reads formats {FIRST_VERSION} to {VERSION}; use a newer release"
    )]
    Future(u32),
    #[error("line {line}: {what}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        what: String,
    },
    #[error("the match was played by a script, version {version} of {game}, which isn't available")]
    NoScript {
        game: String,
        /// The version in the header.
        version: String,
    },
    /// The game's rules are a script, and only another version of that script is available.
    #[error("the match was played by version {version} of {game}, but the available script is version {found}")]
    OtherScript {
        game: String,
        /// The version in the header.
        version: String,
        /// The version of the available script.
        found: String,
    },
    /// The match was played by another version of the game's rules, so its actions can't be played again.
    /// Everything else in the replay is consistent.
    #[error(
        "the match was played by version {version} of the rules of {game}, but this program has version {found}, so it cannot be played again; \
         its {epochs} epochs and its result are complete and consistent"
    )]
    OtherRules {
        game: String,
        /// The version of the replay's rules.
        version: u32,
        /// The program's version of the rules.
        found: u32,
        /// The number of epochs.
        epochs: u64,
    },
    #[error("the replay breaks off after epoch {epoch}, without a result")]
    CutOff {
        /// The last complete epoch.
        epoch: u64,
    },
}

/// The header, the first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeaderLine {
    /// The version of the format.
    pub arena_replay: u32,
    pub game: String,
    /// The version of the game's rules. Older replays have none and were played by version 1.
    #[serde(default = "first_version")]
    pub rules_version: u32,
    /// The version of the script, 64 hexadecimal digits, if the game's rules are a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    pub update_mode: UpdateMode,
    /// The seed, 64 hexadecimal digits.
    pub seed: String,
    /// The options that differ from the game's defaults.
    pub options: Map<String, Value>,
    pub config: Map<String, Value>,
    /// The agents, in the order of their seats.
    pub agents: Vec<SeatLine>,
    /// The origin of a forked match, which only earlier programs could play.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ReplayFork>,
}

/// The origin of a match that began with the recorded epochs of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayFork {
    /// SHA-256 of the original replay, in hex.
    pub of: String,
    /// The number of common epochs.
    pub at: u64,
}

fn first_version() -> u32 {
    1
}

impl HeaderLine {
    /// `None` if the game names no sides, or this program can't start it. The sides depend on the seed.
    pub fn sides(&self) -> Vec<Option<&'static str>> {
        let game = || {
            let agents = self.agents.iter().map(|agent| agent.agent_id.parse()).collect::<Result<_, _>>().ok()?;
            let seed = Seed::from_revealed(&self.seed)?;
            arena_games::game(&self.game)?.start(&self.options, Setup { seed, agents }).ok()
        };
        match game() {
            Some(game) => (0..self.agents.len()).map(|seat| game.side(Seat(seat))).collect(),
            None => vec![None; self.agents.len()],
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeatLine {
    pub agent_id: String,
    pub name: String,
    pub version: Option<String>,
    /// The time control, if it differs from the match's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_control: Option<TimeControl>,
}

#[derive(Debug, Deserialize)]
pub struct EpochLine {
    /// The epoch, from 1. Epoch 0 holds the faults of the handshake.
    pub epoch: u64,
    /// The common state of all agents that got a request.
    pub world_state: Option<Box<RawValue>>,
    /// The state of each agent, by seat, in games of isolated worlds.
    pub worlds: Option<Box<RawValue>>,
    /// The agents' time banks in milliseconds, by seat.
    #[serde(default)]
    pub remaining_overage_ms: Vec<u64>,
    #[serde(default)]
    pub disqualified: Vec<Disqualified>,
    /// The accepted actions, by seat: a list, or null for a seat without a valid reply. Absent if the match
    /// ended before the actions were applied.
    pub actions: Option<Box<RawValue>>,
    /// The `info` of the replies by seat, such as the scores of engines.
    #[serde(default)]
    pub info: Vec<Option<Map<String, Value>>>,
    /// The times of the steps by seat, in milliseconds. Recorded with `info` and in matches with time controls.
    #[serde(default)]
    pub used_ms: Vec<Option<f64>>,
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    #[serde(default)]
    pub faults: Vec<FaultLine>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct FaultLine {
    pub seat: usize,
    pub what: String,
}

/// The last line of a replay.
#[derive(Debug, Deserialize)]
pub struct ResultLine {
    pub result: ResultPart,
    /// The final state.
    pub world_state: Option<Box<RawValue>>,
    /// The final worlds, by seat.
    pub worlds: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultPart {
    pub outcome: MatchOutcome,
    pub epochs: u64,
    /// The scores, by seat.
    pub scores: Vec<f64>,
    /// The ranks, by seat, from 1.
    pub ranks: Vec<usize>,
    /// The termination causes, by seat. Replays of format 1 have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

impl ResultPart {
    pub fn of<A>(result: &MatchResult<A>) -> ResultPart {
        let (scores, ranks) = (result.scores(), result.ranks());
        ResultPart { outcome: result.outcome.clone(), epochs: result.epochs, scores, ranks, causes: causes(result) }
    }
}

/// A line after the header.
#[derive(Debug)]
pub enum ReplayLine {
    Epoch(EpochLine),
    Result(ResultLine),
}

/// The part of the header that all formats have.
#[derive(Deserialize)]
struct VersionOnly {
    arena_replay: Option<u32>,
}

pub struct Replay<R> {
    pub header: HeaderLine,
    from: R,
    line: usize,
    end: u64,
    text: String,
    last_epoch: u64,
    is_over: bool,
    /// The hash of the last line; `None` if the chain isn't checked.
    last: Option<Hash>,
    seal: Option<ReplaySeal>,
}

impl<R: BufRead> Replay<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the header is missing or invalid, or has another format version.
    pub fn open(mut from: R) -> Result<Replay<R>, ReplayError> {
        let mut text = String::new();
        read_line(&mut from, &mut text, 1)?;
        let foreign = |what: String| ReplayError::Foreign(what);
        if text.is_empty() {
            return Err(foreign("the file is empty".to_owned()));
        }
        // The version is parsed first, because the other keys depend on it.
        let version = serde_json::from_str::<VersionOnly>(&text).ok().and_then(|header| header.arena_replay);
        match version {
            None => return Err(foreign("its first line lacks `arena_replay`".to_owned())),
            Some(FIRST_VERSION..=VERSION) => {}
            Some(0) => return Err(foreign("there is no format 0".to_owned())),
            Some(version) => return Err(ReplayError::Future(version)),
        }
        let header: HeaderLine =
            serde_json::from_str(text.trim_ascii_end()).map_err(|error| foreign(describe_error(&error)))?;
        let end = text.len() as u64;
        Ok(Replay { header, from, line: 1, end, text, last_epoch: 0, is_over: false, last: None, seal: None })
    }

    /// Checks the chain and the seal from now on. Readers that only show a replay don't need this; they also read copies
    /// of which private data was removed. Replays of format 1 have no chain.
    #[must_use]
    pub fn checked(mut self) -> Replay<R> {
        self.last = self.is_chained().then(|| Hash::of(whole_line(&self.text).as_bytes()));
        self
    }

    /// Returns true if each line has the hash of the line before it.
    pub fn is_chained(&self) -> bool {
        self.header.arena_replay > FIRST_VERSION
    }

    /// Returns the seal, if the replay has one. It is known after the last line.
    pub fn seal(&self) -> Option<&ReplaySeal> {
        self.seal.as_ref()
    }

    /// Returns the last line as text.
    pub fn text(&self) -> &str {
        self.text.trim_ascii_end()
    }

    /// Returns the number of the last line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the offset of the last line's end, in bytes.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the agents' ids, by seat.
    ///
    /// # Errors
    /// If a text in the header isn't a valid id.
    pub fn agent_ids(&self) -> Result<Vec<AgentId>, ReplayError> {
        let parse = |agent: &SeatLine| agent.agent_id.parse();
        let ids: Result<_, _> = self.header.agents.iter().map(parse).collect();
        ids.map_err(|error: arena_model::IdError| ReplayError::Line { line: 1, what: error.to_string() })
    }

    /// Reads the next line. Returns `None` after the result.
    ///
    /// # Errors
    /// If reading fails, the line is invalid, or the replay is incomplete.
    pub fn next_line(&mut self) -> Result<Option<ReplayLine>, ReplayError> {
        self.text.clear();
        self.line += 1;
        read_line(&mut self.from, &mut self.text, self.line)?;
        self.end += self.text.len() as u64;
        let wrong = |line: usize, what: String| ReplayError::Line { line, what };
        if self.is_over {
            return match self.take_seal().map_err(|what| wrong(self.line, what))? {
                // Reads on, because nothing may follow the seal.
                true => self.next_line(),
                false => Ok(None),
            };
        }
        // The last line is incomplete if the runner was killed.
        if !self.text.ends_with('\n') {
            return Err(ReplayError::CutOff { epoch: self.last_epoch });
        }
        let is_result = self.check_link().map_err(|what| wrong(self.line, what))?;
        if is_result {
            let result: ResultLine =
                serde_json::from_str(self.text()).map_err(|error| wrong(self.line, describe_error(&error)))?;
            if self.last.is_some() && !result.is_canonical(whole_line(&self.text)) {
                return Err(wrong(self.line, "the line isn't in its canonical form".to_owned()));
            }
            self.is_over = true;
            return Ok(Some(ReplayLine::Result(result)));
        }
        let epoch: EpochLine =
            serde_json::from_str(self.text()).map_err(|error| wrong(self.line, describe_error(&error)))?;
        self.last_epoch = epoch.epoch;
        Ok(Some(ReplayLine::Epoch(epoch)))
    }

    /// Checks the beginning of a line: the hash of the line before it. Returns true if the line is the result.
    fn check_link(&mut self) -> Result<bool, String> {
        if !self.is_chained() {
            return match chain::has_link(&self.text) {
                true => Err("a replay of format 1 has no `previous`".to_owned()),
                false => Ok(self.text.starts_with("{\"result\"")),
            };
        }
        let Some((previous, rest)) = chain::split(&self.text) else {
            return Err("the line doesn't begin with `previous`, the hash of the line before".to_owned());
        };
        let is_result = rest.starts_with("\"result\"");
        if let Some(last) = self.last {
            if previous != last {
                let before = self.line - 1;
                return Err(format!(
                    "the chain is broken: `previous` isn't the hash of line {before}, so one of the two lines was changed"
                ));
            }
            self.last = Some(Hash::of(whole_line(&self.text).as_bytes()));
        }
        Ok(is_result)
    }

    /// Takes a line after the result. Returns true if it is the seal, and false after the last line.
    fn take_seal(&mut self) -> Result<bool, String> {
        let is_seal = self.is_chained() && self.seal.is_none() && self.text.starts_with(chain::SEAL);
        // Blank lines don't hide anything, but they are no part of a signed file.
        if self.text.is_empty() || self.last.is_none() && self.text.trim_ascii().is_empty() {
            return Ok(false);
        }
        if !is_seal {
            return Err("there are more lines after the result".to_owned());
        }
        let line = self.text.strip_suffix('\n').ok_or("the seal is incomplete")?;
        let seal = ReplaySeal::parse(line)?;
        if let Some(last) = self.last {
            seal.check(last)?;
        }
        self.seal = Some(seal);
        Ok(true)
    }
}

impl ResultLine {
    /// Returns true if `line` is the text that the recorder writes for this line.
    fn is_canonical(&self, line: &str) -> bool {
        let Some((previous, _)) = chain::split(line) else { return false };
        let result = serde_json::to_string(&self.result).expect("a result is plain data");
        let mut text = format!("{}\"result\":{result}", chain::link(previous));
        for (key, states) in [("world_state", &self.world_state), ("worlds", &self.worlds)] {
            if let Some(states) = states {
                text += &format!(",\"{key}\":{}", states.get());
            }
        }
        text + "}" == line
    }
}

/// Returns a line without its line break.
fn whole_line(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Returns the parser's message without its line number, which is always 1.
fn describe_error(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let what = sentence.split_once(" at line ").map_or(&sentence[..], |(what, _)| what);
    format!("{what}, at column {}", error.column())
}

/// Appends the next line to `text`, with its line end. Refuses bytes that aren't UTF-8, and endless lines.
fn read_line(from: &mut impl BufRead, text: &mut String, line: usize) -> Result<(), ReplayError> {
    let wrong = |what: &str| match line {
        1 => ReplayError::Foreign(what.to_owned()),
        _ => ReplayError::Line { line, what: what.to_owned() },
    };
    match from.take(MAX_LINE).read_line(text) {
        Ok(read) if read as u64 == MAX_LINE => Err(wrong("the line is too long")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong("the line isn't UTF-8 text")),
        Err(error) => Err(ReplayError::Read(error)),
    }
}
