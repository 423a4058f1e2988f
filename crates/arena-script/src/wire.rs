//! The protocol between an arena and its workers: requests and replies as JSON in frames.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Limits, Problem, ScriptKind};

/// Suffices for all files of a folder, escaped, and for a call with the largest state.
const FRAME_BYTES: usize = 64 << 20;

const LENGTH_BYTES: usize = size_of::<u32>();

/// A request to a worker.
#[derive(Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sets the limits of calls. This is always the first request.
    Limits(Limits),
    /// Compiles a script and stores it under `name`. Without a name, only checks the script.
    Load {
        /// The script's version.
        name: Option<String>,
        kind: ScriptKind,
        files: BTreeMap<String, String>,
    },
    /// Runs one call, or all calls of a session in one world.
    Call {
        /// The script's version.
        name: String,
        /// The calls' inputs for `session.js` or `scoring.js`.
        inputs: Vec<Box<RawValue>>,
    },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Loaded {
    /// The script can be run. Contains the paths of its files.
    Fine(Vec<String>),
    /// The script can't be run. Contains the problems.
    Faulty(Vec<Problem>),
}

/// The result of a call, in the form of `session.js` and `scoring.js`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reply {
    Done(Box<Done>),
    Counted(Counted),
    Refused(Refused),
    Failed(Failure),
}

impl Reply {
    pub(crate) fn failed(message: impl Into<String>) -> Reply {
        Reply::Failed(Failure::of(message))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done {
    pub(crate) status: Option<String>,
    pub(crate) scores: Vec<Scored>,
    pub(crate) players: Vec<String>,
    pub(crate) attributions: Vec<Attributed>,
    pub(crate) game_state: Box<RawValue>,
    /// The methods for which the script has a handler, if known.
    pub(crate) handles: Option<Vec<String>>,
    pub(crate) messages: Vec<OutgoingMessage>,
    /// The new deadline: absent means unchanged, `null` means no deadline.
    #[serde(default, deserialize_with = "present")]
    pub(crate) deadline: Option<Option<i64>>,
    pub(crate) log: Vec<String>,
}

/// A board, a player, the entry and the state.
pub(crate) type CountedRow = (String, String, Option<CountedEntry>, Option<String>);

/// The rows that a strategy has changed.
#[derive(Debug, Deserialize)]
pub(crate) struct Counted {
    pub(crate) rows: Vec<CountedRow>,
    pub(crate) log: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CountedEntry {
    pub(crate) games_played: u64,
    pub(crate) metrics: BTreeMap<String, f64>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Scored {
    pub(crate) security: f64,
    pub(crate) utility: f64,
}

/// An attribution between two players, named by their invites.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attributed {
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OutgoingMessage {
    /// The channel: `operator` or `chat`.
    pub(crate) channel: String,
    pub(crate) content: String,
    /// The recipient's invite.
    pub(crate) to: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) stack: String,
}

impl Failure {
    pub(crate) fn of(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), stack: String::new() }
    }
}

/// Writes one frame: its length in four bytes, then its JSON.
pub(crate) fn write_frame(out: impl Write, content: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, content)?;
    finish_frame(out, frame)
}

/// Writes one frame with a JSON text.
pub(crate) fn write_text(out: impl Write, text: &str) -> io::Result<()> {
    let mut frame = Vec::with_capacity(LENGTH_BYTES + text.len());
    frame.resize(LENGTH_BYTES, 0);
    frame.extend_from_slice(text.as_bytes());
    finish_frame(out, frame)
}

/// Writes a frame that starts with space for its length.
fn finish_frame(mut out: impl Write, mut frame: Vec<u8>) -> io::Result<()> {
    let length = u32::try_from(frame.len() - LENGTH_BYTES).map_err(|_| io::Error::other("the frame is too long"))?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    out.write_all(&frame)?;
    out.flush()
}

/// Returns a JSON text with unpaired surrogates replaced by U+FFFD. Scripts make them by cutting a string inside a
/// character.
pub(crate) fn replace_lone_surrogates(text: &[u8]) -> Vec<u8> {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut whole, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        let (length, is_half) = match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, false),
            (Some(0xD800..=0xDFFF), _) => (6, true),
            _ if text[at] == b'\\' => (2, false),
            _ => (1, false),
        };
        let next = text.len().min(at + length);
        whole.extend_from_slice(if is_half { b"\\ufffd" } else { &text[at..next] });
        at = next;
    }
    whole
}

/// Reads one frame. Returns `None` at the end of the input.
pub(crate) fn read_frame(mut from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; LENGTH_BYTES];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES {
        return Err(io::Error::other("the frame is too long"));
    }
    let mut frame = vec![0; length];
    from.read_exact(&mut frame)?;
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unpaired_surrogates_are_replaced() {
        for (text, whole) in [
            (r#""abc""#, r#""abc""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ude00\ud83d!""#, r#""\ufffd\ufffd!""#),
            (r#""\\ud83d\n\u00e9""#, r#""\\ud83d\n\u00e9""#),
            (r#""\ud83d\\""#, r#""\ufffd\\""#),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(String::from_utf8(replace_lone_surrogates(text.as_bytes())).unwrap(), whole, "{text}");
        }
    }
}
