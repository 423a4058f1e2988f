//! Parsing of channel names in requests.

use arena_model::{Channel, SessionId};

/// Parses the channel of a stream or a chat sync. A session's id names the session's chat; `challenge_` and a session's id name its
/// operator channel. `None` means an unknown channel, which is empty.
pub(crate) fn parse_channel(name: &str) -> Option<Channel> {
    match (name, name.strip_prefix("challenge_")) {
        ("invites", _) => Some(Channel::Invites),
        (_, Some(id)) => id.parse().ok().map(Channel::Operator),
        (id, None) => id.parse().ok().map(Channel::Chat),
    }
}

/// Parses the operator channel of a session, with or without its prefix.
pub(crate) fn parse_operator_channel(name: &str) -> Option<Channel> {
    let id: SessionId = name.strip_prefix("challenge_").unwrap_or(name).parse().ok()?;
    Some(Channel::Operator(id))
}
