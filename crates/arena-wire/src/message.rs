//! Messages of channels.

use arena_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

// The server writes messages in this form without copying them into this type.
/// A message of a channel, as far as the viewer may read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChatMessage)]
pub struct Message {
    /// The session's id, `challenge_` and the session's id, or `invites`.
    #[serde(default)]
    #[schema(required = true)]
    pub channel: String,
    /// An invite, or `operator`.
    pub from: String,
    /// An invite; absent if the message is for everyone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The text; empty if redacted.
    #[serde(default)]
    #[schema(required = true)]
    pub content: String,
    /// The position in the channel, from 1.
    #[schema(minimum = 1)]
    pub index: u64,
    #[serde(default, deserialize_with = "read_ms")]
    #[schema(required = true)]
    pub timestamp: Timestamp,
    /// True if this viewer may not read the text, or the administrator has hidden it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// SHA-256 of the text, as hexadecimal digits, if the administrator has hidden it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub content_sha256: Option<String>,
    /// The called method, if the message records an action.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Messages of a channel, in the order of their indexes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Messages {
    pub messages: Vec<Message>,
    /// The number of messages.
    #[serde(default)]
    #[schema(required = true)]
    pub count: u64,
}

/// Reads milliseconds, which some arenas write with a fraction.
fn read_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    f64::deserialize(deserializer).map(|ms| Timestamp(ms as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::{Channel, ChatMessage, ContentHash, InviteCode, Party, SessionId, Viewer, redact};
    use uuid::Uuid;

    #[test]
    fn the_servers_messages_can_be_parsed() {
        let player = || Party::Player(InviteCode(Uuid::from_u128(1)));
        for (to, method, hidden) in [
            (None, None, None),
            (Some(player()), Some("guess".to_owned()), None),
            (Some(player()), None, Some(ContentHash::of("it"))),
        ] {
            let channel = Channel::Operator(SessionId(Uuid::from_u128(7)));
            let (from, content) = (Party::Operator, "hello".to_owned());
            let message = ChatMessage { channel, index: 1, from, to, content, method, at: Timestamp(5), hidden };
            for viewer in [Viewer::Nobody, Viewer::Player(InviteCode(Uuid::from_u128(1)))] {
                let written = serde_json::to_value(redact(&message, viewer, false, false)).expect("JSON");
                let read: Message = serde_json::from_value(written.clone()).expect("a message");
                assert_eq!(serde_json::to_value(read).expect("JSON"), written);
            }
        }
    }

    #[test]
    fn messages_of_other_arenas_may_lack_fields() {
        let message: Message =
            serde_json::from_str(r#"{"from": "a", "to": null, "index": 2, "timestamp": 1.5, "more": 1}"#).expect("one");
        assert_eq!((message.timestamp, message.content.as_str(), message.redacted), (Timestamp(1), "", false));
    }
}
