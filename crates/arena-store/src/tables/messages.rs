//! The table `messages`.

use std::borrow::Cow;

use arena_model::{Channel, ChatMessage, ContentHash, Party, SessionId, Timestamp};

use super::text::parse;
use crate::StoreError;
use crate::sql::{Columns, Value, table};

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
