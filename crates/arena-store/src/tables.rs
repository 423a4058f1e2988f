//! The tables that commits write: their columns, and the conversions between rows and the model's types.
//!
//! Each table has one description: an enum with a variant for each column. A variant has the column's name, its type
//! and its value in a new row. Code that reads a row addresses columns by these variants.

mod boards;
mod careers;
mod messages;
mod migrations;
mod sessions;
mod text;

use arena_model::{InviteCode, SessionId, Timestamp, UserId};

use crate::sql::{Columns, Value, table};
use crate::{NewAnswer, StoreError, StoredAnswer};

pub(crate) use self::boards::{BoardRow, Boards, board_row, rated_text, read_rated};
pub(crate) use self::careers::{Career, CareerRow, Careers, read_career};
pub(crate) use self::messages::{Messages, channel_number, read_commitment, read_message, session_channel};
pub(crate) use self::migrations::{COMPATIBLE, POSTGRES, SQLITE};
pub(crate) use self::sessions::{
    KnownSession, SessionRow, Sessions, pass_over, players_text, read_ending, read_id, read_or_pass_over, read_scores,
    read_seed, read_session, update_sessions, updated, users_in,
};
pub(crate) use self::text::{read_bytes, to_json};

/// A kind of rare changes, as named in the table `changes`.
pub(crate) const ADMINISTRATION: &str = "administration";
pub(crate) const PUBLIC: &str = "public";
/// Counts of sessions were repaired.
pub(crate) const RECOUNTS: &str = "recounts";
pub(crate) const SCRIPTED: &str = "scripted";
pub(crate) const STANDINGS: &str = "standings";

/// A row of `numbers` that a transaction locks to number its rows in the order of commits.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const COUNTS: &str = "counts";
pub(crate) const ENDINGS: &str = "endings";
pub(crate) const REMOVED: &str = "removed";

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

table! {
    /// The row of an ended session: its number in the order of endings, and the session's number.
    Endings "endings", row: (i64, i64), 'r {
        N "n" Integer Once => row.0;
        Session "session" Integer Once => row.1;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSession {
    /// The number of the removal: later removals have greater numbers.
    pub n: u64,
    pub id: SessionId,
    pub at: Timestamp,
    /// The reason: [`RemovedSession::EXPIRED`], [`RemovedSession::ADMINISTRATOR`] or [`RemovedSession::CREATOR`].
    pub reason: String,
}

impl RemovedSession {
    /// The reason for the removal of a session that its players didn't join in time.
    pub const EXPIRED: &str = "expired";
    /// The reason for a removal by an administrator.
    pub const ADMINISTRATOR: &str = "administrator";
    /// The reason for a removal by the session's creator, before its end.
    pub const CREATOR: &str = "creator";
}

table! {
    /// The row of a removed session: its id, the time and the reason. The database numbers the rows.
    RemovedSessions "removed_sessions", row: (SessionId, i64, &'r str), 'r {
        Id "id" Text Once => row.0.to_string();
        At "at" Integer Once => row.1;
        Reason "reason" Text Once => row.2;
    }
}

/// Reads an answer: the hash of the request, then the body.
pub(crate) fn read_answer(row: &dyn Columns, first: usize) -> Result<StoredAnswer, StoreError> {
    Ok(StoredAnswer { request: read_bytes(row, first)?, body: row.text(first + 1)?.to_owned() })
}
