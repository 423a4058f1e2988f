//! MCP over Streamable HTTP: the arena's tools for agents.
//!
//! A tool call is a REST call in disguise (`mcp/call.rs`): identity, limits, errors and JSON are those of REST because
//! they are made there. The SDK speaks the protocol; this file is the HTTP around it: what is read, counted and refused as
//! everywhere else in the arena. The tools themselves, and all that an agent reads about them, are in `mcp/tools.rs`.
//!
//! There are no protocol sessions: each POST stands for itself and is answered with JSON, so that any client may call
//! at any time and a restart is nothing to recover from.

mod call;
mod plain;
mod tools;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::{Extension, Router};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use utoipa::{IntoResponses, ToSchema};

use crate::arena::Arena;
use crate::connections::Line;
use crate::error::{ApiError, ApiResult, Refusal};
use crate::request::{BodyLimit, JSON_WEIGHT, read_body};
use call::Caller;
use plain::PlainCall;
pub(crate) use tools::ToolSet;

/// Largest message that isn't a tool call. They are all short, and the SDK tries every kind of message on a body before it
/// gives up, which makes long ones expensive.
const PROTOCOL_BYTES: usize = 64 * 1024;

/// The refusal of what isn't a message of the protocol.
const NO_MESSAGE: &str = "the body must be one JSON-RPC message, and not a list of them";

/// A message of MCP: a request or notification of JSON-RPC. Which there are, the protocol says.
#[derive(ToSchema)]
#[schema(as = McpMessage, example = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))]
#[expect(dead_code, reason = "the SDK reads them; this is their description")]
struct Message {
    #[schema(pattern = "^2\\.0$")]
    jsonrpc: String,
    /// A text or a whole number. Without one it is a notification, which isn't answered.
    id: Option<McpId>,
    /// `tools/call` and `tools/list`, mostly.
    method: String,
    #[schema(value_type = Object, required = false)]
    params: Option<()>,
}

/// What tells the answers to several requests apart.
#[derive(ToSchema)]
#[schema(as = McpId)]
#[serde(untagged)]
#[expect(dead_code, reason = "the SDK reads them; this is their description")]
enum McpId {
    Number(i64),
    Text(String),
}

/// The answer to a request of MCP: a result, or an error of JSON-RPC.
#[derive(ToSchema)]
#[schema(as = McpAnswer)]
#[expect(dead_code, reason = "the SDK writes them; this is their description")]
struct McpAnswer {
    jsonrpc: String,
    /// That of the request; null where it couldn't be read.
    #[schema(required = true)]
    id: Option<McpId>,
    #[schema(value_type = Object, required = false)]
    result: Option<()>,
    #[schema(value_type = Object, required = false)]
    error: Option<()>,
}

/// An error of the arena, or one of JSON-RPC.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "written in two places; this is the description of both")]
enum McpRefusal {
    Arena(Refusal<'static>),
    Protocol(McpAnswer),
}

/// Tools to play with: `challenge_join`, `challenge_message`, `challenge_sync`.
#[utoipa::path(post, path = "/api/arena/mcp", tag = "mcp", request_body = Message,
    responses((status = 200, body = McpAnswer, description = "The answer. Most errors of the protocol are in it, too."),
        (status = 400, body = McpRefusal, description = "
            `INVALID_MCP_REQUEST`: it isn't one message of JSON-RPC; or headers contradict it, and JSON-RPC says so.
            `BODY_INCOMPLETE`: the body ended too soon."),
        (status = 404, body = McpAnswer, description = "In the newest revision of the protocol: there is no such method."),
        Answers))]
pub(crate) async fn play(Extension(endpoint): Extension<Endpoint>, request: Request) -> ApiResult {
    endpoint.answer(request).await
}

/// Tools to talk with: `send_chat`, `sync`.
#[utoipa::path(post, path = "/api/chat/mcp", tag = "mcp", request_body = Message,
    responses((status = 200, body = McpAnswer, description = "The answer. Most errors of the protocol are in it, too."),
        (status = 400, body = McpRefusal, description = "
            `INVALID_MCP_REQUEST`: it isn't one message of JSON-RPC; or headers contradict it, and JSON-RPC says so.
            `BODY_INCOMPLETE`: the body ended too soon."),
        (status = 404, body = McpAnswer, description = "In the newest revision of the protocol: there is no such method."),
        Answers))]
pub(crate) async fn talk(Extension(endpoint): Extension<Endpoint>, request: Request) -> ApiResult {
    endpoint.answer(request).await
}

/// What an endpoint may answer besides.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "written in several places; this is the description of all")]
enum Answers {
    /// A notification was taken.
    #[response(status = 202)]
    Taken,
    /// `NOT_ACCEPTABLE`: the answer is JSON, and `Accept` doesn't allow for it.
    #[response(status = 406)]
    NotAcceptable,
    /// `REQUEST_TIMEOUT`: the body took too long to arrive.
    #[response(status = 408)]
    TooSlow,
    /// `BODY_TOO_LARGE`: the body is larger than the server's limit.
    #[response(status = 413)]
    TooLarge,
    /// `UNSUPPORTED_MEDIA_TYPE`: `Content-Type` doesn't say that the body is JSON.
    #[response(status = 415)]
    NotJson,
    /// `RATE_LIMITED`: too many requests from one address.
    #[response(status = 429)]
    TooMany,
    /// `INTERNAL`: the server is at fault.
    #[response(status = 500)]
    Fault,
}

/// One of the arena's endpoints for MCP. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Endpoint {
    arena: Arena,
    server: Arc<ToolServer>,
    protocol: Arc<StreamableHttpService<Arc<ToolServer>, NeverSessionManager>>,
}

impl Endpoint {
    /// An endpoint that offers `tools`, whose calls go to `rest`.
    pub(crate) fn new(tools: ToolSet, arena: Arena, rest: Router) -> Endpoint {
        let server = Arc::new(ToolServer::new(tools, rest));
        // The SDK can refuse requests for hosts that aren't on a list, against web pages that reach a local server under a name
        // of their own. An arena is reached under any names its owner likes, and such pages may call REST anyway, as those
        // of all origins may (see `server::cors`).
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .with_max_request_body_bytes(arena.settings.limits.body_bytes);
        let handler = Arc::clone(&server);
        let protocol = StreamableHttpService::new(move || Ok(Arc::clone(&handler)), Arc::default(), config);
        Endpoint { arena, server, protocol: Arc::new(protocol) }
    }

    /// Answers a POST.
    ///
    /// # Errors
    /// If the body can't be read or isn't a message of MCP, or if its sender asks too often. Errors of the protocol aren't
    /// errors here: the SDK words them, as JSON-RPC.
    pub(crate) async fn answer(self, request: Request) -> ApiResult {
        let (mut parts, body) = request.into_parts();
        let caller = Arc::new(Caller::of(&parts));
        parts.extensions.insert(Arc::clone(&caller));
        let answer = self.speak(&caller, parts, body).await;
        // A call that reached REST was counted there, and told there if it was one too many. All else counts here.
        if let Some(address) = caller.uncounted() {
            self.arena.rates.admit(address)?;
        }
        answer
    }

    async fn speak(&self, caller: &Caller, parts: Parts, body: Body) -> ApiResult {
        if !is_json(&parts.headers) {
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be JSON, and Content-Type say so"));
        }
        if !accepts_json(&parts.headers) {
            return Err(refusal(StatusCode::NOT_ACCEPTABLE, "the answer is JSON, and Accept must allow for it"));
        }
        let limits = &self.arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let body = read_body(body, limit, limits, Line::of(&parts.extensions).as_ref()).await?;
        if let Some(PlainCall { params, reply }) = PlainCall::of(&parts.headers, &body) {
            return Ok(reply.with(self.server.call(caller, params).await));
        }
        // The SDK looks at nested values again and again, and has no bound for how deep they are.
        if serde_json::from_slice::<serde_json::Value>(&body).is_err() {
            return Err(refusal(StatusCode::BAD_REQUEST, NO_MESSAGE));
        }
        if body.len() > PROTOCOL_BYTES {
            let text = format!("a message that isn't a well-formed tools/call is larger than {PROTOCOL_BYTES} bytes");
            return Err(ApiError::too_large("BODY_TOO_LARGE", text));
        }
        self.by_sdk(parts, body).await
    }

    async fn by_sdk(&self, mut parts: Parts, body: Bytes) -> ApiResult {
        // The SDK insists on clients that take event streams as well, as the protocol tells them to; none will come. And on
        // a name for the server, which it doesn't look at.
        parts.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        parts.headers.insert(header::HOST, HeaderValue::from_static("arena"));
        in_our_words(self.protocol.handle(Request::from_parts(parts, Full::new(body))).await).await
    }
}

/// Whether a message says that its body is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Whether a client takes JSON. One that doesn't say what it takes, takes everything.
fn accepts_json(headers: &HeaderMap) -> bool {
    let takes_json = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        ["application/json", "application/*", "*/*"].iter().any(|kind| value.contains(kind))
    };
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    accepted.peek().is_none() || accepted.any(takes_json)
}

/// An answer of the SDK, with the arena's error body where the SDK refuses a request in plain text.
async fn in_our_words(response: axum::http::Response<BoxBody<Bytes, Infallible>>) -> ApiResult {
    let (parts, body) = response.into_parts();
    if parts.status.is_success() || is_json(&parts.headers) {
        return Ok(Response::from_parts(parts, Body::new(body)));
    }
    let Ok(body) = body.collect().await;
    Err(match parts.status {
        // What isn't JSON by its own word was refused before. So this body doesn't keep its word, or isn't a message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => refusal(StatusCode::BAD_REQUEST, NO_MESSAGE),
        status => refusal(status, String::from_utf8_lossy(&body.to_bytes())),
    })
}

fn refusal(status: StatusCode, sentence: impl Into<String>) -> ApiError {
    let code = match status {
        StatusCode::NOT_ACCEPTABLE => "NOT_ACCEPTABLE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        status if status.is_server_error() => "INTERNAL",
        _ => "INVALID_MCP_REQUEST",
    };
    ApiError::new(status, code, sentence)
}

/// A set of tools, as the SDK wants to have it.
struct ToolServer {
    tools: ToolSet,
    /// The routes that tools call.
    rest: Router,
    config: ServerConfig,
}

impl ToolServer {
    fn new(tools: ToolSet, rest: Router) -> ToolServer {
        let server_info = Implementation::new(tools.name, env!("CARGO_PKG_VERSION")).with_title(tools.title);
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server_info)
            .with_instructions(tools.instructions.clone());
        ToolServer { tools, rest, config }
    }

    async fn call(&self, caller: &Caller, request: CallToolRequestParams) -> CallToolResult {
        call::call(&self.tools, &self.rest, caller, request).await
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.listed()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>());
        let caller = caller.ok_or_else(|| ErrorData::internal_error("nobody calls", None))?;
        tokio::select! {
            result = self.call(caller, request) => Ok(result.into()),
            // The caller has hung up. What was being written goes on in the engine; who waited, waits no longer.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The SDK takes a request for an unknown one if its parameters aren't those of the method.
        Err(match request.method.as_str() {
            "tools/call" => {
                ErrorData::invalid_params("tools/call needs a name, and arguments that are an object", None)
            }
            "initialize" => ErrorData::invalid_params(
                "initialize needs a protocolVersion, capabilities, and clientInfo with a name and a version",
                None,
            ),
            method => ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {method}; there are tools/list and tools/call"),
                None,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_engine::{Engine, Environment, Limits};
    use arena_store::Store;
    use axum::routing::get;
    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tokio::sync::mpsc;

    use crate::settings::Settings;

    /// Sends a word when it is dropped.
    struct Guard(mpsc::UnboundedSender<&'static str>);

    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send("left");
        }
    }

    async fn endpoint(tools: ToolSet, rest: Router) -> (Endpoint, TempDir) {
        let folder = tempfile::tempdir().expect("a temp folder");
        let settings = Settings { data: folder.path().to_owned(), ..Settings::default() };
        let limits = Limits {
            channel_messages: 1,
            spectators_chat: false,
            self_play: true,
            patience: settings.sessions.patience(),
        };
        let store = Store::open(folder.path(), arena_model::Scoring::default()).expect("a store");
        let engine = Engine::new(store, Vec::new(), limits, Environment::system()).await.expect("an engine");
        (Endpoint::new(tools, Arena::new(engine, settings, None, None), rest), folder)
    }

    /// A call, as a client of the revision with a handshake sends it, or of the one without.
    fn request(handshake: bool, tool: &str, arguments: &Value) -> Request {
        let request = Request::post("/api/arena/mcp").header(header::CONTENT_TYPE, "application/json");
        let mut params = json!({ "name": tool, "arguments": arguments });
        let request = if handshake {
            request.header("mcp-protocol-version", "2025-11-25")
        } else {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
            request.header("mcp-name", tool)
        };
        let message = json!({ "jsonrpc": "2.0", "id": "7", "method": "tools/call", "params": params });
        request.body(Body::from(message.to_string())).expect("a request")
    }

    async fn told(response: Response) -> Value {
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The SDK's own answer to a request.
    async fn told_by_sdk(endpoint: &Endpoint, request: Request) -> Value {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Arc::new(Caller::of(&parts)));
        let body = body.collect().await.expect("a body").to_bytes();
        told(endpoint.by_sdk(parts, body).await.expect("an answer")).await
    }

    #[tokio::test]
    async fn a_call_is_answered_in_place_as_the_sdk_would_answer_it() {
        let rest = Router::new()
            .route("/api/arena/sync", get(|request: Request| async move { request.uri().to_string() }))
            .route("/api/arena/join", axum::routing::post(|| async { (StatusCode::BAD_REQUEST, r#"{"error":"no"}"#) }))
            .route("/api/arena/message", axum::routing::post(|| async { StatusCode::SERVICE_UNAVAILABLE }));
        let (endpoint, _folder) = endpoint(ToolSet::arena(false), rest).await;
        let message = json!({ "challengeId": "c", "from": "f", "messageType": "m", "content": "\u{1}\"" });
        for (tool, arguments) in [
            ("challenge_sync", json!({ "channel": "c", "from": "f" })),
            ("challenge_sync", json!({})),
            ("challenge_join", json!({ "invite": "i" })),
            ("challenge_message", message),
            ("unheard_of", Value::Null),
        ] {
            for handshake in [true, false] {
                let (parts, body) = request(handshake, tool, &arguments).into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                assert!(PlainCall::of(&parts.headers, &body).is_some(), "{tool} {arguments}");
                let here =
                    told(endpoint.clone().answer(request(handshake, tool, &arguments)).await.expect("an answer"));
                let there = told_by_sdk(&endpoint, request(handshake, tool, &arguments)).await;
                assert_eq!(here.await, there, "{tool} {arguments}");
            }
        }
    }

    #[tokio::test]
    async fn keys_that_the_client_always_sends_go_along_unless_the_call_has_one() {
        let echo = get(|request: Request| async move {
            let bearers: Vec<_> = request.headers().get_all(header::AUTHORIZATION).iter().collect();
            format!("{} {bearers:?}", request.uri())
        });
        let (endpoint, _folder) = endpoint(ToolSet::chat(true), Router::new().route("/api/chat/sync", echo)).await;
        let ask = |arguments: Value| {
            let mut request = request(true, "sync", &arguments);
            *request.uri_mut() = "/api/chat/mcp?x=1&key=a%20b&key=c".parse().expect("a URI");
            request.headers_mut().append(header::AUTHORIZATION, HeaderValue::from_static("Bearer d"));
            request.headers_mut().append(header::AUTHORIZATION, HeaderValue::from_static("Bearer e"));
            endpoint.clone().answer(request)
        };
        let text =
            async |arguments| told(ask(arguments).await.expect("an answer")).await["result"]["content"][0].take();
        assert_eq!(
            text(json!({ "channel": "c", "wait": 1 })).await["text"],
            r#"/api/chat/sync?limit=500&channel=c&wait=1&key=a%20b&key=c ["Bearer d", "Bearer e"]"#
        );
        assert_eq!(
            text(json!({ "channel": "c", "wait": 1, "key": "f&g" })).await["text"],
            "/api/chat/sync?limit=500&channel=c&wait=1&key=f%26g []"
        );
    }

    #[tokio::test]
    async fn a_caller_who_hangs_up_waits_no_longer() {
        let (say, mut heard) = mpsc::unbounded_channel();
        let wait = get(move || {
            let say = say.clone();
            async move {
                say.send("waits").expect("the test listens");
                let _guard = Guard(say);
                std::future::pending::<()>().await;
            }
        });
        let (endpoint, _folder) = endpoint(ToolSet::arena(false), Router::new().route("/api/arena/sync", wait)).await;
        let arguments = json!({ "channel": "c", "from": "f" });
        let in_place = endpoint.clone().answer(request(true, "challenge_sync", &arguments));
        let by_sdk = told_by_sdk(&endpoint, request(true, "challenge_sync", &arguments));
        let mut calls: [std::pin::Pin<Box<dyn Future<Output = ()>>>; 2] =
            [Box::pin(async { drop(in_place.await) }), Box::pin(async { drop(by_sdk.await) })];
        for call in &mut calls {
            tokio::select! {
                () = call.as_mut() => panic!("nothing is there to answer with"),
                word = heard.recv() => assert_eq!(word, Some("waits")),
            }
            *call = Box::pin(std::future::ready(()));
            assert_eq!(heard.recv().await, Some("left"));
        }
    }
}
