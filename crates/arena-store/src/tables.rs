//! The tables that commits write: their columns, and the conversions between rows and the model's types.
//!
//! Each table has one description: an enum with a variant for each column. A variant has the column's name, its type
//! and its value in a new row. Code that reads a row addresses columns by these variants. [`SQLITE`] and [`POSTGRES`]
//! list the migrations that create the tables.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use arena_model::{
    Attribution, BoardId, BoardTerms, Channel, ChatMessage, ContentHash, Ending, GameCategory, InviteCode, Occupant,
    Party, Phase, Score, Seat, SeatUsage, Seed, Session, SessionFacts, SessionId, Status, Timestamp, UsageReport,
    UsageTotal, UserId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::derived::boards::BoardRow;
use crate::derived::standings::Career;
use crate::plan::KnownSession;
use crate::sql::dialect::{Kind, Table, table};
use crate::sql::value::{Columns, Value, count};
use crate::{AuditNo, NewAnswer, SessionNo, StoreError, StoredAnswer, StoredLeaf};

/// The migrations of SQLite, in order. The schema version of a store is the number of migrations that were applied to
/// it. Downgrades aren't supported.
pub(crate) const SQLITE: &[&str] = &[
    include_str!("../migrations/sqlite/0001_sessions.sql"),
    include_str!("../migrations/sqlite/0002_users.sql"),
    include_str!("../migrations/sqlite/0003_leagues.sql"),
    include_str!("../migrations/sqlite/0004_usage.sql"),
    include_str!("../migrations/sqlite/0005_scripts.sql"),
    include_str!("../migrations/sqlite/0006_unattended.sql"),
    include_str!("../migrations/sqlite/0007_ids.sql"),
    include_str!("../migrations/sqlite/0008_rules.sql"),
    include_str!("../migrations/sqlite/0009_boards.sql"),
    include_str!("../migrations/0010_queue.sql"),
    include_str!("../migrations/0011_unlisted.sql"),
    include_str!("../migrations/sqlite/0012_records.sql"),
    include_str!("../migrations/0014_reports.sql"),
    include_str!("../migrations/0015_archives.sql"),
    include_str!("../migrations/0017_archive_files.sql"),
    include_str!("../migrations/0019_strategies.sql"),
];

/// The migrations of Postgres, in order. A file that both databases understand can be in both lists.
pub(crate) const POSTGRES: &[&str] = &[
    include_str!("../migrations/postgres/0001_arena.sql"),
    include_str!("../migrations/postgres/0002_nodes.sql"),
    include_str!("../migrations/postgres/0003_unattended.sql"),
    include_str!("../migrations/postgres/0004_ids.sql"),
    include_str!("../migrations/postgres/0005_boards.sql"),
    include_str!("../migrations/postgres/0006_journal_marks.sql"),
    include_str!("../migrations/0010_queue.sql"),
    include_str!("../migrations/0011_unlisted.sql"),
    include_str!("../migrations/postgres/0012_records.sql"),
    include_str!("../migrations/postgres/0013_peers.sql"),
    include_str!("../migrations/0014_reports.sql"),
    include_str!("../migrations/0015_archives.sql"),
    include_str!("../migrations/postgres/0016_leagues.sql"),
    include_str!("../migrations/0017_archive_files.sql"),
    include_str!("../migrations/postgres/0018_versions.sql"),
    include_str!("../migrations/0019_strategies.sql"),
];

/// The schema version of Postgres after which migrations only add tables and columns that older programs don't need.
/// While nodes of an older program run, a newer node may apply these.
pub(crate) const COMPATIBLE: i64 = 15;

/// A kind of rare changes, as named in the table `changes`.
pub(crate) const ADMINISTRATION: &str = "administration";
pub(crate) const PUBLIC: &str = "public";
pub(crate) const RECOUNTS: &str = "recounts";
pub(crate) const SCRIPTED: &str = "scripted";
pub(crate) const STANDINGS: &str = "standings";

/// A row of `numbers` that a transaction locks to number its rows in the order of commits.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const COUNTS: &str = "counts";
pub(crate) const ENDINGS: &str = "endings";
pub(crate) const REMOVED: &str = "removed";

/// A session to insert or update.
pub(crate) struct SessionRow<'r> {
    pub(crate) no: i64,
    pub(crate) session: &'r Session,
    /// The audit entry of the import, if the session was imported.
    pub(crate) import: Option<AuditNo>,
}

/// Converts the end of a session with `of`, or returns `None` if the session hasn't ended.
fn end<T>(session: &Session, of: impl FnOnce(i64, Ending, GameCategory) -> T) -> Option<T> {
    match session.phase {
        Phase::Ended { at, ending, category } => Some(of(at.0, ending, category)),
        Phase::Open | Phase::Active => None,
    }
}

table! {
    Sessions "sessions", row: SessionRow<'r>, 'r {
        No "no" Integer Once => row.no;
        Status "status" Text Updated => row.session.status().as_str();
        Type "type" Text Once => row.session.facts.challenge.as_str();
        Version "version" Integer Updated => row.session.version.cast_signed();
        WakeAt "wake_at" Integer Indexed => row.session.wake_at.map(|at| at.0);
        CreatedAt "created_at" Integer Once => row.session.facts.created_at.0;
        EndedAt "ended_at" Integer Updated => end(row.session, |at, _, _| at);
        Ending "ending" Text Updated => end(row.session, |_, ending, _| ending_text(ending));
        Category "category" Text Updated => end(row.session, |_, _, category| category_text(category));
        Deadline "deadline" Integer Updated => row.session.deadline.map(|at| at.0);
        Id "id" Text Once => row.session.facts.id.to_string();
        Seed "seed" Bytes Once => seed_bytes(row.session.facts.seed.as_ref());
        Options "options" Text Once => row.session.facts.options.to_string();
        Invites "invites" Text Once => codes_text(&row.session.facts.invites);
        Announced "announced" Text Updated => codes_text(&row.session.announced);
        Players "players" Text Updated => players_text(&row.session.seats);
        Scores "scores" Text Updated => to_json(&row.session.scores);
        Attributions "attributions" Text Updated => attributions_text(&row.session.attributions);
        State "state" Text Updated => row.session.state.as_str();
        Usage "usage" Text Updated => usage_text(&row.session.usage);
        Script "script" Text Once => row.session.facts.script.map(|script| script.to_string());
        Unattended "unattended" Integer Updated => row.session.unattended.cast_signed();
        Rated "rated" Text Once => rated_text(row.session.facts.rated.as_ref());
        Imported "imported" Integer Once => row.import.map(|import| import.0.cast_signed());
        Unlisted "unlisted" Integer Once => i64::from(row.session.facts.is_unlisted);
    }
}

/// Reads a session from the columns of [`Sessions`], which must be first in the row.
pub(crate) fn read_session(row: &dyn Columns) -> Result<(SessionNo, Session), StoreError> {
    let no = SessionNo(row.integer(Sessions::No as usize)?);
    let id = row.text(Sessions::Id as usize)?;
    let damaged = |reason: String| StoreError::damaged(format!("session {id}"), reason);
    let text = |column: Sessions| row.text(column as usize).map_err(|error| damaged(error.to_string()));
    let time = |column: Sessions| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.integer_or_null(column as usize)?.map(Timestamp))
    };
    let text_or_null = |column: Sessions| row.text_or_null(column as usize);

    let status = Status::from_wire(text(Sessions::Status)?).ok_or_else(|| damaged("unknown status".to_owned()))?;
    let phase = match status {
        Status::Open => Phase::Open,
        Status::Active => Phase::Active,
        Status::Ended => Phase::Ended {
            at: time(Sessions::EndedAt)?.ok_or_else(|| damaged("it has ended, but has no end time".to_owned()))?,
            ending: read_ending(text(Sessions::Ending)?).map_err(damaged)?,
            category: json::<GameCategory>(&format!("{:?}", text(Sessions::Category)?)).map_err(damaged)?,
        },
    };
    let codes = |column: Sessions| -> Result<Vec<InviteCode>, StoreError> {
        let codes: Vec<String> = json(text(column)?).map_err(damaged)?;
        codes.iter().map(|code| parse(code).map_err(damaged)).collect()
    };
    let players: Vec<Vec<Option<String>>> = json(text(Sessions::Players)?).map_err(damaged)?;
    let seats = players.iter().map(|player| read_player(player)).collect::<Result<_, String>>().map_err(damaged)?;
    let scores: Vec<Score> = json(text(Sessions::Scores)?).map_err(damaged)?;
    let attributions: Vec<(usize, usize, String)> = json(text(Sessions::Attributions)?).map_err(damaged)?;
    let facts = SessionFacts {
        id: parse::<SessionId>(id).map_err(damaged)?,
        challenge: text(Sessions::Type)?.to_owned(),
        script: text_or_null(Sessions::Script)?.map(parse).transpose().map_err(damaged)?,
        created_at: Timestamp(row.integer(Sessions::CreatedAt as usize)?),
        seed: read_seed(row.bytes(Sessions::Seed as usize)?, &id)?,
        options: json(text(Sessions::Options)?).map_err(damaged)?,
        rated: read_rated(text_or_null(Sessions::Rated)?, text_or_null(Sessions::Script)?).map_err(damaged)?,
        is_unlisted: row.integer(Sessions::Unlisted as usize)? != 0,
        invites: codes(Sessions::Invites)?,
    };
    if facts.seed.is_none() && status != Status::Ended {
        return Err(damaged("it hasn't ended, but has no seed".to_owned()));
    }
    let session = Session {
        version: row
            .integer(Sessions::Version as usize)?
            .try_into()
            .map_err(|_| damaged("its version is negative".to_owned()))?,
        phase,
        seats,
        announced: codes(Sessions::Announced)?,
        scores,
        attributions: attributions
            .into_iter()
            .map(|(from, to, kind)| Attribution { from: Seat(from), to: Seat(to), kind })
            .collect(),
        usage: Arc::new(read_usage(text(Sessions::Usage)?).map_err(damaged)?),
        unattended: row.integer(Sessions::Unattended as usize)?.cast_unsigned(),
        deadline: time(Sessions::Deadline)?,
        wake_at: time(Sessions::WakeAt)?,
        state: text(Sessions::State)?.to_owned(),
        facts: Arc::new(facts),
    };
    // The views index these lists by seat, so the lengths must match.
    let size = session.facts.invites.len();
    let seats_exist =
        session.attributions.iter().all(|a| a.from.0 < session.seats.len() && a.to.0 < session.seats.len());
    if session.scores.len() != size
        || session.seats.len() > size
        || session.usage.len() > session.seats.len()
        || !seats_exist
    {
        let what = format!("session {id}");
        return Err(StoreError::damaged(what, "the lengths of its lists by seat contradict each other"));
    }
    Ok((no, session))
}

table! {
    /// The row of an invite: the session's number and the code. SQLite has an additional column for the end of
    /// the code, see [`Invites::insert_sqlite`].
    Invites "invites", row: (i64, InviteCode), 'r {
        Code "code" Text Once => row.1.to_string();
        Session "session" Integer Once => row.0;
    }
}

impl Invites {
    pub(crate) fn insert_sqlite() -> String {
        "INSERT INTO invites (made, code, session) VALUES (substr(?1, -12), ?1, ?2)".to_owned()
    }
}

table! {
    /// The row of a message, with its session's number.
    Messages "messages", row: (i64, &'r ChatMessage), 'r {
        Session "session" Integer Once => if row.1.channel == Channel::Invites { 0 } else { row.0 };
        Channel "channel" Small Once => channel_number(row.1.channel);
        Idx "idx" Integer Once => row.1.index.cast_signed();
        At "at" Integer Once => row.1.at.0;
        Sender "sender" Text Once => Value::prose(row.1.from.to_string());
        Recipient "recipient" Text Once => Value::Prose(row.1.to.as_ref().map(|to| Cow::Owned(to.to_string())));
        Method "method" Text Once => Value::Prose(row.1.method.as_deref().map(Cow::Borrowed));
        Content "content" Text Once => Value::prose(row.1.content.as_str());
        Hidden "hidden" Text Once => row.1.hidden.as_ref().map(ToString::to_string);
    }
}

table! {
    Answers "answers", row: &'r NewAnswer, 'r {
        Key "key" Bytes Once => &row.key[..];
        Request "request" Bytes Once => &row.request[..];
        Body "body" Text Once => row.body.as_str();
        At "at" Integer Once => row.at.0;
    }
}

table! {
    Users "users", row: (i64, &'r UserId), 'r {
        No "no" Integer Once => row.0;
        Id "id" Text Once => Value::prose(row.1.as_str());
    }
}

pub(crate) enum CareerRow<'r> {
    /// The position of an ended session in the user's history.
    Played { user: i64, n: i64, session: i64 },
    /// Row 0: the number of ended sessions, and the standings.
    Career(i64, &'r Career),
}

table! {
    Careers "careers", row: CareerRow<'r>, 'r {
        User "user_no" Integer Once => match row { CareerRow::Played { user, .. } | CareerRow::Career(user, _) => *user };
        N "n" Integer Once => match row { CareerRow::Played { n, .. } => *n, CareerRow::Career(..) => 0 };
        Session "session" Integer Updated => match row {
            CareerRow::Played { session, .. } => *session,
            CareerRow::Career(_, career) => career.played,
        };
        Standings "standings" Text Updated => match row {
            CareerRow::Played { .. } => None,
            CareerRow::Career(_, career) => Some(to_json(&career.standings)),
        };
    }
}

impl Careers {
    /// The conflict clause with which an insertion replaces the stored row 0.
    pub(crate) const REPLACE: &str =
        "ON CONFLICT (user_no, n) DO UPDATE SET session = excluded.session, standings = excluded.standings";
}

table! {
    /// The row of an ended session: its number in the order of endings, and the session's number.
    Endings "endings", row: (i64, i64), 'r {
        N "n" Integer Once => row.0;
        Session "session" Integer Once => row.1;
    }
}

table! {
    Boards "boards", row: (&'r BoardId, &'r BoardRow), 'r {
        Id "id" Text Once => row.0.as_str();
        Type "type" Text Once => row.1[0].as_str();
        Options "options" Text Once => row.1[1].as_str();
        Rated "rated" Text Once => row.1[2].as_str();
    }
}

table! {
    /// The row of a removed session: its id, the time and the reason. The database numbers the rows.
    RemovedSessions "removed_sessions", row: (SessionId, i64, &'r str), 'r {
        Id "id" Text Once => row.0.to_string();
        At "at" Integer Once => row.1;
        Reason "reason" Text Once => row.2;
    }
}

table! {
    LogLeaves "log_leaves", row: &'r StoredLeaf, 'r {
        N "n" Integer Once => count(row.n);
        Session "session" Text Once => row.session.map(|id| id.to_string());
        Kind "kind" Text Once => row.kind.as_str();
        Data "data" Text Once => row.data.as_str();
        Hash "hash" Bytes Once => &row.hash[..];
    }
}

/// Reads the seed of a session with this id; an empty value means that the seed is unknown.
pub(crate) fn read_seed(bytes: &[u8], id: &dyn Display) -> Result<Option<Seed>, StoreError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let seed = bytes.try_into().map_err(|_| StoreError::damaged(format!("session {id}"), "its seed isn't 32 bytes"));
    seed.map(|seed| Some(Seed(seed)))
}

pub(crate) fn seed_bytes(seed: Option<&Seed>) -> &[u8] {
    seed.map_or(&[], |seed| &seed.0)
}

/// Reads a message from the columns of [`Messages`].
pub(crate) fn read_message(row: &dyn Columns, channel: Channel) -> Result<ChatMessage, StoreError> {
    let hidden = match row.text_or_null(Messages::Hidden as usize)? {
        Some(hash) => {
            let damaged = |reason: String| StoreError::damaged(format!("a message of channel {channel}"), reason);
            Some(parse(hash).map_err(damaged)?)
        }
        None => None,
    };
    Ok(ChatMessage {
        channel,
        index: row.integer(Messages::Idx as usize)?.unsigned_abs(),
        at: Timestamp(row.integer(Messages::At as usize)?),
        from: Party::from_wire(&row.prose(Messages::Sender as usize)?),
        to: row.prose_or_null(Messages::Recipient as usize)?.as_deref().map(Party::from_wire),
        method: row.prose_or_null(Messages::Method as usize)?.map(Cow::into_owned),
        content: row.prose(Messages::Content as usize)?.into_owned(),
        hidden,
    })
}

/// Reads the commitment of a hidden message of the session `id`.
pub(crate) fn read_commitment(
    row: &dyn Columns,
    column: usize,
    id: SessionId,
) -> Result<Option<ContentHash>, StoreError> {
    let damaged = |error: String| StoreError::damaged(format!("a commitment of session {id}"), error);
    row.text_or_null(column)?.map(|commitment| parse(commitment).map_err(damaged)).transpose()
}

/// Reads an answer: the hash of the request, then the body.
pub(crate) fn read_answer(row: &dyn Columns, first: usize) -> Result<StoredAnswer, StoreError> {
    Ok(StoredAnswer { request: read_bytes(row, first)?, body: row.text(first + 1)?.to_owned() })
}

/// Reads 32 bytes: a hash or a seed.
pub(crate) fn read_bytes(row: &dyn Columns, column: usize) -> Result<[u8; 32], StoreError> {
    row.bytes(column)?.try_into().map_err(|_| StoreError::Database(format!("column {column} of a row isn't 32 bytes")))
}

impl KnownSession {
    /// Reads version, status and wake-up time. A session with an unknown status counts as absent: the commit that
    /// changes it is refused, and the next read of the session reports the damage.
    pub(crate) fn read(row: &dyn Columns, first: usize) -> Result<Option<KnownSession>, StoreError> {
        let (version, wake_at) = (row.integer(first)?, row.integer_or_null(first + 2)?);
        Ok(Status::from_wire(row.text(first + 1)?).map(|status| KnownSession { version, status, wake_at }))
    }
}

pub(crate) fn channel_number(channel: Channel) -> i64 {
    match channel {
        Channel::Chat(_) => 0,
        Channel::Operator(_) => 1,
        Channel::Invites => 2,
        Channel::Inputs(_) => 3,
    }
}

pub(crate) fn session_channel(number: i64, id: SessionId) -> Result<Channel, StoreError> {
    match number {
        0 => Ok(Channel::Chat(id)),
        1 => Ok(Channel::Operator(id)),
        3 => Ok(Channel::Inputs(id)),
        _ => Err(StoreError::damaged(format!("session {id}"), format!("its channel {number} is unknown"))),
    }
}

pub(crate) fn read_ending(text: &str) -> Result<Ending, String> {
    match text {
        "abandoned" => Ok(Ending::Abandoned),
        "completed" => Ok(Ending::Completed),
        other => Err(format!("its ending {other} is unknown")),
    }
}

pub(crate) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Abandoned => "abandoned",
    }
}

pub(crate) fn category_text(category: GameCategory) -> &'static str {
    match category {
        GameCategory::Train => "train",
        GameCategory::Test => "test",
        GameCategory::Benchmark => "benchmark",
    }
}

pub(crate) fn codes_text(codes: &[InviteCode]) -> String {
    let codes: Vec<String> = codes.iter().map(InviteCode::to_string).collect();
    to_json(&codes)
}

pub(crate) fn players_text(seats: &[Occupant]) -> String {
    let player = |occupant: &Occupant| -> Vec<Option<String>> {
        let user = occupant.user.as_ref().map(UserId::to_string);
        let deleted = occupant.deleted.map(|commitment| Some(commitment.to_string()));
        [Some(occupant.invite.to_string()), user].into_iter().chain(deleted).collect()
    };
    to_json(&seats.iter().map(player).collect::<Vec<_>>())
}

/// Reads a player of the column `players`: the invite, the user's id, and the commitment to the id of a deleted user.
fn read_player(player: &[Option<String>]) -> Result<Occupant, String> {
    let (invite, user, deleted) = match player {
        [Some(invite), user] => (invite, user, &None),
        [Some(invite), None, deleted @ Some(_)] => (invite, &None, deleted),
        _ => return Err("a player isn't an invite with a user".to_owned()),
    };
    Ok(Occupant {
        invite: parse(invite)?,
        user: user.as_deref().map(parse).transpose()?,
        deleted: deleted.as_deref().map(parse).transpose()?,
    })
}

pub(crate) fn attributions_text(attributions: &[Attribution]) -> String {
    let rows: Vec<(usize, usize, &str)> = attributions
        .iter()
        .map(|attribution| (attribution.from.0, attribution.to.0, attribution.kind.as_str()))
        .collect();
    to_json(&rows)
}

/// Returns the value of the column `rated`: the board terms under which a session counts.
pub(crate) fn rated_text(rated: Option<&BoardTerms>) -> String {
    rated.map_or_else(String::new, |BoardTerms { rules, prompt }| match prompt {
        Some(prompt) => format!("{rules} {prompt}"),
        None => rules.clone(),
    })
}

/// A session that is older than the column `rated` counts by the rules of its time.
pub(crate) fn read_rated(rated: Option<&str>, script: Option<&str>) -> Result<Option<BoardTerms>, String> {
    match rated {
        None => Ok(Some(BoardTerms::of_before(script.as_ref()))),
        Some("") => Ok(None),
        Some(terms) => {
            let (rules, prompt) = terms.split_once(' ').map_or((terms, None), |(rules, prompt)| (rules, Some(prompt)));
            BoardTerms::read(rules, prompt).map(Some).map_err(|error| error.to_string())
        }
    }
}

/// An item of the column `usage`: the reports of one seat.
#[derive(Serialize, Deserialize)]
struct UsageColumn<'u> {
    total: Cow<'u, UsageTotal>,
    reports: Cow<'u, [UsageReport]>,
}

pub(crate) fn usage_text(usage: &[SeatUsage]) -> String {
    let seats: Vec<UsageColumn<'_>> = usage
        .iter()
        .map(|seat| UsageColumn { total: Cow::Borrowed(&seat.total), reports: Cow::Borrowed(&seat.reports) })
        .collect();
    to_json(&seats)
}

fn read_usage(text: &str) -> Result<Vec<SeatUsage>, String> {
    let seats: Vec<UsageColumn<'static>> = json(text)?;
    let seat = |UsageColumn { total, reports }| SeatUsage { total: total.into_owned(), reports: reports.into_owned() };
    Ok(seats.into_iter().map(seat).collect())
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("lists of texts and numbers are JSON")
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
