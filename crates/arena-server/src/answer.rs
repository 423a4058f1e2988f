//! Answers: JSON with the right header and nothing else in the way.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use crate::request::accepts;

/// 200 with a JSON text.
pub(crate) fn json(text: impl Into<Body>) -> Response {
    json_with(StatusCode::OK, text)
}

/// A status with a JSON text.
pub(crate) fn json_with(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = with_kind("application/json", text);
    *response.status_mut() = status;
    response
}

/// 200 with a text of another kind.
pub(crate) fn with_kind(kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// 200 with JSON lines; as plain bytes for those who accept nothing else.
pub(crate) fn json_lines(headers: &HeaderMap, lines: Body) -> Response {
    let is_plain = accepts(headers, "octet-stream");
    with_kind(if is_plain { "application/octet-stream" } else { "application/x-ndjson" }, lines)
}

/// The JSON text of what a client may see.
pub(crate) fn to_text(value: &impl Serialize) -> String {
    // Most answers are a session or less; growing to that by doubling would copy them several times.
    let mut text = Vec::with_capacity(1024);
    serde_json::to_writer(&mut text, value).expect("views are texts, numbers, lists and objects with text keys");
    String::from_utf8(text).expect("serde_json writes UTF-8")
}
