//! The table `sessions`.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use arena_model::{
    Attribution, Ending, GameCategory, InviteCode, Occupant, Phase, Score, Seat, SeatUsage, Seed, Session,
    SessionFacts, SessionId, Status, Timestamp, UsageReport, UsageTotal, UserId,
};
use serde::{Deserialize, Serialize};

use super::boards::{rated_text, read_rated};
use super::text::{json, parse, to_json};
use crate::sql::{Column, ColumnWrites, Columns, Dialect, Table, table};
use crate::{AuditNo, SessionNo, StoreError};

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

/// Returns the indexes of the columns of `sessions` that an update writes. If `indexed` is true, the
/// [`ColumnWrites::Indexed`] columns are included.
pub(crate) fn updated(indexed: bool) -> impl Iterator<Item = usize> {
    let is_updated = move |column: &Column| match column.written {
        ColumnWrites::Once => false,
        ColumnWrites::Updated => true,
        ColumnWrites::Indexed => indexed,
    };
    Sessions::COLUMNS.iter().enumerate().filter(move |(_, column)| is_updated(column)).map(|(at, _)| at)
}

/// The first two parameters are the session's number and version; the columns of [`updated`] follow.
pub(crate) fn update_sessions(dialect: Dialect, indexed: bool) -> String {
    let columns: Vec<&Column> = updated(indexed).map(|at| &Sessions::COLUMNS[at]).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    match dialect {
        Dialect::Sqlite => {
            let set: Vec<String> = (3..).zip(&names).map(|(at, name)| format!("{name} = ?{at}")).collect();
            format!("UPDATE sessions SET {} WHERE no = ?1 AND version = ?2", set.join(", "))
        }
        Dialect::Postgres => {
            let set: Vec<String> = names.iter().map(|name| format!("{name} = u.{name}")).collect();
            let lists: Vec<String> =
                (3..).zip(&columns).map(|(at, column)| format!("${at}::{}", column.kind.list())).collect();
            format!(
                "UPDATE sessions s SET {} FROM unnest($1::int8[], $2::int8[], {}) AS u (no, before, {})
                 WHERE s.no = u.no AND s.version = u.before",
                set.join(", "),
                lists.join(", "),
                names.join(", ")
            )
        }
    }
}

/// A row of `sessions`. Its errors name the session.
struct StoredRow<'r> {
    id: &'r str,
    row: &'r dyn Columns,
}

impl<'r> StoredRow<'r> {
    fn damaged(&self, reason: impl ToString) -> StoreError {
        StoreError::damaged(format!("session {}", self.id), reason)
    }

    fn text(&self, column: Sessions) -> Result<&'r str, StoreError> {
        self.row.text(column as usize).map_err(|error| self.damaged(error))
    }

    fn text_or_null(&self, column: Sessions) -> Result<Option<&'r str>, StoreError> {
        self.row.text_or_null(column as usize)
    }

    fn time(&self, column: Sessions) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.row.integer_or_null(column as usize)?.map(Timestamp))
    }

    /// Reads a column with a text.
    fn read<T>(&self, column: Sessions, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, StoreError> {
        read(self.text(column)?).map_err(|reason| self.damaged(reason))
    }

    fn phase(&self) -> Result<Phase, StoreError> {
        match Status::from_wire(self.text(Sessions::Status)?).ok_or_else(|| self.damaged("unknown status"))? {
            Status::Open => Ok(Phase::Open),
            Status::Active => Ok(Phase::Active),
            Status::Ended => Ok(Phase::Ended {
                at: self.time(Sessions::EndedAt)?.ok_or_else(|| self.damaged("it has ended, but has no end time"))?,
                ending: self.read(Sessions::Ending, read_ending)?,
                category: self.read(Sessions::Category, |category| json(&format!("{category:?}")))?,
            }),
        }
    }

    fn facts(&self) -> Result<SessionFacts, StoreError> {
        let script = self.text_or_null(Sessions::Script)?;
        Ok(SessionFacts {
            id: parse(self.id).map_err(|reason| self.damaged(reason))?,
            challenge: self.text(Sessions::Type)?.to_owned(),
            script: script.map(parse).transpose().map_err(|reason| self.damaged(reason))?,
            created_at: Timestamp(self.row.integer(Sessions::CreatedAt as usize)?),
            seed: read_seed(self.row.bytes(Sessions::Seed as usize)?, &self.id)?,
            options: self.read(Sessions::Options, json)?,
            rated: read_rated(self.text_or_null(Sessions::Rated)?, script).map_err(|reason| self.damaged(reason))?,
            is_unlisted: self.row.integer(Sessions::Unlisted as usize)? != 0,
            invites: self.read(Sessions::Invites, read_codes)?,
        })
    }
}

pub(crate) fn read_scores(text: &str) -> Result<Vec<Score>, String> {
    json(text)
}

/// Reads a session from the columns of [`Sessions`], which must be first in the row.
pub(crate) fn read_session(row: &dyn Columns) -> Result<(SessionNo, Session), StoreError> {
    let no = SessionNo(row.integer(Sessions::No as usize)?);
    let stored = StoredRow { id: row.text(Sessions::Id as usize)?, row };
    let phase = stored.phase()?;
    let seats = stored.read(Sessions::Players, read_players)?;
    let scores = stored.read(Sessions::Scores, read_scores)?;
    let attributions = stored.read(Sessions::Attributions, read_attributions)?;
    let facts = stored.facts()?;
    if facts.seed.is_none() && !matches!(phase, Phase::Ended { .. }) {
        return Err(stored.damaged("it hasn't ended, but has no seed"));
    }
    let version = row.integer(Sessions::Version as usize)?;
    let session = Session {
        version: version.try_into().map_err(|_| stored.damaged("its version is negative"))?,
        phase,
        seats,
        announced: stored.read(Sessions::Announced, read_codes)?,
        scores,
        attributions,
        usage: Arc::new(stored.read(Sessions::Usage, read_usage)?),
        unattended: row.integer(Sessions::Unattended as usize)?.cast_unsigned(),
        deadline: stored.time(Sessions::Deadline)?,
        wake_at: stored.time(Sessions::WakeAt)?,
        state: stored.text(Sessions::State)?.to_owned(),
        facts: Arc::new(facts),
    };
    // The views index these lists by seat, so the lengths must match.
    let (size, seats) = (session.facts.invites.len(), session.seats.len());
    let seats_exist = session.attributions.iter().all(|a| a.from.0 < seats && a.to.0 < seats);
    if session.scores.len() != size || seats > size || session.usage.len() > seats || !seats_exist {
        return Err(stored.damaged("the lengths of its lists by seat contradict each other"));
    }
    Ok((no, session))
}

/// Returns `None` if the row is damaged: a damaged session doesn't count, but other sessions still do.
pub(crate) fn read_or_pass_over(row: &dyn Columns) -> Result<Option<(SessionNo, Session)>, StoreError> {
    pass_over(read_session(row))
}

/// Returns `None` for a damaged session.
pub(crate) fn pass_over<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::error!(%error, "skipped a damaged row: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn read_id(row: &dyn Columns, column: usize) -> Result<SessionId, StoreError> {
    let id = row.text(column)?;
    id.parse().map_err(|error| StoreError::damaged(format!("session {id}"), error))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownSession {
    pub(crate) version: i64,
    pub(crate) status: Status,
    pub(crate) wake_at: Option<i64>,
}

impl KnownSession {
    /// Reads version, status and wake-up time. A session with an unknown status counts as absent: the commit that
    /// changes it is refused, and the next read of the session reports the damage.
    pub(crate) fn read(row: &dyn Columns, first: usize) -> Result<Option<KnownSession>, StoreError> {
        let (version, wake_at) = (row.integer(first)?, row.integer_or_null(first + 2)?);
        Ok(Status::from_wire(row.text(first + 1)?).map(|status| KnownSession { version, status, wake_at }))
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

pub(crate) fn read_ending(text: &str) -> Result<Ending, String> {
    match text {
        "abandoned" => Ok(Ending::Abandoned),
        "completed" => Ok(Ending::Completed),
        other => Err(format!("its ending {other} is unknown")),
    }
}

fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Abandoned => "abandoned",
    }
}

fn category_text(category: GameCategory) -> &'static str {
    match category {
        GameCategory::Train => "train",
        GameCategory::Test => "test",
        GameCategory::Benchmark => "benchmark",
    }
}

fn codes_text(codes: &[InviteCode]) -> String {
    let codes: Vec<String> = codes.iter().map(InviteCode::to_string).collect();
    to_json(&codes)
}

fn read_codes(text: &str) -> Result<Vec<InviteCode>, String> {
    json::<Vec<String>>(text)?.iter().map(|code| parse(code)).collect()
}

pub(crate) fn players_text(seats: &[Occupant]) -> String {
    let player = |occupant: &Occupant| -> Vec<Option<String>> {
        let user = occupant.user.as_ref().map(UserId::to_string);
        let deleted = occupant.deleted.map(|commitment| Some(commitment.to_string()));
        [Some(occupant.invite.to_string()), user].into_iter().chain(deleted).collect()
    };
    to_json(&seats.iter().map(player).collect::<Vec<_>>())
}

fn read_players(text: &str) -> Result<Vec<Occupant>, String> {
    json::<Vec<Vec<Option<String>>>>(text)?.iter().map(|player| read_player(player)).collect()
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

/// Returns the user ids in a session's column `players`, each once. The list is empty if the column is invalid.
pub(crate) fn users_in(players: &str) -> Vec<String> {
    // Each player is a list of the invite, the user's id, and the commitment to the id of a deleted user.
    let players: Vec<Vec<Option<String>>> = serde_json::from_str(players).unwrap_or_default();
    let mut users: Vec<String> = Vec::new();
    for user in players.into_iter().filter_map(|player| player.into_iter().nth(1).flatten()) {
        // `read_session` also ignores invalid ids.
        if user.parse::<UserId>().is_ok() && !users.contains(&user) {
            users.push(user);
        }
    }
    users
}

fn attributions_text(attributions: &[Attribution]) -> String {
    let rows: Vec<(usize, usize, &str)> = attributions
        .iter()
        .map(|attribution| (attribution.from.0, attribution.to.0, attribution.kind.as_str()))
        .collect();
    to_json(&rows)
}

fn read_attributions(text: &str) -> Result<Vec<Attribution>, String> {
    let rows: Vec<(usize, usize, String)> = json(text)?;
    Ok(rows.into_iter().map(|(from, to, kind)| Attribution { from: Seat(from), to: Seat(to), kind }).collect())
}

/// An item of the column `usage`: the reports of one seat.
#[derive(Serialize, Deserialize)]
struct UsageColumn<'u> {
    total: Cow<'u, UsageTotal>,
    reports: Cow<'u, [UsageReport]>,
}

fn usage_text(usage: &[SeatUsage]) -> String {
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
