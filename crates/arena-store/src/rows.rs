//! Between the model's nouns and the columns of the tables.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use arena_model::{
    Attribution, BoardTerms, Channel, ChatMessage, Ending, GameCategory, InviteCode, Occupant, Party, Phase, Score,
    Seat, SeatUsage, Seed, Session, SessionFacts, SessionId, Status, Timestamp, UsageReport, UsageTotal,
};
use rusqlite::Row;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{SessionNo, StoreError};

/// The columns that [`read_session`] reads, in its order.
pub(crate) const SESSION_COLUMNS: &str = "no, status, type, version, wake_at, created_at, ended_at, ending, category, deadline, \
     id, seed, options, invites, announced, players, scores, attributions, state, usage, script, unattended, rated";

/// A row of either database, read by the numbers of its columns.
pub(crate) trait Columns {
    /// A number.
    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        self.integer_or_null(column)?.ok_or_else(|| unexpected("a number", column))
    }

    /// A number, or nothing.
    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError>;

    /// A text that was made here: JSON, an id, a word of ours.
    fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.text_or_null(column)?.ok_or_else(|| unexpected("a text", column))
    }

    /// The same, or nothing.
    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError>;

    /// Bytes.
    fn bytes(&self, column: usize) -> Result<&[u8], StoreError>;

    /// A text that somebody wrote, which may hold any character.
    fn prose(&self, column: usize) -> Result<Cow<'_, str>, StoreError> {
        self.prose_or_null(column)?.ok_or_else(|| unexpected("a text", column))
    }

    /// The same, or nothing.
    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError>;
}

fn unexpected(wanted: &str, column: usize) -> StoreError {
    StoreError::Database(format!("there is no {wanted} in column {column} of a row"))
}

impl Columns for Row<'_> {
    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(self.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
    }

    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        Ok(self.text_or_null(column)?.map(Cow::Borrowed))
    }
}

pub(crate) fn read_session(row: &impl Columns) -> Result<(SessionNo, Session), StoreError> {
    let no = SessionNo(row.integer(0)?);
    let id = row.text(10)?;
    let damaged = |reason: String| StoreError::damaged(id, reason);
    let text = |column: usize| row.text(column).map_err(|error| damaged(error.to_string()));
    let time =
        |column: usize| -> Result<Option<Timestamp>, StoreError> { Ok(row.integer_or_null(column)?.map(Timestamp)) };

    let status = Status::from_wire(text(1)?).ok_or_else(|| damaged("unknown status".to_owned()))?;
    let phase = match status {
        Status::Open => Phase::Open,
        Status::Active => Phase::Active,
        Status::Ended => Phase::Ended {
            at: time(6)?.ok_or_else(|| damaged("ended without a time".to_owned()))?,
            ending: match text(7)? {
                "abandoned" => Ending::Abandoned,
                "completed" => Ending::Completed,
                other => return Err(damaged(format!("unknown ending {other}"))),
            },
            category: json::<GameCategory>(&format!("{:?}", text(8)?)).map_err(damaged)?,
        },
    };
    let codes = |column: usize| -> Result<Vec<InviteCode>, StoreError> {
        let codes: Vec<String> = json(text(column)?).map_err(damaged)?;
        codes.iter().map(|code| parse(code).map_err(damaged)).collect()
    };
    let players: Vec<(String, Option<String>)> = json(text(15)?).map_err(damaged)?;
    let seats = players
        .iter()
        .map(|(invite, user)| Ok(Occupant { invite: parse(invite)?, user: user.as_deref().map(parse).transpose()? }))
        .collect::<Result<Vec<Occupant>, String>>()
        .map_err(damaged)?;
    let scores: Vec<Score> = json(text(16)?).map_err(damaged)?;
    let attributions: Vec<(usize, usize, String)> = json(text(17)?).map_err(damaged)?;
    let facts = SessionFacts {
        id: parse::<SessionId>(id).map_err(damaged)?,
        challenge: text(2)?.to_owned(),
        script: row.text_or_null(20)?.map(parse).transpose().map_err(damaged)?,
        created_at: Timestamp(row.integer(5)?),
        seed: read_seed(row)?,
        options: json(text(12)?).map_err(damaged)?,
        rated: read_rated(row.text_or_null(22)?, row.text_or_null(20)?).map_err(damaged)?,
        invites: codes(13)?,
    };
    if facts.seed.is_none() && status != Status::Ended {
        return Err(damaged("it goes on without a seed".to_owned()));
    }
    let session = Session {
        version: row.integer(3)?.try_into().map_err(|_| damaged("negative version".to_owned()))?,
        phase,
        seats,
        announced: codes(14)?,
        scores,
        attributions: attributions
            .into_iter()
            .map(|(from, to, kind)| Attribution { from: Seat(from), to: Seat(to), kind })
            .collect(),
        usage: Arc::new(read_usage(text(19)?).map_err(damaged)?),
        unattended: row.integer(21)?.cast_unsigned(),
        deadline: time(9)?,
        wake_at: time(4)?,
        state: text(18)?.to_owned(),
        facts: Arc::new(facts),
    };
    // What the views index by seat has to be there.
    let size = session.facts.invites.len();
    let seats_exist =
        session.attributions.iter().all(|a| a.from.0 < session.seats.len() && a.to.0 < session.seats.len());
    if session.scores.len() != size
        || session.seats.len() > size
        || session.usage.len() > session.seats.len()
        || !seats_exist
    {
        return Err(StoreError::damaged(id, "its players, scores and invites don't fit together"));
    }
    Ok((no, session))
}

/// The seed of a session; a blob of no bytes where nobody knows it.
fn read_seed(row: &impl Columns) -> Result<Option<Seed>, StoreError> {
    let bytes = row.bytes(11)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let seed =
        bytes.try_into().map_err(|_| StoreError::damaged(row.text(10).unwrap_or("?"), "its seed isn't 32 bytes"));
    seed.map(|seed| Some(Seed(seed)))
}

/// What the column `seed` holds.
pub(crate) fn seed_bytes(seed: Option<&Seed>) -> &[u8] {
    seed.map_or(&[], |seed| &seed.0)
}

pub(crate) fn read_message(row: &impl Columns, channel: Channel) -> Result<ChatMessage, StoreError> {
    let hidden = match row.text_or_null(6)? {
        Some(hash) => Some(parse(hash).map_err(|error| StoreError::damaged(channel, error))?),
        None => None,
    };
    Ok(ChatMessage {
        channel,
        index: row.integer(0)?.unsigned_abs(),
        at: Timestamp(row.integer(1)?),
        from: Party::from_wire(&row.prose(2)?),
        to: row.prose_or_null(3)?.as_deref().map(Party::from_wire),
        method: row.prose_or_null(4)?.map(Cow::into_owned),
        content: row.prose(5)?.into_owned(),
        hidden,
    })
}

/// The number that stands for a channel in the table.
pub(crate) fn channel_number(channel: Channel) -> i64 {
    match channel {
        Channel::Chat(_) => 0,
        Channel::Operator(_) => 1,
        Channel::Invites => 2,
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
    let players: Vec<(String, Option<&str>)> = seats
        .iter()
        .map(|occupant| (occupant.invite.to_string(), occupant.user.as_ref().map(|user| user.as_str())))
        .collect();
    to_json(&players)
}

pub(crate) fn attributions_text(attributions: &[Attribution]) -> String {
    let rows: Vec<(usize, usize, &str)> = attributions
        .iter()
        .map(|attribution| (attribution.from.0, attribution.to.0, attribution.kind.as_str()))
        .collect();
    to_json(&rows)
}

/// The terms on which a session counts, as the column `rated` holds them.
pub(crate) fn rated_text(rated: Option<&BoardTerms>) -> String {
    rated.map_or_else(String::new, |BoardTerms { rules, prompt }| match prompt {
        Some(prompt) => format!("{rules} {prompt}"),
        None => rules.clone(),
    })
}

/// The same read back; `script` is the column of that name. Sessions that are older than the column count by what was played then.
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

/// What a seat has reported, as the column `usage` holds it.
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
