//! Users: profiles, histories, standings.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::{PlayerStandings, ProfileChange, ProfileText, Session, Timestamp, UserId, UserProfile};

use super::audit::record;
use crate::errors::Failure;
use crate::sql::{Columns, Db, Dialect, Value, columns, count};
use crate::tables::{ADMINISTRATION, Answers, Career, Sessions, read_answer, read_career, read_session};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, NewAnswer, Page, Store, StoreError};

pub struct ProfileWrite {
    pub user: UserId,
    pub change: ProfileChange,
    /// A function that creates the answer from the profile after the change.
    pub respond: Box<dyn Fn(&UserProfile) -> String + Send>,
    /// The answer's keys, each with the hash of the request. If a key has an answer already, nothing changes.
    pub once: Vec<([u8; 32], [u8; 32])>,
    pub at: Timestamp,
}

/// The columns of a profile, in the order in which [`read_profile`] reads them.
pub(super) const PROFILE: &str = "u.id, u.username, u.model, u.benchmark";

pub(super) fn read_profile(row: &dyn Columns) -> Result<UserProfile, StoreError> {
    let id = row.prose(0)?;
    let damaged = |reason: String| StoreError::damaged(format!("user {id}"), reason);
    let text = |column: usize| -> Result<_, StoreError> {
        row.prose_or_null(column)?
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: arena_model::ProfileTextError| damaged(format!("expected {error}")))
    };
    Ok(UserProfile {
        username: text(1)?,
        model: text(2)?,
        is_benchmark: row.integer(3)? != 0,
        user_id: id.parse().map_err(|error: arena_model::IdError| damaged(error.to_string()))?,
    })
}

/// Returns the number and the profile of a user, or `None` if the user is unknown.
pub(crate) async fn find_user(db: &mut Db, user: &UserId) -> Result<Option<(i64, UserProfile)>, Failure> {
    let sql = format!("SELECT {PROFILE}, u.no FROM users u WHERE u.id = $1");
    db.find(&sql, &[Value::prose(user.as_str())], |row| Ok((row.integer(4)?, read_profile(row)?))).await
}

pub(crate) async fn write_profile(db: &mut Db, no: i64, profile: &UserProfile) -> Result<(), Failure> {
    let text = |text: &Option<ProfileText>| Value::Prose(text.as_ref().map(|text| text.as_str().to_owned().into()));
    let sql = "UPDATE users SET username = $1, model = $2 WHERE no = $3";
    db.execute(sql, &[text(&profile.username), text(&profile.model), no.into()]).await.map(drop)
}

/// Adds a user if the user is unknown, locks the user until the commit, and returns the user's number.
async fn lock_user(writing: &mut Writing, user: &UserId) -> Result<i64, Failure> {
    let no = writing.user_no(user.as_str()).await?;
    writing.lock_users([user.as_str()]).await?;
    Ok(no)
}

impl Store {
    /// Returns the profiles of these users; unknown users have no entry.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_profiles<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<BTreeMap<UserId, UserProfile>, StoreError> {
        let ids: Vec<Value<'_>> = users.into_iter().map(|user| Value::prose(user.as_str())).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sql = format!("SELECT {PROFILE} FROM users u WHERE u.id {}", self.dialect().any("$1"));
        let found = self.list(&sql, &[Value::List(ids)], read_profile).await?;
        Ok(found.into_iter().map(|profile| (profile.user_id.clone(), profile)).collect())
    }

    /// Returns users in the order in which they became known: at most `limit` from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, StoreError> {
        // Users have numbers from 1 without gaps, so the offset is the number of the user before the page.
        let sql = format!("SELECT {PROFILE} FROM users u WHERE u.no > $1 ORDER BY u.no LIMIT $2");
        let items = self.list(&sql, &[count(offset).into(), count(limit as u64).into()], read_profile).await?;
        Ok(Page { items, total: self.last_user().await?.unsigned_abs() })
    }

    /// Returns the number of the last user, which equals the count of users.
    pub(crate) async fn last_user(&self) -> Result<i64, StoreError> {
        self.number("SELECT coalesce(max(no), 0) FROM users", &[]).await
    }

    /// Returns the users that are benchmark models.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_benchmarks(&self) -> Result<BTreeSet<UserId>, StoreError> {
        // These are the conditions of the partial indexes.
        let condition = match self.dialect() {
            Dialect::Sqlite => "u.benchmark",
            Dialect::Postgres => "u.benchmark <> 0",
        };
        let sql = format!("SELECT {PROFILE} FROM users u WHERE {condition}");
        Ok(self.list(&sql, &[], |row| Ok(read_profile(row)?.user_id)).await?.into_iter().collect())
    }

    /// Changes a profile, or creates it if the user has none. Returns the text from `respond`.
    ///
    /// # Errors
    /// [`CommitError::Answered`] if one of the keys has an answer already. Also if the store can't write.
    pub async fn change_profile(&self, write: ProfileWrite) -> Result<String, CommitError> {
        self.write(write, |ProfileWrite { user, change, respond, once, at }, writing| {
            Box::pin(async move {
                let no = lock_user(writing, user).await?;
                let found = find_user(&mut writing.db, user).await?;
                let mut profile = found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile);
                change.clone().apply(&mut profile);
                let body = respond(&profile);
                for (key, _) in &*once {
                    let sql = "SELECT request, body FROM answers WHERE key = $1";
                    if let Some(answer) = writing.db.find(sql, &[key[..].into()], |row| read_answer(row, 0)).await? {
                        return Err(CommitError::Answered(answer).into());
                    }
                }
                let answer =
                    |(key, request): &_| NewAnswer { key: *key, request: *request, body: body.clone(), at: *at };
                let answers: Vec<NewAnswer> = once.iter().map(answer).collect();
                writing.db.insert::<Answers>(&answers.iter().collect::<Vec<_>>(), "").await?;
                write_profile(&mut writing.db, no, &profile).await?;
                Ok(body)
            })
        })
        .await
    }

    /// Sets or clears the mark of a benchmark model. Returns the user's profile.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn set_benchmark(
        &self,
        user: UserId,
        benchmark: bool,
        audit: AuditEntry,
    ) -> Result<UserProfile, CommitError> {
        self.write((user, audit), move |(user, audit), writing| {
            Box::pin(async move {
                let no = lock_user(writing, user).await?;
                let sql = "UPDATE users SET benchmark = $1 WHERE no = $2";
                writing.db.execute(sql, &[i64::from(benchmark).into(), no.into()]).await?;
                writing.changed.insert(ADMINISTRATION);
                let found = find_user(&mut writing.db, user).await?;
                record(writing, audit).await?;
                Ok(found.map_or_else(|| UserProfile::of(user.clone()), |(_, profile)| profile))
            })
        })
        .await
    }

    /// Returns the number and the career of a user; `None` if the user is unknown.
    async fn find_known(&self, user: &UserId) -> Result<Option<(i64, Career)>, StoreError> {
        let sql = "SELECT u.no, c.session, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = $1";
        let read = |row: &dyn Columns| {
            let no = row.integer(0)?;
            Ok((no, read_career(no, row, 1)))
        };
        self.find(sql, &[Value::prose(user.as_str())], read).await
    }

    /// Returns the ended sessions of a user, newest first; `None` if the user is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, StoreError> {
        let Some((no, career)) = self.find_known(user).await? else { return Ok(None) };
        let total = career.played.max(0);
        let newest = total.saturating_sub(count(offset));
        let sql = format!(
            "SELECT {} FROM careers c JOIN sessions s ON s.no = c.session
             WHERE c.user_no = $1 AND c.n BETWEEN 1 AND $2 ORDER BY c.n DESC LIMIT $3",
            columns::<Sessions>("s.")
        );
        let values = [no.into(), newest.into(), count(limit as u64).into()];
        let items = self.list(&sql, &values, |row| Ok(read_session(row)?.1)).await?;
        Ok(Some(Page { items, total: total.unsigned_abs() }))
    }

    /// Returns the standings of a user; `None` if the user is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_standings(&self, user: &UserId) -> Result<Option<PlayerStandings>, StoreError> {
        let Some((_, Career { mut standings, .. })) = self.find_known(user).await? else { return Ok(None) };
        self.add_scripted(user, &mut standings).await?;
        Ok(Some(standings))
    }
}
