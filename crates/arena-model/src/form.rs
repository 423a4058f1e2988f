//! Forms: the fields from which pages make the content of a method call.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodForm {
    pub method: String,
    /// The text of the button; `None` for the method's name in words.
    pub label: Option<String>,
    /// The fields in the order of the form.
    pub fields: Vec<FormField>,
    pub content: ContentTemplate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormField {
    /// The name in the template.
    pub name: String,
    /// The label for people.
    pub label: String,
    pub values: FieldValues,
}

/// The values that a field accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValues {
    /// A whole number.
    Number { min: Option<i64>, max: Option<i64> },
    Text {
        /// The maximum number of characters.
        max: Option<i64>,
    },
    /// One of these texts.
    Choice(Vec<String>),
    /// Another player, by its number from 1.
    Seat,
}

/// A template of a text: literal text, fields, and parts that are left out if a field in them is empty.
///
/// `{name}` stands for a field's value, and square brackets enclose such a part: `{amount}[, {guess}]`. Doubled braces
/// and brackets stand for single ones. As JSON, a template is a list of literal texts, of objects with the member
/// `field`, and of lists for the parts in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentTemplate(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum TemplatePart {
    Literal(String),
    Field { field: String },
    Optional(Vec<TemplatePart>),
}

impl ContentTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// The fault in words, such as a brace without its partner.
    pub fn parse(text: &str) -> Result<ContentTemplate, String> {
        let mut parts: Vec<TemplatePart> = Vec::new();
        // Within brackets, the parts so far.
        let mut optional: Option<Vec<TemplatePart>> = None;
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            if !['{', '}', '[', ']'].contains(&char) || chars.next_if_eq(&char).is_some() {
                literal.push(char);
                continue;
            }
            if !literal.is_empty() {
                optional.as_mut().unwrap_or(&mut parts).push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            match char {
                '{' => {
                    let mut field = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(char) => field.push(char),
                            None => return Err("has a `{` without a `}`".to_owned()),
                        }
                    }
                    optional.as_mut().unwrap_or(&mut parts).push(TemplatePart::Field { field });
                }
                '[' if optional.is_some() => return Err("has brackets within brackets".to_owned()),
                '[' => optional = Some(Vec::new()),
                ']' => {
                    let inner = optional.take().ok_or("has a `]` without a `[`")?;
                    if !inner.iter().any(|part| matches!(part, TemplatePart::Field { .. })) {
                        return Err("has brackets without a field".to_owned());
                    }
                    parts.push(TemplatePart::Optional(inner));
                }
                _ => return Err("has a `}` without a `{`".to_owned()),
            }
        }
        if optional.is_some() {
            return Err("has a `[` without a `]`".to_owned());
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(ContentTemplate(parts))
    }

    /// Returns the template that consists of one field.
    pub fn of_field(field: &str) -> ContentTemplate {
        ContentTemplate(vec![TemplatePart::Field { field: field.to_owned() }])
    }

    /// Returns the names of all fields, in order. A name may occur repeatedly.
    pub fn fields(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect_fields(&self.0, &mut names);
        names
    }

    /// Returns true if the template can't be filled without the field.
    pub fn needs(&self, name: &str) -> bool {
        self.0.iter().any(|part| matches!(part, TemplatePart::Field { field } if field == name))
    }

    /// Returns the template's text with the values of the fields. `value` returns `None` for an empty field.
    ///
    /// # Errors
    /// The name of a field that the template needs and that is empty.
    pub fn fill<'v>(&self, value: &dyn Fn(&str) -> Option<&'v str>) -> Result<String, &str> {
        let mut text = String::new();
        fill(&self.0, value, &mut text)?;
        Ok(text)
    }
}

fn collect_fields<'t>(parts: &'t [TemplatePart], names: &mut Vec<&'t str>) {
    for part in parts {
        match part {
            TemplatePart::Literal(_) => {}
            TemplatePart::Field { field } => names.push(field),
            TemplatePart::Optional(inner) => collect_fields(inner, names),
        }
    }
}

fn fill<'t, 'v>(
    parts: &'t [TemplatePart],
    value: &dyn Fn(&str) -> Option<&'v str>,
    text: &mut String,
) -> Result<(), &'t str> {
    for part in parts {
        match part {
            TemplatePart::Literal(literal) => text.push_str(literal),
            TemplatePart::Field { field } => text.push_str(value(field).ok_or(field.as_str())?),
            TemplatePart::Optional(inner) => {
                let mut optional = String::new();
                if fill(inner, value, &mut optional).is_ok() {
                    text.push_str(&optional);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, values: &[(&'static str, &'static str)], expected: &str) {
        let value = |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let actual = match ContentTemplate::parse(template) {
            Ok(template) => template.fill(&value).unwrap_or_else(|name| format!("without {name}")),
            Err(fault) => fault,
        };
        assert_eq!(actual, expected, "{template}");
    }

    #[test]
    fn templates_are_filled_with_the_values_of_fields() {
        let bid = [("amount", "40"), ("guess", "63")];
        check("{amount}", &bid, "40");
        check("{amount}[, {guess}]", &bid, "40, 63");
        check("{amount}[, {guess}]", &bid[..1], "40");
        check("{amount}, {guess}", &bid[..1], "without guess");
        check("yes", &[], "yes");
        check("", &[], "");
        check("{{\"bid\": {amount}, \"of\": [[1]]}}", &bid, "{\"bid\": 40, \"of\": [1]}");
        // A value isn't a template.
        check("{amount}", &[("amount", "{guess}")], "{guess}");
    }

    #[test]
    fn faulty_templates_have_reasons() {
        check("{amount", &[], "has a `{` without a `}`");
        check("amount}", &[], "has a `}` without a `{`");
        check("[{amount}", &[], "has a `[` without a `]`");
        check("{amount}]", &[], "has a `]` without a `[`");
        check("[{amount} [{guess}]]", &[], "has brackets within brackets");
        check("[none]", &[], "has brackets without a field");
    }

    #[test]
    fn the_needed_fields_are_those_outside_brackets() {
        let template = ContentTemplate::parse("{amount}[, {guess}]").unwrap();
        assert_eq!(template.fields(), ["amount", "guess"]);
        assert!(template.needs("amount") && !template.needs("guess"));
        assert_eq!(serde_json::to_string(&template).unwrap(), r#"[{"field":"amount"},[", ",{"field":"guess"}]]"#);
    }
}
