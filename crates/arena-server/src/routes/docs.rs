//! `GET /openapi.json`: the description of all routes, for programs. `GET /docs`: the same to read, without a script.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::skill::{VARY, base};
use crate::answer::json;
use crate::arena::Arena;
use crate::openapi::Description;
use crate::request::Get;

/// Nothing but what this server itself sends, and no script.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The description of all routes (OpenAPI 3.1).
#[utoipa::path(get, path = "/openapi.json", tag = "documentation",
    responses((status = 200, body = Object, description = "With this server's address, and true of its mode.")))]
pub(crate) async fn openapi(State(arena): State<Arena>, request: Get) -> Response {
    let mut response = json(description(&arena).text(&base(&request.headers, arena.settings.listen)));
    response.headers_mut().insert(header::VARY, VARY);
    response
}

/// The description of all routes, to read.
#[utoipa::path(get, path = "/docs", tag = "documentation",
    responses((status = 200, body = String, content_type = "text/html", description = "A page.")))]
pub(crate) async fn docs(State(arena): State<Arena>, request: Get) -> Response {
    let page = description(&arena).page(&base(&request.headers, arena.settings.listen));
    let mut response = axum::response::Html(page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::VARY, VARY);
    response
}

/// Made once, when it is first asked for.
fn description(arena: &Arena) -> &Description {
    arena.description.get_or_init(|| super::describe(arena))
}
