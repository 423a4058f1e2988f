//! Reading replays, line by line: one may be larger than the memory.

use std::io::{self, BufRead, Read};

use arena_model::{AgentId, MatchOutcome, Rejected, Seat, Seed, Setup, UpdateMode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{MAX_LINE, VERSION};
use crate::report::Disqualified;

/// A replay can't be read, or says what the rules don't.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file can't be read.
    #[error("the replay can't be read")]
    Read(#[from] io::Error),
    /// What is made of it can't be written.
    #[error("the records can't be written")]
    Write(#[source] io::Error),
    /// The format that was asked for isn't for this game.
    #[error("there is no such format for {0}")]
    OtherGame(String),
    /// It isn't a replay.
    #[error("this is no replay of arena's: {0}")]
    Foreign(String),
    /// A line can't be understood.
    #[error("line {line}: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Its rules are a script that isn't at hand.
    #[error("it was played by a script, version {version} of {game}, which isn't at hand")]
    NoScript {
        /// The game's name.
        game: String,
        /// As the header has it.
        version: String,
    },
    /// Its rules are another version of the script that is at hand.
    #[error("it was played by version {version} of {game}, and what is at hand is version {found}")]
    OtherScript {
        /// The game's name.
        game: String,
        /// As the header has it.
        version: String,
        /// What is there.
        found: String,
    },
    /// It was played by other rules than those at hand, so its actions can't be played again. Everything else in it agrees.
    #[error(
        "it was played by version {version} of the rules of {game}, and this program has version {found}, so it can't be played again; \
         its {epochs} epochs and its result are whole and agree with each other"
    )]
    OtherRules {
        /// The game's name.
        game: String,
        /// By which it was played.
        version: u32,
        /// The version at hand.
        found: u32,
        /// The number of its epochs.
        epochs: u64,
    },
    /// It ends before the match does.
    #[error("the replay breaks off after epoch {epoch}, without a result")]
    CutOff {
        /// The last epoch that is there as a whole.
        epoch: u64,
    },
}

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeaderLine {
    /// Format version.
    pub arena_replay: u32,
    /// The game's name.
    pub game: String,
    /// The version of its rules. Replays from before there were versions have none, and were played by the first.
    #[serde(default = "first_version")]
    pub rules_version: u32,
    /// The version of the script whose rules it was played by, where they are one's: 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// How its agents take part.
    pub update_mode: UpdateMode,
    /// The seed, 64 hexadecimal digits.
    pub seed: String,
    /// What was set differently from the game's usual constants.
    pub options: Map<String, Value>,
    /// What the agents were told.
    pub config: Map<String, Value>,
    /// The agents, in the order of their seats.
    pub agents: Vec<SeatLine>,
}

fn first_version() -> u32 {
    1
}

impl HeaderLine {
    /// What each seat plays as, where the game names its sides. That follows from the seed; where it can't be played today, it stays
    /// open.
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

/// An agent in the header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeatLine {
    /// Its id in the match.
    pub agent_id: String,
    /// What it is called.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
}

/// One epoch.
#[derive(Debug, Deserialize)]
pub struct EpochLine {
    /// From 1; 0 for what went wrong before the first.
    pub epoch: u64,
    /// What all saw who were asked.
    pub world_state: Option<Box<RawValue>>,
    /// What each saw, by seat, in games of isolated worlds.
    pub worlds: Option<Box<RawValue>>,
    /// Each agent's bank in milliseconds, by seat.
    #[serde(default)]
    pub remaining_overage_ms: Vec<u64>,
    /// Who was disqualified in this epoch.
    #[serde(default)]
    pub disqualified: Vec<Disqualified>,
    /// What was taken of each agent's actions, by seat: a list, or null for no valid reply. Absent: nothing was played.
    pub actions: Option<Box<RawValue>>,
    /// The actions that weren't taken.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// What agents got wrong in the protocol: seat and sentence.
    #[serde(default)]
    pub faults: Vec<FaultLine>,
}

/// A fault in an epoch.
#[derive(Debug, Clone, Deserialize)]
pub struct FaultLine {
    /// Whose.
    pub seat: usize,
    /// What was wrong.
    pub what: String,
}

/// The last line.
#[derive(Debug, Deserialize)]
pub struct ResultLine {
    /// How it ended.
    pub result: ResultPart,
    /// The final state.
    pub world_state: Option<Box<RawValue>>,
    /// The final worlds, by seat.
    pub worlds: Option<Box<RawValue>>,
}

/// The result in the last line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultPart {
    /// How it ended and who won.
    pub outcome: MatchOutcome,
    /// How many epochs were played.
    pub epochs: u64,
    /// By seat.
    pub scores: Vec<f64>,
    /// By seat, from 1.
    pub ranks: Vec<usize>,
}

/// A line after the header.
#[derive(Debug)]
pub enum Line {
    /// One epoch.
    Epoch(EpochLine),
    /// The end.
    Result(ResultLine),
}

/// The part of a header that is there in every format.
#[derive(Deserialize)]
struct VersionOnly {
    arena_replay: Option<u32>,
}

/// A replay that is being read.
pub struct Replay<R> {
    /// The first line.
    pub header: HeaderLine,
    from: R,
    line: usize,
    end: u64,
    text: String,
    last_epoch: u64,
    is_over: bool,
}

impl<R: BufRead> Replay<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When there is none, or it is of a newer format.
    pub fn open(mut from: R) -> Result<Replay<R>, ReplayError> {
        let mut text = String::new();
        read_line(&mut from, &mut text, 1)?;
        let foreign = |what: String| ReplayError::Foreign(what);
        if text.is_empty() {
            return Err(foreign("the file is empty".to_owned()));
        }
        // First the version alone: what else there is depends on it.
        let version = serde_json::from_str::<VersionOnly>(&text).ok().and_then(|header| header.arena_replay);
        match version {
            None => return Err(foreign("its first line lacks `arena_replay`".to_owned())),
            Some(VERSION) => {}
            Some(other) => {
                return Err(foreign(format!("it has format {other}, and this program reads format {VERSION}")));
            }
        }
        let header: HeaderLine = serde_json::from_str(text.trim_ascii_end()).map_err(|error| foreign(told(&error)))?;
        Ok(Replay { header, from, line: 1, end: text.len() as u64, text, last_epoch: 0, is_over: false })
    }

    /// The line that was read last, as it is.
    pub fn text(&self) -> &str {
        self.text.trim_ascii_end()
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Where the line that was read last ends: how many bytes of the replay have been read.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The ids of the agents, in the order of their seats.
    ///
    /// # Errors
    /// When one of them isn't an id.
    pub fn agent_ids(&self) -> Result<Vec<AgentId>, ReplayError> {
        let parse = |agent: &SeatLine| agent.agent_id.parse();
        let ids: Result<_, _> = self.header.agents.iter().map(parse).collect();
        ids.map_err(|error: arena_model::IdError| ReplayError::Line { line: 1, what: error.to_string() })
    }

    /// The next line; `None` after the result.
    ///
    /// # Errors
    /// When it can't be read or understood, or the replay breaks off.
    pub fn next_line(&mut self) -> Result<Option<Line>, ReplayError> {
        self.text.clear();
        self.line += 1;
        read_line(&mut self.from, &mut self.text, self.line)?;
        self.end += self.text.len() as u64;
        let wrong = |line: usize, what: String| ReplayError::Line { line, what };
        match (self.is_over, self.text.trim_ascii().is_empty()) {
            (true, true) => return Ok(None),
            (true, false) => return Err(wrong(self.line, "there is more after the result".to_owned())),
            // Half a line is what a runner leaves that was killed.
            (false, _) if !self.text.ends_with('\n') => return Err(ReplayError::CutOff { epoch: self.last_epoch }),
            (false, _) => {}
        }
        if self.text.starts_with("{\"result\"") {
            let result = serde_json::from_str(self.text()).map_err(|error| wrong(self.line, told(&error)))?;
            self.is_over = true;
            return Ok(Some(Line::Result(result)));
        }
        let epoch: EpochLine = serde_json::from_str(self.text()).map_err(|error| wrong(self.line, told(&error)))?;
        self.last_epoch = epoch.epoch;
        Ok(Some(Line::Epoch(epoch)))
    }
}

/// What is wrong with a line of JSON. The parser counts lines too, and for it this is the first.
fn told(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let what = sentence.split_once(" at line ").map_or(&sentence[..], |(what, _)| what);
    format!("{what}, at column {}", error.column())
}

/// Appends the next line to `text`, with its end. What isn't text can't be a replay, nor can a line without end.
fn read_line(from: &mut impl BufRead, text: &mut String, line: usize) -> Result<(), ReplayError> {
    let wrong = |what: &str| match line {
        1 => ReplayError::Foreign(what.to_owned()),
        _ => ReplayError::Line { line, what: what.to_owned() },
    };
    match from.take(MAX_LINE).read_line(text) {
        Ok(read) if read as u64 == MAX_LINE => Err(wrong("the line is too long")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong("it isn't UTF-8 text")),
        Err(error) => Err(ReplayError::Read(error)),
    }
}
