//! What administrators do: bans, hiding, removing, each with its entry in the audit, in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{Channel, ContentHash, Ending, Phase, Session, Timestamp, UserId};
use futures_util::FutureExt;

use super::connection::DELETE_INVITES;
use super::standings::{recount, write_career};
use super::text::encode;
use super::users::user_no;
use super::writer::{WriteError, Writing};
use super::{PostgresStore, number, place};
use crate::audit::{AuditEntry, AuditNo};
use crate::bans::{Ban, BanSubject};
use crate::rows::{Columns, channel_number, to_json};
use crate::standings::{PARTICIPANTS, games_of};
use crate::{CommitError, Page, SessionNo, StoreError};

/// Adds an entry. Last in a transaction: other nodes wait for its number until the commit.
pub(super) async fn record(writing: &Writing, entry: &AuditEntry) -> Result<AuditNo, WriteError> {
    writing.take_turn().await?;
    let sql = "INSERT INTO audit (no, at, address, action, detail)
         SELECT coalesce(max(no), 0) + 1, $1::int8, $2::text, $3::text, $4::text FROM audit RETURNING no";
    let AuditEntry { at, address, action, detail } = entry;
    let (address, action, detail) = (encode(address), encode(action), to_json(detail));
    let row = writing.client().query_one(sql, &[&at.0, &address, &action, &detail]).await?;
    Ok(AuditNo(row.integer(0)?.unsigned_abs()))
}

impl PostgresStore {
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<AuditNo, CommitError> {
        self.writer.write(move |writing| async move { record(writing, &entry).await }.boxed()).await
    }

    pub(crate) async fn list_audit(
        &self,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(AuditNo, AuditEntry)>, StoreError> {
        let total = self.readers.number("SELECT coalesce(max(no), 0) FROM audit", &[]).await?;
        // Entries are numbered from 1 without gaps.
        let newest = total.saturating_sub(place(offset));
        let sql = "SELECT no, at, address, action, detail FROM audit WHERE no <= $1 ORDER BY no DESC LIMIT $2";
        let rows = self.readers.query(sql, &[&newest, &number(limit)]).await?;
        let entries = rows.iter().map(|row| {
            let no = AuditNo(row.integer(0)?.unsigned_abs());
            let detail = serde_json::from_str(row.text(4)?);
            let detail = detail.map_err(|error| StoreError::Damaged {
                what: format!("audit entry {}", no.0),
                reason: error.to_string(),
            })?;
            let (at, address, action) = (Timestamp(row.integer(1)?), row.prose(2)?, row.prose(3)?);
            let (address, action) = (address.into_owned(), action.into_owned());
            Ok((no, AuditEntry { at, address, action, detail }))
        });
        Ok(Page { items: entries.collect::<Result<_, StoreError>>()?, total: total.unsigned_abs() })
    }

    pub(crate) async fn ban(&self, ban: Ban, audit: AuditEntry) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                async move {
                    let sql = "INSERT INTO bans (subject, reason, at) VALUES ($1, $2, $3)
                 ON CONFLICT (subject) DO UPDATE SET reason = excluded.reason, at = excluded.at";
                    let Ban { subject, reason, at } = &ban;
                    let subject = subject.to_string();
                    writing.client().execute(sql, &[&encode(&subject), &encode(reason), &at.0]).await?;
                    writing.news.administration = true;
                    record(writing, &audit).await.map(drop)
                }
                .boxed()
            })
            .await
    }

    pub(crate) async fn lift_ban(&self, subject: BanSubject, audit: AuditEntry) -> Result<bool, CommitError> {
        self.writer
            .write(move |writing| {
                async move {
                    let subject = subject.to_string();
                    let sql = "DELETE FROM bans WHERE subject = $1";
                    let lifted = writing.client().execute(sql, &[&encode(&subject)]).await? > 0;
                    if lifted {
                        writing.news.administration = true;
                        record(writing, &audit).await?;
                    }
                    Ok(lifted)
                }
                .boxed()
            })
            .await
    }

    pub(crate) async fn list_bans(&self) -> Result<Vec<Ban>, StoreError> {
        let sql = "SELECT subject, reason, at FROM bans ORDER BY subject COLLATE \"C\"";
        let rows = self.readers.query(sql, &[]).await?;
        rows.iter()
            .map(|row| Ban::read(&row.prose(0)?, row.prose(1)?.into_owned(), Timestamp(row.integer(2)?)))
            .collect()
    }

    pub(crate) async fn hide_message(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        index: u64,
        audit: impl Fn(ContentHash) -> AuditEntry + Send + 'static,
    ) -> Result<Option<ContentHash>, CommitError> {
        let (no, channel_no, index) = (no.map_or(0, |no| no.0), channel_number(channel) as i16, place(index));
        self.writer.write(move |writing| async move {
            let sql = "SELECT content, hidden FROM messages WHERE session = $1 AND channel = $2 AND idx = $3 FOR UPDATE";
            let found = writing.client().query_opt(sql, &[&no, &channel_no, &index]).await?;
            let Some(row) = found else { return Ok(None) };
            if let Some(hash) = row.text_or_null(1)? {
                return Ok(Some(hash.parse().map_err(|error| StoreError::damaged(channel, error))?));
            }
            let hash = ContentHash::of(&row.prose(0)?);
            let sql = "UPDATE messages SET content = '', hidden = $4 WHERE session = $1 AND channel = $2 AND idx = $3";
            writing.client().execute(sql, &[&no, &channel_no, &index, &hash.to_string()]).await?;
            writing.news.add_hidden(channel);
            let entry = audit(hash);
            record(writing, &entry).await?;
            Ok(Some(hash))
        }.boxed()).await
    }

    pub(crate) async fn remove_session(
        &self,
        no: SessionNo,
        session: Arc<Session>,
        audit: AuditEntry,
    ) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                async move {
                    remove(writing, no, &session).await?;
                    record(writing, &audit).await.map(drop)
                }
                .boxed()
            })
            .await
    }
}

async fn remove(writing: &mut Writing, no: SessionNo, session: &Session) -> Result<(), WriteError> {
    let client = writing.client();
    let sql = "DELETE FROM sessions WHERE no = $1 AND version = $2";
    if client.execute(sql, &[&no.0, &session.version.cast_signed()]).await? == 0 {
        return Err(CommitError::Conflict.into());
    }
    client.execute("DELETE FROM messages WHERE session = $1", &[&no.0]).await?;
    let codes: Vec<String> = session.facts.invites.iter().map(ToString::to_string).collect();
    client.execute(DELETE_INVITES, &[&codes]).await?;
    client.execute("UPDATE endings SET session = 0 WHERE session = $1", &[&no.0]).await?;
    writing.effects.delta.add(no.0, &session.facts.challenge, session.status(), -1);
    writing.news.add_session(session.facts.id);
    let Phase::Ended { ending, .. } = session.phase else { return Ok(()) };
    if ending == Ending::Completed {
        writing.effects.delta.add_total(&games_of(&session.facts.challenge), -1);
    }
    let users: BTreeSet<&UserId> = session.seats.iter().filter_map(|occupant| occupant.user.as_ref()).collect();
    let ids: Vec<String> = users.iter().map(|user| encode(user.as_str()).into_owned()).collect();
    writing.lock_users(&ids).await?;
    for user in users {
        let user = user_no(writing, user).await?;
        if !forget_played(writing, user, no).await? {
            continue;
        }
        let career = recount(writing.client(), &writing.scoring, user).await?;
        write_career(writing.client(), user, &career).await?;
        writing.effects.recounted = true;
        writing.news.users.insert(user);
        if career.played == 0 {
            writing.effects.delta.add_total(PARTICIPANTS, -1);
        }
    }
    Ok(())
}

/// Takes a session out of a user's history and closes the gap. Whether it was there.
async fn forget_played(writing: &Writing, user: i64, session: SessionNo) -> Result<bool, WriteError> {
    let client = writing.client();
    let sql = "DELETE FROM careers WHERE user_no = $1 AND n > 0 AND session = $2 RETURNING n";
    let Some(row) = client.query_opt(sql, &[&user, &session.0]).await? else { return Ok(false) };
    let n = row.integer(0)?;
    // By way of negative numbers, so that no two rows have the same one at any moment, in whatever order they are moved.
    client.execute("UPDATE careers SET n = -n WHERE user_no = $1 AND n > $2", &[&user, &n]).await?;
    client.execute("UPDATE careers SET n = -n - 1 WHERE user_no = $1 AND n < 0", &[&user]).await?;
    Ok(true)
}
