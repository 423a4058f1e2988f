//! Messages of sessions, and of the public channel.

use arena_model::{Channel, ChatMessage, ContentHash, SessionId};

use crate::sql::{Columns, columns, count};
use crate::tables::{Messages, channel_number, read_commitment, read_message, session_channel};
use crate::{SessionNo, Store, StoreError};

/// The number of bytes of text after which a read of messages stops. It limits the memory of one reader.
const READ_BYTES: usize = 1024 * 1024;

impl Store {
    /// Returns messages of a channel from index `from` on, in order. There are at most `limit` messages, and fewer if
    /// their texts are long, but at least one if the channel has one. `no` is the session's number, or `None` for the
    /// public channel.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.list_messages_within(no, channel, from, limit, READ_BYTES).await
    }

    /// Returns the same messages as [`Store::list_messages`], up to the message at which the total size of the texts
    /// reaches `most_bytes`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages_within(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
            Store::Postgres(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
        }
    }

    /// Returns messages of all channels of a session in the order of their commits, with their positions in this order
    /// from 1: at most `limit` messages after position `after`. `no` and `id` belong to the same session. In Postgres,
    /// messages without a number, which older programs wrote, come first, in the order of time.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_session_messages(
        &self,
        no: SessionNo,
        id: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, ChatMessage)>, StoreError> {
        let sql = format!(
            "SELECT {} FROM messages WHERE session = $1 ORDER BY coalesce(no, 0), at, channel, idx LIMIT $2 OFFSET $3",
            columns::<Messages>("")
        );
        let read = |row: &dyn Columns| {
            let channel = session_channel(row.integer(Messages::Channel as usize)?, id)?;
            read_message(row, channel)
        };
        let values = [no.0.into(), count(limit as u64).into(), count(after).into()];
        Ok((after + 1..).zip(self.list(&sql, &values, read).await?).collect())
    }

    /// Returns the size of a session's messages, in bytes: the contents of all channels.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn session_bytes(&self, no: SessionNo) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(coalesce(sum(octet_length(content)), 0) AS BIGINT) FROM messages WHERE session = $1";
        Ok(self.number(sql, &[no.0.into()]).await?.unsigned_abs())
    }

    /// Returns the size of a session's chat, in bytes.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn chat_bytes(&self, no: SessionNo) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(coalesce(sum(octet_length(content)), 0) AS BIGINT) FROM messages \
                   WHERE session = $1 AND channel = 0";
        Ok(self.number(sql, &[no.0.into()]).await?.unsigned_abs())
    }

    /// Returns the stored commitments of a session's hidden messages, by channel and index. `no` and `id` belong to the
    /// same session.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_commitments(
        &self,
        no: SessionNo,
        id: SessionId,
    ) -> Result<Vec<((Channel, u64), ContentHash)>, StoreError> {
        let sql = "SELECT channel, idx, commitment FROM messages WHERE session = $1 AND commitment IS NOT NULL";
        self.list(sql, &[no.0.into()], |row| {
            let place = (session_channel(row.integer(0)?, id)?, row.integer(1)?.unsigned_abs());
            Ok(read_commitment(row, 2, id)?.map(|commitment| (place, commitment)))
        })
        .await
        .map(|found| found.into_iter().flatten().collect())
    }

    /// Returns the number of messages in the public channel.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn public_len(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(idx), 0) FROM messages WHERE session = 0 AND channel = $1";
        Ok(self.number(sql, &[channel_number(Channel::Invites).into()]).await?.unsigned_abs())
    }
}
