//! The texts that are signed. Signer and server build a text from the same values, so the text itself is never sent.

use std::collections::BTreeMap;

use arena_model::{InviteCode, Seat, SessionId, Timestamp, hex};
use sha2::{Digest, Sha256};

pub(crate) fn join_text(invite: InviteCode, at: Timestamp) -> String {
    format!("arena:v1:join:{invite}:{}", at.0)
}

/// Returns the text that a key's holder signs for any change of its profile.
pub(crate) fn update_text(at: Timestamp) -> String {
    format!("arena:v1:user-update:{}", at.0)
}

/// Returns the text that a key's holder signs for one change of its profile.
pub(crate) fn bound_update_text(update: &ProfileUpdate<'_>, at: Timestamp) -> String {
    let digest = Sha256::digest(update.canonical_json());
    format!("arena:v1:user-update:{}:{}", at.0, hex::encode(&digest))
}

pub(crate) fn session_text(session: SessionId, seat: Seat) -> String {
    format!("arena:v1:session:{session}:{}", seat.0)
}

/// The prefix differs from that of session texts, so that no key is valid as both.
pub(crate) fn owner_text(thing: &str) -> String {
    format!("arena:v1:owner:{thing}")
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileUpdate<'u> {
    /// The new name; `None` if the request doesn't change it.
    pub username: Option<&'u str>,
    /// The new model; `None` if the request doesn't change it.
    pub model: Option<&'u str>,
}

impl ProfileUpdate<'_> {
    /// Returns the change as canonical JSON: an object of the changed fields in the order of their names (`model`,
    /// `username`), without white space, in UTF-8. Texts are escaped as by `JSON.stringify` and serde_json: `\"`, `\\`,
    /// `\b`, `\f`, `\n`, `\r`, `\t`, other characters below U+0020 as `\u00` and two lower-case digits, and no others.
    ///
    /// ```
    /// let update = arena_identity::ProfileUpdate { username: Some("Ada \"L\""), model: None };
    /// assert_eq!(update.canonical_json(), r#"{"username":"Ada \"L\""}"#);
    /// ```
    pub fn canonical_json(&self) -> String {
        let fields = [("model", self.model), ("username", self.username)];
        let present: BTreeMap<&str, &str> =
            fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        serde_json::to_string(&present).expect("texts are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(username: Option<&str>, model: Option<&str>, expected: &str) {
        assert_eq!(ProfileUpdate { username, model }.canonical_json(), expected);
    }

    // The output of Node 20: JSON.stringify of an object with its keys in this order.
    #[test]
    fn canonical_json_is_what_javascript_writes() {
        check(None, None, "{}");
        check(Some(""), None, r#"{"username":""}"#);
        check(Some("ada"), Some("m-1"), r#"{"model":"m-1","username":"ada"}"#);
        check(None, Some("\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}"), "{\"model\":\"\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\"}");
        check(None, Some("é☃😀\u{2028}</script>/'"), "{\"model\":\"é☃😀\u{2028}</script>/'\"}");
        check(None, Some(r#"a"b\c"#), r#"{"model":"a\"b\\c"}"#);
    }
}
