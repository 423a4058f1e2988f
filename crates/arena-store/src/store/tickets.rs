//! The queue of each challenge: callers that wait for opponents.
//!
//! The result of a ticket is an entry of `answers` under the ticket's hash. The commit that creates a session stores the
//! results of all its tickets, and fails if one of them has a result already. So no ticket gets two seats, also with
//! several nodes.

use arena_model::{Timestamp, hex};

use crate::errors::WriteError;
use crate::sql::{Columns, Value};
use crate::tables::Answers;
use crate::writing::Writing;
use crate::{CommitError, NewAnswer, Store, StoreError};

/// A caller that waits for opponents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTicket {
    /// SHA-256 of the ticket.
    pub hash: [u8; 32],
    pub challenge: String,
    pub network: String,
    /// Milliseconds after which house bots may step in; `None` if the caller didn't agree to that.
    pub house_ms: Option<i64>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// In one challenge's queue.
    pub per_challenge: i64,
    /// Of one network; `None` for no limit.
    pub per_network: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketRefusal {
    QueueFull,
    NetworkFull { limit: i64 },
}

const COLUMNS: &str = "ticket, type, network, house_ms, at";

fn read(row: &dyn Columns) -> Result<QueuedTicket, StoreError> {
    let hash = hex::decode(row.text(0)?);
    Ok(QueuedTicket {
        hash: hash.ok_or_else(|| StoreError::damaged("a ticket of a queue", "its hash is invalid"))?,
        challenge: row.text(1)?.to_owned(),
        network: row.text(2)?.to_owned(),
        house_ms: row.integer_or_null(3)?,
        at: Timestamp(row.integer(4)?),
    })
}

fn key(hash: &[u8; 32]) -> Value<'static> {
    hex::encode(hash).into()
}

impl Store {
    /// Adds a ticket, and the answer to the request. Deletes all tickets that nobody has polled since `stale`. The
    /// inner error means that there are too many tickets already.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if there is an answer under the key of `answer`; or if the store can't write.
    pub async fn add_ticket(
        &self,
        ticket: QueuedTicket,
        answer: Option<NewAnswer>,
        limits: QueueLimits,
        stale: Timestamp,
    ) -> Result<Result<(), TicketRefusal>, CommitError> {
        self.write((ticket, answer), move |(ticket, answer), writing| {
            Box::pin(async move {
                let QueuedTicket { hash, challenge, network, house_ms, at } = ticket;
                writing.db.execute("DELETE FROM queue WHERE seen_at < $1", &[stale.0.into()]).await?;
                let count = "SELECT count(*) FROM queue WHERE type = $1";
                let waiting = writing.db.number(count, &[challenge.as_str().into()]).await?;
                let count = "SELECT count(*) FROM queue WHERE network = $1";
                let of_network = writing.db.number(count, &[network.as_str().into()]).await?;
                if waiting >= limits.per_challenge {
                    return Ok(Err(TicketRefusal::QueueFull));
                }
                if let Some(limit) = limits.per_network.filter(|most| of_network >= *most) {
                    return Ok(Err(TicketRefusal::NetworkFull { limit }));
                }
                if let Some(answer) = answer
                    && !insert_answer(writing, answer).await?
                {
                    return Err(CommitError::Conflict.into());
                }
                let sql =
                    "INSERT INTO queue (ticket, type, network, house_ms, at, seen_at) VALUES ($1, $2, $3, $4, $5, $6)";
                let (challenge, network) = (challenge.as_str().into(), network.as_str().into());
                let values = [key(hash), challenge, network, (*house_ms).into(), at.0.into(), at.0.into()];
                writing.db.execute(sql, &values).await?;
                Ok(Ok(()))
            })
        })
        .await
    }

    /// Returns the number of tickets of each network, without tickets that nobody has polled since `stale`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_tickets(&self, stale: Timestamp) -> Result<Vec<(String, u64)>, StoreError> {
        let sql = "SELECT network, count(*) FROM queue WHERE seen_at >= $1 GROUP BY network";
        let read = |row: &dyn Columns| Ok((row.text(0)?.to_owned(), row.integer(1)?.unsigned_abs()));
        self.list(sql, &[stale.0.into()], read).await
    }

    /// Returns the number of waiting tickets of each challenge that has some, without tickets that nobody has polled since
    /// `since`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_waiting(&self, since: Timestamp) -> Result<Vec<(String, u64)>, StoreError> {
        let sql = "SELECT type, count(*) FROM queue WHERE seen_at >= $1 GROUP BY type";
        let read = |row: &dyn Columns| Ok((row.text(0)?.to_owned(), row.integer(1)?.unsigned_abs()));
        self.list(sql, &[since.0.into()], read).await
    }

    /// Records a poll of a waiting ticket, and returns the ticket. Returns `None` if it doesn't wait, or if its last poll
    /// was before `stale`.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn see_ticket(
        &self,
        hash: [u8; 32],
        now: Timestamp,
        stale: Timestamp,
    ) -> Result<Option<QueuedTicket>, CommitError> {
        let seen = self.write(hash, move |hash, writing| {
            Box::pin(async move {
                let sql = "UPDATE queue SET seen_at = $1 WHERE ticket = $2 AND seen_at >= $3";
                Ok(writing.db.execute(sql, &[now.0.into(), key(hash), stale.0.into()]).await? > 0)
            })
        });
        if !seen.await? {
            return Ok(None);
        }
        let sql = format!("SELECT {COLUMNS} FROM queue WHERE ticket = $1");
        Ok(self.find(&sql, &[key(&hash)], read).await?)
    }

    /// Returns the waiting tickets of a challenge that were polled since `since`, in the order of joining, at most
    /// `limit`. If `only_house` is true, returns only the tickets of callers that accept house bots.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_tickets(
        &self,
        challenge: &str,
        since: Timestamp,
        only_house: bool,
        limit: usize,
    ) -> Result<Vec<QueuedTicket>, StoreError> {
        let filter = if only_house { "AND house_ms IS NOT NULL" } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM queue WHERE type = $1 AND seen_at >= $2 {filter} ORDER BY at, ticket LIMIT $3"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.list(&sql, &[challenge.into(), since.0.into(), limit.into()], read).await
    }

    /// Deletes tickets that have a result.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_tickets(&self, hashes: Vec<[u8; 32]>) -> Result<(), CommitError> {
        self.write(hashes, |hashes, writing| {
            Box::pin(async move {
                for hash in hashes {
                    writing.db.execute("DELETE FROM queue WHERE ticket = $1", &[key(hash)]).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// Takes a waiting ticket out of a challenge's queue, with `answer` as its result. Returns false if the ticket doesn't
    /// wait there, or has a result already.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn leave_queue(&self, challenge: String, answer: NewAnswer) -> Result<bool, CommitError> {
        self.write((challenge, answer), |(challenge, answer), writing| {
            Box::pin(async move {
                let sql = "DELETE FROM queue WHERE ticket = $1 AND type = $2";
                let waited = writing.db.execute(sql, &[key(&answer.key), challenge.as_str().into()]).await? > 0;
                Ok(waited && insert_answer(writing, answer).await?)
            })
        })
        .await
    }
}

/// Stores an answer. Returns false if there is one under its key.
async fn insert_answer(writing: &mut Writing, answer: &NewAnswer) -> Result<bool, WriteError> {
    Ok(writing.db.insert::<Answers>(&[answer], "ON CONFLICT DO NOTHING").await? > 0)
}
