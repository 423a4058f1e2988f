//! The member `ui` of `challenge.json`: forms for people, and the result as a sentence.

use std::collections::BTreeMap;

use arena_model::{ContentTemplate, EndedGame, FieldValues, FormField, Method, MethodForm};
use serde::Deserialize;

use crate::metadata::is_name;

/// The maximum number of fields of a form, and of choices of a field.
const FIELDS: usize = 20;
const CHOICES: usize = 100;

/// The maximum length of labels, choices and templates, in bytes.
const LABEL_BYTES: usize = 200;
const TEMPLATE_BYTES: usize = 2000;

/// The parsed member `ui`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ui {
    pub(crate) forms: Vec<MethodForm>,
    /// The sentence about a game with winners.
    result: Option<ContentTemplate>,
    /// The sentence about a game in which all players have the same utility.
    draw: Option<ContentTemplate>,
}

/// The member `ui`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UiEntry {
    #[serde(default)]
    methods: BTreeMap<String, FormEntry>,
    result: Option<String>,
    draw: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormEntry {
    label: Option<String>,
    #[serde(default)]
    fields: Vec<FieldEntry>,
    content: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldEntry {
    name: String,
    label: String,
    #[serde(rename = "type")]
    kind: FieldKind,
    min: Option<i64>,
    max: Option<i64>,
    choices: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FieldKind {
    Number,
    Text,
    Choice,
    Seat,
}

impl Ui {
    /// Returns the forms and sentences of the member `ui`, and the problems. `methods` are those of `challenge.json`.
    pub(crate) fn of(entry: UiEntry, methods: &[Method]) -> (Ui, Vec<String>) {
        let UiEntry { methods: forms, result, draw } = entry;
        let (mut ui, mut problems) = (Ui::default(), Vec::new());
        for (method, form) in forms {
            if !methods.iter().any(|other| other.name == method) {
                problems.push(format!("`{method}` isn't one of the methods"));
            }
            match form.parse(&method) {
                Ok(form) => ui.forms.push(form),
                Err(problem) => problems.push(format!("the form of `{method}` {problem}")),
            }
        }
        for (name, text, known, place) in
            [("result", result, &["winner", "score"][..], &mut ui.result), ("draw", draw, &[][..], &mut ui.draw)]
        {
            match text.map(|text| parse_template(&text, known)).transpose() {
                Ok(sentence) => *place = sentence,
                Err(problem) => problems.push(format!("`{name}` {problem}")),
            }
        }
        (ui, problems)
    }

    /// Returns the result of an ended session as a sentence, if the author wrote one for it.
    pub(crate) fn tell(&self, ended: &EndedGame<'_>) -> Option<String> {
        let Some((winner, score)) = ended.winners() else {
            let draw = self.draw.as_ref().filter(|_| !ended.scores.is_empty())?;
            return draw.fill(&|_| None).ok();
        };
        let value = |name: &str| match name {
            "winner" => Some(winner.as_str()),
            "score" => Some(score.as_str()),
            _ => None,
        };
        self.result.as_ref()?.fill(&value).ok()
    }
}

impl FormEntry {
    fn parse(self, method: &str) -> Result<MethodForm, String> {
        let FormEntry { label, fields, content } = self;
        if let Some(label) = &label {
            check_text("label", label)?;
        }
        if fields.len() > FIELDS {
            return Err(format!("has more than {FIELDS} fields"));
        }
        let mut parsed: Vec<FormField> = Vec::new();
        for field in fields {
            let name = field.name.clone();
            if parsed.iter().any(|other| other.name == name) {
                return Err(format!("has the field `{name}` twice"));
            }
            parsed.push(field.parse().map_err(|problem| format!("has the field {name:?}, which {problem}"))?);
        }
        let names: Vec<&str> = parsed.iter().map(|field| field.name.as_str()).collect();
        let content = match (content, &names[..]) {
            (Some(content), _) => {
                parse_template(&content, &names).map_err(|problem| format!("has a `content` that {problem}"))?
            }
            (None, []) => ContentTemplate::parse("")?,
            (None, [only]) => ContentTemplate::of_field(only),
            (None, _) => return Err("needs a `content`, because it has several fields".to_owned()),
        };
        let used = content.fields();
        if let Some(unused) = names.iter().find(|name| !used.contains(name)) {
            return Err(format!("doesn't use the field `{unused}` in its `content`"));
        }
        Ok(MethodForm { method: method.to_owned(), label, fields: parsed, content })
    }
}

impl FieldEntry {
    fn parse(self) -> Result<FormField, String> {
        let FieldEntry { name, label, kind, min, max, choices } = self;
        if !is_name(&name) {
            return Err("has an invalid name; use 1 to 64 letters, digits, `_` and `-`".to_owned());
        }
        check_text("label", &label)?;
        if choices.is_some() != (kind == FieldKind::Choice) {
            return Err("must have `choices` exactly if its type is `choice`".to_owned());
        }
        if min.is_some() && kind != FieldKind::Number {
            return Err("cannot have a `min`, because it isn't a number".to_owned());
        }
        if max.is_some() && !matches!(kind, FieldKind::Number | FieldKind::Text) {
            return Err("cannot have a `max`, because it is neither a number nor a text".to_owned());
        }
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            return Err("has a `min` above its `max`".to_owned());
        }
        let values = match kind {
            FieldKind::Number => FieldValues::Number { min, max },
            FieldKind::Text if max.is_some_and(|max| max < 1) => return Err("has a `max` below 1".to_owned()),
            FieldKind::Text => FieldValues::Text { max },
            FieldKind::Seat => FieldValues::Seat,
            FieldKind::Choice => {
                let choices = choices.unwrap_or_default();
                if !(1..=CHOICES).contains(&choices.len()) {
                    return Err(format!("must have 1 to {CHOICES} choices"));
                }
                for choice in &choices {
                    check_text("choice", choice)?;
                }
                FieldValues::Choice(choices)
            }
        };
        Ok(FormField { name, label, values })
    }
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    match text.trim().is_empty() || text.len() > LABEL_BYTES {
        true => Err(format!("has a {what} that isn't a string of 1 to {LABEL_BYTES} bytes")),
        false => Ok(()),
    }
}

/// Parses a template whose fields must be among `known`.
fn parse_template(text: &str, known: &[&str]) -> Result<ContentTemplate, String> {
    if text.len() > TEMPLATE_BYTES {
        return Err(format!("is longer than {TEMPLATE_BYTES} bytes"));
    }
    let template = ContentTemplate::parse(text)?;
    let unknown = template.fields().into_iter().find(|name| !known.contains(name)).map(str::to_owned);
    match unknown {
        None => Ok(template),
        Some(name) if known.is_empty() => Err(format!("cannot contain `{{{name}}}`: it has no fields")),
        Some(name) => Err(format!("contains `{{{name}}}`; known fields: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use arena_model::Score;

    use super::*;

    /// Parses a member `ui` of a challenge with the methods `bid` and `pass`.
    #[track_caller]
    fn read(text: &str) -> (Ui, Vec<String>) {
        let method = |name: &str| Method { name: name.to_owned(), description: String::new() };
        Ui::of(serde_json::from_str(text).unwrap(), &[method("bid"), method("pass")])
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let (_, problems) = read(text);
        assert_eq!(problems.join("\n"), expected);
    }

    #[test]
    fn valid_entries_have_no_problems() {
        for text in [
            "{}",
            r#"{"methods": {"pass": {}}}"#,
            r#"{"methods": {"bid": {"label": "Bid", "fields": [{"name": "n", "label": "Bid", "type": "number", "min": 0, "max": 9}]}}}"#,
            r#"{"methods": {"bid": {"fields": [{"name": "a", "label": "The spy", "type": "seat"}, {"name": "b", "label": "The reason", "type": "text", "max": 90}],
                "content": "{a}[: {b}]"}}}"#,
            r#"{"methods": {"bid": {"fields": [{"name": "a", "label": "Place", "type": "choice", "choices": ["here", "there"]}]}},
                "result": "{winner} won with {score}.", "draw": "All lost."}"#,
        ] {
            let (_, problems) = read(text);
            assert!(problems.is_empty(), "{text}: {problems:?}");
        }
    }

    #[test]
    fn problems_name_the_method_and_the_field() {
        let bid = |fields: &str, more: &str| format!(r#"{{"methods": {{"bid": {{"fields": [{fields}]{more}}}}}}}"#);
        let number = r#"{"name": "n", "label": "Bid", "type": "number"}"#;
        check(r#"{"methods": {"sell": {}}}"#, "`sell` isn't one of the methods");
        check(&bid(&format!("{number}, {number}"), ""), "the form of `bid` has the field `n` twice");
        check(
            &bid(r#"{"name": "a b", "label": "Bid", "type": "text"}"#, ""),
            "the form of `bid` has the field \"a b\", which has an invalid name; use 1 to 64 letters, digits, `_` and `-`",
        );
        check(
            &bid(r#"{"name": "n", "label": "", "type": "text"}"#, ""),
            "the form of `bid` has the field \"n\", which has a label that isn't a string of 1 to 200 bytes",
        );
        check(
            &bid(r#"{"name": "n", "label": "Bid", "type": "number", "min": 2, "max": 1}"#, ""),
            "the form of `bid` has the field \"n\", which has a `min` above its `max`",
        );
        check(
            &bid(r#"{"name": "n", "label": "Bid", "type": "seat", "max": 1}"#, ""),
            "the form of `bid` has the field \"n\", which cannot have a `max`, because it is neither a number nor a text",
        );
        check(
            &bid(r#"{"name": "n", "label": "Bid", "type": "choice"}"#, ""),
            "the form of `bid` has the field \"n\", which must have `choices` exactly if its type is `choice`",
        );
        check(
            &bid(number, r#", "content": "{m}""#),
            "the form of `bid` has a `content` that contains `{m}`; known fields: n",
        );
        check(&bid(number, r#", "content": "all""#), "the form of `bid` doesn't use the field `n` in its `content`");
        check(
            &bid(&format!("{number}, {}", number.replace("\"n\"", "\"m\"")), ""),
            "the form of `bid` needs a `content`, because it has several fields",
        );
        check(
            r#"{"result": "{loser} lost", "draw": "{winner} won"}"#,
            "`result` contains `{loser}`; known fields: winner, score\n`draw` cannot contain `{winner}`: it has no fields",
        );
    }

    #[test]
    fn results_are_told_in_the_sentences_of_the_author() {
        let tell = |text: &str, utilities: [f64; 2]| {
            let names = ["Ada".to_owned(), "Bob".to_owned()];
            let scores = utilities.map(|utility| Score { security: 0.0, utility });
            let ended = EndedGame { names: &names, scores: &scores, attributions: &[], state: "{}" };
            read(text).0.tell(&ended)
        };
        let both = r#"{"result": "{winner} won with {score}.", "draw": "All lost."}"#;
        assert_eq!(tell(both, [1.0, 0.5]).as_deref(), Some("Ada won with 1."));
        assert_eq!(tell(both, [0.0, 0.0]).as_deref(), Some("All lost."));
        assert_eq!(tell(r#"{"result": "{winner} won."}"#, [0.0, 0.0]), None);
        assert_eq!(tell("{}", [1.0, 0.0]), None);
    }
}
