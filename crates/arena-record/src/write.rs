//! Writing of records from stored sessions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arena_model::{
    Channel, ChatMessage, ContentHash, Ending, InviteCode, Occupant, Party, Phase, Seat, Session, Viewer, redact,
};
use serde::{Deserialize, Serialize};

use crate::format::{FORMAT, OpeningName};
use crate::key::seal_text;
use crate::{
    AttributionRow, Cause, Commitment, End, EndKind, Event, EventKind, ForkOf, Hash, Header, InputsStored, Opening,
    RecordKey, RecordPublicKey, RecordedChannel, RecordedMessage, RecordedParty, RecordedRules, Salt, Seal,
    SealSignature, SessionSalts,
};

#[derive(Debug, Clone)]
pub struct RecordInput<'r> {
    pub session: &'r Session,
    /// The messages of all channels of the session, hidden inputs included, in commit order.
    pub messages: &'r [ChatMessage],
    /// The commitments of messages whose contents are gone, because an administrator hid them.
    pub commitments: &'r BTreeMap<(Channel, u64), Commitment>,
    /// SHA-256 of the challenge's prompt, as 64 hexadecimal digits. Scripts don't need it. If the messages begin with
    /// the input of the session's creation, the record takes this and the next two fields from that input.
    pub prompt_sha256: String,
    /// The version of the challenge's rules. Scripts don't need it.
    pub rules_version: u32,
    /// The release of the program that created the session.
    pub release: &'r str,
    /// The record key that the record names. The seal, if there is one, must be of the same key.
    pub record_key: Option<&'r RecordPublicKey>,
    /// The origin, if the session is a fork.
    pub fork: Option<ForkOf>,
}

/// The reader of a record, who determines its openings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordViewer {
    /// A reader of everything, such as the administrator.
    Everything,
    /// A viewer of the session. The bool is true if the arena publishes private chat after the end.
    Viewer(Viewer, bool),
}

/// The reason why a record can't be written or has no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("cannot write the record: the hash of the prompt must be 64 lower-case hexadecimal digits")]
    Prompt,
    #[error("cannot write the record: the key of the seal isn't the one that the record names")]
    OtherKey,
    #[error("cannot find the last hash: the text isn't a record")]
    NoChain,
}

/// The text of the answer to an action outside of the game. Such an answer is a message that no transition caused.
pub(crate) const NOT_RUNNING: &str = "ERR_GAME_NOT_RUNNING: Game not running.";

/// Returns true if the message is the operator's answer to an action outside of the game, even if it is hidden.
pub fn is_refusal(message: &ChatMessage) -> bool {
    let is_text = || match message.hidden {
        Some(hash) => hash == ContentHash::of(NOT_RUNNING),
        None => message.content == NOT_RUNNING,
    };
    matches!(message.channel, Channel::Operator(_))
        && message.from == Party::Operator
        && message.to.is_some()
        && is_text()
}

/// Returns the record of a session as text: header, events, the end if the session has ended, the openings that
/// `viewer` may read, and the seal if there is a key.
///
/// The chain of an ended session is the same for all viewers. The record of a session that hasn't ended has no end.
/// [`RecordViewer::Everything`] gets all its events, and other viewers get those that the API shows too: joins and
/// messages. A usage report, an offered invite or a deadline without a message would show them what others did.
///
/// # Errors
/// [`RecordError`] if the prompt's hash is malformed, or the input names another key.
pub fn write_record(
    input: &RecordInput<'_>,
    salts: &SessionSalts,
    viewer: RecordViewer,
    seal: Option<&RecordKey>,
) -> Result<String, RecordError> {
    let key = seal.map(RecordKey::public_key);
    if key.is_some() && key.as_ref() != input.record_key {
        return Err(RecordError::OtherKey);
    }
    let (ChainWriter { mut text, last, .. }, mut openings) = chain_of(input, salts, Some(viewer))?;
    // The sorted order gives each set of openings one text.
    openings.sort_by(|a, b| OpeningName::parse(&a.open).cmp(&OpeningName::parse(&b.open)));
    for opening in &openings {
        push_line(&mut text, opening);
    }
    if let Some(key) = seal {
        let session = input.session.facts.id;
        let signature = SealSignature(key.sign(seal_text(session, last).as_bytes()));
        push_line(&mut text, &Seal { seal: last, session, key: key.public_key(), signature });
    }
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

/// Returns the hash that the seal of an ended session's record signs, without writing the record.
///
/// # Errors
/// [`RecordError::Prompt`] if the prompt's hash is malformed.
pub fn record_hash(input: &RecordInput<'_>, salts: &SessionSalts) -> Result<Hash, RecordError> {
    let (chain, _) = chain_of(input, salts, None)?;
    Ok(chain.last)
}

/// Returns the lines of the chain, and the openings that the viewer may read, unsorted. Without a viewer there are none.
fn chain_of(
    input: &RecordInput<'_>,
    salts: &SessionSalts,
    viewer: Option<RecordViewer>,
) -> Result<(ChainWriter, Vec<Opening>), RecordError> {
    let session = input.session;
    let mut chain = ChainWriter { keeps_text: viewer.is_some(), ..ChainWriter::default() };
    let inputs = inputs_of(session, input.messages);
    let mut openings =
        Openings { salts, viewer, has_ended: has_ended(session), found: Vec::new(), name: String::new() };
    let is_public = openings.has_ended || openings.sees_all();
    let shown = match inputs {
        InputsStored::Stored if !is_public => InputsStored::Withheld,
        inputs => inputs,
    };
    chain.append(&header_of(input, shown)?);
    let events = events_of(input, inputs, &mut openings);
    let events = if is_public { events } else { public_events(events) };
    for event in events {
        chain.append(&Event { previous: chain.last, ..event });
    }
    if let Some(end) = end_of(session, chain.last) {
        chain.append(&end);
    }
    Ok((chain, openings.found))
}

/// Returns the hash that the record's seal signs: that of the end, or of the last event of an unfinished session. The
/// record isn't checked.
///
/// # Errors
/// [`RecordError::NoChain`] if the text has no header, event or end.
pub fn last_hash(record: &str) -> Result<Hash, RecordError> {
    let is_of_chain =
        |line: &&str| ["{\"arenaRecord\":", "{\"event\":", "{\"end\":"].iter().any(|start| line.starts_with(start));
    let last = record.lines().take_while(is_of_chain).last().ok_or(RecordError::NoChain)?;
    Ok(Hash::of(last.as_bytes()))
}

/// Returns the record without those openings for which `keep` returns false. `keep` gets an opening's name, such as
/// `operator/7`. The chain and the seal stay valid. Lines that aren't openings stay unchanged.
pub fn strip(record: &str, keep: &dyn Fn(&str) -> bool) -> String {
    let is_kept = |line: &&str| match line.strip_prefix("{\"open\":\"").and_then(|rest| rest.split_once('"')) {
        Some((name, _)) => keep(name),
        None => true,
    };
    record.split_inclusive('\n').filter(is_kept).collect()
}

/// The lines of a chain with the hash of the last one.
struct ChainWriter {
    /// All lines, or the last one only if they aren't kept.
    text: Vec<u8>,
    last: Hash,
    keeps_text: bool,
}

impl Default for ChainWriter {
    fn default() -> ChainWriter {
        ChainWriter { text: Vec::new(), last: Hash([0; 32]), keeps_text: true }
    }
}

impl ChainWriter {
    fn append(&mut self, line: &impl Serialize) {
        if !self.keeps_text {
            self.text.clear();
        }
        let start = self.text.len();
        push_line(&mut self.text, line);
        self.last = Hash::of(&self.text[start..self.text.len() - 1]);
    }
}

fn push_line(text: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *text, line).expect(NO_KEYS);
    text.push(b'\n');
}

const NO_KEYS: &str = "the lines of a record have no keys but texts";

/// Returns the only valid text of a line, without the line break.
pub(crate) fn canonical(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect(NO_KEYS)
}

/// The input of a session's creation. It fixes the header's facts about the program, which later releases don't know.
#[derive(Deserialize)]
struct CreatedInput {
    release: String,
    rules: String,
    prompt: Option<String>,
}

impl CreatedInput {
    /// Finds the input among the first messages. Older sessions have none.
    fn find(messages: &[ChatMessage]) -> Option<CreatedInput> {
        let mut first = messages.iter().take_while(|message| message.channel.is_inputs());
        let created = first.find(|message| message.method.as_deref() == Some("created"))?;
        serde_json::from_str(&created.content).ok()
    }
}

fn has_ended(session: &Session) -> bool {
    matches!(session.phase, Phase::Ended { .. })
}

fn header_of(input: &RecordInput<'_>, inputs: InputsStored) -> Result<Header, RecordError> {
    let facts = &input.session.facts;
    let created = CreatedInput::find(input.messages);
    let version = created.as_ref().and_then(|created| created.rules.parse().ok()).unwrap_or(input.rules_version);
    let prompt = created.as_ref().and_then(|created| created.prompt.as_ref()).unwrap_or(&input.prompt_sha256);
    let rules = match facts.script {
        Some(version) => {
            RecordedRules::Script { script: version.to_string().parse().map_err(|_| RecordError::Prompt)? }
        }
        None => RecordedRules::Builtin { version, prompt: prompt.parse().map_err(|_| RecordError::Prompt)? },
    };
    Ok(Header {
        arena_record: FORMAT,
        session: facts.id,
        challenge: facts.challenge.clone(),
        rules,
        release: created.map_or_else(|| input.release.to_owned(), |created| created.release),
        options: facts.options.clone(),
        seats: facts.invites.len(),
        seed_commitment: facts.seed.as_ref().map(|seed| Hash::of(&seed.0)),
        created_at: facts.created_at,
        record_key: input.record_key.copied(),
        inputs,
        fork: input.fork.clone(),
    })
}

/// Returns `Stored` if each version of the session follows from an input or an action among the messages.
fn inputs_of(session: &Session, messages: &[ChatMessage]) -> InputsStored {
    let (mut transitions, mut joins) = (0, 0);
    for message in messages {
        match kind_of(message) {
            Some(EventKind::Chat) | None => {}
            Some(kind) => {
                transitions += 1;
                joins += usize::from(kind == EventKind::Join);
            }
        }
    }
    let is_complete = transitions + 1 == session.version && joins == session.seats.len();
    if is_complete { InputsStored::Stored } else { InputsStored::Missing }
}

/// Returns the kind of the event that the message begins, or `None` for a message that belongs to an earlier event.
fn kind_of(message: &ChatMessage) -> Option<EventKind> {
    match (&message.channel, &message.from) {
        (Channel::Inputs(_), _) => match message.method.as_deref() {
            Some("join") => Some(EventKind::Join),
            Some("deadline") => Some(EventKind::Deadline),
            Some("failed") => Some(EventKind::Failed),
            Some("abandon") => Some(EventKind::Abandon),
            Some("wake") => Some(EventKind::Wake),
            Some("usage") => Some(EventKind::Usage),
            Some("announce") => Some(EventKind::Announce),
            _ => None,
        },
        (Channel::Operator(_), Party::Player(_)) => Some(EventKind::Action),
        (Channel::Chat(_), Party::Player(_) | Party::Other(_)) => Some(EventKind::Chat),
        _ => None,
    }
}

/// The openings of a record, as its reader may see them.
struct Openings<'o> {
    salts: &'o SessionSalts,
    /// The reader, or `None` if only the commitments are wanted.
    viewer: Option<RecordViewer>,
    has_ended: bool,
    found: Vec<Opening>,
    /// The name of the last content. Most records are only hashed, so their names share one buffer.
    name: String,
}

impl Openings<'_> {
    /// Returns the commitment to the content with the name `what/index`, and adds its opening if the reader may see it.
    fn commit(&mut self, what: &str, index: u64, content: &str, is_readable: bool) -> Commitment {
        self.name.clear();
        write!(self.name, "{what}/{index}").expect("a String takes everything");
        let salt = self.salts.salt(&self.name);
        if is_readable && self.viewer.is_some() {
            self.found.push(Opening { open: self.name.clone(), salt: Salt(salt), content: content.to_owned() });
        }
        Commitment::of(&salt, content)
    }

    /// Adds the opening. Before the end, `None`: the commitment would show others that the player has a user id.
    fn commit_user(&mut self, seat: usize, occupant: &Occupant) -> Option<Commitment> {
        if !self.has_ended {
            return None;
        }
        match &occupant.user {
            Some(user) => Some(self.commit("user", seat as u64, user.as_str(), true)),
            None => occupant.deleted.map(Commitment::from),
        }
    }

    fn sees_all(&self) -> bool {
        self.viewer == Some(RecordViewer::Everything)
    }

    fn sees(&self, message: &ChatMessage) -> bool {
        match self.viewer {
            None => false,
            Some(RecordViewer::Everything) => true,
            Some(RecordViewer::Viewer(viewer, reveal_chat)) => {
                redact(message, viewer, self.has_ended, reveal_chat).is_readable()
            }
        }
    }
}

/// Returns the events. Their hashes of the lines before are not filled in.
fn events_of(input: &RecordInput<'_>, inputs: InputsStored, openings: &mut Openings<'_>) -> Vec<Event> {
    let session = input.session;
    let is_stored = inputs == InputsStored::Stored;
    let events = unrecorded_joins(input, inputs, openings);
    let unrecorded = events.len();
    let version = 1 + unrecorded as u64;
    let mut writer = EventWriter { input, is_stored, openings, events, version, joined: unrecorded, announced: 0 };
    // The last operator message to everyone has the final scores. Later messages are answers to late actions.
    let is_final = |message: &ChatMessage| {
        matches!(message.channel, Channel::Operator(_)) && message.from == Party::Operator && message.to.is_none()
    };
    let last = if has_ended(session) { input.messages.iter().rposition(is_final) } else { None };
    for (position, message) in input.messages.iter().enumerate() {
        if message.channel == Channel::Invites {
            continue;
        }
        let kind = kind_of(message);
        if kind.is_none() && matches!(message.channel, Channel::Inputs(_)) {
            continue;
        }
        let is_refusal = || writer.joined < session.facts.invites.len() && is_refusal(message);
        let begins = match writer.events.last() {
            _ if kind.is_some() || writer.events.len() == unrecorded => true,
            None | Some(Event { kind: EventKind::Chat | EventKind::Notice, .. }) => true,
            Some(event) => {
                let is_late = last.is_some_and(|last| position > last);
                is_late || is_refusal() || (!is_stored && event.at != message.at)
            }
        };
        if begins {
            writer.begin_event(message, kind.unwrap_or(EventKind::Notice));
        }
        writer.add_message(message, kind);
    }
    writer.events
}

/// The events so far, and the counts that the next event needs.
struct EventWriter<'w, 'o> {
    input: &'w RecordInput<'w>,
    is_stored: bool,
    openings: &'w mut Openings<'o>,
    events: Vec<Event>,
    version: u64,
    joined: usize,
    announced: usize,
}

impl EventWriter<'_, '_> {
    fn begin_event(&mut self, message: &ChatMessage, kind: EventKind) {
        let session = self.input.session;
        let is_transition = !matches!(kind, EventKind::Chat | EventKind::Notice);
        self.version += u64::from(is_transition);
        let mut event = Event {
            event: self.events.len() as u64 + 1,
            previous: Hash([0; 32]),
            at: message.at,
            kind,
            seat: seat_of(session, &message.from),
            version: (is_transition && self.is_stored).then_some(self.version),
            invite: None,
            user: None,
            messages: Vec::new(),
        };
        match kind {
            EventKind::Join => {
                event.seat = Some(Seat(self.joined));
                if let Some(occupant) = session.seats.get(self.joined) {
                    event.invite = Some(occupant.invite);
                    event.user = self.openings.commit_user(self.joined, occupant);
                }
                self.joined += 1;
            }
            EventKind::Announce => {
                let is_public = |invite: &InviteCode| self.openings.has_ended || session.seat_of(*invite).is_some();
                event.seat = None;
                event.invite = session.announced.get(self.announced).copied().filter(is_public);
                self.announced += 1;
            }
            EventKind::Notice => event.seat = message.to.as_ref().and_then(|to| seat_of(session, to)),
            _ => {}
        }
        self.events.push(event);
    }

    /// Adds a message to the last event, unless it is an input that records don't have.
    fn add_message(&mut self, message: &ChatMessage, kind: Option<EventKind>) {
        let session = self.input.session;
        let channel = match message.channel {
            Channel::Chat(_) => RecordedChannel::Chat,
            Channel::Operator(_) => RecordedChannel::Operator,
            Channel::Inputs(_) if kind == Some(EventKind::Usage) => RecordedChannel::Usage,
            Channel::Inputs(_) | Channel::Invites => return,
        };
        let is_usage = channel == RecordedChannel::Usage;
        let index = if is_usage { self.version } else { message.index };
        let content = if message.hidden.is_some() {
            self.input.commitments.get(&(message.channel, message.index)).copied()
        } else {
            // The single reports are more than the API shows, so only the administrator gets them.
            let is_readable = if is_usage { self.openings.sees_all() } else { self.openings.sees(message) };
            Some(self.openings.commit(channel.as_str(), index, &message.content, is_readable))
        };
        let from = party_of(session, &message.from);
        let to = message.to.as_ref().map(|to| party_of(session, to));
        if let Some(event) = self.events.last_mut() {
            event.messages.push(RecordedMessage { channel, index, from, to, content });
        }
    }
}

/// Returns the events that the API shows during the game: joins and messages. Their versions would show the number of
/// the others.
fn public_events(events: Vec<Event>) -> Vec<Event> {
    let is_message = |message: &RecordedMessage| message.channel != RecordedChannel::Usage;
    let is_shown = |event: &Event| event.kind == EventKind::Join || event.messages.iter().any(is_message);
    let shown = events.into_iter().filter(is_shown);
    (1..).zip(shown).map(|(event, shown)| Event { event, version: None, ..shown }).collect()
}

/// Returns the joins without a stored input: those of sessions from before inputs were stored, and of imported ones.
/// Their times are unknown, so the events have the time of the creation.
fn unrecorded_joins(input: &RecordInput<'_>, inputs: InputsStored, openings: &mut Openings<'_>) -> Vec<Event> {
    if inputs == InputsStored::Stored {
        return Vec::new();
    }
    let session = input.session;
    let stored = input.messages.iter().filter(|message| kind_of(message) == Some(EventKind::Join)).count();
    let players = session.seats.iter().enumerate().take(session.seats.len().saturating_sub(stored));
    let join = |(seat, occupant): (usize, &Occupant)| Event {
        event: seat as u64 + 1,
        previous: Hash([0; 32]),
        at: session.facts.created_at,
        kind: EventKind::Join,
        seat: Some(Seat(seat)),
        version: None,
        invite: Some(occupant.invite),
        user: openings.commit_user(seat, occupant),
        messages: Vec::new(),
    };
    players.map(join).collect()
}

fn seat_of(session: &Session, party: &Party) -> Option<Seat> {
    match party {
        Party::Player(invite) => session.seat_of(*invite),
        Party::Operator | Party::Other(_) => None,
    }
}

fn party_of(session: &Session, party: &Party) -> RecordedParty {
    match party {
        Party::Operator => RecordedParty::Operator,
        Party::Player(_) => seat_of(session, party).map_or(RecordedParty::Other, RecordedParty::Player),
        Party::Other(_) => RecordedParty::Other,
    }
}

/// Returns the end of an ended session. `previous` is the hash of the line before.
pub(crate) fn end_of(session: &Session, previous: Hash) -> Option<End> {
    let Phase::Ended { at, ending, category } = session.phase else { return None };
    let (end, cause) = match ending {
        Ending::Completed => (EndKind::Completed, Cause::Normal),
        Ending::Abandoned => (EndKind::Abandoned, Cause::Abandoned),
    };
    let seats = session.facts.invites.len();
    let usage = (0..seats).map(|seat| session.usage.get(seat).map(|usage| usage.total.clone()));
    Some(End {
        end,
        previous,
        at,
        seed: session.facts.seed.as_ref().map(|seed| Hash(seed.0)),
        invites: session.facts.invites.clone(),
        scores: session.scores.clone(),
        attributions: session.attributions.iter().map(AttributionRow::from).collect(),
        causes: vec![cause; seats],
        state: Hash::of(session.state.as_bytes()),
        category,
        usage: usage.map(|total| total.filter(|total| total.reports > 0)).collect(),
    })
}
