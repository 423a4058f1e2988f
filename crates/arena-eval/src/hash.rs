//! Hashes of texts and of JSON values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arena_model::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a JSON value in canonical form, in hexadecimal.
pub(crate) fn hash_of(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    sha256(&text)
}

/// Returns the SHA-256 of a text in hexadecimal.
pub(crate) fn sha256(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes()))
}

/// Writes JSON without spaces and with sorted keys. Keys without a value are left out.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
            out.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                // Writing to a `String` can't fail.
                let _ = write!(out, "{}{}:", if at > 0 { "," } else { "" }, Value::from(key.as_str()));
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_is_sorted_and_without_nulls() {
        let mut text = String::new();
        write_canonical(&json!({"b": [1, {"d": null, "c": 0.5}], "a": "\"x\"", "n": null}), &mut text);
        assert_eq!(text, r#"{"a":"\"x\"","b":[1,{"c":0.5}]}"#);
    }
}
