//! The lines of a record. The fields of each type are in the order of the file.

use std::fmt;
use std::str::FromStr;

use arena_model::{Attribution, GameCategory, InviteCode, Score, Seat, SessionId, Timestamp, UsageTotal};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::hash::{as_text, as_text_or_null, as_texts};
use crate::{Commitment, Hash, RecordPublicKey, Salt, SealSignature};

/// The version of the format that this crate writes.
pub(crate) const FORMAT: u32 = 1;

/// The first line of a record: the facts that are known before the first event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub arena_record: u32,
    #[serde(with = "as_text")]
    pub session: SessionId,
    pub challenge: String,
    pub rules: RecordedRules,
    /// The release of the program that wrote the record, such as `0.1.0`.
    pub release: String,
    pub options: Value,
    pub seats: usize,
    /// SHA-256 of the seed. `None` for imported sessions without a seed.
    pub seed_commitment: Option<Hash>,
    pub created_at: Timestamp,
    /// The key of the seal. `None` for records without a seal.
    pub record_key: Option<RecordPublicKey>,
    /// The completeness of the inputs. Only a record with all inputs can be played again.
    pub inputs: InputsStored,
    pub fork: Option<ForkOf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected version and prompt, or script")]
pub enum RecordedRules {
    Builtin {
        version: u32,
        /// SHA-256 of the prompt.
        prompt: Hash,
    },
    Script {
        /// SHA-256 of the script's files.
        script: Hash,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputsStored {
    Stored,
    /// The session was played before inputs were stored, or was imported. Its joins have the time of the creation,
    /// because their own times are unknown.
    Missing,
    /// The session hasn't ended, and its players get only the events that the arena's API shows them.
    Withheld,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOf {
    #[serde(with = "as_text")]
    pub of: SessionId,
    /// The number of the last common event.
    pub at: u64,
    /// True if the fork has new randomness after that event.
    pub reseeded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    Join,
    Action,
    Chat,
    Deadline,
    /// A deadline passed, and the rules failed. The session continued without a deadline.
    Failed,
    /// The session was abandoned, because its players were inactive.
    Abandon,
    /// The time of the next wake-up changed.
    Wake,
    Usage,
    /// An invite was offered on the public channel.
    Announce,
    /// The operator wrote messages, and the session didn't change: the answer to an action outside of the game. If the
    /// inputs are missing, also messages of an unknown cause.
    Notice,
}

/// A transition of the session, or a message that changed nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The number, from 1.
    pub event: u64,
    /// SHA-256 of the line before.
    pub previous: Hash,
    /// The time that the rules saw.
    pub at: Timestamp,
    pub kind: EventKind,
    /// The acting player's seat. The recipient's seat for a notice to one player.
    pub seat: Option<Seat>,
    /// The session's version after the transition. `None` without a change, or if the inputs are missing or withheld.
    pub version: Option<u64>,
    /// The joined player's public name, or an offered invite that is public.
    #[serde(with = "as_text_or_null")]
    pub invite: Option<InviteCode>,
    /// The joined player's user id, opened as `user/SEAT`. Only records of ended sessions have it.
    pub user: Option<Commitment>,
    /// The messages in commit order. The first message of an action is the action itself.
    pub messages: Vec<RecordedMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedChannel {
    Chat,
    /// The messages of the operator and its players.
    Operator,
    /// Usage reports. The index is the session's version.
    Usage,
}

impl RecordedChannel {
    pub fn as_str(self) -> &'static str {
        match self {
            RecordedChannel::Chat => "chat",
            RecordedChannel::Operator => "operator",
            RecordedChannel::Usage => "usage",
        }
    }
}

/// A message of an event, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMessage {
    pub channel: RecordedChannel,
    /// The position in the channel, from 1.
    pub index: u64,
    pub from: RecordedParty,
    /// The recipient; `None` means everyone.
    pub to: Option<RecordedParty>,
    /// The commitment to the content, opened as `CHANNEL/INDEX`. `None` if the message was hidden before the arena kept
    /// commitments; then the content can't be verified.
    pub content: Option<Commitment>,
}

impl RecordedMessage {
    /// Returns the name of the message's opening, such as `operator/7`.
    pub fn opening(&self) -> String {
        format!("{}/{}", self.channel.as_str(), self.index)
    }
}

/// The sender or recipient of a recorded message: `"operator"`, a seat's number from 0, or `"other"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedParty {
    Operator,
    Player(Seat),
    /// A spectator, or a name of another arena.
    Other,
}

impl Serialize for RecordedParty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RecordedParty::Operator => serializer.serialize_str("operator"),
            RecordedParty::Player(seat) => seat.serialize(serializer),
            RecordedParty::Other => serializer.serialize_str("other"),
        }
    }
}

impl<'de> Deserialize<'de> for RecordedParty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordedParty, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a seat's number, \"operator\" or \"other\"")]
        enum Spelling {
            Seat(usize),
            Word(String),
        }
        match Spelling::deserialize(deserializer)? {
            Spelling::Seat(seat) => Ok(RecordedParty::Player(Seat(seat))),
            Spelling::Word(word) if word == "operator" => Ok(RecordedParty::Operator),
            Spelling::Word(word) if word == "other" => Ok(RecordedParty::Other),
            Spelling::Word(word) => Err(D::Error::custom(format!("unknown party {word:?}"))),
        }
    }
}

/// The line of an ended session with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub end: EndKind,
    /// SHA-256 of the line before.
    pub previous: Hash,
    pub at: Timestamp,
    /// The seed. Its SHA-256 is the commitment of the header.
    pub seed: Option<Hash>,
    /// The invites of all seats, in the order of the creation.
    #[serde(with = "as_texts")]
    pub invites: Vec<InviteCode>,
    /// The scores by seat.
    pub scores: Vec<Score>,
    pub attributions: Vec<AttributionRow>,
    /// The termination causes by seat.
    pub causes: Vec<Cause>,
    /// SHA-256 of the rules' final state.
    pub state: Hash,
    pub category: GameCategory,
    /// The totals of reported usage by seat; `None` for seats without a report.
    pub usage: Vec<Option<UsageTotal>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndKind {
    /// The rules ended the game.
    Completed,
    /// The game was abandoned and doesn't count.
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The rules ended the game.
    Normal,
    /// The player exceeded its time.
    Forfeited,
    Resigned,
    Invalid,
    /// The player's model provider failed.
    Provider,
    /// The arena failed.
    Host,
    /// The players were inactive.
    Abandoned,
    Removed,
}

/// An attribution as a list: the causing seat, the affected seat and the kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributionRow(pub Seat, pub Seat, pub String);

impl From<&Attribution> for AttributionRow {
    fn from(attribution: &Attribution) -> AttributionRow {
        AttributionRow(attribution.from, attribution.to, attribution.kind.clone())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The name of the commitment, such as `operator/7` or `user/0`.
    pub open: String,
    pub salt: Salt,
    pub content: String,
}

/// The name of a commitment in its parts. Openings are sorted by these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpeningName<'n> {
    pub(crate) what: &'n str,
    pub(crate) index: u64,
}

impl<'n> OpeningName<'n> {
    pub(crate) fn parse(name: &'n str) -> Option<OpeningName<'n>> {
        let (what, index) = name.split_once('/')?;
        let name_of = |index: u64| (index.to_string() == name[what.len() + 1..]).then_some(OpeningName { what, index });
        u64::from_str(index).ok().and_then(name_of)
    }
}

/// The signature of a record's last hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// SHA-256 of the end, or of the last event of an unfinished session.
    pub seal: Hash,
    #[serde(with = "as_text")]
    pub session: SessionId,
    pub key: RecordPublicKey,
    pub signature: SealSignature,
}

/// The proof that the arena's log contains the record's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogProof {
    /// The number of the leaf, from 0.
    pub leaf: u64,
    /// The number of leaves of the log.
    pub size: u64,
    /// The inclusion path of RFC 6962, from the leaf to the root.
    pub path: Vec<Hash>,
    /// The signed checkpoint of that size.
    pub checkpoint: String,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventKind::Join => "join",
            EventKind::Action => "action",
            EventKind::Chat => "chat",
            EventKind::Deadline => "deadline",
            EventKind::Failed => "failed",
            EventKind::Abandon => "abandon",
            EventKind::Wake => "wake",
            EventKind::Usage => "usage",
            EventKind::Announce => "announce",
            EventKind::Notice => "notice",
        })
    }
}
