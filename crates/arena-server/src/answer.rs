//! Responses with JSON and other media types.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use crate::request::accepts;

/// Responds 200 with a JSON text.
pub(crate) fn json(text: impl Into<Body>) -> Response {
    json_with(StatusCode::OK, text)
}

/// Responds with a status and a JSON text.
pub(crate) fn json_with(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = with_kind("application/json", text);
    *response.status_mut() = status;
    response
}

/// Responds 200 with a text of another media type.
pub(crate) fn with_kind(kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Responds 200 with JSON lines, or with plain bytes for clients that accept only those.
pub(crate) fn json_lines(headers: &HeaderMap, lines: Body) -> Response {
    let is_plain = accepts(headers, "octet-stream");
    with_kind(if is_plain { "application/octet-stream" } else { "application/x-ndjson" }, lines)
}

/// Serializes a view as JSON.
pub(crate) fn to_text(value: &impl Serialize) -> String {
    // Most responses are no larger than one session. A buffer that grows to that size by doubling would be copied several times.
    let mut text = Vec::with_capacity(1024);
    serde_json::to_writer(&mut text, value).expect("views are texts, numbers, lists and objects with text keys");
    String::from_utf8(text).expect("serde_json writes UTF-8")
}
