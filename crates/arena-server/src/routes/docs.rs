//! `GET /openapi.json`: the OpenAPI description of all routes. `GET /docs/api`: the same
//! description as an HTML page without scripts.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::skill::{VARY, base};
use crate::answer::json;
use crate::arena::Arena;
use crate::openapi::Description;
use crate::request::Get;

/// The content security policy of the page: resources of this server only, and no scripts.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the OpenAPI 3.1 description of all routes.
#[utoipa::path(get, path = "/openapi.json", tag = "documentation",
    responses((status = 200, body = Object, description = "The description for this server's address and mode.")))]
pub(crate) async fn openapi(State(arena): State<Arena>, request: Get) -> Response {
    let mut response = json(description(&arena).text(&base(&request.headers, arena.settings.listen)));
    response.headers_mut().insert(header::VARY, VARY);
    response
}

/// Returns the API reference as a page.
#[utoipa::path(get, path = "/docs/api", tag = "documentation",
    responses((status = 200, body = String, content_type = "text/html", description = "The page.")))]
pub(crate) async fn docs(State(arena): State<Arena>, request: Get) -> Response {
    let page = description(&arena).page(&base(&request.headers, arena.settings.listen));
    let mut response = axum::response::Html(page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::VARY, VARY);
    response
}

/// Returns the description, and builds it on first use.
fn description(arena: &Arena) -> &Description {
    arena.description.get_or_init(|| super::describe(arena))
}
