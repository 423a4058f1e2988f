//! Replies: the parser for the lines of agents. `seat.rs` decides the consequences of errors.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The maximum length of the recorded `info` of a reply, in bytes.
pub const MAX_INFO: usize = 2048;

/// A parsed line of an agent: a JSON object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reply<'a> {
    #[serde(borrow)]
    agent_id: Option<&'a RawValue>,
    #[serde(borrow)]
    actions: Option<&'a RawValue>,
    /// A frequent misspelling of `actions`.
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    r#move: Option<&'a RawValue>,
    #[serde(borrow)]
    pong: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_name: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_version: Option<&'a RawValue>,
    #[serde(borrow)]
    fault: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
}

pub const MISNAMED: &str = "the reply has the key `action` instead of `actions`, so it does nothing";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes aren't UTF-8.
    #[error("the line isn't UTF-8")]
    NotUtf8,
    #[error("the line isn't a JSON object")]
    NotObject,
    /// The line isn't JSON, or the object has a key twice. Contains the parser's message.
    #[error("the line isn't JSON: {0}")]
    NotJson(String),
}

/// The agent that a line names in `agent_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The sender's own id.
    Own,
    /// No id: the key is missing.
    Missing,
    /// A value that isn't a string.
    Invalid,
    /// Another id, which may be a player's or unknown.
    Other(String),
}

impl<'a> Reply<'a> {
    /// Parses a line without its line end.
    ///
    /// # Errors
    /// If the line isn't a JSON object.
    pub fn read(line: &'a [u8]) -> Result<Reply<'a>, Unreadable> {
        let text = std::str::from_utf8(line).map_err(|_| Unreadable::NotUtf8)?;
        // Some programs on Windows begin their output with a byte order mark.
        let text = text.trim_start_matches('\u{feff}').trim_ascii();
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| Unreadable::NotJson(error.to_string()));
        }
        // The check is needed because serde would also accept a list of the values.
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Err(Unreadable::NotObject),
            Err(error) => Err(Unreadable::NotJson(error.to_string())),
        }
    }

    /// Compares the `agent_id` with the sender's. `own_id` is the sender's id as JSON text.
    pub fn claim(&self, own_id: &str) -> Claim {
        let Some(raw) = self.agent_id else { return Claim::Missing };
        if raw.get() == own_id {
            return Claim::Own;
        }
        // JSON allows several spellings of a string, because of escapes.
        let own = serde_json::from_str::<String>(own_id);
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) if own.is_ok_and(|own| own == text) => Claim::Own,
            Ok(text) => Claim::Other(text),
            Err(_) => Claim::Invalid,
        }
    }

    /// Returns true if the reply has a `pong` that isn't null.
    pub fn has_pong(&self) -> bool {
        self.pong.is_some()
    }

    /// Returns true if the reply has `actions` or `move`.
    pub fn has_actions(&self) -> bool {
        self.actions.is_some() || self.r#move.is_some()
    }

    /// Returns true if the reply has the key `action` where `actions` belongs.
    pub fn misnames_actions(&self) -> bool {
        self.action.is_some() && !self.has_actions()
    }

    /// Returns the text of the list of actions. A `move` without `actions`, as snake and chess agents send
    /// it, is one action. A reply with neither key has no actions.
    pub fn actions(&self) -> std::borrow::Cow<'a, str> {
        match (self.actions, self.r#move) {
            (Some(actions), _) => actions.get().into(),
            (None, Some(step)) => format!(r#"[{{"action":"move","move":{}}}]"#, step.get()).into(),
            (None, None) => "[]".into(),
        }
    }

    /// Returns the agent's own description of its fault, such as an exception in it.
    pub fn fault(&self) -> Option<String> {
        serde_json::from_str(self.fault?.get()).ok()
    }

    /// Returns the text of `info`, if it is an object of at most [`MAX_INFO`] bytes.
    pub fn info(&self) -> Option<&'a str> {
        self.info.map(RawValue::get).filter(|info| info.starts_with('{') && info.len() <= MAX_INFO)
    }

    /// Returns the agent's name, as [`short_label`] shows it.
    pub fn agent_name(&self) -> Option<String> {
        label(self.agent_name).as_deref().and_then(short_label)
    }

    /// Returns the agent's version, as [`short_label`] shows it.
    pub fn agent_version(&self) -> Option<String> {
        label(self.agent_version).as_deref().and_then(short_label)
    }

    /// Returns the key of the agent's name or version if it is too long to be shown.
    pub fn cut_label(&self) -> Option<&'static str> {
        let labels = [("agent_name", self.agent_name), ("agent_version", self.agent_version)];
        let is_cut = |raw| label(raw).is_some_and(|text| text.chars().count() > MAX_LABEL);
        labels.into_iter().find(|(_, raw)| is_cut(*raw)).map(|(key, _)| key)
    }
}

/// The maximum number of characters of an agent's name and version.
pub const MAX_LABEL: usize = 64;

/// Parses a label: a string, or a number, because some agents send their version as a number.
fn label(raw: Option<&RawValue>) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(raw?.get()).ok()?;
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a name or version without control characters, or `None` if it is empty. A text of more than [`MAX_LABEL`]
/// characters is cut and ends with an ellipsis.
pub fn short_label(text: &str) -> Option<String> {
    let mut text: String = text.chars().filter(|char| !char.is_control()).take(MAX_LABEL + 1).collect();
    if let Some((end, _)) = text.char_indices().nth(MAX_LABEL - 1).filter(|_| text.chars().count() > MAX_LABEL) {
        text.replace_range(end.., "…");
    }
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(line: &[u8], expected: Expect) {
        let actual = match Reply::read(line) {
            Ok(reply) => format!(
                "{:?} pong {} name {:?} version {:?} actions {}",
                reply.claim(r#""me""#),
                reply.has_pong(),
                reply.agent_name(),
                reply.agent_version(),
                if reply.has_actions() { reply.actions() } else { "none".into() },
            ),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn usual_replies() {
        check(
            br#"{"agent_id":"me","actions":[{"action":"move"}],"pong":"pong","epoch":7}"#,
            expect![[r#"Own pong true name None version None actions [{"action":"move"}]"#]],
        );
        check(
            b"  {\"agent_id\": \"m\\u0065\", \"agent_name\": \"A\\u0007b\", \"agent_version\": 2}\r",
            expect![[r#"Own pong false name Some("Ab") version Some("2") actions none"#]],
        );
        check(
            "\u{feff}{\"agent_id\":\"me\",\"pong\":1}\r".as_bytes(),
            expect!["Own pong true name None version None actions none"],
        );
    }

    #[test]
    fn a_long_name_is_cut_visibly() {
        let name = |length: usize| {
            let line = format!(r#"{{"agent_id":"me","agent_name":"{}"}}"#, "é".repeat(length));
            let reply = Reply::read(line.as_bytes()).unwrap();
            (reply.agent_name().unwrap(), reply.cut_label())
        };
        assert_eq!(name(64), ("é".repeat(64), None));
        assert_eq!(name(65), (format!("{}…", "é".repeat(63)), Some("agent_name")));
    }

    #[test]
    fn a_move_alone_is_an_action_and_a_list_rules() {
        check(
            br#"{"agent_id":"me","move":"UP"}"#,
            expect![[r#"Own pong false name None version None actions [{"action":"move","move":"UP"}]"#]],
        );
        check(
            br#"{"agent_id":"me","move":"UP","actions":[]}"#,
            expect!["Own pong false name None version None actions []"],
        );
    }

    #[test]
    fn whose_it_says_to_be() {
        check(br#"{"pong":null}"#, expect!["Missing pong false name None version None actions none"]);
        check(br#"{"agent_id":null}"#, expect!["Missing pong false name None version None actions none"]);
        check(br#"{"agent_id":["me"]}"#, expect!["Invalid pong false name None version None actions none"]);
        check(br#"{"agent_id":"you"}"#, expect![[r#"Other("you") pong false name None version None actions none"#]]);
    }

    #[test]
    fn what_is_no_reply() {
        check(b"hello", expect!["error: the line isn't JSON: expected value at line 1 column 1"]);
        check(br#"["me",[]]"#, expect!["error: the line isn't a JSON object"]);
        check(b"{\"agent_id\":\"\xff\"}", expect!["error: the line isn't UTF-8"]);
        check(
            br#"{"agent_id":"me","agent_id":"me"}"#,
            expect!["error: the line isn't JSON: duplicate field `agent_id` at line 1 column 27"],
        );
        check(
            format!("{{\"actions\":{}", "[".repeat(10_000)).as_bytes(),
            expect!["error: the line isn't JSON: EOF while parsing a list at line 1 column 10011"],
        );
        check(
            b"{\"agent_id\":\"me\"",
            expect!["error: the line isn't JSON: EOF while parsing an object at line 1 column 16"],
        );
    }
}
