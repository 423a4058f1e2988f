//! Tool calls as REST calls: the arguments become a request to the arena's own routes, and the response becomes the
//! result.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_identity::KeyPair;
use arena_model::{InviteCode, Timestamp};
use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use tower::ServiceExt;

use super::tools::{Argument, ArgumentKind, Call, IDENTITY, KEY, Tool, ToolSet};
use crate::limits::RequestConnection;
use crate::request::ClientAddress;

/// Pairs of a number of messages per read and the maximum size of the response in bytes. If the response is larger, the
/// read is repeated with the next pair. REST streams long responses, but a tool's result is in memory as a whole.
/// Agents request the remaining messages by index.
const PIECES: [(usize, usize); 4] = [(500, 2 << 20), (50, 2 << 20), (5, 2 << 20), (1, usize::MAX)];

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The parts of an MCP request that identify the caller of a tool. The REST call repeats them.
pub(super) struct McpCaller {
    address: Option<ClientAddress>,
    request_connection: Option<RequestConnection>,
    /// All `Authorization` headers of the request. The REST route checks repeated headers.
    authorization: Vec<HeaderValue>,
    /// All `key=…` parameters of the request's query, unchanged.
    keys: String,
    once: Vec<HeaderValue>,
    /// True if the request was passed to REST, so the rate limit has counted it.
    counted: AtomicBool,
}

impl McpCaller {
    pub(super) fn of(parts: &Parts) -> McpCaller {
        let query = parts.uri.query().unwrap_or_default();
        let keys: Vec<&str> = query.split('&').filter(|pair| pair.starts_with("key=")).collect();
        McpCaller {
            address: parts.extensions.get::<ClientAddress>().copied(),
            request_connection: RequestConnection::of(&parts.extensions)
                .map(|found| RequestConnection { is_written_to_connection: false, ..found }),
            authorization: parts.headers.get_all(header::AUTHORIZATION).iter().cloned().collect(),
            keys: keys.join("&"),
            once: parts.headers.get_all(IDEMPOTENCY_KEY).iter().cloned().collect(),
            counted: AtomicBool::new(false),
        }
    }

    /// Returns the caller's address if no rate limit has counted this request yet.
    pub(super) fn uncounted(&self) -> Option<IpAddr> {
        if self.counted.load(Ordering::Relaxed) { None } else { self.address.map(|ClientAddress(address)| address) }
    }
}

/// Calls a tool.
///
/// The result is the JSON of the REST response, as text and as structured content, even if the response is a refusal.
/// The result is an error only if the tool is unknown, its arguments are invalid, or the arena itself failed.
pub(super) async fn call(
    tools: &ToolSet,
    rest: &Router,
    caller: &McpCaller,
    now: Timestamp,
    request: CallToolRequestParams,
) -> CallToolResult {
    match carry_out(tools, rest, caller, now, request).await {
        Ok(ToolAnswer { text, failed: false }) => {
            let structured = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = structured;
            result
        }
        Ok(ToolAnswer { text, failed: true }) => CallToolResult::error(vec![ContentBlock::text(text)]),
        Err(BadCall { code, sentence }) => CallToolResult::structured_error(json!({ "error": sentence, "code": code })),
    }
}

struct ToolAnswer {
    text: String,
    /// True if the arena failed. False for results and refusals.
    failed: bool,
}

/// The error of an invalid call, or of a call with a truncated response.
#[derive(Debug)]
struct BadCall {
    code: &'static str,
    sentence: String,
}

async fn carry_out(
    tools: &ToolSet,
    rest: &Router,
    caller: &McpCaller,
    now: Timestamp,
    request: CallToolRequestParams,
) -> Result<ToolAnswer, BadCall> {
    let tool = tools.find(&request.name).ok_or_else(|| {
        let names: Vec<&str> = tools.names().collect();
        let sentence = format!("unknown tool {:?}; available tools: {}", request.name, names.join(", "));
        BadCall { code: "UNKNOWN_TOOL", sentence }
    })?;
    let mut arguments = check(tool, request.arguments.unwrap_or_default())?;
    let key = arguments.remove(KEY);
    let access = RestAccess { rest, caller, key: key.as_ref().and_then(Value::as_str) };
    sign(&mut arguments, now)?;
    match tool.call {
        Call::CreateIdentity => create_identity(),
        Call::Read(path) => access.read(&fill(path, &mut arguments)?, &arguments).await,
        Call::Write(path) => access.write(&fill(path, &mut arguments)?, arguments).await,
    }
}

/// Creates an identity: a private key that only the caller has.
fn create_identity() -> Result<ToolAnswer, BadCall> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|_| BadCall { code: "INTERNAL", sentence: "the system gives no random bytes".to_owned() })?;
    let key = KeyPair::from_random(bytes);
    let text = json!({ IDENTITY: key.to_pkcs8_hex(), "userId": key.public_key().user_id() }).to_string();
    Ok(ToolAnswer { text, failed: false })
}

/// Replaces an identity in the arguments of a join by the public key and a signature at the time `now`.
fn sign(arguments: &mut Map<String, Value>, now: Timestamp) -> Result<(), BadCall> {
    let Some(identity) = arguments.remove(IDENTITY) else { return Ok(()) };
    let invalid = |sentence: &str| BadCall { code: "INVALID_FIELD", sentence: sentence.to_owned() };
    if ["publicKey", "signature", "timestamp"].iter().any(|name| arguments.contains_key(*name)) {
        return Err(invalid("identity replaces publicKey, signature and timestamp; give one or the other"));
    }
    let key = KeyPair::from_pkcs8_hex(identity.as_str().unwrap_or_default())
        .map_err(|_| invalid("identity must be a result of identity_create"))?;
    let invite = arguments.get("invite").and_then(Value::as_str).and_then(|invite| invite.parse::<InviteCode>().ok());
    let invite = invite.ok_or_else(|| invalid("invite must be `inv_` and a UUID"))?;
    arguments.insert("publicKey".to_owned(), key.public_key().as_hex().into());
    arguments.insert("signature".to_owned(), key.sign_join(invite, now).into());
    arguments.insert("timestamp".to_owned(), now.0.into());
    Ok(())
}

/// Replaces each name in braces in a path by the argument of this name, and removes these arguments.
fn fill(path: &str, arguments: &mut Map<String, Value>) -> Result<String, BadCall> {
    let (mut filled, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let argument = arguments.remove(name);
        let segment = argument.as_ref().and_then(Value::as_str).filter(|segment| !segment.is_empty());
        let empty = || BadCall { code: "INVALID_FIELD", sentence: format!("{name} must not be empty") };
        let segment = segment.ok_or_else(empty)?;
        let _ = write!(filled, "{before}{}", utf8_percent_encode(segment, NON_ALPHANUMERIC));
        rest = after;
    }
    Ok(filled + rest)
}

struct RestAccess<'c> {
    rest: &'c Router,
    caller: &'c McpCaller,
    /// The session key in the arguments. It takes precedence over keys in the MCP request's headers and query.
    key: Option<&'c str>,
}

impl RestAccess<'_> {
    async fn read(&self, path: &str, arguments: &Map<String, Value>) -> Result<ToolAnswer, BadCall> {
        for (limit, bytes) in PIECES {
            let response = self.ask(Method::GET, path, query(arguments, limit), Body::empty()).await?;
            if let Some(answer) = collect(response, bytes).await? {
                return Ok(answer);
            }
        }
        Err(broken_off())
    }

    async fn write(&self, path: &str, arguments: Map<String, Value>) -> Result<ToolAnswer, BadCall> {
        let body = Body::from(Value::Object(arguments).to_string());
        let response = self.ask(Method::POST, path, String::new(), body).await?;
        collect(response, usize::MAX).await?.ok_or_else(broken_off)
    }

    async fn ask(&self, method: Method, path: &str, mut query: String, body: Body) -> Result<Response, BadCall> {
        let mut request = Request::builder().method(method);
        match self.key {
            Some(key) => _ = write!(query, "{KEY}={}", utf8_percent_encode(key, NON_ALPHANUMERIC)),
            None => {
                query.push_str(&self.caller.keys);
                for authorization in &self.caller.authorization {
                    request = request.header(header::AUTHORIZATION, authorization);
                }
            }
        }
        if let Some(address) = self.caller.address {
            request = request.extension(address);
        }
        if let Some(request_connection) = &self.caller.request_connection {
            request = request.extension(request_connection.clone());
        }
        for once in &self.caller.once {
            request = request.header(IDEMPOTENCY_KEY, once);
        }
        let request = request
            .uri(format!("{path}?{query}"))
            .body(body)
            .map_err(|_| BadCall { code: "INVALID_FIELD", sentence: "the arguments are too long".to_owned() })?;
        self.caller.counted.store(true, Ordering::Relaxed);
        let Ok(response) = self.rest.clone().oneshot(request).await;
        Ok(response)
    }
}

/// Builds a query from `limit` and the arguments. The query ends with `&`.
fn query(arguments: &Map<String, Value>, limit: usize) -> String {
    let mut query = format!("limit={limit}&");
    for (name, value) in arguments {
        let _ = match value {
            Value::String(text) => write!(query, "{name}={}&", utf8_percent_encode(text, NON_ALPHANUMERIC)),
            other => write!(query, "{name}={other}&"),
        };
    }
    query
}

/// Reads a whole response; `None` if it is longer than `bytes`.
async fn collect(response: Response, bytes: usize) -> Result<Option<ToolAnswer>, BadCall> {
    let failed = response.status().is_server_error();
    match Limited::new(response.into_body(), bytes).collect().await {
        Ok(body) => {
            let text = String::from_utf8(body.to_bytes().into()).map_err(|_| broken_off())?;
            Ok(Some(ToolAnswer { text, failed }))
        }
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(_) => Err(broken_off()),
    }
}

/// Returns the error for a response that was cut off. The route has logged the cause.
fn broken_off() -> BadCall {
    BadCall { code: "INTERNAL", sentence: "the response was cut off; try again".to_owned() }
}

/// Validates a tool's arguments and adds defaults. Null means a missing argument; unknown arguments are ignored.
fn check(tool: &Tool, mut given: Map<String, Value>) -> Result<Map<String, Value>, BadCall> {
    let mut checked = Map::new();
    for Argument { name, kind, required, .. } in &tool.arguments {
        let value = match given.remove(*name).filter(|value| !value.is_null()) {
            Some(value) => kind.of(value).ok_or_else(|| BadCall {
                code: "INVALID_FIELD",
                sentence: format!("{name} must be {}", kind.described()),
            })?,
            None if *required => {
                return Err(BadCall { code: "MISSING_FIELD", sentence: format!("{name} is required") });
            }
            None => match kind.default() {
                Some(default) => default,
                None => continue,
            },
        };
        checked.insert((*name).to_owned(), value);
    }
    Ok(checked)
}

impl ArgumentKind {
    /// Returns the value if it is of this kind. An integer may be written like `3.0`.
    fn of(self, value: Value) -> Option<Value> {
        // The largest magnitude up to which `f64` represents every integer: 2^53.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            ArgumentKind::Text => value.is_string().then_some(value),
            ArgumentKind::Whole if value.is_i64() || value.is_u64() => Some(value),
            ArgumentKind::Whole => {
                let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT)?;
                Some((number as i64).into())
            }
            ArgumentKind::Seconds(_) => value.as_f64().is_some_and(|seconds| seconds >= 0.0).then_some(value),
        }
    }

    fn described(self) -> &'static str {
        match self {
            ArgumentKind::Text => "a string",
            ArgumentKind::Whole => "a whole number",
            ArgumentKind::Seconds(_) => "a number of seconds, 0 or more",
        }
    }

    fn default(self) -> Option<Value> {
        match self {
            ArgumentKind::Seconds(seconds) => Some(seconds.into()),
            ArgumentKind::Text | ArgumentKind::Whole => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn query_of(tools: &ToolSet, tool: &str, arguments: &str) -> String {
        let arguments = serde_json::from_str(arguments).expect("an object");
        match check(tools.find(tool).expect("a tool"), arguments) {
            Ok(arguments) => query(&arguments, 7),
            Err(BadCall { code, sentence }) => format!("{code}: {sentence}"),
        }
    }

    #[track_caller]
    fn check_arguments(tool: &str, arguments: &str, expected: Expect) {
        expected.assert_eq(&query_of(&ToolSet::arena(false), tool, arguments));
    }

    #[test]
    fn arguments_become_a_query_with_defaults() {
        check_arguments(
            "challenge_sync",
            r#"{"channel": "a/b&c=d", "from": "ä"}"#,
            expect!["limit=7&channel=a%2Fb%26c%3Dd&from=%C3%A4&wait=25.0&"],
        );
        check_arguments(
            "challenge_sync",
            r#"{"channel": "c", "from": "f", "index": 3.0, "wait": null, "mood": {}}"#,
            expect!["limit=7&channel=c&from=f&index=3&wait=25.0&"],
        );
        check_arguments(
            "challenge_sync",
            r#"{"channel": "c", "from": "f", "index": -18446744073709551615, "wait": 0}"#,
            expect!["INVALID_FIELD: index must be a whole number"],
        );
        check_arguments(
            "challenge_sync",
            r#"{"channel": "c", "from": "f", "index": 18446744073709551615, "wait": 0}"#,
            expect!["limit=7&channel=c&from=f&index=18446744073709551615&wait=0&"],
        );
    }

    #[test]
    fn arguments_in_braces_become_segments_of_the_path() {
        let mut arguments = json!({ "a": "../x y", "b": "z", "c": 1 }).as_object().cloned().expect("an object");
        assert_eq!(fill("/q/{a}/{b}", &mut arguments).expect("all are given"), "/q/%2E%2E%2Fx%20y/z");
        assert_eq!(Value::Object(arguments.clone()), json!({ "c": 1 }));
        assert_eq!(fill("/q", &mut arguments).expect("nothing is needed"), "/q");
        for value in [json!(""), Value::Null] {
            let mut arguments = Map::from_iter([("a".to_owned(), value)]);
            assert_eq!(fill("/q/{a}", &mut arguments).expect_err("a segment is empty").code, "INVALID_FIELD");
        }
    }

    #[test]
    fn arguments_that_are_not_the_tools_are_named() {
        check_arguments("challenge_sync", r#"{"from": "f"}"#, expect!["MISSING_FIELD: channel is required"]);
        check_arguments("challenge_sync", r#"{"channel": null}"#, expect!["MISSING_FIELD: channel is required"]);
        check_arguments("challenge_sync", r#"{"channel": 1}"#, expect!["INVALID_FIELD: channel must be a string"]);
        check_arguments(
            "challenge_sync",
            r#"{"channel": "c", "from": "f", "index": "1"}"#,
            expect!["INVALID_FIELD: index must be a whole number"],
        );
        check_arguments(
            "challenge_sync",
            r#"{"channel": "c", "from": "f", "wait": -0.5}"#,
            expect!["INVALID_FIELD: wait must be a number of seconds, 0 or more"],
        );
    }

    #[test]
    fn an_identity_signs_a_join() {
        let created: Value = serde_json::from_str(&create_identity().expect("random bytes").text).expect("JSON");
        let invite = "inv_00000000-0000-7000-8000-000000000000";
        let mut arguments = json!({ "invite": invite, "identity": created["identity"] }).as_object().cloned().unwrap();
        sign(&mut arguments, Timestamp(7)).expect("the identity is valid");
        let text = |name: &str| arguments[name].as_str().expect("a text");
        let proof = arena_identity::Proof::parse(text("publicKey"), text("signature"), Timestamp(7), Timestamp(8));
        let proof = proof.expect("a proof");
        proof.verify_join(invite.parse().expect("an invite")).expect("the signature is valid");
        assert_eq!(created["userId"], proof.public_key().user_id().to_string());
        assert!(!arguments.contains_key("identity"));
        for (bad, expected) in [
            (json!({ "invite": invite, "identity": "00" }), "identity must be a result of identity_create"),
            (json!({ "invite": "x", "identity": created["identity"] }), "invite must be `inv_` and a UUID"),
            (
                json!({ "invite": invite, "identity": created["identity"], "timestamp": 1 }),
                "identity replaces publicKey, signature and timestamp; give one or the other",
            ),
        ] {
            let mut arguments = bad.as_object().cloned().unwrap();
            assert_eq!(sign(&mut arguments, Timestamp(7)).expect_err("it is refused").sentence, expected);
        }
    }

    #[test]
    fn where_keys_are_asked_for_they_stand_in_for_from() {
        let tools = ToolSet::chat(true);
        let arguments = r#"{"channel": "c", "key": "s_0.ab", "from": "f"}"#;
        assert_eq!(query_of(&tools, "sync", arguments), "limit=7&channel=c&key=s%5F0%2Eab&wait=0.0&");
        // The key is optional, since it may be in a header instead.
        assert_eq!(query_of(&tools, "sync", r#"{"channel": "c"}"#), "limit=7&channel=c&wait=0.0&");
        let join = query_of(
            &ToolSet::arena(true),
            "challenge_join",
            r#"{"invite": "inv_x", "publicKey": "", "signature": ""}"#,
        );
        // The route requires the signature, unless there is an identity.
        assert_eq!(join, "limit=7&invite=inv%5Fx&publicKey=&signature=&");
    }
}
