//! Parsing of records: the output of the administrator's export, or responses of the reference server.
//!
//! A record is one JSON object. Its fields determine its kind: a session has `challengeType`, a message `channel` and
//! `content`, a user `userId`. Other fields are ignored. Records aren't trusted: parsing returns data as valid as the
//! arena's own, or an error that names the problem.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{
    Attribution, BoardTerms, Channel, ChatMessage, ContentHash, Ending, GameCategory, InviteCode, MOST_REPORTS,
    Occupant, Party, Phase, ProfileText, ProfileTextError, Score, ScriptVersion, Seat, SeatUsage, Seed, Session,
    SessionFacts, SessionId, Status, Timestamp, UsageError, UsageReport, UsageTotal, UserId, UserProfile,
};

#[derive(Debug)]
pub enum Record {
    User(UserProfile),
    /// A session that has ended.
    Session(Box<SessionRecord>),
    Message(ChatMessage),
}

#[derive(Debug)]
pub struct SessionRecord {
    /// The session, with version 1.
    pub session: Session,
    /// The messages of the session's record, in the order and with the indexes of the record. A message without an
    /// index gets the index `u64::MAX`, so that it sorts last.
    pub messages: Vec<ChatMessage>,
    /// The errors of messages that can't be imported.
    pub lost: Vec<RecordError>,
}

/// The reason why a record can't be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record is malformed. The text names the problem.
    #[error("{0}")]
    Malformed(String),
    /// The session hasn't ended; only ended sessions can be imported.
    #[error("session {id} hasn't ended: its status is {status}")]
    NotEnded { id: SessionId, status: &'static str },
}

/// Parses a record.
///
/// # Errors
/// [`RecordError`] names the wrong field, or says that the session hasn't ended.
pub fn read_record(json: &str) -> Result<Record, RecordError> {
    let shape: Shape<'_> = parse(json)?;
    match shape {
        Shape { challenge_type: Some(_), .. } => {
            session_of(parse(json)?).map(|session| Record::Session(Box::new(session)))
        }
        Shape { channel: Some(_), content: Some(_), .. } => {
            let line: MessageLine = parse(json)?;
            message_of(line, None).map(Record::Message)
        }
        Shape { user_id: Some(_), .. } => user_of(parse(json)?).map(Record::User),
        _ => Err(malformed("expected a session (challengeType), a message (channel, content) or a user (userId)")),
    }
}

fn malformed(what: impl Into<String>) -> RecordError {
    RecordError::Malformed(what.into())
}

fn parse<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, RecordError> {
    serde_json::from_str(json).map_err(|error| malformed(format!("cannot parse the JSON object: {error}")))
}

fn read<T: FromStr<Err: ToString>>(field: &str, text: &str) -> Result<T, RecordError> {
    text.parse().map_err(|error: T::Err| malformed(format!("{field} is {}", error.to_string())))
}

/// The fields that determine a record's kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a JSON object")]
struct Shape<'j> {
    #[serde(borrow)]
    challenge_type: Option<&'j RawValue>,
    #[serde(borrow)]
    channel: Option<&'j RawValue>,
    #[serde(borrow)]
    content: Option<&'j RawValue>,
    #[serde(borrow)]
    user_id: Option<&'j RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserLine {
    user_id: String,
    username: Option<String>,
    model: Option<String>,
    #[serde(default)]
    is_benchmark: Option<bool>,
}

fn user_of(line: UserLine) -> Result<UserProfile, RecordError> {
    let text = |field: &str, text: Option<String>| -> Result<Option<ProfileText>, RecordError> {
        let text = text.filter(|text| !text.is_empty()).map(|text| text.parse()).transpose();
        text.map_err(|error: ProfileTextError| malformed(format!("{field} must be {error}")))
    };
    Ok(UserProfile {
        user_id: read("userId", &line.user_id)?,
        username: text("username", line.username)?,
        model: text("model", line.model)?,
        is_benchmark: line.is_benchmark.unwrap_or(false),
    })
}

#[derive(Deserialize)]
struct MessageLine {
    channel: Option<String>,
    from: String,
    to: Option<String>,
    content: String,
    index: Option<u64>,
    timestamp: i64,
    #[serde(rename = "type")]
    method: Option<String>,
    #[serde(default)]
    redacted: Option<bool>,
    #[serde(rename = "contentSha256")]
    hidden: Option<String>,
}

/// Converts a message. `within` is the channel of a message that names none.
fn message_of(line: MessageLine, within: Option<Channel>) -> Result<ChatMessage, RecordError> {
    let channel = match (&line.channel, within) {
        (Some(name), _) => channel_of(name)?,
        (None, Some(channel)) => channel,
        (None, None) => return Err(malformed("channel is missing")),
    };
    let hidden: Option<ContentHash> = line.hidden.as_deref().map(|hash| read("contentSha256", hash)).transpose()?;
    if line.redacted == Some(true) && hidden.is_none() {
        return Err(malformed("the message is redacted, so its content isn't in the record"));
    }
    if hidden.is_some() && !line.content.is_empty() {
        return Err(malformed("content must be empty in a message with contentSha256"));
    }
    for (field, text) in [("content", Some(&line.content)), ("from", Some(&line.from)), ("to", line.to.as_ref())] {
        // The API has the same check for new messages.
        if text.is_some_and(|text| text.contains('\0')) {
            return Err(malformed(format!("{field} contains the character U+0000")));
        }
    }
    Ok(ChatMessage {
        channel,
        index: line.index.unwrap_or(u64::MAX),
        from: Party::from_wire(&line.from),
        to: line.to.as_deref().map(Party::from_wire),
        content: line.content,
        method: line.method,
        at: Timestamp(line.timestamp),
        hidden,
    })
}

fn channel_of(name: &str) -> Result<Channel, RecordError> {
    if let Some(id) = name.strip_prefix("challenge_") {
        return read("channel", id).map(Channel::Operator);
    }
    match name.strip_prefix("inputs_") {
        Some(id) => read("channel", id).map(Channel::Inputs),
        None => read("channel", name).map(Channel::Chat),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionLine<'j> {
    id: String,
    created_at: i64,
    challenge_type: String,
    invites: Vec<String>,
    state: StateLine,
    #[serde(borrow)]
    game_state: Option<&'j RawValue>,
    game_category: Option<GameCategory>,
    seed_commitment: Option<String>,
    seed: Option<String>,
    options: Option<Map<String, Value>>,
    script_version: Option<String>,
    rated: Option<bool>,
    unlisted: Option<bool>,
    rules_version: Option<String>,
    prompt_sha256: Option<String>,
    #[serde(borrow, default)]
    messages: Vec<&'j RawValue>,
    #[serde(borrow, default)]
    operator_messages: Vec<&'j RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateLine {
    status: String,
    completed_at: Option<i64>,
    #[serde(default)]
    scores: Vec<Score>,
    #[serde(default)]
    players: Vec<String>,
    #[serde(default)]
    player_identities: BTreeMap<String, String>,
    #[serde(default)]
    deleted_players: BTreeMap<String, String>,
    #[serde(default)]
    attributions: Vec<AttributionLine>,
    #[serde(default)]
    reported_usage: Vec<UsageLine>,
    #[serde(default)]
    abandoned: Option<bool>,
}

#[derive(Deserialize)]
struct UsageLine {
    #[serde(flatten)]
    total: UsageTotal,
    #[serde(default)]
    list: Vec<UsageReport>,
}

/// Converts usage reports. `seats` is the number of taken seats.
fn usage_of(lines: Vec<UsageLine>, seats: usize) -> Result<Vec<SeatUsage>, RecordError> {
    if lines.len() > seats {
        return Err(malformed("state.reportedUsage has more seats than there are players"));
    }
    let wrong = |error: UsageError| malformed(format!("state.reportedUsage: {error}"));
    lines
        .into_iter()
        .map(|UsageLine { total, list: reports }| {
            total.check().map_err(wrong)?;
            reports.iter().try_for_each(UsageReport::check).map_err(wrong)?;
            if reports.len() > MOST_REPORTS {
                return Err(malformed(format!("state.reportedUsage lists more than {MOST_REPORTS} reports of a seat")));
            }
            Ok(SeatUsage { total, reports })
        })
        .collect()
}

#[derive(Deserialize)]
struct AttributionLine {
    from: SeatName,
    to: SeatName,
    #[serde(rename = "type")]
    kind: String,
}

/// A seat in an attribution: the player's invite, as in the protocol's documents, or the seat's number from 0, as on
/// the reference server.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a player's invite or a seat's number from 0")]
enum SeatName {
    Number(usize),
    Invite(String),
}

fn session_of(line: SessionLine<'_>) -> Result<SessionRecord, RecordError> {
    let id: SessionId = read("id", &line.id)?;
    let status = Status::from_wire(&line.state.status)
        .ok_or_else(|| malformed(format!("state.status is unknown: {}", line.state.status)))?;
    if status != Status::Ended {
        return Err(RecordError::NotEnded { id, status: status.as_str() });
    }
    let ended_at = line.state.completed_at.ok_or_else(|| malformed("state.completedAt is missing"))?;
    let ending = if line.state.abandoned == Some(true) { Ending::Abandoned } else { Ending::Completed };
    let phase =
        Phase::Ended { at: Timestamp(ended_at), ending, category: line.game_category.unwrap_or(GameCategory::Train) };
    let seed = seed_of(line.seed.as_deref(), line.seed_commitment.as_deref())?;
    let (messages, lost) = messages_of(&line, id);
    let script: Option<ScriptVersion> =
        line.script_version.as_deref().map(|version| read("scriptVersion", version)).transpose()?;
    // Older records have no such field; their sessions are listed.
    let is_unlisted = line.unlisted == Some(true);
    let rated = match (line.rated, &line.rules_version) {
        _ if is_unlisted => None,
        (Some(false), _) => None,
        (_, Some(rules)) => {
            let terms = BoardTerms::read(rules, line.prompt_sha256.as_deref());
            Some(terms.map_err(|error| malformed(format!("rulesVersion and promptSha256: {error}")))?)
        }
        // Records of the reference server and of older arenas have no rules version.
        (_, None) => Some(BoardTerms::of_before(script.as_ref())),
    };
    let facts = SessionFacts {
        id,
        challenge: challenge_of(line.challenge_type)?,
        script,
        rated,
        is_unlisted,
        created_at: Timestamp(line.created_at),
        seed,
        options: Value::Object(line.options.unwrap_or_default()),
        invites: codes("invites", &line.invites)?,
    };
    let StateLine { scores, players, player_identities, deleted_players, attributions, reported_usage, .. } =
        line.state;
    let seats = seats_of(&facts.invites, &players, player_identities, deleted_players)?;
    if scores.len() != facts.invites.len() {
        return Err(malformed("state.scores must have one score for each invite"));
    }
    if scores.iter().any(|score| score.security.abs().max(score.utility.abs()) > LARGEST_SCORE) {
        return Err(malformed(format!("state.scores has a number outside of ±{LARGEST_SCORE:e}")));
    }
    let attributions = attributions_of(attributions, &seats)?;
    let usage = Arc::new(usage_of(reported_usage, seats.len())?);
    let state = line.game_state.map_or("{}", RawValue::get);
    if state.len() + facts.options.to_string().len() > STATE_BYTES {
        return Err(malformed(format!("gameState and options are longer than {STATE_BYTES} bytes")));
    }
    if !state.starts_with('{') {
        return Err(malformed("gameState isn't an object"));
    }
    let session = Session { phase, seats, scores, attributions, usage, ..Session::blank(facts, state.to_owned()) };
    Ok(SessionRecord { session, messages, lost })
}

/// Returns the messages, and the errors of those that can't be read.
fn messages_of(line: &SessionLine<'_>, id: SessionId) -> (Vec<ChatMessage>, Vec<RecordError>) {
    let (mut messages, mut lost) = (Vec::new(), Vec::new());
    for (field, json, channel) in [
        ("operatorMessages", &line.operator_messages, Channel::Operator(id)),
        ("messages", &line.messages, Channel::Chat(id)),
    ] {
        for (i, json) in json.iter().enumerate() {
            match parse(json.get()).and_then(|line| message_of(line, Some(channel))) {
                Ok(message) => messages.push(message),
                Err(error) => lost.push(malformed(format!("{field}[{i}]: {error}"))),
            }
        }
    }
    (messages, lost)
}

/// The maximum number of attributions in one session. Scoring reads all attributions of a session.
const MOST_ATTRIBUTIONS: usize = 10_000;

/// The maximum size of a game's state with its options, in bytes of JSON. Lists of sessions include both.
const STATE_BYTES: usize = 1024 * 1024;

/// The maximum length of a challenge type's name, in bytes.
const CHALLENGE_BYTES: usize = 100;

/// The maximum number of seats of a session.
const SEATS: usize = 1000;

/// The largest absolute value of a score. The limit keeps sums of squared scores finite.
const LARGEST_SCORE: f64 = 1e9;

fn challenge_of(name: String) -> Result<String, RecordError> {
    match !name.is_empty() && name.len() <= CHALLENGE_BYTES && !name.chars().any(char::is_control) {
        true => Ok(name),
        false => Err(malformed(format!("challengeType must be a name of 1 to {CHALLENGE_BYTES} bytes"))),
    }
}

fn seed_of(seed: Option<&str>, commitment: Option<&str>) -> Result<Option<Seed>, RecordError> {
    let Some(seed) = seed else { return Ok(None) };
    let seed = Seed::from_revealed(seed).ok_or_else(|| malformed("seed isn't 64 lower-case hex digits"))?;
    match commitment {
        Some(commitment) if commitment != seed.commitment() => Err(malformed("seed doesn't match seedCommitment")),
        _ => Ok(Some(seed)),
    }
}

fn codes(field: &str, texts: &[String]) -> Result<Vec<InviteCode>, RecordError> {
    if texts.len() > SEATS {
        return Err(malformed(format!("{field} has more than {SEATS} entries")));
    }
    let codes: Vec<InviteCode> = texts.iter().map(|text| read(field, text)).collect::<Result<_, _>>()?;
    if codes.iter().collect::<BTreeSet<_>>().len() < codes.len() {
        return Err(malformed(format!("{field} names a player twice")));
    }
    Ok(codes)
}

fn seats_of(
    invites: &[InviteCode],
    players: &[String],
    identities: BTreeMap<String, String>,
    deleted: BTreeMap<String, String>,
) -> Result<Vec<Occupant>, RecordError> {
    let players = codes("state.players", players)?;
    if !players.iter().all(|player| invites.contains(player)) {
        return Err(malformed("state.players names a player without an invite"));
    }
    let mut seats: Vec<Occupant> =
        players.into_iter().map(|invite| Occupant { invite, user: None, deleted: None }).collect();
    let invites: Vec<String> = seats.iter().map(|occupant| occupant.invite.to_string()).collect();
    let find = |field: &str, player: &str| {
        let seat = invites.iter().position(|invite| invite == player);
        seat.ok_or_else(|| malformed(format!("{field} names an unknown player")))
    };
    for (player, user) in identities {
        let seat = find("state.playerIdentities", &player)?;
        seats[seat].user = Some(read::<UserId>("state.playerIdentities", &user)?);
    }
    for (player, commitment) in deleted {
        let seat = find("state.deletedPlayers", &player)?;
        if seats[seat].user.is_some() {
            return Err(malformed("state.deletedPlayers names a player of state.playerIdentities"));
        }
        seats[seat].deleted = Some(read::<ContentHash>("state.deletedPlayers", &commitment)?);
    }
    Ok(seats)
}

fn attributions_of(lines: Vec<AttributionLine>, seats: &[Occupant]) -> Result<Vec<Attribution>, RecordError> {
    if lines.len() > MOST_ATTRIBUTIONS {
        return Err(malformed(format!("state.attributions has more than {MOST_ATTRIBUTIONS} entries")));
    }
    let names: BTreeMap<String, usize> =
        seats.iter().enumerate().map(|(seat, occupant)| (occupant.invite.to_string(), seat)).collect();
    let seat = |name: SeatName| {
        let seat = match name {
            SeatName::Number(number) => Some(number).filter(|number| *number < names.len()),
            SeatName::Invite(text) => names.get(&text).copied(),
        };
        seat.map(Seat).ok_or_else(|| malformed("state.attributions names an unknown player"))
    };
    let attribution = |AttributionLine { from, to, kind }: AttributionLine| {
        Ok(Attribution { from: seat(from)?, to: seat(to)?, kind })
    };
    lines.into_iter().map(attribution).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reveal_message, reveal_session};
    use expect_test::{expect, expect_file};
    use proptest::prelude::*;

    const ID: &str = "00000000-0000-7000-8000-000000000010";
    const A: &str = "inv_00000000-0000-7000-8000-000000000011";
    const B: &str = "inv_00000000-0000-7000-8000-000000000012";

    /// Returns a session in the reference's form, with one change.
    fn reference(change: &str, to: &str) -> String {
        let text = format!(
            r#"{{"id":"{ID}","name":"psi","createdAt":1000,"challengeType":"psi","invites":["{B}","{A}"],"state":{{
            "status":"ended","completedAt":2000,"scores":[{{"security":-1,"utility":0.5}},{{"security":1,"utility":1}}],
            "players":["{A}","{B}"],"playerIdentities":{{"{B}":"bob"}},
            "attributions":[{{"from":1,"to":0,"type":"security_breach"}}]}},
            "gameState":{{"z":1.50,"a":[]}},"gameCategory":"test",
            "messages":[{{"channel":"{ID}","from":"{A}","content":"hi","index":7,"timestamp":1500}}],
            "operatorMessages":[{{"from":"operator","to":"{A}","content":"set","timestamp":1400}}]}}"#
        );
        assert!(text.contains(change), "{change}");
        text.replacen(change, to, 1)
    }

    /// Returns the record that a line contains, with all its messages, or the error.
    fn read(json: &str) -> String {
        match read_record(json) {
            Ok(Record::Session(record)) => {
                let mut lines = vec![serde_json::to_string(&reveal_session(&record.session)).expect("JSON")];
                let messages = record.messages.iter();
                lines.extend(messages.map(|message| serde_json::to_string(&reveal_message(message)).expect("JSON")));
                lines.extend(record.lost.iter().map(|error| format!("lost: {error}")));
                lines.join("\n")
            }
            Ok(Record::Message(message)) => serde_json::to_string(&reveal_message(&message)).expect("JSON"),
            Ok(Record::User(user)) => serde_json::to_string(&user).expect("JSON"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_session_of_the_reference_is_read() {
        expect![[r#"
                {"id":"00000000-0000-7000-8000-000000000010","name":"psi","createdAt":1000,"challengeType":"psi","invites":["inv_00000000-0000-7000-8000-000000000012","inv_00000000-0000-7000-8000-000000000011"],"state":{"status":"ended","completedAt":2000,"scores":[{"security":-1,"utility":0.5},{"security":1,"utility":1}],"players":["inv_00000000-0000-7000-8000-000000000011","inv_00000000-0000-7000-8000-000000000012"],"playerIdentities":{"inv_00000000-0000-7000-8000-000000000012":"bob"},"attributions":[{"from":"inv_00000000-0000-7000-8000-000000000012","to":"inv_00000000-0000-7000-8000-000000000011","type":"security_breach"}]},"gameState":{"z":1.50,"a":[]},"gameCategory":"test","rated":true,"board":"a3534e14937fde31","rulesVersion":"1","options":{}}
                {"channel":"challenge_00000000-0000-7000-8000-000000000010","from":"operator","to":"inv_00000000-0000-7000-8000-000000000011","content":"set","index":18446744073709551615,"timestamp":1400}
                {"channel":"00000000-0000-7000-8000-000000000010","from":"inv_00000000-0000-7000-8000-000000000011","content":"hi","index":7,"timestamp":1500}"#]]
        .assert_eq(&read(&reference("psi", "psi")));
    }

    #[test]
    fn usage_that_players_reported_to_earlier_versions_is_read_and_exported() {
        let usage = r#"[{"reports":1,"inputTokens":7,"outputTokens":2,"cachedTokens":0,"costUsd":0.5,"models":["m"],"list":[{"at":1200,"model":"m","inputTokens":7,"outputTokens":2,"cachedTokens":0,"costUsd":0.5}]}]"#;
        let line = reference(r#""playerIdentities""#, &format!(r#""reportedUsage":{usage},"playerIdentities""#));
        let Ok(Record::Session(record)) = read_record(&line) else { panic!("no session: {line}") };
        let exported = serde_json::to_string(&reveal_session(&record.session)).expect("JSON");
        assert!(exported.contains(&format!(r#""reportedUsage":{usage}"#)), "{exported}");
    }

    #[test]
    fn a_message_that_can_not_be_taken_does_not_cost_the_session() {
        expect![[r#"
                {"id":"00000000-0000-7000-8000-000000000010","name":"psi","createdAt":1000,"challengeType":"psi","invites":["inv_00000000-0000-7000-8000-000000000012","inv_00000000-0000-7000-8000-000000000011"],"state":{"status":"ended","completedAt":2000,"scores":[{"security":-1,"utility":0.5},{"security":1,"utility":1}],"players":["inv_00000000-0000-7000-8000-000000000011","inv_00000000-0000-7000-8000-000000000012"],"playerIdentities":{"inv_00000000-0000-7000-8000-000000000012":"bob"},"attributions":[{"from":"inv_00000000-0000-7000-8000-000000000012","to":"inv_00000000-0000-7000-8000-000000000011","type":"security_breach"}]},"gameState":{"z":1.50,"a":[]},"gameCategory":"test","rated":true,"board":"a3534e14937fde31","rulesVersion":"1","options":{}}
                {"channel":"challenge_00000000-0000-7000-8000-000000000010","from":"operator","to":"inv_00000000-0000-7000-8000-000000000011","content":"set","index":18446744073709551615,"timestamp":1400}
                lost: messages[0]: the message is redacted, so its content isn't in the record"#]]
        .assert_eq(&read(&reference(r#""index":7"#, r#""redacted":true"#)));
    }

    #[test]
    fn an_unlisted_session_stays_unlisted_and_counts_on_no_board() {
        let fields = [("", false), (r#""unlisted":false,"#, false), (r#""unlisted":true,"rated":true,"#, true)];
        for (field, unlisted) in fields {
            let line = reference(r#""name":"psi","#, &format!(r#""name":"psi",{field}"#));
            let Ok(Record::Session(record)) = read_record(&line) else { panic!("no session: {line}") };
            let view = serde_json::to_value(reveal_session(&record.session)).expect("JSON");
            assert_eq!(record.session.facts.is_unlisted, unlisted, "{line}");
            let shown = (view["unlisted"].as_bool(), view["rated"].as_bool());
            assert_eq!(shown, (unlisted.then_some(true), Some(!unlisted)), "{line}");
        }
    }

    #[test]
    fn errors_of_sessions_name_the_field() {
        let players = &*format!(r#"["{A}","{B}"]"#);
        let crowd = format!("[{}]", vec![r#""x""#; 1001].join(","));
        let seed = format!(r#""seed":"{}","seedCommitment":"1""#, "07".repeat(32));
        let changes: [(&str, &str); 17] = [
            (r#""status":"ended""#, r#""status":"active""#),
            (r#""status":"ended""#, r#""status":"closed""#),
            (r#""completedAt":2000,"#, ""),
            (r#""completedAt":2000"#, r#""completedAt":"soon""#),
            (players, &format!(r#"["{A}","{A}"]"#)),
            (players, r#"["ada"]"#),
            (players, &format!(r#"["{A}"]"#)),
            (r#""from":1"#, r#""from":2"#),
            (r#""from":1"#, r#""from":-1"#),
            (r#"[{"security":-1,"utility":0.5},"#, "["),
            (r#""security":-1"#, r#""security":1e999"#),
            (r#""security":-1"#, r#""security":-2e9"#),
            (players, &crowd),
            (r#""gameState":{"z":1.50,"a":[]}"#, r#""gameState":[]"#),
            (r#""challengeType":"psi""#, r#""challengeType":"""#),
            (r#""gameCategory":"test""#, r#""seed":"7""#),
            (r#""gameCategory":"test""#, &seed),
        ];
        let mut transcript = String::new();
        for (change, to) in changes {
            transcript += &format!("{change} => {to:.90}: {}\n", read(&reference(change, to)));
        }
        expect_file!["record/errors_of_sessions_name_the_field.txt"].assert_eq(&transcript);
    }

    #[test]
    fn records_are_recognized_by_their_fields() {
        let hash = ContentHash::of("secret");
        let lines = [
            &*format!(
                r#"{{"kind":"user","channel":"challenge_{ID}","from":"x","content":"","timestamp":5,"index":1}}"#
            ),
            &format!(
                r#"{{"channel":"{ID}","from":"{A}","content":"","timestamp":5,"redacted":true,"contentSha256":"{hash}","type":"guess"}}"#
            ),
            &format!(r#"{{"channel":"{ID}","from":"{A}","content":"x","timestamp":5,"contentSha256":"{hash}"}}"#),
            r#"{"channel":"invites","from":"operator","content":"x","timestamp":5}"#,
            &format!(r#"{{"channel":"{ID}","from":"a\u0000b","content":"x","timestamp":5}}"#),
            r#"{"userId":"ada","username":"","model":"m","isBenchmark":true}"#,
            r#"{"userId":"ada","username":"a\nb"}"#,
            r#"{"userId":7}"#,
            r#"{"userId":null,"x":1}"#,
            "[]",
            "",
        ];
        expect_file!["record/records_are_recognized_by_their_fields.txt"]
            .assert_eq(&lines.map(|line| format!("{line} => {}\n", read(line))).concat());
    }

    fn party() -> impl Strategy<Value = Party> {
        prop_oneof![
            Just(Party::Operator),
            any::<u128>().prop_map(|bits| Party::Player(InviteCode(uuid::Uuid::from_u128(bits)))),
            "[^\u{0}]{0,20}".prop_map(|name| Party::from_wire(&name)),
        ]
    }

    proptest! {
        #[test]
        fn a_redacted_message_can_be_parsed(
            (session, in_chat, index, at) in any::<(u128, bool, u64, i64)>(),
            from in party(),
            to in prop::option::of(party()),
            content in "[^\u{0}]{0,40}",
            method in prop::option::of(".{0,10}"),
            hidden in any::<bool>(),
        ) {
            let id = SessionId(uuid::Uuid::from_u128(session));
            let message = ChatMessage {
                channel: if in_chat { Channel::Chat(id) } else { Channel::Operator(id) },
                index,
                from,
                to,
                hidden: hidden.then(|| ContentHash::of(&content)),
                content: if hidden { String::new() } else { content },
                method,
                at: Timestamp(at),
            };
            let json = serde_json::to_string(&reveal_message(&message)).expect("JSON");
            match read_record(&json) {
                Ok(Record::Message(read)) => prop_assert_eq!(read, message),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
