//! MCP over Streamable HTTP: the arena's tools for agents.
//!
//! A tool call becomes a REST call (`mcp/call.rs`), so identity, limits, errors and JSON are those of REST. The SDK
//! implements the protocol. This file contains the HTTP layer with the arena's limits and errors, and `mcp/tools.rs`
//! the tools with their texts.
//!
//! The endpoints are stateless: each POST is independent and returns JSON, so clients survive a restart of the server.

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
use crate::error::{ApiError, ApiResult, Refusal};
use crate::limits::RequestConnection;
use crate::request::{BodyLimit, JSON_WEIGHT, is_json, read_body};
use call::McpCaller;
use plain::PlainCall;
pub(crate) use tools::ToolSet;

/// Maximum size in bytes of a message that isn't a tool call. Such messages are short if they are valid. The SDK tries
/// to parse a body as each type of message, so a long invalid body would be expensive.
const PROTOCOL_BYTES: usize = 64 * 1024;

/// The error text for a body that isn't a message of the protocol.
const NO_MESSAGE: &str = "the body must be a single JSON-RPC message";

/// A message of MCP: a JSON-RPC request or notification.
#[derive(ToSchema)]
#[schema(as = McpMessage, example = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))]
#[expect(dead_code, reason = "the type only describes what the SDK reads")]
struct Message {
    #[schema(pattern = "^2\\.0$")]
    jsonrpc: String,
    /// A string or an integer. A message without an id is a notification, which gets no response.
    id: Option<McpId>,
    /// The method, usually `tools/call` or `tools/list`.
    method: String,
    #[schema(value_type = Object, required = false)]
    params: Option<()>,
}

/// The id of a request, which its response repeats.
#[derive(ToSchema)]
#[schema(as = McpId)]
#[serde(untagged)]
#[expect(dead_code, reason = "the type only describes what the SDK reads")]
enum McpId {
    Number(i64),
    Text(String),
}

/// The response to a request of MCP: a result, or a JSON-RPC error.
#[derive(ToSchema)]
#[schema(as = McpAnswer)]
#[expect(dead_code, reason = "the type only describes what the SDK writes")]
struct McpAnswer {
    jsonrpc: String,
    /// The request's id; null if the id couldn't be read.
    #[schema(required = true)]
    id: Option<McpId>,
    #[schema(value_type = Object, required = false)]
    result: Option<()>,
    #[schema(value_type = Object, required = false)]
    error: Option<()>,
}

/// An error of the arena or of JSON-RPC.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the type only describes responses")]
enum McpRefusal {
    Arena(Refusal<'static>),
    Protocol(McpAnswer),
}

/// Calls the tools for playing: `challenge_join`, `challenge_message`, `challenge_sync`.
#[utoipa::path(post, path = "/api/arena/mcp", tag = "mcp", request_body = Message,
    responses((status = 200, body = McpAnswer, description = "The response. It also reports most errors of the protocol."),
        (status = 400, body = McpRefusal, description = "
            `INVALID_MCP_REQUEST`: the body isn't a single JSON-RPC message. Headers that contradict the body cause a JSON-RPC error.
            `BODY_INCOMPLETE`: the body ended early."),
        (status = 404, body = McpAnswer, description = "The method is unknown (only in the newest revision of the protocol)."),
        Answers))]
pub(crate) async fn play(Extension(endpoint): Extension<Endpoint>, request: Request) -> ApiResult {
    endpoint.answer(request).await
}

/// Calls the tools for chat: `send_chat`, `sync`.
#[utoipa::path(post, path = "/api/chat/mcp", tag = "mcp", request_body = Message,
    responses((status = 200, body = McpAnswer, description = "The response. It also reports most errors of the protocol."),
        (status = 400, body = McpRefusal, description = "
            `INVALID_MCP_REQUEST`: the body isn't a single JSON-RPC message. Headers that contradict the body cause a JSON-RPC error.
            `BODY_INCOMPLETE`: the body ended early."),
        (status = 404, body = McpAnswer, description = "The method is unknown (only in the newest revision of the protocol)."),
        Answers))]
pub(crate) async fn talk(Extension(endpoint): Extension<Endpoint>, request: Request) -> ApiResult {
    endpoint.answer(request).await
}

/// The HTTP responses of an endpoint that are not MCP responses.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the type only describes responses")]
enum Answers {
    /// The notification was accepted.
    #[response(status = 202)]
    Taken,
    /// `NOT_ACCEPTABLE`: the response is JSON, which `Accept` doesn't allow.
    #[response(status = 406)]
    NotAcceptable,
    /// `REQUEST_TIMEOUT`: the body took too long to arrive.
    #[response(status = 408)]
    TooSlow,
    /// `BODY_TOO_LARGE`: the body exceeds the server's limit.
    #[response(status = 413)]
    TooLarge,
    /// `UNSUPPORTED_MEDIA_TYPE`: `Content-Type` must be `application/json`.
    #[response(status = 415)]
    NotJson,
    /// `RATE_LIMITED`: too many requests from this address.
    #[response(status = 429)]
    TooMany,
    /// `INTERNAL`: an error of the server.
    #[response(status = 500)]
    Fault,
}

/// An MCP endpoint of the arena. Clones share its state.
#[derive(Clone)]
pub(crate) struct Endpoint {
    arena: Arena,
    server: Arc<ToolServer>,
    protocol: Arc<StreamableHttpService<Arc<ToolServer>, NeverSessionManager>>,
}

impl Endpoint {
    /// Creates an endpoint with these tools. `rest` contains the routes that they call.
    pub(crate) fn new(tools: ToolSet, arena: Arena, rest: Router) -> Endpoint {
        let server = Arc::new(ToolServer::new(tools, rest, arena.clone()));
        // The SDK's list of allowed hosts protects local servers from web pages that use DNS rebinding. An arena may
        // have any host name, and pages of other origins may read over REST anyway (see `server::cors`).
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
    /// If the body can't be read or isn't a message of MCP, or if the client exceeds the rate limit. Errors of the
    /// protocol are successful results here: the SDK reports them as JSON-RPC responses.
    pub(crate) async fn answer(self, request: Request) -> ApiResult {
        let (mut parts, body) = request.into_parts();
        let caller = Arc::new(McpCaller::of(&parts));
        parts.extensions.insert(Arc::clone(&caller));
        let answer = self.speak(&caller, parts, body).await;
        // The REST routes count the tool calls that reach them against the rate limit. All other requests count here.
        if let Some(address) = caller.uncounted() {
            self.arena.rates.admit(address)?;
        }
        answer
    }

    async fn speak(&self, caller: &McpCaller, parts: Parts, body: Body) -> ApiResult {
        if !is_json(&parts.headers) {
            return Err(refusal(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON, with Content-Type: application/json",
            ));
        }
        if !accepts_json(&parts.headers) {
            return Err(refusal(
                StatusCode::NOT_ACCEPTABLE,
                "the response is JSON; Accept must allow application/json",
            ));
        }
        let limits = &self.arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let body = read_body(body, limit, limits, RequestConnection::of(&parts.extensions).as_ref()).await?;
        if let Some(PlainCall { params, reply }) = PlainCall::of(&parts.headers, &body) {
            return Ok(reply.with(self.server.call(caller, params).await));
        }
        // The SDK parses nested values repeatedly and without a depth limit. `serde_json` has a depth limit, so this
        // parse rejects deeply nested bodies.
        if serde_json::from_slice::<serde_json::Value>(&body).is_err() {
            return Err(refusal(StatusCode::BAD_REQUEST, NO_MESSAGE));
        }
        if body.len() > PROTOCOL_BYTES {
            let text = format!("messages other than a well-formed tools/call may have at most {PROTOCOL_BYTES} bytes");
            return Err(ApiError::too_large("BODY_TOO_LARGE", text));
        }
        self.by_sdk(parts, body).await
    }

    async fn by_sdk(&self, mut parts: Parts, body: Bytes) -> ApiResult {
        // The protocol requires clients to accept event streams, and the SDK refuses those that don't. The arena never
        // responds with a stream, so it accepts these clients by setting the header. The SDK also requires `Host`, but
        // doesn't use it.
        parts.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        parts.headers.insert(header::HOST, HeaderValue::from_static("arena"));
        with_own_error(self.protocol.handle(Request::from_parts(parts, Full::new(body))).await).await
    }
}

/// True if a client accepts JSON. A missing `Accept` accepts everything.
fn accepts_json(headers: &HeaderMap) -> bool {
    let takes_json = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        ["application/json", "application/*", "*/*"].iter().any(|kind| value.contains(kind))
    };
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    accepted.peek().is_none() || accepted.any(takes_json)
}

/// Converts a response of the SDK. A refusal in plain text gets the arena's error body instead.
async fn with_own_error(response: axum::http::Response<BoxBody<Bytes, Infallible>>) -> ApiResult {
    let (parts, body) = response.into_parts();
    if parts.status.is_success() || is_json(&parts.headers) {
        return Ok(Response::from_parts(parts, Body::new(body)));
    }
    let Ok(body) = body.collect().await;
    Err(match parts.status {
        // The content type was checked before. So this status means that the body isn't a message.
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

/// A set of tools as the SDK's server handler.
struct ToolServer {
    tools: ToolSet,
    rest: Router,
    arena: Arena,
    config: ServerConfig,
}

impl ToolServer {
    fn new(tools: ToolSet, rest: Router, arena: Arena) -> ToolServer {
        let server_info = Implementation::new(tools.name, env!("CARGO_PKG_VERSION")).with_title(tools.title);
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server_info)
            .with_instructions(tools.instructions.clone());
        ToolServer { tools, rest, arena, config }
    }

    async fn call(&self, caller: &McpCaller, request: CallToolRequestParams) -> CallToolResult {
        call::call(&self.tools, &self.rest, caller, self.arena.engine.now(), request).await
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
        let caller = parts.and_then(|parts| parts.extensions.get::<Arc<McpCaller>>());
        let caller = caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
        tokio::select! {
            result = self.call(caller, request) => Ok(result.into()),
            // The caller has disconnected: a wait ends here. A write that the engine has accepted still completes.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was canceled", None)),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The SDK passes on unknown methods, and also known methods with invalid parameters.
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params("tools/call requires a name, and arguments as an object", None),
            "initialize" => ErrorData::invalid_params(
                "initialize requires protocolVersion, capabilities, and clientInfo with name and version",
                None,
            ),
            method => ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                format!("unknown method {method}; available methods: tools/list, tools/call"),
                None,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tokio::sync::mpsc;

    /// Sends a message when it is dropped.
    struct Guard(mpsc::UnboundedSender<&'static str>);

    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send("left");
        }
    }

    async fn endpoint(tools: ToolSet, rest: Router) -> (Endpoint, TempDir) {
        let (arena, folder) = Arena::in_tests().await;
        (Endpoint::new(tools, arena, rest), folder)
    }

    /// Builds a tool call as a client sends it. If `handshake` is true, its protocol revision is one with a handshake.
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

    async fn read_answer(response: Response) -> Value {
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Returns the SDK's response to a request. The fast path is not used.
    async fn answered_by_sdk(endpoint: &Endpoint, request: Request) -> Value {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Arc::new(McpCaller::of(&parts)));
        let body = body.collect().await.expect("a body").to_bytes();
        read_answer(endpoint.by_sdk(parts, body).await.expect("an answer")).await
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
                let here = read_answer(
                    endpoint.clone().answer(request(handshake, tool, &arguments)).await.expect("an answer"),
                );
                let there = answered_by_sdk(&endpoint, request(handshake, tool, &arguments)).await;
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
        let text = async |arguments| {
            read_answer(ask(arguments).await.expect("an answer")).await["result"]["content"][0].take()
        };
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
    async fn a_disconnected_caller_stops_waiting() {
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
        let by_sdk = answered_by_sdk(&endpoint, request(true, "challenge_sync", &arguments));
        let mut calls: [std::pin::Pin<Box<dyn Future<Output = ()>>>; 2] =
            [Box::pin(async { drop(in_place.await) }), Box::pin(async { drop(by_sdk.await) })];
        for call in &mut calls {
            tokio::select! {
                () = call.as_mut() => panic!("the route never responds"),
                word = heard.recv() => assert_eq!(word, Some("waits")),
            }
            *call = Box::pin(std::future::ready(()));
            assert_eq!(heard.recv().await, Some("left"));
        }
    }
}
