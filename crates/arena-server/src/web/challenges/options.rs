//! The options of a challenge as fields of a form, made from their declared types.

use arena_model::ChallengeOption;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::error::{ApiError, ApiResult};
use crate::request::Query;
use crate::web::layout::explained;

/// The start of the name of a field. Without it, an option could have the name of another field.
const PREFIX: &str = "option.";

/// Renders a field for each option, filled with the default.
pub(super) fn fields(options: &[ChallengeOption]) -> Markup {
    html! {
        div.options {
            @for option in options {
                @let name = format!("{PREFIX}{}", option.name);
                @let hint = format!("hint-{name}");
                div {
                    @if option.kind == "boolean" {
                        // Browsers don't send an unchecked box.
                        input type="hidden" name=(name) value="false";
                        label.check {
                            input type="checkbox" name=(name) value="true" checked[option.default == Value::Bool(true)] aria-describedby=(hint);
                            span { (words(&option.name)) }
                        }
                    } @else {
                        label for=(name) { (words(&option.name)) }
                        (input(option, &name, &hint))
                    }
                    p.small.soft id=(hint) { (explained(&option.description)) (bounds(option)) }
                }
            }
        }
    }
}

fn input(option: &ChallengeOption, name: &str, hint: &str) -> Markup {
    let value = text_of(&option.default);
    let step = match &*option.kind {
        "integer" => Some("1"),
        "number" => Some("any"),
        _ => None,
    };
    html! {
        @if let Some(step) = step {
            input id=(name) name=(name) type="number" step=(step) min=[option.minimum.as_ref()] max=[option.maximum.as_ref()] value=(value) aria-describedby=(hint);
        } @else {
            input id=(name) name=(name) type="text" value=(value) spellcheck="false" autocomplete="off" aria-describedby=(hint);
        }
    }
}

/// Returns a sentence on the form and the bounds of an option's value.
fn bounds(option: &ChallengeOption) -> String {
    let form = match &*option.kind {
        "array" => " Separate the values with commas.",
        "object" | "null" => " A value in JSON.",
        _ => "",
    };
    match (&option.minimum, &option.maximum) {
        (Some(least), Some(most)) => format!("{form} {least} to {most}."),
        (Some(least), None) => format!("{form} At least {least}."),
        (None, Some(most)) => format!("{form} At most {most}."),
        (None, None) => form.to_owned(),
    }
}

/// Returns the name of an option as words: `maxRounds` and `max_rounds` become `Max rounds`.
fn words(name: &str) -> String {
    // The names of options that several games share are those of the protocol of matches.
    match name {
        "turnMs" => return "Time for a turn".to_owned(),
        "n_epochs" => return "Length of the game".to_owned(),
        _ => {}
    }
    let mut words = String::new();
    for char in name.chars() {
        match char {
            '_' | '-' => words.push(' '),
            _ if words.is_empty() => words.extend(char.to_uppercase()),
            _ if char.is_uppercase() && words.ends_with(char::is_lowercase) => {
                words.push(' ');
                words.extend(char.to_lowercase());
            }
            _ => words.push(char),
        }
    }
    words
}

/// Returns a value as the text of its field.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().map(text_of).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Returns the options that a form changes: those of the field `options`, a JSON object, and of the fields above.
///
/// # Errors
/// If a value has another type than its option.
pub(super) fn read(form: &Query, options: &[ChallengeOption]) -> ApiResult<Map<String, Value>> {
    let refuse = |text: String| ApiError::bad_request("INVALID_OPTIONS", text);
    let mut chosen: Map<String, Value> = match form.get("options").map(str::trim).filter(|text| !text.is_empty()) {
        None => Map::new(),
        Some(text) => {
            serde_json::from_str(text).map_err(|error| refuse(format!("options must be a JSON object: {error}")))?
        }
    };
    for option in options {
        // The check box comes after the field for an unchecked box.
        let Some(text) = form.all(&format!("{PREFIX}{}", option.name)).last().map(str::trim) else { continue };
        if text.is_empty() || text == text_of(&option.default) {
            continue;
        }
        let value = parse(&option.kind, text);
        let value = value.map_err(|expected| refuse(format!("option `{}`: expected {expected}", option.name)))?;
        let is_default = value == option.default || (value.is_number() && value.as_f64() == option.default.as_f64());
        if !is_default {
            chosen.insert(option.name.to_string(), value);
        }
    }
    Ok(chosen)
}

/// Parses the text of a field. The error names the expected form.
fn parse(kind: &str, text: &str) -> Result<Value, &'static str> {
    match kind {
        "integer" => text.parse::<i64>().map(Value::from).map_err(|_| "a whole number"),
        "number" => text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from).ok_or("a number"),
        "boolean" => text.parse::<bool>().map(Value::from).map_err(|_| "true or false"),
        "string" => Ok(Value::from(text)),
        "array" if !text.starts_with('[') => {
            let item = |item: &str| serde_json::from_str(item.trim()).unwrap_or_else(|_| Value::from(item.trim()));
            Ok(text.split(',').map(item).collect())
        }
        _ => serde_json::from_str(text).map_err(|_| "a value in JSON"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_change_the_options_that_differ_from_the_defaults() {
        let option = |(name, kind, default): (&'static str, &'static str, Value)| ChallengeOption {
            name: name.into(),
            description: "".into(),
            kind: kind.into(),
            default,
            minimum: None,
            maximum: None,
        };
        let options = [
            ("setSize", "integer", json!(10)),
            ("speed", "number", json!(1)),
            ("fen", "string", json!("start")),
            ("range", "array", json!([100, 900])),
            ("is_open", "boolean", json!(true)),
            ("any", "null", Value::Null),
        ]
        .map(option);
        let read = |form: &str| match read(&Query::read(form).expect("a form"), &options) {
            Ok(chosen) => Value::Object(chosen).to_string(),
            Err(error) => error.message().to_owned(),
        };
        for (form, chosen) in [
            (
                "option.setSize=10&option.speed=1.0&option.fen=start&option.range=100,900&option.is_open=false&option.is_open=true",
                "{}",
            ),
            ("option.setSize=&option.speed=&option.range=&option.any=null", "{}"),
            (
                "option.setSize=5&option.range=1,+50&option.is_open=false",
                r#"{"is_open":false,"range":[1,50],"setSize":5}"#,
            ),
            ("option.speed=0.5&option.any=%7B%7D", r#"{"any":{},"speed":0.5}"#),
            ("options=%7B%22setSize%22:5%7D&option.fen=end", r#"{"fen":"end","setSize":5}"#),
            ("option.setSize=five", "option `setSize`: expected a whole number"),
            ("option.speed=NaN", "option `speed`: expected a number"),
            ("option.any=%7B", "option `any`: expected a value in JSON"),
        ] {
            assert_eq!(read(form), chosen, "{form}");
        }
        assert_eq!(["setSize", "grid_width", "turnMs"].map(words), ["Set size", "Grid width", "Time for a turn"]);
    }
}
