//! Spans of requests, for programs that export traces. Names and attributes are those of OpenTelemetry's conventions.
//!
//! A span has the pattern of its route and never the path or the query, which may have secrets. It ends with the head
//! of the response, since a stream may stay open for days.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ptr::fn_addr_eq;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use rmcp::model::RequestMetaObject;
use serde_json::Value;
use tracing::field::Empty;
use tracing::{Instrument, Span, trace_span};

use crate::request_id::RequestId;
use crate::routes::scheme;

/// The headers of W3C Trace Context, which are also the names in the `_meta` of an MCP request.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// The maximum length of a `tracestate` in bytes. A longer one is dropped, since each span would keep it.
const MAX_TRACESTATE: usize = 512;

/// The methods that conventions name. All others are `_OTHER`, since clients can invent methods.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];

/// The way between spans and W3C Trace Context. A program that exports traces provides it.
#[derive(Debug, Clone, Copy)]
pub struct TraceContext {
    /// Makes the sender of this `traceparent` and `tracestate` the parent of a span. Ignores an invalid `traceparent`.
    pub adopt: fn(&Span, &str, &str),
    /// Replaces both headers by those of a span.
    pub inject: fn(&Span, &mut HeaderMap),
}

impl PartialEq for TraceContext {
    fn eq(&self, other: &TraceContext) -> bool {
        fn_addr_eq(self.adopt, other.adopt) && fn_addr_eq(self.inject, other.inject)
    }
}

/// Answers a request to a route by `next`, within a span if there are traces.
pub(crate) async fn trace_request<F: Future<Output = Response>>(
    traces: Option<TraceContext>,
    route: &str,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let Some(context) = traces else { return next(request).await };
    let span = context.request_span(route, &request);
    let response = next(request).instrument(span.clone()).await;
    let status = response.status();
    record_status(&span, status, status.is_server_error());
    response
}

/// Records the status of a response in a span. An error is an error of the span's own side.
pub(crate) fn record_status(span: &Span, status: StatusCode, is_error: bool) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if is_error {
        record_error(span, status.as_str());
    }
}

/// Records the class of an error in a span.
pub(crate) fn record_error(span: &Span, class: &str) {
    span.record("error.type", class).record("otel.status_code", "error");
}

impl TraceContext {
    /// Creates the span of a request to this server.
    fn request_span(self, route: &str, request: &Request) -> Span {
        let headers = request.headers();
        let span = trace_span!(
            "request",
            otel.name = name_of(request.method(), route),
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = known(request.method()).unwrap_or("_OTHER"),
            http.route = (!route.is_empty()).then_some(route),
            http.response.status_code = Empty,
            url.scheme = scheme(headers),
            "error.type" = Empty,
            arena.request_id = request.extensions().get::<RequestId>().map(RequestId::as_str),
        );
        let mut parents = headers.get_all(TRACEPARENT).iter();
        if let (Some(parent), None) = (parents.next(), parents.next()) {
            let states: Vec<_> = headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
            self.adopt(&span, parent.to_str().unwrap_or_default(), &states.join(","));
        }
        span
    }

    /// Creates the span of a request to this route that is passed on to another node.
    pub(crate) fn pass_span(self, method: &Method, route: &str, node: SocketAddr) -> Span {
        trace_span!(
            "pass",
            otel.name = name_of(method, route),
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = method.as_str(),
            http.response.status_code = Empty,
            url.template = route,
            server.address = %node.ip(),
            server.port = i64::from(node.port()),
            "error.type" = Empty,
        )
    }

    /// Creates the span of a call of an MCP tool. Its parent is the caller's own span if the call names it, as MCP
    /// recommends, and the HTTP request otherwise. `tool` is `None` if the tool is unknown.
    pub(crate) fn tool_span(self, request: &Span, tool: Option<&str>, meta: Option<&RequestMetaObject>) -> Span {
        let span = trace_span!(
            parent: request,
            "tool",
            otel.name = tool.map_or(Cow::Borrowed("tools/call"), |tool| format!("tools/call {tool}").into()).as_ref(),
            otel.kind = "server",
            otel.status_code = Empty,
            mcp.method.name = "tools/call",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            "error.type" = Empty,
        );
        let text = |name| meta.and_then(|meta| meta.get(name)).and_then(Value::as_str);
        if let Some(parent) = text(TRACEPARENT) {
            self.adopt(&span, parent, text(TRACESTATE).unwrap_or_default());
        }
        span
    }

    fn adopt(self, span: &Span, parent: &str, state: &str) {
        (self.adopt)(span, parent, if state.len() <= MAX_TRACESTATE { state } else { "" });
    }
}

fn known(method: &Method) -> Option<&'static str> {
    METHODS.into_iter().find(|known| *known == method.as_str())
}

fn name_of(method: &Method, route: &str) -> String {
    let method = known(method).unwrap_or("HTTP");
    if route.is_empty() { method.to_owned() } else { format!("{method} {route}") }
}
