//! `arena record show`: the session, its events and the opened contents.

use std::path::Path;

use arena_record::{
    End, EndKind, Event, EventKind, Header, InputsStored, Parsed, RecordedMessage, RecordedParty, RecordedRules,
};
use serde::Serialize;
use serde_json::json;

use super::open;
use crate::exit::Failure;
use crate::output::{Style, Table, counted, counted_as, print, printable, utc};

/// The maximum length of a content in the table of events, in characters.
const EXCERPT: usize = 60;

pub fn run(file: &Path, event: Option<u64>, style: Style) -> Result<(), Failure> {
    let record = open(file)?;
    let Some(number) = event else {
        return match style {
            Style::Json => print(&to_json(&record).to_string()),
            Style::Pretty | Style::Compact => print(&describe(&record)),
        };
    };
    let found = record.events.iter().find(|event| event.event == number).ok_or_else(|| {
        let last = record.events.len();
        Failure::usage(format_args!("{} has no event {number}; its last event is {last}", file.display()))
    })?;
    match style {
        Style::Json => print(&event_json(&record, found).to_string()),
        Style::Pretty | Style::Compact => print(&describe_event(&record, found)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordCounts {
    pub events: u64,
    pub messages: u64,
    /// Commitments without an opening.
    pub withheld: u64,
}

impl RecordCounts {
    pub fn of(record: &Parsed) -> RecordCounts {
        let messages: usize = record.events.iter().map(|event| event.messages.len()).sum();
        let users = record.events.iter().filter(|event| event.user.is_some()).count();
        let withheld = (messages + users).saturating_sub(record.openings.len());
        RecordCounts { events: record.events.len() as u64, messages: messages as u64, withheld: withheld as u64 }
    }
}

fn to_json(record: &Parsed) -> serde_json::Value {
    let counts = RecordCounts::of(record);
    json!({
        "header": record.header,
        "events": counts.events,
        "messages": counts.messages,
        "openings": record.openings.len(),
        "withheld": counts.withheld,
        "end": record.end,
        "hash": record.hash,
        "seal": record.seal,
        "proof": record.proof,
    })
}

fn event_json(record: &Parsed, event: &Event) -> serde_json::Value {
    let contents: Vec<Option<&str>> = event.messages.iter().map(|message| content(record, message)).collect();
    json!({ "event": event, "contents": contents })
}

fn content<'r>(record: &'r Parsed, message: &RecordedMessage) -> Option<&'r str> {
    record.openings.get(&message.opening()).map(|opening| opening.content.as_str())
}

fn describe(record: &Parsed) -> String {
    let Header { session, challenge, rules, release, options, seats, created_at, inputs, fork, .. } = &record.header;
    let rules = match rules {
        RecordedRules::Builtin { version, .. } => format!("rules version {version}"),
        RecordedRules::Script { script } => format!("script {script}"),
    };
    let mut lines = vec![
        format!("{}, session {session}, {}", printable(challenge), counted(*seats, "seat")),
        format!("{rules}, written by release {}", printable(release)),
        format!("options: {}", printable(&options.to_string())),
        match &record.end {
            Some(end) => format!("created {}, {} {}", utc(created_at.0), ending(end), utc(end.at.0)),
            None => format!("created {}, not ended", utc(created_at.0)),
        },
    ];
    if let Some(fork) = fork {
        let randomness = if fork.reseeded { "new" } else { "the same" };
        lines.push(format!("fork of session {} after event {}, with {randomness} randomness", fork.of, fork.at));
    }
    match inputs {
        InputsStored::Stored => {}
        InputsStored::Missing => lines.push("inputs are missing: the game cannot be played again".to_owned()),
        InputsStored::Withheld => lines.push("inputs are withheld until the end".to_owned()),
    }
    lines.push(match &record.seal {
        Some(seal) => format!("sealed by key {}", seal.key),
        None => "not sealed".to_owned(),
    });
    if let Some(proof) = &record.proof {
        lines.push(format!("leaf {} of a log of {}", proof.leaf, counted_as(proof.size, "leaf", "leaves")));
    }
    let mut events = Table::new(&["event", "time", "kind", "seat", "version", "messages"]).right([0, 4]);
    for event in &record.events {
        let Event { event: number, at, kind, seat, version, messages, .. } = event;
        let shown: Vec<String> = messages.iter().map(|message| excerpt(record, message)).collect();
        events.row([
            number.to_string(),
            utc(at.0),
            kind.to_string(),
            seat.map_or_else(String::new, |seat| seat.0.to_string()),
            version.map_or_else(String::new, |version| version.to_string()),
            shown.join("; "),
        ]);
    }
    lines.push(events.to_string());
    if let Some(end) = &record.end {
        lines.push(result(record, end).to_string());
    }
    let RecordCounts { events, messages, withheld } = RecordCounts::of(record);
    lines.push(format!("{}, {}, {withheld} contents withheld", counted(events, "event"), counted(messages, "message")));
    lines.join("\n")
}

fn ending(end: &End) -> &'static str {
    match end.end {
        EndKind::Completed => "completed",
        EndKind::Abandoned => "abandoned",
    }
}

/// Returns the name of a termination cause or category, as in the file.
fn spelled<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn result(record: &Parsed, end: &End) -> Table {
    let mut table = Table::new(&["seat", "invite", "user", "cause", "security", "utility"]).right([0, 4, 5]);
    for seat in 0..record.header.seats {
        let joined = record
            .events
            .iter()
            .find(|event| event.kind == EventKind::Join && event.seat.is_some_and(|of| of.0 == seat));
        let user = match joined.filter(|join| join.user.is_some()) {
            Some(_) => match record.openings.get(&format!("user/{seat}")) {
                Some(opening) => opening.content.clone(),
                None => "withheld".to_owned(),
            },
            None => String::new(),
        };
        let score = end.scores.get(seat);
        table.row([
            seat.to_string(),
            joined.and_then(|join| join.invite).map_or_else(String::new, |invite| invite.to_string()),
            user,
            end.causes.get(seat).map(spelled).unwrap_or_default(),
            score.map_or_else(String::new, |score| score.security.to_string()),
            score.map_or_else(String::new, |score| score.utility.to_string()),
        ]);
    }
    table
}

/// Returns the beginning of a message for the table.
fn excerpt(record: &Parsed, message: &RecordedMessage) -> String {
    let name = message.opening();
    match content(record, message) {
        None => format!("{name} withheld"),
        Some(content) => {
            let line = content.split_whitespace().collect::<Vec<_>>().join(" ");
            let short: String = line.chars().take(EXCERPT).collect();
            let rest = if short.len() < line.len() { "…" } else { "" };
            format!("{name} {short}{rest}")
        }
    }
}

fn party(party: RecordedParty) -> String {
    match party {
        RecordedParty::Operator => "the operator".to_owned(),
        RecordedParty::Player(seat) => format!("seat {}", seat.0),
        RecordedParty::Other => "a spectator".to_owned(),
    }
}

fn describe_event(record: &Parsed, event: &Event) -> String {
    let mut head = format!("event {}: {}, {}", event.event, event.kind, utc(event.at.0));
    if let Some(seat) = event.seat {
        head += &format!(", seat {}", seat.0);
    }
    if let Some(version) = event.version {
        head += &format!(", version {version}");
    }
    let mut lines = vec![head];
    if let Some(invite) = event.invite {
        lines.push(format!("invite {invite}"));
    }
    for message in &event.messages {
        let to = message.to.map_or_else(|| "everyone".to_owned(), party);
        lines.push(format!("{} from {} to {to}:", message.opening(), party(message.from)));
        match content(record, message) {
            Some(content) => lines.extend(content.lines().map(|line| format!("  {}", printable(line)))),
            None => lines.push(match message.content {
                Some(commitment) => format!("  withheld; its commitment is {commitment}"),
                None => "  hidden without a commitment, so it cannot be verified".to_owned(),
            }),
        }
    }
    lines.join("\n")
}
