//! Adds what is common to the OpenAPI document, as JSON: the errors and headers of operations with a body, a key or an
//! `Idempotency-Key`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::parts::IDEMPOTENCY_KEY;
use crate::routes::OPEN_TO_ALL;

/// Names of the security schemes for session keys, in a header and in the query. Handlers declare only the first.
const BY_HEADER: &str = "sessionKey";
const BY_QUERY: &str = "sessionKeyInQuery";

/// Name of the security scheme for the administrator's token.
const TOKEN: &str = "administratorToken";

/// Name of the security scheme for the key of an agent's or a tournament's owner, or of a session's creator. Handlers list
/// it after [`TOKEN`].
const OWNER: &str = "ownerKey";

/// Groups of routes that bypass `request.rs`, so the errors of `request.rs` don't occur there.
const UNCHECKED_TAGS: [&str; 2] = ["mcp", "health"];

/// JSON pointer to the description of an operation's JSON body.
const JSON_BODY: &str = "/requestBody/content/application~1json";

/// Adds the common parts.
pub(super) fn refine(document: &mut Value) {
    let mut bodies = BTreeMap::new();
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                let from = sender(operation);
                refine_operation(path, method, operation);
                bodies.extend(body_of(operation).map(|name| (name, from)));
            }
        }
    }
    drop_nulls(document);
    open_objects(document);
    document["components"]["securitySchemes"] = security_schemes(document);
    open_bodies(document, bodies);
}

pub(super) fn choose(operation: &mut Value, name: &str, values: &[String]) {
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        if parameter["name"] == name {
            parameter["schema"] = json!({ "type": "string", "enum": values });
        }
    }
}

fn security_schemes(document: &Value) -> Value {
    let mut schemes = json!({
        TOKEN: {
            "type": "http",
            "scheme": "bearer",
            "description": "The administrator's token, from the server's environment or its data folder.",
        },
        BY_HEADER: {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "s_{seat}.{64 hexadecimal digits}",
            "description": "The session key from the response to a join. It authorizes one seat of one session.",
        },
        BY_QUERY: {
            "type": "apiKey",
            "in": "query",
            "name": "key",
            "description": "The session key, for clients that can't set headers, such as a browser's `EventSource`.",
        },
    });
    let operations = document["paths"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
    if operations.flat_map(Map::values).any(|operation| shows(operation, OWNER)) {
        schemes[OWNER] = json!({
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "o_{64 hexadecimal digits}",
            "description": "The `ownerKey` from the response that created the agent or tournament, or the `creatorKey` \
                            from the response that created the session.",
        });
    }
    schemes
}

/// True if an operation declares the security scheme of this name.
fn shows(operation: &Value, name: &str) -> bool {
    operation["security"].as_array().into_iter().flatten().any(|way| way.get(name).is_some())
}

/// Removes null from the types of optional fields. Such fields are absent, never null.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(fields) => {
            let required = fields.get("required").cloned().unwrap_or_default();
            let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|n| n == name));
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                properties.iter_mut().filter(|(name, _)| !is_required(name)).for_each(|(_, field)| not_null(field));
            }
            // Only a parameter has the field `in`.
            if fields.contains_key("in")
                && required != true
                && let Some(schema) = fields.get_mut("schema")
            {
                not_null(schema);
            }
            fields.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

fn not_null(schema: &mut Value) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [only] = choices.as_slice() {
            *schema = only.clone();
        }
    }
}

/// Removes null from the body's schema, since an optional body is absent, never null. Returns the schema's name.
fn body_of(operation: &mut Value) -> Option<String> {
    let schema = operation.pointer_mut(JSON_BODY)?.get_mut("schema")?;
    not_null(schema);
    let name = schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")?;
    Some(name.to_owned())
}

/// Returns the field `from` for the body of an operation with a query parameter `from`; `None` for other operations.
fn sender(operation: &Value) -> Option<Value> {
    let parameters = operation["parameters"].as_array()?;
    parameters.iter().find(|parameter| parameter["name"] == "from")?;
    Some(match shows(operation, BY_HEADER) {
        true => json!({
            "type": "string",
            "description": "The player's invite, unless it is in the query.",
            "example": "inv_018f6b2e-0000-7000-8000-00000000abcd",
        }),
        false => json!({ "type": "string", "description": "The caller, unless it is in the query." }),
    })
}

/// Adds these fields `from` to the schemas of bodies, and declares that bodies accept unknown fields.
fn open_bodies(document: &mut Value, bodies: BTreeMap<String, Option<Value>>) {
    for (name, from) in bodies {
        let schema = &mut document["components"]["schemas"][name];
        if let Some(from) = from {
            schema["properties"]["from"] = from;
        }
        if schema["type"] == "object" {
            schema["additionalProperties"] = json!(true);
        }
    }
}

/// Declares that objects without described fields have arbitrary fields. Otherwise code generators would make empty
/// types.
fn open_objects(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(open_objects),
        Value::Object(fields) => {
            let described = ["properties", "additionalProperties"].iter().any(|name| fields.contains_key(*name));
            if !described && fields.get("type").is_some_and(|kind| kind == "object") {
                fields.insert("additionalProperties".to_owned(), json!(true));
            }
            fields.values_mut().for_each(open_objects);
        }
        _ => {}
    }
}

/// Adds the common security, errors and headers to an operation.
fn refine_operation(path: &str, method: &str, operation: &mut Value) {
    let (takes_key, takes_token, takes_owner) =
        (shows(operation, BY_HEADER), shows(operation, TOKEN), shows(operation, OWNER));
    if takes_key {
        operation["security"] = json!([{}, { BY_HEADER: [] }, { BY_QUERY: [] }]);
    }
    let has = |name: &str, value: &str| {
        let parameters = operation["parameters"].as_array();
        parameters.is_some_and(|parameters| parameters.iter().any(|parameter| parameter[name] == value))
    };
    let passes_edge =
        !operation["tags"].as_array().into_iter().flatten().any(|tag| UNCHECKED_TAGS.iter().any(|t| tag == t));
    let holds = |condition: Condition| match condition {
        Condition::Always => true,
        Condition::Api => path.starts_with("/api/"),
        Condition::PathParameter => has("in", "path"),
        Condition::Body => operation.pointer(JSON_BODY).is_some(),
        Condition::Once => has("name", IDEMPOTENCY_KEY),
        Condition::Key => takes_key,
        Condition::Token => takes_token && !takes_owner,
        Condition::Owner => takes_owner,
    };
    let common: Vec<(&str, &str)> = COMMON
        .iter()
        .filter(|(condition, ..)| passes_edge && holds(*condition))
        .map(|(_, status, line)| (*status, *line))
        .collect();
    let at_the_door = [
        Some(("400", "`INVALID_HOST`: the `Host` header is missing, repeated or malformed.")),
        (path != OPEN_TO_ALL).then_some(("403", "`BANNED`: this user or address is banned.")),
        (method != "get").then_some((
            "403",
            "`ORIGIN_NOT_ALLOWED`: the request comes from a web page whose origin the server doesn't allow.",
        )),
    ];
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, line) in common.into_iter().chain(at_the_door.into_iter().flatten()) {
        let response = responses.entry(status).or_insert_with(|| json!({ "description": "" }));
        response["description"] = format!("{}\n{line}", response["description"].as_str().unwrap_or_default()).into();
    }
    for (status, response) in responses.iter_mut().filter(|(status, _)| status.as_str() >= "400") {
        word_refusal(status, response);
    }
}

/// The property of an operation that makes a common error possible.
#[derive(Debug, Clone, Copy)]
enum Condition {
    Always,
    Api,
    PathParameter,
    Body,
    Once,
    /// The operation accepts a session key.
    Key,
    /// The operation requires the administrator's token.
    Token,
    /// The operation requires an owner's key or the administrator's token.
    Owner,
}

/// Errors of the common request handling and of the store: condition, status, and line of the description.
const COMMON: [(Condition, &str, &str); 22] = [
    (Condition::Always, "400", "`INVALID_QUERY`: the query is not valid UTF-8."),
    (Condition::PathParameter, "400", "`INVALID_PATH`: the path is not valid UTF-8."),
    (Condition::Body, "400", "`INVALID_JSON`: the body is not a JSON object."),
    (Condition::Body, "400", "`BODY_INCOMPLETE`: the body ended early."),
    (Condition::Body, "400", "`MISSING_FIELD`: a required field is missing."),
    (Condition::Body, "400", "`INVALID_FIELD`: a field has the wrong type or an invalid value."),
    (
        Condition::Body,
        "400",
        "`INVALID_IDEMPOTENCY_KEY`: `Idempotency-Key` must be 1 to 255 printable ASCII characters.",
    ),
    (Condition::Key, "400", "`SESSION_MISMATCH`: query, body and path name different sessions."),
    (Condition::Key, "401", "`AUTHENTICATION_REQUIRED`: the session key is invalid for this session."),
    (Condition::Token, "401", "`AUTHENTICATION_REQUIRED`: the administrator's token is missing or invalid."),
    (
        Condition::Owner,
        "401",
        "`AUTHENTICATION_REQUIRED`: the request has neither the owner's key nor the administrator's token.",
    ),
    (Condition::Body, "408", "`REQUEST_TIMEOUT`: the body took too long to arrive."),
    (Condition::Body, "413", "`BODY_TOO_LARGE`: the body exceeds the server's limit."),
    (Condition::Once, "422", "`IDEMPOTENCY_KEY_REUSED`: the key was used before with a different request."),
    (Condition::Always, "429", "`RATE_LIMITED`: too many requests from this address."),
    (Condition::Once, "429", "`STORAGE_BUDGET_USED`: this address has stored too many bytes within a day."),
    (Condition::Once, "429", "`COMPUTING_BUDGET_USED`: the rules have computed for this address for too long."),
    (Condition::Body, "500", "`SESSION_DAMAGED`: the session's stored data can't be read."),
    (Condition::Api, "500", "`INTERNAL`: an error of the server."),
    (Condition::Body, "503", "`CONTENDED`: concurrent writes prevented the request; it had no effect."),
    (Condition::Api, "503", "`STORE_UNAVAILABLE`: the store is unreachable."),
    (Condition::Always, "503", "`SERVER_BUSY`: the server is out of memory or connections for this request."),
];

/// Adds the body and headers of an error response. Each line of the description begins with an error code, which the
/// body may contain. The code `…` allows any code.
fn word_refusal(status: &str, response: &mut Value) {
    let text = response["description"].as_str().unwrap_or_default().to_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut codes: Vec<&str> = Vec::new();
    for code in lines.iter().filter_map(|line| line.strip_prefix('`')?.split('`').next()) {
        // Two lines may have the same code: one of the handler, and one of the common errors.
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    response["description"] = lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n").into();
    if response.get("content").is_none() {
        let mut code = json!({ "type": "string" });
        if !codes.contains(&"…") {
            code["enum"] = json!(codes);
        }
        let body = json!({ "$ref": "#/components/schemas/Error" });
        let schema = json!({ "allOf": [body, { "type": "object", "properties": { "code": code } }] });
        response["content"] = json!({ "application/json": { "schema": schema } });
    }
    let header =
        |about: &str, kind: &str| json!({ "description": about, "required": true, "schema": { "type": kind } });
    match status {
        "401" => {
            response["headers"] = json!({ "WWW-Authenticate": header("`Bearer`.", "string") });
        }
        "429" | "503" => {
            let mut wait = header("Time to wait before a retry, in seconds, if known.", "integer");
            wait["required"] = json!(status == "429");
            response["headers"] = json!({ "Retry-After": wait });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), mut value: Value, expected: Expect) {
        change(&mut value);
        expected.assert_eq(&value.to_string());
    }

    #[test]
    fn only_required_fields_may_be_null() {
        let nullable = json!({ "type": ["string", "null"] });
        let choice = json!({ "oneOf": [{ "type": "null" }, { "$ref": "x" }] });
        check(
            drop_nulls,
            json!({ "properties": { "a": nullable, "b": nullable, "c": choice }, "required": ["a"] }),
            expect![[
                r#"{"properties":{"a":{"type":["string","null"]},"b":{"type":"string"},"c":{"$ref":"x"}},"required":["a"]}"#
            ]],
        );
        check(
            drop_nulls,
            json!([{ "in": "query", "required": false, "schema": nullable }]),
            expect![[r#"[{"in":"query","required":false,"schema":{"type":"string"}}]"#]],
        );
    }

    #[test]
    fn a_refusal_has_the_codes_of_its_lines_and_no_others() {
        let codes = |description: &str| {
            let mut response = json!({ "description": description });
            word_refusal("400", &mut response);
            response.pointer("/content/application~1json/schema/allOf/1/properties/code").expect("codes").to_string()
        };
        assert_eq!(codes("\n  `A`: no `x`.\n  `B`: no y."), r#"{"enum":["A","B"],"type":"string"}"#);
        assert_eq!(codes("`A`: no `x`.\n`B`: no y.\n`A`: no z."), r#"{"enum":["A","B"],"type":"string"}"#);
        assert_eq!(codes("`A`: no x.\n`…`: others."), r#"{"type":"string"}"#);
    }
}
