//! Writing replays, while the match is played.

use std::io::{self, Write};

use arena_model::{AgentId, GameType, MatchOutcome, Rejected, ScriptVersion, UpdateMode};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{MAX_REJECTED, VERSION};
use crate::report::Disqualified;
use crate::seat::Fault;

/// How much is gathered before it is written.
const BUFFER: usize = 64 << 10;

/// The first line.
#[derive(Debug, Serialize)]
pub struct Header<'a> {
    /// Format version.
    pub arena_replay: u32,
    /// The game's name.
    pub game: &'a str,
    /// The version of its rules.
    pub rules_version: u32,
    /// The version of the script whose rules it was played by, where they are one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptVersion>,
    /// How its agents take part.
    pub update_mode: UpdateMode,
    /// All that was random comes of this: 64 hexadecimal digits.
    pub seed: String,
    /// What was set differently from the game's usual constants.
    pub options: &'a Map<String, Value>,
    /// What the agents were told: the game's constants and the time limits.
    pub config: &'a Map<String, Value>,
    /// The agents, in the order of their seats.
    pub agents: Vec<SeatRecord<'a>>,
}

impl<'a> Header<'a> {
    /// The header of a replay in the format of today.
    pub fn new(
        game: &'static GameType,
        seed: String,
        options: &'a Map<String, Value>,
        config: &'a Map<String, Value>,
        agents: Vec<SeatRecord<'a>>,
    ) -> Header<'a> {
        Header {
            arena_replay: VERSION,
            game: game.name,
            rules_version: game.rules_version,
            script: game.script(),
            update_mode: game.mode,
            seed,
            options,
            config,
            agents,
        }
    }
}

/// An agent, as the header names it.
#[derive(Debug, Serialize)]
pub struct SeatRecord<'a> {
    /// Its id in this match.
    pub agent_id: &'a AgentId,
    /// What it is called.
    pub name: &'a str,
    /// Its version, if it has one.
    pub version: Option<&'a str>,
}

/// One epoch.
#[derive(Debug)]
pub struct EpochRecord<'a> {
    /// From 1; 0 for what went wrong before the first.
    pub epoch: u64,
    /// What the agents saw: the members of one state, or by seat where each has a world of its own.
    pub states: States<'a>,
    /// Each agent's bank when it was asked, in milliseconds, by seat.
    pub banks_ms: &'a [u64],
    /// Who was disqualified in this epoch. Those whose verdict isn't the game's were out before the actions were played.
    pub disqualified: &'a [Disqualified],
    /// The actions that were taken: a JSON list, by seat. `None`: the match was over before they were played.
    pub taken: Option<&'a [u8]>,
    /// The actions that weren't.
    pub rejected: &'a [Rejected],
    /// What agents got wrong in the protocol.
    pub faults: &'a [Fault],
}

/// The states of an epoch, as texts of their members.
#[derive(Debug, Clone, Copy)]
pub enum States<'a> {
    /// Nothing was shown.
    None,
    /// All who were asked saw the same.
    One(&'a [u8]),
    /// Each agent saw a world of its own; by seat.
    Each(&'a [Vec<u8>]),
}

impl States<'_> {
    /// The text that a replay has for them: an object, or a list of objects by seat. `None` where nothing was shown.
    pub fn text(&self) -> Option<String> {
        let text = |members: &[u8]| format!("{{{}}}", String::from_utf8_lossy(members));
        match self {
            States::None => None,
            States::One(members) => Some(text(members)),
            States::Each(worlds) => {
                Some(format!("[{}]", worlds.iter().map(|world| text(world)).collect::<Vec<_>>().join(",")))
            }
        }
    }
}

/// The last line.
#[derive(Debug, Serialize)]
pub struct ResultRecord<'a> {
    /// How it ended.
    pub outcome: &'a MatchOutcome,
    /// How many epochs were played.
    pub epochs: u64,
    /// By seat.
    pub scores: &'a [f64],
    /// By seat, from 1.
    pub ranks: &'a [usize],
}

/// Writes a replay.
pub struct Recorder<'a> {
    out: &'a mut (dyn Write + Send),
    buffer: Vec<u8>,
}

impl<'a> Recorder<'a> {
    /// A recorder that writes to `out`, in pieces of some 64 KiB.
    pub fn new(out: &'a mut (dyn Write + Send)) -> Recorder<'a> {
        Recorder { out, buffer: Vec::with_capacity(BUFFER * 2) }
    }

    /// Writes the first line.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn header(&mut self, header: &Header<'_>) -> io::Result<()> {
        self.json(header);
        self.end_line()
    }

    /// Writes the line of an epoch.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn epoch(&mut self, record: &EpochRecord<'_>) -> io::Result<()> {
        self.text(b"{\"epoch\":");
        self.number(record.epoch);
        self.states(record.states);
        self.text(b",\"remaining_overage_ms\":[");
        for (at, bank_ms) in record.banks_ms.iter().enumerate() {
            self.text(if at > 0 { b"," } else { b"" });
            self.number(*bank_ms);
        }
        self.text(b"]");
        if !record.disqualified.is_empty() {
            self.text(b",\"disqualified\":");
            self.json(&record.disqualified);
        }
        if let Some(taken) = record.taken {
            self.text(b",\"actions\":");
            self.text(taken);
        }
        if !record.rejected.is_empty() {
            self.text(b",\"rejected\":");
            self.json(&shorten(record.rejected));
        }
        if !record.faults.is_empty() {
            let faults: Vec<Value> =
                record.faults.iter().map(|fault| serde_json::json!({"seat": fault.seat, "what": fault.what})).collect();
            self.text(b",\"faults\":");
            self.json(&faults);
        }
        self.text(b"}");
        self.end_line()
    }

    /// Writes the last line, with the final state, and all that was gathered.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn result(&mut self, result: &ResultRecord<'_>, states: States<'_>) -> io::Result<()> {
        self.text(b"{\"result\":");
        self.json(result);
        self.states(states);
        self.text(b"}\n");
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }

    fn states(&mut self, states: States<'_>) {
        match states {
            States::None => {}
            States::One(members) => {
                self.text(b",\"world_state\":{");
                self.text(members);
                self.text(b"}");
            }
            States::Each(worlds) => {
                self.text(b",\"worlds\":[");
                for (at, members) in worlds.iter().enumerate() {
                    self.text(if at > 0 { b",{" } else { b"{" });
                    self.text(members);
                    self.text(b"}");
                }
                self.text(b"]");
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    fn number(&mut self, number: u64) {
        self.buffer.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    fn json(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.buffer, value).expect("records are plain data, and memory takes all");
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The rejections without those that are too many; how many those are stands in their place.
fn shorten(rejected: &[Rejected]) -> Vec<Rejected> {
    let mut kept: Vec<Rejected> = Vec::new();
    for of_seat in rejected.chunk_by(|a, b| a.seat == b.seat) {
        kept.extend(of_seat.iter().take(MAX_REJECTED).cloned());
        if let Some(more) = of_seat.len().checked_sub(MAX_REJECTED + 1) {
            let reason = format!("and {} more", more + 1).into();
            kept.push(Rejected { seat: of_seat[0].seat, index: None, reason });
        }
    }
    kept
}
