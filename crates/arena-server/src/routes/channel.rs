//! Names of channels in requests.

use arena_model::{Channel, SessionId};

/// The channel that a stream or a chat sync names: a session's id is its chat, `challenge_` before it its operator's
/// channel. Other names are channels in which nothing ever stands.
pub(crate) fn parse_channel(name: &str) -> Option<Channel> {
    match (name, name.strip_prefix("challenge_")) {
        ("invites", _) => Some(Channel::Invites),
        (_, Some(id)) => id.parse().ok().map(Channel::Operator),
        (id, None) => id.parse().ok().map(Channel::Chat),
    }
}

/// The operator channel of a session, named with or without its prefix.
pub(crate) fn parse_operator_channel(name: &str) -> Option<Channel> {
    let id: SessionId = name.strip_prefix("challenge_").unwrap_or(name).parse().ok()?;
    Some(Channel::Operator(id))
}
