//! The forms of requests that an endpoint accepts. Some endpoints reject a request because of a key that others need,
//! and name the key. The request is then sent again in another form, as are all later requests. Pure.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

/// The keys of an answer that each endpoint accepts in the history.
const PLAIN: [&str; 4] = ["content", "refusal", "role", "tool_calls"];

/// The parts of errors that reject a key. `remove` is DeepSeek's.
const REJECTING: [&str; 7] =
    ["unsupported", "not supported", "not permitted", "forbidden", "unknown", "unrecognized", "remove"];

/// The forms that an endpoint of the API Chat Completions has asked for.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// True if the limit of output tokens is `max_completion_tokens` instead of `max_tokens`.
    has_new_limit: AtomicBool,
    /// True if answers in the history have no state of the provider, such as its reasoning.
    has_plain_answers: AtomicBool,
}

impl Habits {
    /// Returns a request's body in the form that the endpoint accepts.
    pub fn adapt<'b>(&self, body: &'b [u8]) -> Cow<'b, [u8]> {
        let (is_new, is_plain) =
            (self.has_new_limit.load(Ordering::Relaxed), self.has_plain_answers.load(Ordering::Relaxed));
        if !is_new && !is_plain {
            return Cow::Borrowed(body);
        }
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(body) else { return Cow::Borrowed(body) };
        if is_new && let Some(limit) = object.remove("max_tokens") {
            object.entry("max_completion_tokens").or_insert(limit);
        }
        if is_plain {
            for answer in answers(&mut object) {
                answer.retain(|key, _| PLAIN.contains(&key.as_str()));
            }
        }
        Cow::Owned(Value::Object(object).to_string().into_bytes())
    }

    /// Learns from the endpoint's error about a body. Returns true if the endpoint may accept the body in another form.
    pub fn learn(&self, body: &[u8], error: &str) -> bool {
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(body) else { return false };
        if object.contains_key("max_tokens") && error.contains("max_completion_tokens") {
            self.has_new_limit.store(true, Ordering::Relaxed);
            return true;
        }
        let lower = error.to_ascii_lowercase();
        let is_rejecting = REJECTING.iter().any(|word| lower.contains(word));
        let is_named = |key: &String| !PLAIN.contains(&key.as_str()) && error.contains(key.as_str());
        if is_rejecting && answers(&mut object).any(|answer| answer.keys().any(is_named)) {
            self.has_plain_answers.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }
}

/// Returns the answers in the history of a body.
fn answers(object: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let messages = object.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    messages
        .filter_map(Value::as_object_mut)
        .filter(|message| message.get("role").is_some_and(|role| role == "assistant"))
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
            ("'messages.1': property 'reasoning' is unsupported", true, r#""max_tokens":5,"#, ""),
            (r#"{"type": "extra_forbidden", "loc": ["body", "reasoning"]}"#, true, r#""max_tokens":5,"#, ""),
            // These errors aren't about the form.
            ("max_tokens is too large: 5", false, r#""max_tokens":5,"#, "hm"),
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
}
