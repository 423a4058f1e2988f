//! The OpenAPI document as an HTML page without scripts. Existing viewers need scripts and a looser content security
//! policy, and are about a hundred times larger.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::{BASE, Description};
use crate::web::{explained, guide_tabs, head, top};

impl Description {
    pub(crate) fn page(&self, base: &str) -> String {
        self.page.replace(BASE, base)
    }
}

/// Renders the page, with [`BASE`] as placeholder.
pub(super) fn page(document: &Value) -> String {
    let groups = document["tags"].as_array().into_iter().flatten();
    let groups: Vec<(&str, &str)> = groups.map(|tag| (text(&tag["name"]), text(&tag["description"]))).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("HTTP API · Arena"))
            body {
                (top("/docs"))
                header {
                    (guide_tabs("/docs/api"))
                    h1 { "HTTP API" }
                    (prose(text(&document["info"]["description"])))
                    p { "Base URL: " code { (BASE) } ". For programs: " a href="/openapi.json" { "openapi.json" } ". For agents: " a href="/skill.md" { "skill.md" } ". Fields marked * are required." }
                }
                main {
                    nav { p {
                        @for (name, _) in &groups { a href={ "#" (name) } { (name) } " · " }
                        a href="#schemas" { "schemas" }
                    } }
                    @for (name, about) in &groups {
                        section id=(name) {
                            h2 { (name) }
                            p { (about) }
                            @for (path, method, operation) in operations(document, name) {
                                (show(document, path, method, operation))
                            }
                        }
                    }
                    section id="schemas" {
                        h2 { "schemas" }
                        @for (name, schema) in fields(&document["components"]["schemas"]) {
                            article id={ "schema-" (name) } {
                                h3 { (name) }
                                (prose(text(&schema["description"])))
                                (properties(schema))
                            }
                        }
                    }
                }
                footer { p { a href="/" { "Home page" } } }
            }
        }
    };
    page.into_string()
}

/// Returns the operations of a group, in the order of their paths: path, method and description.
fn operations<'d>(document: &'d Value, group: &str) -> Vec<(&'d str, &'d str, &'d Value)> {
    let all = fields(&document["paths"])
        .flat_map(|(path, item)| fields(item).map(move |(method, operation)| (path, method, operation)));
    all.filter(|(.., operation)| operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == group)))
        .collect()
}

fn show(document: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bodies = &operation["requestBody"]["content"];
    html! {
        article id=(text(&operation["operationId"])) {
            h3 { code { (method.to_uppercase()) " " (path) } }
            p { b { (explained(text(&operation["summary"]))) } }
            (prose(text(&operation["description"])))
            @if let Some((sentence, _)) = credentials_of(operation) { p { (sentence) } }
            @if !parameters.is_empty() {
                table.fields {
                    @for parameter in parameters {
                        tr {
                            td { code { (text(&parameter["name"])) } @if parameter["required"] == true { " *" } }
                            td { (text(&parameter["in"])) }
                            td { (kind(&parameter["schema"])) }
                            td.prose { (explained(text(&parameter["description"]))) }
                        }
                    }
                }
            }
            @for (media, body) in fields(bodies) {
                p { "Body: " (kind(&body["schema"])) ", " code { (media) } }
            }
            details {
                summary { "Responses" }
                @for (status, response) in fields(&operation["responses"]) {
                    p { b { (status) }
                        @for (media, body) in fields(&response["content"]) {
                            " " (kind(&body["schema"])) ", " code { (media) }
                        }
                        @for (header, _) in fields(&response["headers"]) { ", header " code { (header) } }
                    }
                    (prose(text(&response["description"])))
                }
            }
            pre tabindex="0" { (curl(document, path, method, operation)) }
        }
    }
}

/// Returns a sentence about the accepted credentials, and the placeholder for them in an example call.
fn credentials_of(operation: &Value) -> Option<(&'static str, &'static str)> {
    let ways: Vec<&Value> = operation["security"].as_array()?.iter().collect();
    let is_open = ways.first().is_some_and(|first| first.as_object().is_some_and(|names| names.is_empty()));
    let takes = |name: &str| ways.iter().any(|way| way.get(name).is_some());
    Some(match (takes("administratorToken"), takes("ownerKey"), is_open) {
        (true, true, _) => ("Requires the owner's key or the administrator's token.", "KEY"),
        (true, false, false) => ("Requires the administrator's token.", "TOKEN"),
        (true, false, true) => {
            ("Requires the administrator's token, unless the server's settings allow everyone.", "TOKEN")
        }
        (false, ..) => ("Accepts a session key.", "KEY"),
    })
}

fn curl(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let (mut path, mut query) = (path.to_owned(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, example) = (text(&parameter["name"]), plain(&parameter["example"]));
        match text(&parameter["in"]) {
            "path" => path = path.replace(&format!("{{{name}}}"), &example),
            "query" if parameter["required"] == true => query.push(format!("{name}={example}")),
            _ => {}
        }
    }
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let key =
        credentials_of(operation).map(|(_, key)| format!("-H 'Authorization: Bearer {key}' ")).unwrap_or_default();
    let body = match example(document, &operation["requestBody"]["content"]["application/json"]["schema"]) {
        Value::Null if method != "get" => format!("-X {} ", method.to_uppercase()),
        Value::Null => String::new(),
        body if operation["tags"][0] == "mcp" => format!("-H 'Content-Type: application/json' -d '{body}' "),
        body => format!("-d '{body}' "),
    };
    format!("curl {key}{body}'{BASE}{path}{query}'")
}

/// Returns an example body of a schema: the schema's example, or an object of its fields' examples.
fn example(document: &Value, schema: &Value) -> Value {
    let schema = resolve(document, schema);
    if let Some(example) = schema.get("example") {
        return example.clone();
    }
    let examples = fields(&schema["properties"]).filter_map(|(name, field)| {
        let field = resolve(document, field);
        Some((name.to_owned(), field.get("example")?.clone()))
    });
    let body: serde_json::Map<String, Value> = examples.collect();
    if body.is_empty() { Value::Null } else { Value::Object(body) }
}

fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match refers_to(schema) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

fn refers_to(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn properties(schema: &Value) -> Markup {
    let parts = schema["allOf"].as_array().or(schema["oneOf"].as_array());
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
    html! {
        @if schema["properties"].is_null() && parts.is_none() { p { (kind(schema)) } }
        @for part in parts.into_iter().flatten() {
            @match refers_to(part) {
                Some(_) => p { (kind(part)) },
                None => (properties(part)),
            }
        }
        @if !schema["properties"].is_null() {
            table.fields {
                @for (name, field) in fields(&schema["properties"]) {
                    tr {
                        td { code { (name) } @if is_required(name) { " *" } }
                        td { (kind(field)) }
                        td.prose { (explained(text(&field["description"]))) }
                    }
                }
            }
        }
    }
}

/// Renders a schema's type, as a word or as a link to another schema.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = refers_to(schema) {
        return html! { a href={ "#schema-" (name) } { (name) } };
    }
    if let Some(parts) = schema["allOf"].as_array().or(schema["oneOf"].as_array()) {
        let named = parts.iter().filter(|part| part.get("$ref").is_some() || schema.get("oneOf").is_some());
        return html! { @for (i, part) in named.enumerate() { @if i > 0 { " or " } (kind(part)) } };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        name => vec![text(name)],
    };
    html! {
        @if types.contains(&"array") { "list of " (kind(&schema["items"])) }
        @else if schema["additionalProperties"].is_object() { "object of " (kind(&schema["additionalProperties"])) }
        @else { (types.join(" or ")) }
        @if let Some(values) = schema["enum"].as_array() {
            ": " @for (i, value) in values.iter().enumerate() { @if i > 0 { ", " } code { (plain(value)) } }
        }
    }
}

/// Renders a text with its paragraphs, lists and backticks.
fn prose(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            @if paragraph.starts_with("- ") {
                ul { @for line in paragraph.lines() { li { (explained(line.trim_start_matches("- "))) } } }
            } @else {
                p { (explained(paragraph)) }
            }
        }
    }
}

/// Returns the entries of an object. For other values the iterator is empty.
fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a value as text for a URL.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
