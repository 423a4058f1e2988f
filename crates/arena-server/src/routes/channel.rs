//! Parsing of channel names in requests.

use arena_model::{Channel, SessionId};

/// Parses the channel of a stream or a chat sync. A session's id is the name of its chat, and `challenge_` with the id
/// the name of its operator channel. Returns `None` for an invalid name.
pub(crate) fn parse_channel(name: &str) -> Option<Channel> {
    match (name, name.strip_prefix("challenge_")) {
        ("invites", _) => Some(Channel::Invites),
        (_, Some(id)) => id.parse().ok().map(Channel::Operator),
        (id, None) => id.parse().ok().map(Channel::Chat),
    }
}

/// The prefix `challenge_` may be missing. Returns `None` for an invalid name.
pub(crate) fn parse_operator_channel(name: &str) -> Option<Channel> {
    let id: SessionId = name.strip_prefix("challenge_").unwrap_or(name).parse().ok()?;
    Some(Channel::Operator(id))
}
