//! Sessions and users that come from elsewhere: each whole, once, and counted like those that were played here.

use std::sync::Arc;

use arena_model::{ChatMessage, Phase, Session, UserProfile};
use rusqlite::{OptionalExtension, params};

use crate::audit::AuditNo;
use crate::job::{WriteError, Writing};
use crate::rows::{category_text, ending_text};
use crate::sqlite::{BY_CODE, BY_ID};
use crate::standings::user_no;
use crate::users::{find_user, write_profile};
use crate::writer::{insert_messages, insert_session};
use crate::{CommitError, SessionNo, SqliteStore, StoreError};

/// A session that has ended, to be taken over.
#[derive(Debug)]
pub struct ImportedSession {
    /// The session.
    pub session: Session,
    /// Its messages, with their places: 1, 2, 3 … in each channel.
    pub messages: Vec<ChatMessage>,
    /// The entry of the audit under which it comes.
    pub import: AuditNo,
}

/// What became of something to be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    New,
    /// It was there already, and stays as it is.
    Known,
    /// One of its invites belongs to another session.
    ForeignInvite,
}

impl SqliteStore {
    pub(crate) fn import_session(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        self.writer.write(move |writing| import_session(writing, &imported))
    }

    pub(crate) fn import_user(
        &self,
        profile: Arc<UserProfile>,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        self.writer.write(move |writing| {
            let connection = writing.connection;
            let known = find_user(connection, &profile.user_id)?;
            // A user who is only known for having played may still be told of.
            let is_blank = known.as_ref().is_none_or(|(_, known)| *known == UserProfile::of(profile.user_id.clone()));
            let same = known.as_ref().is_some_and(|(_, known)| *known == *profile);
            if same || !is_blank {
                return Ok(Taken::Known);
            }
            let no = user_no(connection, &profile.user_id)?;
            write_profile(connection, no, &profile)?;
            connection.execute("UPDATE users SET benchmark = ?2 WHERE no = ?1", params![no, profile.is_benchmark])?;
            Ok(Taken::New)
        })
    }
}

fn import_session(writing: &mut Writing<'_>, imported: &ImportedSession) -> Result<Taken, WriteError> {
    let ImportedSession { session, messages, import } = imported;
    let connection = writing.connection;
    let exists = |table: &str, condition: &str, key: String| -> Result<bool, rusqlite::Error> {
        let sql = format!("SELECT 1 FROM {table} WHERE {condition}");
        Ok(connection.prepare_cached(&sql)?.query_row([key], |_| Ok(())).optional()?.is_some())
    };
    if exists("sessions", BY_ID, session.facts.id.to_string())? {
        return Ok(Taken::Known);
    }
    for invite in &session.facts.invites {
        if exists("invites", BY_CODE, invite.to_string())? {
            return Ok(Taken::ForeignInvite);
        }
    }
    let Phase::Ended { at, ending, category } = session.phase else {
        return Err(StoreError::damaged(session.facts.id, "it hasn't ended").into());
    };
    writing.last_no += 1;
    let no = SessionNo(writing.last_no);
    insert_session(connection, no.0, session)?;
    connection
        .prepare_cached("UPDATE sessions SET ended_at = ?2, ending = ?3, category = ?4, imported = ?5 WHERE no = ?1")?
        .execute(params![no.0, at.0, ending_text(ending), category_text(category), import.0.cast_signed()])?;
    insert_messages(connection, no, messages)?;
    writing.effects.delta.add(no.0, &session.facts.challenge, session.status(), 1);
    let end = writing.counting.record_end(connection, no, session, &mut writing.effects.delta)?;
    writing.effects.moves.extend(end.moves);
    writing.effects.suspect = writing.effects.suspect.or(end.suspect);
    Ok(Taken::New)
}
