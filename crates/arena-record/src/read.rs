//! Reading of records, with all checks that need no rules: the chain, the canonical form of each line, the openings,
//! the seed and the seal. The caller reads the file; [`ReadLimits`] bounds its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arena_model::{InviteCode, Seat, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::format::{FORMAT, OpeningName};
use crate::key::seal_text;
use crate::write::canonical;
use crate::{
    Commitment, End, Event, EventKind, Hash, Header, InputsStored, LogProof, Opening, RecordedChannel, RecordedParty,
    Seal,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum length of a line, in bytes with its line break.
    pub line_bytes: u64,
    /// The maximum length of the record, in bytes.
    pub bytes: u64,
}

impl ReadLimits {
    /// Returns the limits of a record of at most `bytes` bytes: a line may have a sixteenth of them, or 16 MiB.
    pub fn of_bytes(bytes: u64) -> ReadLimits {
        ReadLimits { line_bytes: (bytes / 16).max(16 << 20), bytes }
    }
}

impl Default for ReadLimits {
    /// Returns limits that fit usual sessions: 16 MiB for a line and 256 MiB for the record. An arena doesn't limit the
    /// length of a session, so longer records exist.
    fn default() -> ReadLimits {
        ReadLimits::of_bytes(256 << 20)
    }
}

/// A contradiction in a record: the record was changed, or its writer lied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lie {
    /// The number of the line, from 1.
    pub line: usize,
    /// The number of the event, if the line is an event or belongs to one.
    pub event: Option<u64>,
    /// The contradiction, in words.
    pub what: String,
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event {
            Some(event) => write!(f, "line {} (event {event}): {}", self.line, self.what),
            None => write!(f, "line {}: {}", self.line, self.what),
        }
    }
}

impl std::error::Error for Lie {}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("not a record: {0}")]
    Foreign(String),
    #[error("the record has format {0}, but this program reads format {FORMAT}; use a newer release")]
    Future(u32),
    #[error("{0}")]
    Lie(Lie),
    /// A line or the whole record is too long. That isn't a contradiction.
    #[error("line {line}: the record is longer than the limits allow")]
    TooLong {
        /// The number of the line, from 1.
        line: usize,
    },
}

impl From<Lie> for ReadError {
    fn from(lie: Lie) -> ReadError {
        ReadError::Lie(lie)
    }
}

/// A record whose chain, openings and seal are valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub header: Header,
    /// The events in order. Event N is on line N + 1.
    pub events: Vec<Event>,
    pub end: Option<End>,
    /// The openings by name, such as `operator/7`.
    pub openings: BTreeMap<String, Opening>,
    /// The seal. Its signature is valid for the key of the header. If it is `None`, the header has no key, or the
    /// record has a proof instead: see [`Parsed::needs_log`].
    pub seal: Option<Seal>,
    /// The proof of inclusion in the arena's log, unchecked.
    pub proof: Option<LogProof>,
    /// The hash that the seal signs.
    pub hash: Hash,
}

impl Parsed {
    /// Returns the number of messages without a commitment. Their contents can't be verified: an administrator hid them
    /// before the arena kept commitments.
    pub fn unverifiable(&self) -> u64 {
        let messages = self.events.iter().flat_map(|event| &event.messages);
        messages.filter(|message| message.content.is_none()).count() as u64
    }

    /// Returns true if the header names a key, but no seal is there. The arena has lost the key, and only the proof of
    /// the log confirms the record. The caller must check the proof against the log or its key; without that check,
    /// nothing shows that the arena published the record.
    pub fn needs_log(&self) -> bool {
        self.header.record_key.is_some() && self.seal.is_none()
    }
}

/// Reads the bytes of a record and checks everything that needs no rules.
///
/// # Errors
/// [`ReadError`] if the bytes aren't a record of this format, a limit is exceeded, or the record contradicts itself.
pub fn read(text: &[u8], limits: ReadLimits) -> Result<Parsed, ReadError> {
    let mut lines = Lines { rest: text, limits, left: limits.bytes, number: 0 };
    let Some(first) = lines.next_line()? else { return Err(ReadError::Foreign("the file is empty".to_owned())) };
    let mut reading = Reading::begin(first)?;
    while let Some(line) = lines.next_line()? {
        reading.take(line)?;
    }
    Ok(reading.finish(lines.number)?)
}

/// A line with its number, from 1.
#[derive(Clone, Copy)]
struct Line<'l> {
    number: usize,
    /// The bytes without the line break.
    bytes: &'l [u8],
    is_complete: bool,
}

struct Lines<'l> {
    rest: &'l [u8],
    limits: ReadLimits,
    left: u64,
    number: usize,
}

impl<'l> Lines<'l> {
    fn next_line(&mut self) -> Result<Option<Line<'l>>, ReadError> {
        self.number += 1;
        if self.rest.is_empty() {
            return Ok(None);
        }
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(self.rest.len(), |end| end + 1);
        let (line, rest) = self.rest.split_at(length);
        if length as u64 > self.limits.line_bytes.min(self.left) {
            let is_record = self.number > 1 || line.starts_with(HEADER.as_bytes());
            let foreign = || ReadError::Foreign("the first line is too long".to_owned());
            return Err(if is_record { ReadError::TooLong { line: self.number } } else { foreign() });
        }
        self.left -= length as u64;
        self.rest = rest;
        let is_complete = end.is_some();
        let bytes = if is_complete { &line[..length - 1] } else { line };
        Ok(Some(Line { number: self.number, bytes, is_complete }))
    }
}

/// The start of each kind of line.
const HEADER: &str = "{\"arenaRecord\":";
const EVENT: &str = "{\"event\":";
const END: &str = "{\"end\":";
const OPEN: &str = "{\"open\":";
const SEAL: &str = "{\"seal\":";
const PROOF: &str = "{\"leaf\":";

/// The part of a record that a line belongs to, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Events,
    End,
    Openings,
    Seal,
    Proof,
}

/// The version of the format. Later formats keep this field.
#[derive(Deserialize)]
struct FormatVersion {
    #[serde(rename = "arenaRecord")]
    version: u32,
}

/// A record of which some lines have been read.
#[cfg_attr(test, derive(Clone))]
struct Reading {
    parsed: Parsed,
    part: Part,
    /// The commitments by name, with the number of their event.
    commitments: BTreeMap<String, (u64, Commitment)>,
    /// The last indexes of the chat and the operator channel.
    indexes: [u64; 2],
    version: u64,
    /// The time of the latest message. No later event is before it, even if the arena's clock was set back.
    last_activity: Timestamp,
    joined: BTreeSet<InviteCode>,
    last_opening: Option<String>,
}

impl Reading {
    fn begin(line: Line<'_>) -> Result<Reading, ReadError> {
        let text = std::str::from_utf8(line.bytes).map_err(|_| ReadError::Foreign("it isn't UTF-8 text".to_owned()))?;
        let format = match serde_json::from_str(text) {
            Ok(format) => format,
            // The error of the whole line is more exact.
            Err(_) if text.starts_with(HEADER) => FormatVersion { version: FORMAT },
            Err(_) => return Err(ReadError::Foreign("the first line has no number `arenaRecord`".to_owned())),
        };
        match format.version {
            FORMAT => {}
            0 => return Err(ReadError::Foreign("there is no format 0".to_owned())),
            version => return Err(ReadError::Future(version)),
        }
        let header: Header = parse(line, None)?;
        if header.seats > MOST_SEATS {
            return Err(lie(line, None, format!("more than {MOST_SEATS} seats are impossible")).into());
        }
        let last_activity = header.created_at;
        let parsed = Parsed {
            header,
            events: Vec::new(),
            end: None,
            openings: BTreeMap::new(),
            seal: None,
            proof: None,
            hash: Hash::of(line.bytes),
        };
        Ok(Reading {
            parsed,
            part: Part::Events,
            commitments: BTreeMap::new(),
            indexes: [0; 2],
            version: 1,
            last_activity,
            joined: BTreeSet::new(),
            last_opening: None,
        })
    }

    fn take(&mut self, line: Line<'_>) -> Result<(), Lie> {
        let starts = |start: &str| line.bytes.starts_with(start.as_bytes());
        let part = match () {
            () if starts(EVENT) => Part::Events,
            () if starts(END) => Part::End,
            () if starts(OPEN) => Part::Openings,
            () if starts(SEAL) => Part::Seal,
            () if starts(PROOF) => Part::Proof,
            () => return Err(lie(line, None, "the line is neither an event, end, opening, seal nor proof")),
        };
        let may_repeat = matches!(part, Part::Events | Part::Openings);
        if part < self.part || (part == self.part && !may_repeat) {
            return Err(lie(line, None, "the line is out of order, or there twice"));
        }
        self.part = part;
        match part {
            Part::Events => self.take_event(line),
            Part::End => self.take_end(line),
            Part::Openings => self.take_opening(line),
            Part::Seal => self.take_seal(line),
            Part::Proof => {
                if self.parsed.header.record_key.is_none() || self.parsed.end.is_none() {
                    return Err(lie(line, None, "a proof needs an end before it, and a key in the header"));
                }
                self.parsed.proof = Some(parse(line, None)?);
                Ok(())
            }
        }
    }

    fn take_event(&mut self, line: Line<'_>) -> Result<(), Lie> {
        let number = self.parsed.events.len() as u64 + 1;
        let event: Event = parse(line, Some(number))?;
        let lie = |what: String| lie(line, Some(number), what);
        if event.event != number {
            return Err(lie(format!("the event has number {}; events are missing, doubled or reordered", event.event)));
        }
        if event.previous != self.parsed.hash {
            return Err(lie(broken(line.number)));
        }
        self.check_place(&event).and_then(|()| self.check_players(&event)).map_err(lie)?;
        self.check_indexes(&event).map_err(lie)?;
        if event.messages.iter().any(|message| message.channel != RecordedChannel::Usage) {
            self.last_activity = self.last_activity.max(event.at);
        }
        let user = event.user.zip(event.seat).map(|(user, seat)| (format!("user/{}", seat.0), user));
        let contents = event.messages.iter().filter_map(|message| Some((message.opening(), message.content?)));
        for (name, commitment) in user.into_iter().chain(contents) {
            if self.commitments.insert(name, (number, commitment)).is_some() {
                return Err(lie("two contents have the same name".to_owned()));
            }
        }
        self.parsed.hash = Hash::of(line.bytes);
        self.parsed.events.push(event);
        Ok(())
    }

    /// Checks the seats, the time and the version of an event.
    fn check_place(&mut self, event: &Event) -> Result<(), String> {
        let seats = self.parsed.header.seats;
        let is_foreign = |seat: &Seat| seat.0 >= seats;
        let parties = event.messages.iter().flat_map(|message| [Some(message.from), message.to]).flatten();
        let mut seated = parties.filter_map(|party| match party {
            RecordedParty::Player(seat) => Some(seat),
            RecordedParty::Operator | RecordedParty::Other => None,
        });
        if event.seat.as_ref().is_some_and(is_foreign) || seated.any(|seat| is_foreign(&seat)) {
            return Err(format!("a seat is not below {seats}, the number of seats"));
        }
        let is_stored = self.parsed.header.inputs == InputsStored::Stored;
        // Old and imported sessions may have wrong times.
        let has_times = self.parsed.header.inputs != InputsStored::Missing;
        if has_times && event.at < self.last_activity {
            return Err("the time of the event is before the creation or an earlier message".to_owned());
        }
        let is_transition = !matches!(event.kind, EventKind::Chat | EventKind::Notice);
        self.version += u64::from(is_transition);
        let version = (is_stored && is_transition).then_some(self.version);
        if event.version != version {
            let text = |version: Option<u64>| version.map_or("null".to_owned(), |version| version.to_string());
            return Err(format!("the version is {} instead of {}", text(event.version), text(version)));
        }
        Ok(())
    }

    /// Checks the invite and the user of an event.
    fn check_players(&mut self, event: &Event) -> Result<(), String> {
        if event.kind == EventKind::Join {
            if event.seat != Some(Seat(self.joined.len())) {
                return Err("players must join in the order of their seats".to_owned());
            }
            if !event.invite.is_some_and(|invite| self.joined.insert(invite)) {
                return Err("the player's name is missing, or belongs to another player".to_owned());
            }
        } else if event.user.is_some() {
            return Err("only a join has a user".to_owned());
        }
        if event.invite.is_some() && !matches!(event.kind, EventKind::Join | EventKind::Announce) {
            return Err(format!("an event of kind {} has no invite", event.kind));
        }
        Ok(())
    }

    fn check_indexes(&mut self, event: &Event) -> Result<(), String> {
        for message in &event.messages {
            let index = match message.channel {
                RecordedChannel::Chat => &mut self.indexes[0],
                RecordedChannel::Operator => &mut self.indexes[1],
                RecordedChannel::Usage if event.kind == EventKind::Usage && message.index == self.version => continue,
                RecordedChannel::Usage => return Err("a usage report has a wrong index or a wrong event".to_owned()),
            };
            // Sessions of other arenas may have lost messages before the import.
            let is_missing = self.parsed.header.inputs == InputsStored::Missing;
            let follows = if is_missing { message.index > *index } else { message.index == *index + 1 };
            if !follows {
                let channel = message.channel.as_str();
                return Err(format!("message {} of the {channel} channel follows message {index}", message.index));
            }
            *index = message.index;
        }
        Ok(())
    }

    fn take_end(&mut self, line: Line<'_>) -> Result<(), Lie> {
        let end: End = parse(line, None)?;
        let lie = |what: &str| Err(lie(line, None, what));
        if end.previous != self.parsed.hash {
            return lie(&broken(line.number));
        }
        let header = &self.parsed.header;
        let last = self.parsed.events.iter().rev().find(|event| event.version.is_some());
        match header.inputs {
            InputsStored::Stored if last.is_none_or(|last| last.at != end.at) => {
                return lie("the time of the end isn't that of the last transition");
            }
            InputsStored::Withheld => return lie("a record with withheld inputs has no end"),
            InputsStored::Stored | InputsStored::Missing => {}
        }
        match (end.seed, header.seed_commitment) {
            (Some(seed), Some(commitment)) if Hash::of(&seed.0) != commitment => {
                return lie("the seed doesn't match the commitment in the header");
            }
            (None, Some(_)) => return lie("the seed is missing"),
            (Some(_), None) => return lie("the header has no commitment to the seed"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let lengths = [end.invites.len(), end.scores.len(), end.causes.len(), end.usage.len()];
        if lengths.iter().any(|length| *length != header.seats) {
            return lie("invites, scores, causes and usage must have one entry for each seat");
        }
        let invites: BTreeSet<InviteCode> = end.invites.iter().copied().collect();
        if invites.len() != end.invites.len() || !self.joined.is_subset(&invites) {
            return lie("an invite is listed twice, or a player joined without an invite");
        }
        if end.attributions.iter().any(|row| row.0.0.max(row.1.0) >= header.seats) {
            return lie("an attribution names an unknown seat");
        }
        self.parsed.hash = Hash::of(line.bytes);
        self.parsed.end = Some(end);
        Ok(())
    }

    fn take_opening(&mut self, line: Line<'_>) -> Result<(), Lie> {
        let opening: Opening = parse(line, None)?;
        let Some((event, commitment)) = self.commitments.get(&opening.open) else {
            return Err(lie(line, None, format!("no event commits to a content {:?}", opening.open)));
        };
        let event = Some(*event);
        if Commitment::of(&opening.salt.0, &opening.content) != *commitment {
            return Err(lie(line, event, format!("the content of {} isn't the committed one", opening.open)));
        }
        if let Some(last) = &self.last_opening
            && OpeningName::parse(last) >= OpeningName::parse(&opening.open)
        {
            return Err(lie(line, event, "the openings aren't sorted, or one is there twice"));
        }
        self.last_opening = Some(opening.open.clone());
        self.parsed.openings.insert(opening.open.clone(), opening);
        Ok(())
    }

    fn take_seal(&mut self, line: Line<'_>) -> Result<(), Lie> {
        let seal: Seal = parse(line, None)?;
        let header = &self.parsed.header;
        let lie = |what: &str| Err(lie(line, None, what));
        if seal.seal != self.parsed.hash {
            return lie("the seal is for another record, or lines before it were changed or removed");
        }
        if seal.session != header.session {
            return lie("the seal is for another session");
        }
        if Some(seal.key) != header.record_key {
            return lie("the seal's key isn't the key in the header");
        }
        if !seal.key.verifies(seal_text(seal.session, seal.seal).as_bytes(), &seal.signature.0) {
            return lie("the seal's signature is invalid");
        }
        self.parsed.seal = Some(seal);
        Ok(())
    }

    /// Returns the record. `number` is the number of the line after the last one.
    fn finish(self, number: usize) -> Result<Parsed, Lie> {
        if self.parsed.needs_log() && self.parsed.proof.is_none() {
            let what = "the seal is missing; the end of the record was removed".to_owned();
            return Err(Lie { line: number, event: None, what });
        }
        Ok(self.parsed)
    }
}

/// The maximum number of seats of a session, as for imported sessions.
const MOST_SEATS: usize = 1000;

fn lie(line: Line<'_>, event: Option<u64>, what: impl Into<String>) -> Lie {
    Lie { line: line.number, event, what: what.into() }
}

fn broken(line: usize) -> String {
    format!("the chain is broken: `previous` isn't the hash of line {}, so one of the two lines was changed", line - 1)
}

/// Parses a line that must have its canonical form.
fn parse<T: DeserializeOwned + Serialize>(line: Line<'_>, event: Option<u64>) -> Result<T, Lie> {
    if !line.is_complete {
        return Err(lie(line, event, "the line is incomplete; the end of the record was removed"));
    }
    let text = std::str::from_utf8(line.bytes).map_err(|_| lie(line, event, "the line isn't UTF-8 text"))?;
    let value: T =
        serde_json::from_str(text).map_err(|error| lie(line, event, format!("the line is malformed: {error}")))?;
    if canonical(&value) != text {
        return Err(lie(line, event, "the line isn't in its canonical form"));
    }
    Ok(value)
}

/// The first lines of a record, for tests that change the line after them in many ways.
#[cfg(test)]
#[derive(Clone)]
pub(crate) struct FirstLines {
    reading: Reading,
    number: usize,
}

#[cfg(test)]
impl FirstLines {
    /// Reads a header without its line break.
    pub(crate) fn begin(header: &[u8]) -> Result<FirstLines, ReadError> {
        let reading = Reading::begin(Line { number: 1, bytes: header, is_complete: true })?;
        Ok(FirstLines { reading, number: 1 })
    }

    /// Reads the next line without its line break.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Lie> {
        self.number += 1;
        self.reading.take(Line { number: self.number, bytes, is_complete: true })
    }
}
