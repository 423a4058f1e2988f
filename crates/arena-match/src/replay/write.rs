//! The writer of replays, which records a match while it is played.

use std::io::{self, Write};

use arena_model::{AgentId, Disqualified, GameType, Rejected, ScriptVersion, TimeControl, UpdateMode};
use arena_record::Hash;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{MAX_REJECTED, ResultPart, VERSION, chain};
use crate::seat::Fault;

/// The number of bytes that the writer buffers.
const BUFFER: usize = 64 << 10;

#[derive(Debug, Serialize)]
pub struct Header<'a> {
    /// The version of the format.
    pub arena_replay: u32,
    pub game: &'a str,
    pub rules_version: u32,
    /// The version of the script, if the game's rules are a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptVersion>,
    pub update_mode: UpdateMode,
    /// The random seed, 64 hexadecimal digits.
    pub seed: String,
    /// The options that differ from the game's defaults.
    pub options: &'a Map<String, Value>,
    /// The config in messages to agents: the game's constants and the time limits.
    pub config: &'a Map<String, Value>,
    /// The agents, in the order of their seats.
    pub agents: Vec<SeatRecord<'a>>,
}

impl<'a> Header<'a> {
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

#[derive(Debug, Serialize)]
pub struct SeatRecord<'a> {
    pub agent_id: &'a AgentId,
    pub name: &'a str,
    pub version: Option<&'a str>,
    /// The time control, if it differs from the match's limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_control: Option<TimeControl>,
}

#[derive(Debug, Default)]
pub struct EpochRecord<'a> {
    /// The epoch, from 1. Epoch 0 holds the faults of the handshake.
    pub epoch: u64,
    pub states: States<'a>,
    /// The agents' time banks before the epoch, in milliseconds, by seat.
    pub banks_ms: &'a [u64],
    /// Disqualifications by the protocol precede the actions; those by the game's rules follow from them.
    pub disqualified: &'a [Disqualified],
    /// The accepted actions: a JSON list by seat. `None` if the match ended before the actions were applied.
    pub taken: Option<&'a [u8]>,
    pub rejected: &'a [Rejected],
    /// The `info` of the replies by seat, as JSON texts.
    pub infos: &'a [Option<String>],
    /// The times of the steps by seat, in milliseconds; empty if they aren't recorded.
    pub used_ms: &'a [Option<f64>],
    pub faults: &'a [Fault],
}

/// The states of an epoch, as texts of the members.
#[derive(Debug, Clone, Copy, Default)]
pub enum States<'a> {
    #[default]
    None,
    /// The common state of all agents that got a request.
    One(&'a [u8]),
    /// A state for each agent, by seat.
    Each(&'a [Vec<u8>]),
}

impl States<'_> {
    /// Returns the text in a replay: an object, or a list of objects by seat. `None` if no state was sent.
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

pub struct Recorder<'a> {
    out: &'a mut (dyn Write + Send),
    buffer: Vec<u8>,
    /// The offset of the current line in the buffer.
    line: usize,
    /// The hash of the last complete line.
    last: Option<Hash>,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder that writes to `out` in parts of about 64 KiB.
    pub fn new(out: &'a mut (dyn Write + Send)) -> Recorder<'a> {
        Recorder { out, buffer: Vec::with_capacity(BUFFER * 2), line: 0, last: None }
    }

    /// Writes the first line.
    ///
    /// # Errors
    /// If writing fails.
    pub fn header(&mut self, header: &Header<'_>) -> io::Result<()> {
        self.json(header);
        self.end_line()
    }

    /// Writes the line of an epoch.
    ///
    /// # Errors
    /// If writing fails.
    pub fn epoch(&mut self, record: &EpochRecord<'_>) -> io::Result<()> {
        self.begin_line();
        self.text(b"\"epoch\":");
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
        if record.infos.iter().any(Option::is_some) {
            self.text(b",\"info\":[");
            for (at, info) in record.infos.iter().enumerate() {
                self.text(if at > 0 { b"," } else { b"" });
                self.text(info.as_deref().unwrap_or("null").as_bytes());
            }
            self.text(b"]");
        }
        if !record.used_ms.is_empty() {
            self.text(b",\"used_ms\":");
            self.json(&record.used_ms);
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

    /// Writes the last line with the final state, and everything buffered. Returns the hash of this line.
    ///
    /// # Errors
    /// If writing fails.
    pub fn result(&mut self, result: &ResultPart, states: States<'_>) -> io::Result<Hash> {
        self.begin_line();
        self.text(b"\"result\":");
        self.json(result);
        self.states(states);
        self.text(b"}");
        self.end_line()?;
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.line = 0;
        self.out.flush()?;
        Ok(self.last.expect("a line has just ended"))
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

    /// Begins a line after the header with the hash of the line before it.
    fn begin_line(&mut self) {
        match self.last {
            Some(last) => self.text(chain::link(last).as_bytes()),
            // Only a recorder without a header has no last line.
            None => self.text(b"{"),
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
        self.last = Some(Hash::of(&self.buffer[self.line..]));
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        self.line = self.buffer.len();
        Ok(())
    }
}

/// Returns the first rejections of each seat. A last entry for the seat states the number of the others.
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
