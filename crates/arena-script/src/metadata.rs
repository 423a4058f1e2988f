//! `challenge.json`: a strict parser of a challenge's description, with errors that name the field and its line.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::{Author, ChallengeMetadata, ChallengeOption, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use crate::Problem;
use crate::ui::Ui;

pub(crate) const FILE: &str = "challenge.json";

/// The file that may have the prompt instead of a member of [`FILE`].
pub(crate) const PROMPT_FILE: &str = "prompt.md";

const PLAYERS: usize = 100;

/// The parsed content of `challenge.json`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChallengeDescription {
    pub(crate) metadata: ChallengeMetadata,
    pub(crate) options: Map<String, Value>,
    /// The options that the creator of a session may choose.
    pub(crate) overridable: Vec<ChallengeOption>,
    pub(crate) ui: Ui,
}

/// An entry of `challenge.json` for an option that the creator of a session may choose.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    name: String,
    #[serde(default)]
    description: String,
    minimum: Option<Number>,
    maximum: Option<Number>,
}

impl Choice {
    /// Returns the option that an entry of `challenge.json` describes. The option's type is that of its default value.
    fn of(entry: Value, options: &Map<String, Value>) -> Result<ChallengeOption, String> {
        // An entry may be just the option's name.
        let entry = if entry.is_string() { json!({ "name": entry }) } else { entry };
        let choice = serde_json::from_value(entry).map_err(|error| error.to_string())?;
        let Choice { name, description, minimum, maximum } = choice;
        let default = options.get(&name).cloned().ok_or_else(|| format!("`{name}` isn't one of the options"))?;
        let kind = match &default {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_bounded = minimum.is_some() || maximum.is_some();
        if is_bounded && !["integer", "number", "array"].contains(&kind) {
            return Err(format!("`{name}` cannot have bounds, because its default isn't a number"));
        }
        let option = ChallengeOption {
            name: name.into(),
            description: description.into(),
            kind: kind.into(),
            default,
            minimum,
            maximum,
        };
        match check_option(&option, &option.default) {
            Ok(()) => Ok(option),
            Err(what) => Err(format!("the default of `{}` {what}", option.name)),
        }
    }
}

/// Checks the chosen value of an option. The error states the values that the option allows.
pub(crate) fn check_option(option: &ChallengeOption, value: &Value) -> Result<(), String> {
    let ChallengeOption { kind, minimum, maximum, .. } = option;
    let is_within = |value: &Value| {
        let beyond = |bound: &Option<Number>, is_beyond: fn(&f64, &f64) -> bool| {
            let (bound, value) = (bound.as_ref().and_then(Number::as_f64), value.as_f64());
            bound.is_some_and(|bound| value.is_none_or(|value| is_beyond(&value, &bound)))
        };
        !beyond(minimum, f64::lt) && !beyond(maximum, f64::gt)
    };
    let (is_fit, needed) = match &**kind {
        "integer" => ((value.is_i64() || value.is_u64()) && is_within(value), "a whole number"),
        "number" => (value.is_number() && is_within(value), "a number"),
        "string" => (value.is_string(), "a text"),
        "boolean" => (value.is_boolean(), "true or false"),
        "array" => (value.as_array().is_some_and(|items| items.iter().all(is_within)), "a list"),
        "object" => (value.is_object(), "an object"),
        _ => (true, ""),
    };
    if is_fit {
        return Ok(());
    }
    let of = if *kind == "array" { " of numbers" } else { "" };
    let bounds = match (minimum, maximum) {
        (None, None) => String::new(),
        (Some(least), None) => format!("{of} from {least}"),
        (None, Some(most)) => format!("{of} up to {most}"),
        (Some(least), Some(most)) => format!("{of} from {least} to {most}"),
    };
    Err(format!("must be {needed}{bounds}"))
}

/// Reads the description in a challenge's files.
pub(crate) fn read(files: &BTreeMap<String, String>) -> Result<ChallengeDescription, Vec<Problem>> {
    read_text(files.get(FILE).map_or("", String::as_str), files.get(PROMPT_FILE).map(String::as_str))
}

fn read_text(text: &str, prompt: Option<&str>) -> Result<ChallengeDescription, Vec<Problem>> {
    let members: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| vec![Problem::at(FILE, error.line() as u32, format!("isn't a JSON object: {error}"))])?;
    let mut reader = MetadataReader { text, members, problems: Vec::new() };
    let mut described = ChallengeDescription {
        metadata: ChallengeMetadata {
            name: reader.text_of("name", 100),
            description: reader.text_of("description", 1000),
            players: reader.needed("players").unwrap_or(1),
            prompt: reader.prompt(prompt),
            methods: reader.needed::<Vec<Method>>("methods").unwrap_or_default(),
            color: reader.optional("color"),
            icon: reader.optional("icon"),
            authors: reader.optional::<Vec<Author>>("authors"),
            tags: reader.optional("tags"),
            url: reader.optional("url"),
        },
        options: reader.optional("options").unwrap_or_default(),
        overridable: Vec::new(),
        ui: Ui::default(),
    };
    for entry in reader.optional::<Vec<Value>>("overridable").unwrap_or_default() {
        match Choice::of(entry, &described.options) {
            Ok(option) => described.overridable.push(option),
            Err(what) => reader.complain("overridable", what),
        }
    }
    let ChallengeMetadata { players, methods, .. } = &described.metadata;
    if !(1..=PLAYERS).contains(players) {
        reader.complain("players", format!("must be 1 to {PLAYERS}, not {players}"));
    }
    let mut names = BTreeSet::new();
    for Method { name, .. } in methods {
        if !is_name(name) {
            reader.complain(
                "methods",
                format!("{name:?} isn't a valid method name; use 1 to 64 letters, digits, `_` and `-`"),
            );
        } else if name == "chat" {
            reader.complain("methods", "the method name `chat` is reserved for the chat messages of agents");
        } else if !names.insert(name.as_str()) {
            reader.complain("methods", format!("`{name}` is declared twice"));
        }
    }
    if described.options.contains_key("players") {
        reader.complain("options", "cannot contain `players`; set the member `players` instead");
    }
    if let Some(entry) = reader.optional("ui") {
        let (ui, problems) = Ui::of(entry, methods);
        for problem in problems {
            reader.complain("ui", problem);
        }
        described.ui = ui;
    }
    let strays: Vec<String> = reader.members.keys().cloned().collect();
    for name in strays {
        reader.complain(&name, "is unknown; known members: name, description, players, prompt, methods, color, icon, authors, tags, url, options, overridable and ui");
    }
    if reader.problems.is_empty() { Ok(described) } else { Err(reader.problems) }
}

/// Returns true if the name is valid: 1 to 64 letters, digits, `_` and `-`.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

struct MetadataReader<'t> {
    text: &'t str,
    /// The members that the parser hasn't read yet.
    members: Map<String, Value>,
    problems: Vec<Problem>,
}

impl MetadataReader<'_> {
    fn complain(&mut self, name: &str, message: impl std::fmt::Display) {
        // The key's line is that of its first occurrence in quotation marks.
        let key = format!("\"{name}\"");
        let at =
            self.text.match_indices(&key).find(|(at, _)| self.text[at + key.len()..].trim_start().starts_with(':'));
        let line = at.map_or(0, |(at, _)| 1 + self.text[..at].matches('\n').count() as u32);
        self.problems.push(Problem::at(FILE, line, format!("{name}: {message}")));
    }

    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.members.remove(name)?;
        match serde_json::from_value(value) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = error.to_string().replace("expected usize", "expected a whole number");
                self.complain(name, message.replace("expected i64", "expected a whole number"));
                None
            }
        }
    }

    fn needed<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        if !self.members.contains_key(name) {
            self.complain(name, "is missing");
        }
        self.optional(name)
    }

    /// Returns the prompt: the text of its own file, or else the member.
    fn prompt(&mut self, file: Option<&str>) -> String {
        const BYTES: usize = 100_000;
        let Some(text) = file else { return self.text_of("prompt", BYTES) };
        let text = text.trim();
        if self.members.remove("prompt").is_some() {
            self.complain("prompt", format!("is in {PROMPT_FILE} too; remove one of them"));
        } else if text.is_empty() || text.len() > BYTES {
            self.problems.push(Problem::of(PROMPT_FILE, format!("must be a text of 1 to {BYTES} bytes")));
        }
        text.to_owned()
    }

    fn text_of(&mut self, name: &str, most: usize) -> String {
        let text: Option<String> = self.needed(name);
        if text.as_ref().is_some_and(|text| text.trim().is_empty() || text.len() > most) {
            self.complain(name, format!("must be a string of 1 to {most} bytes"));
        }
        text.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let actual = match read_text(text, None) {
            Ok(described) => format!("{described:?}\n"),
            Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn a_prompt_may_have_its_own_file() {
        let rest = r#"{"name": "n", "description": "d", "players": 2, "methods": []}"#;
        let both = r#"{"name": "n", "description": "d", "players": 2, "methods": [], "prompt": "p"}"#;
        let prompt = |text, prompt| match read_text(text, Some(prompt)) {
            Ok(described) => described.metadata.prompt,
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(prompt(rest, "Bid once.\n\nThen talk.\n"), "Bid once.\n\nThen talk.");
        assert_eq!(prompt(both, "q"), "challenge.json:1: prompt: is in prompt.md too; remove one of them");
        assert_eq!(prompt(rest, " \n"), "prompt.md: must be a text of 1 to 100000 bytes");
    }

    #[test]
    fn errors_name_the_field_and_its_line() {
        check(
            "[]",
            expect![[r#"
            challenge.json:1: isn't a JSON object: invalid type: sequence, expected a map at line 1 column 0
        "#]],
        );
        check(
            "{\n  \"name\": \"x\",\n  \"players\": \"two\"\n}",
            expect![[r#"
            challenge.json: description: is missing
            challenge.json:3: players: invalid type: string "two", expected a whole number
            challenge.json: prompt: is missing
            challenge.json: methods: is missing
        "#]],
        );
        check(
            "{\"name\": \"\", \"description\": \"d\",\n\"players\": 0, \"prompt\": \"p\",\n\"methods\": [{\"name\": \"a b\", \"description\": \"\"},\n{\"name\": \
             \"chat\", \"description\": \"\"}],\n\"shade\": \"red\",\n\"options\": {\"players\": 3}, \"overridable\": [\"x\"]}",
            expect![[r#"
                challenge.json:1: name: must be a string of 1 to 100 bytes
                challenge.json:6: overridable: `x` isn't one of the options
                challenge.json:2: players: must be 1 to 100, not 0
                challenge.json:3: methods: "a b" isn't a valid method name; use 1 to 64 letters, digits, `_` and `-`
                challenge.json:3: methods: the method name `chat` is reserved for the chat messages of agents
                challenge.json:6: options: cannot contain `players`; set the member `players` instead
                challenge.json:5: shade: is unknown; known members: name, description, players, prompt, methods, color, icon, authors, tags, url, options, overridable and ui
            "#]],
        );
    }

    #[test]
    fn a_wrong_ui_is_an_error_at_its_line() {
        let with = |ui: &str| {
            format!(
                "{{\"name\": \"x\", \"description\": \"d\", \"players\": 2, \"prompt\": \"p\",\n\"methods\": [],\n\"ui\": {ui}}}"
            )
        };
        check(
            &with(r#"{"methods": {"bid": {}}}"#),
            expect![[r#"
                challenge.json:3: ui: `bid` isn't one of the methods
            "#]],
        );
        check(
            &with(r#"{"buttons": 1}"#),
            expect![[r#"
                challenge.json:3: ui: unknown field `buttons`, expected one of `methods`, `result`, `draw`
            "#]],
        );
    }

    #[test]
    fn bounds_must_include_the_default() {
        let with = |options: &str, overridable: &str| {
            format!(
                r#"{{"name": "x", "description": "d", "players": 2, "prompt": "p", "methods": [],
                "options": {options},
                "overridable": {overridable}}}"#
            )
        };
        let actual = |options: &str, overridable: &str| match read_text(&with(options, overridable), None) {
            Ok(described) => serde_json::to_string(&described.overridable).unwrap(),
            Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
        };
        expect![[
            r#"[{"name":"size","description":"How many.","type":"integer","default":3,"minimum":1,"maximum":9},{"name":"range","description":"","type":"array","default":[1,2]}]"#
        ]]
        .assert_eq(&actual(
            r#"{"size": 3, "range": [1, 2]}"#,
            r#"[{"name": "size", "description": "How many.", "minimum": 1, "maximum": 9}, "range"]"#,
        ));
        expect![[r#"
            challenge.json:3: overridable: the default of `size` must be a whole number from 4
            challenge.json:3: overridable: `word` cannot have bounds, because its default isn't a number
            challenge.json:3: overridable: the default of `range` must be a list of numbers up to 1.5
        "#]]
        .assert_eq(&actual(
            r#"{"size": 3, "word": "w", "range": [1, 2]}"#,
            r#"[{"name": "size", "minimum": 4}, {"name": "word", "maximum": 1}, {"name": "range", "maximum": 1.5}]"#,
        ));
    }
}
