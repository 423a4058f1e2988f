//! The forms of requests that an endpoint accepts. Some endpoints reject a request because of a key that others need,
//! and name the key. The request is then sent again in another form, as are all later requests. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The keys without which an answer in the history is incomplete, in all APIs.
const NEEDED: [&str; 17] = [
    "arguments",
    "call_id",
    "content",
    "data",
    "encrypted_content",
    "function",
    "id",
    "input",
    "name",
    "refusal",
    "role",
    "signature",
    "summary",
    "text",
    "thinking",
    "tool_calls",
    "type",
];

/// The parts of errors that reject a key. `remove` is DeepSeek's.
const REJECTING: [&str; 9] = [
    "unsupported",
    "not supported",
    "not permitted",
    "not allowed",
    "forbidden",
    "unexpected",
    "unknown",
    "unrecognized",
    "remove",
];

/// The forms that an endpoint has asked for.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// The keys that the endpoint rejects: state of the provider in the answers of the history, such as its reasoning,
    /// and `max_tokens`, which `max_completion_tokens` replaces.
    rejected: Mutex<BTreeSet<String>>,
}

impl Habits {
    /// Returns a request's body in the form that the endpoint accepts.
    pub fn adapt<'b>(&self, body: &'b [u8]) -> Cow<'b, [u8]> {
        let rejected = self.rejected.lock();
        if rejected.is_empty() {
            return Cow::Borrowed(body);
        }
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(body) else { return Cow::Borrowed(body) };
        if rejected.contains("max_tokens")
            && let Some(limit) = object.remove("max_tokens")
        {
            object.entry("max_completion_tokens").or_insert(limit);
        }
        retain_state(&mut object, &mut |key| !rejected.contains(key));
        Cow::Owned(Value::Object(object).to_string().into_bytes())
    }

    /// Learns from the endpoint's error about a body. Returns true if the endpoint may accept the body in another form.
    pub fn learn(&self, body: &[u8], error: &str) -> bool {
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(body) else { return false };
        let lower = error.to_ascii_lowercase();
        let is_rejecting = REJECTING.iter().any(|word| lower.contains(word));
        let is_named =
            |key: &str| error.split(|char: char| !char.is_alphanumeric() && char != '_').any(|word| word == key);
        let mut named = BTreeSet::new();
        if let Some(limit) = object.get("max_tokens") {
            // An error that names the number isn't about the key.
            let is_rejected = is_rejecting && is_named("max_tokens") && !is_named(&limit.to_string());
            named.extend((is_rejected || error.contains("max_completion_tokens")).then(|| "max_tokens".to_owned()));
        }
        if is_rejecting {
            retain_state(&mut object, &mut |key| {
                named.extend(is_named(key).then(|| key.to_owned()));
                true
            });
        }
        let is_learned = !named.is_empty();
        self.rejected.lock().append(&mut named);
        is_learned
    }
}

/// Keeps the provider's state in the answers of a body's history for whose keys `is_kept` returns true.
fn retain_state(object: &mut Map<String, Value>, is_kept: &mut dyn FnMut(&str) -> bool) {
    let histories = object.iter_mut().filter(|(key, _)| matches!(key.as_str(), "input" | "messages"));
    for entry in histories.filter_map(|(_, history)| history.as_array_mut()).flatten() {
        // The calls and the reasoning of Responses have no role.
        if entry.get("role").map_or(entry["type"] != "function_call_output", |role| role == "assistant") {
            retain_in(entry, is_kept);
        }
    }
}

fn retain_in(value: &mut Value, is_kept: &mut dyn FnMut(&str) -> bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| retain_in(item, is_kept)),
        Value::Object(entries) => {
            entries.retain(|key, _| NEEDED.contains(&key.as_str()) || is_kept(key));
            // The arguments of calls are the model's.
            let own = entries.iter_mut().filter(|(key, _)| !matches!(key.as_str(), "arguments" | "input"));
            own.for_each(|(_, value)| retain_in(value, is_kept));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_key_is_left_out_from_then_on() {
        let body = br#"{"max_tokens":5,"messages":[{"content":"a","reasoning":"hm","role":"assistant"}]}"#;
        let new_limit = r#""max_completion_tokens":5,"#;
        let cases = [
            ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", true, new_limit, "hm"),
            ("Unsupported parameter: 'max_tokens'", true, new_limit, "hm"),
            ("'messages.1': property 'reasoning' is unsupported", true, r#""max_tokens":5,"#, ""),
            (r#"{"type": "extra_forbidden", "loc": ["body", "reasoning"]}"#, true, r#""max_tokens":5,"#, ""),
            // These errors aren't about the form.
            ("max_tokens is too large: 5", false, r#""max_tokens":5,"#, "hm"),
            ("max_tokens: 5 isn't supported, the maximum is 4; unsupported value", false, r#""max_tokens":5,"#, "hm"),
            ("Missing `reasoning` field", false, r#""max_tokens":5,"#, "hm"),
            ("content is not supported", false, r#""max_tokens":5,"#, "hm"),
        ];
        for (error, is_learned, limit, reasoning) in cases {
            let habits = Habits::default();
            assert_eq!(habits.adapt(body), &body[..]);
            assert_eq!(habits.learn(body, error), is_learned, "{error}");
            let adapted = habits.adapt(body).into_owned();
            let text = String::from_utf8_lossy(&adapted);
            assert!(text.contains(limit) && text.contains("\"reasoning\"") != reasoning.is_empty(), "{text}");
            assert!(!habits.learn(&adapted, error), "the same error about the new form isn't repaired again: {error}");
        }
    }
    #[test]
    fn rejected_state_is_left_out_of_the_history_of_any_api() {
        let (chat, responses, anthropic) = (
            r#"{"messages":[{"content":"index","role":"user","index":0},{"index":1,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"c","note":1,"type":"function"}]}]}"#,
            r#"{"input":[{"content":"a","phase":"x","role":"user"},{"call_id":"c","name":"f","phase":"x","type":"function_call"},{"call_id":"c","output":"o","phase":"x","type":"function_call_output"}]}"#,
            r#"{"messages":[{"content":[{"caller":{"type":"direct"},"id":"t","input":{"caller":"a"},"name":"f","type":"tool_use"}],"role":"assistant"}]}"#,
        );
        let not_permitted = |place: &str| format!("{place}: Extra inputs are not permitted");
        let unknown = |place: &str| format!("Unknown parameter: '{place}'");
        for (body, error, place) in [
            (chat, not_permitted("messages.1.index"), Some("/messages/1")),
            (chat, unknown("messages[1].tool_calls[0].note"), Some("/messages/1/tool_calls/0")),
            (responses, unknown("input[1].phase"), Some("/input/1")),
            (anthropic, not_permitted("messages.0.content.0.tool_use.caller"), Some("/messages/0/content/0")),
            // Without these keys, an answer would be incomplete.
            (chat, unknown("messages[1].tool_calls"), None),
            (anthropic, not_permitted("messages.0.content.0.id"), None),
        ] {
            let habits = Habits::default();
            assert_eq!(habits.learn(body.as_bytes(), &error), place.is_some(), "{error}");
            let mut expected: Value = serde_json::from_str(body).unwrap();
            if let Some(place) = place {
                let entry = expected.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
                let left_out = ["caller", "index", "note", "phase"].into_iter().find(|key| error.contains(key));
                assert!(left_out.and_then(|key| entry.remove(key)).is_some(), "{error}");
            }
            let adapted = habits.adapt(body.as_bytes()).into_owned();
            assert_eq!(serde_json::from_slice::<Value>(&adapted).unwrap(), expected, "{error}");
            assert!(!habits.learn(&adapted, &error), "{error}");
        }
    }
}
