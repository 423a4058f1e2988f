//! Responses with JSON and other media types.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

/// Builds a response with status 200 and a JSON body.
pub(crate) fn json(text: impl Into<Body>) -> Response {
    json_with(StatusCode::OK, text)
}

pub(crate) fn json_with(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = with_kind("application/json", text);
    *response.status_mut() = status;
    response
}

/// Builds a response with status 200 and a body of the media type `kind`.
pub(crate) fn with_kind(kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// True if `Accept` contains this text.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|types| types.contains(kind))
}

/// Builds a response with status 200 and JSON lines. The media type is that of plain bytes if `Accept` names it.
pub(crate) fn json_lines(headers: &HeaderMap, lines: Body) -> Response {
    let is_plain = accepts(headers, "octet-stream");
    with_kind(if is_plain { "application/octet-stream" } else { "application/x-ndjson" }, lines)
}

/// Serializes a view as JSON.
pub(crate) fn to_text(value: &impl Serialize) -> String {
    // Most responses are about this long. A buffer that starts empty would be reallocated several times.
    let mut text = Vec::with_capacity(1024);
    serde_json::to_writer(&mut text, value).expect("views are texts, numbers, lists and objects with text keys");
    String::from_utf8(text).expect("serde_json writes UTF-8")
}
