//! The context of writes in a transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::Scoring;
use tokio_postgres::Statement;

use crate::StoreError;
use crate::errors::{Failure, WriteError};
use crate::mirror::Effects;
use crate::numbers::Numbers;
use crate::sql::{Columns, Db, Value};

/// The statements with which a node of a shared database locks and numbers rows.
pub(crate) struct Locks {
    pub(crate) lock_number: Statement,
    pub(crate) lock_users: Statement,
    pub(crate) lock_numbers_of_users: Statement,
    pub(crate) number_users: Statement,
}

/// The context of writes in a transaction that isn't durable yet.
pub(crate) struct Writing {
    pub(crate) db: Db,
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) numbers: Numbers,
    pub(crate) effects: Effects,
    /// The kinds of rare changes in this transaction, for other nodes of a shared database.
    pub(crate) changed: BTreeSet<&'static str>,
    /// `None` unless the database is shared.
    pub(crate) locks: Option<Locks>,
}

impl Writing {
    /// True if other nodes use the database, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.locks.is_some()
    }

    /// Locks the last number of a kind of rows against other nodes until the commit, so that rows are numbered in the order
    /// of commits. After users and counts of strategies, transactions lock [`AUDIT`](crate::tables::AUDIT), `REMOVED`, `COUNTS` and `ENDINGS` in this order, so
    /// that nodes can't deadlock, and last, because other nodes wait.
    pub(crate) async fn lock_number(&mut self, kind: &str) -> Result<(), Failure> {
        if let (Some(locks), Db::Postgres(client)) = (&self.locks, &self.db) {
            client.execute(&locks.lock_number, &[&kind]).await?;
        }
        Ok(())
    }

    /// Counts a change of a session that leaves its version, for other nodes. The caller changes the session's other rows
    /// later, as removals do.
    pub(crate) async fn count_edit(&mut self, no: i64) -> Result<(), Failure> {
        if self.is_shared() {
            self.db.execute("UPDATE sessions SET edits = edits + 1 WHERE no = $1", &[no.into()]).await?;
        }
        Ok(())
    }

    /// Locks the careers and profiles of these users against other nodes until the commit.
    pub(crate) async fn lock_users<'u>(&mut self, users: impl IntoIterator<Item = &'u str>) -> Result<(), Failure> {
        if let (Some(locks), Db::Postgres(client)) = (&self.locks, &self.db) {
            let users: Vec<Value<'_>> = users.into_iter().map(Value::prose).collect();
            client.execute(&locks.lock_users, &[&users]).await?;
        }
        Ok(())
    }

    /// Returns the number of a user, and adds the user if it is unknown.
    pub(crate) async fn user_no(&mut self, id: &str) -> Result<i64, Failure> {
        let (find, id) = ("SELECT no FROM users WHERE id = $1", [Value::prose(id)]);
        if let Some(no) = self.db.find(find, &id, |row| row.integer(0)).await? {
            return Ok(no);
        }
        if let (Some(locks), Db::Postgres(client)) = (&self.locks, &self.db) {
            // Another node may have added the user in the meantime.
            client.execute(&locks.lock_numbers_of_users, &[]).await?;
            client.execute(&locks.number_users, &[&&id[..]]).await?;
            return self.db.number(find, &id).await;
        }
        self.numbers.user += 1;
        let [id] = id;
        self.db.execute("INSERT INTO users (no, id) VALUES ($1, $2)", &[self.numbers.user.into(), id]).await?;
        Ok(self.numbers.user)
    }

    /// Begins secure deletion: until [`Writing::end_erasing`], writes leave no trace of deleted content. SQLite overwrites
    /// the content in the database file, and empties the write-ahead log after the commit. Other writes don't have this
    /// cost. Postgres has no such setting.
    pub(crate) fn begin_to_erase(&mut self) -> Result<(), WriteError> {
        self.set_secure_delete(true)
    }

    pub(crate) fn end_erasing(&mut self) -> Result<(), WriteError> {
        self.effects.erased = true;
        self.set_secure_delete(false)
    }

    /// Lets SQLite overwrite deleted content in the database file, or not. The write-ahead log may keep it until it is
    /// emptied.
    pub(crate) fn set_secure_delete(&mut self, secure: bool) -> Result<(), WriteError> {
        match &self.db {
            Db::Sqlite(connection) => Ok(connection.pragma_update(None, "secure_delete", secure)?),
            Db::Postgres(_) | Db::Reader(_) => Ok(()),
        }
    }
}

/// Reads the last assigned row numbers.
pub(crate) async fn read_numbers(db: &mut Db) -> Result<Numbers, StoreError> {
    let read =
        |row: &dyn Columns| Ok(Numbers { session: row.integer(0)?, user: row.integer(1)?, ending: row.integer(2)? });
    Ok(db.find(Numbers::LAST, &[], read).await?.unwrap_or_default())
}
