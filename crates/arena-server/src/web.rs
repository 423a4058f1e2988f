//! The HTML pages, for watching and playing in a browser: one module per page, and the list of routes.
//!
//! Pages have the same access as clients of the HTTP API. They read sessions and messages only as `view` and `redact`
//! return them for the viewer (`web/session/redacted.rs`), and every action of a page but the deal of the day exists in
//! the HTTP API. Only replays, signed joins, the log and the administration page need JavaScript; on other pages, scripts
//! draw boards and update the content. The OpenAPI description omits pages, since their markup may change.

mod admin;
mod assets;
mod boards;
mod challenges;
mod components;
mod daily;
mod evals;
mod form;
mod guides;
mod home;
mod layout;
mod log;
mod play;
mod plots;
mod session;
mod site;
mod tournaments;
mod users;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use flate2::Compression;
use maud::{Markup, html};

use crate::arena::Arena;
use crate::error::ApiError;
use crate::request::{Get, Query};
pub(crate) use assets::accepts_gzip;
use assets::gzip;
pub(crate) use guides::guide_tabs;
use layout::{NavEntry, Page};
pub(crate) use layout::{explained, head, top};
pub use site::{SiteLink, SiteSettings};

/// Resources from this server only, and no inline scripts. Scripts in a player's text don't run.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);

/// Returns the routes of all pages and of the files that pages load.
pub(crate) fn list() -> Vec<(&'static str, MethodRouter<Arena>)> {
    let mut list = vec![
        ("/", get(home::show)),
        ("/admin", get(admin::show)),
        ("/web/{*file}", get(assets::file)),
        ("/challenges", get(challenges::list)),
        ("/challenges/{name}", get(challenges::show).post(challenges::create::create)),
        ("/queue/{name}", post(challenges::queue::join)),
        ("/queue/{name}/{ticket}", get(challenges::queue::show).post(challenges::queue::act)),
        ("/sessions/{id}", get(session::show)),
        ("/sessions/{id}/replay", get(session::events::show)),
        ("/sessions/{id}/events", get(session::events::list)),
        ("/sessions/{id}/picture.svg", get(session::share::picture)),
        ("/sessions/{id}/picture.png", get(session::share::picture_file)),
        ("/sessions/{id}/game.pgn", get(session::share::pgn)),
        ("/play/{invite}", get(play::show).post(play::act)),
        ("/daily", get(daily::show).post(daily::play)),
        ("/daily/{day}", get(daily::show_day)),
        ("/docs", get(guides::list)),
        ("/docs/{*name}", get(guides::show)),
        ("/evals", get(evals::list)),
        ("/evals/{run}/{*file}", get(evals::file)),
        ("/leaderboards", get(boards::list)),
        ("/leaderboards/{challenge}", get(boards::show)),
        ("/log", get(log::show)),
        ("/tournaments", get(tournaments::list).post(tournaments::create::create)),
        ("/tournaments/{id}", get(tournaments::show)),
        ("/tournaments/{id}/matches/{number}/replay", get(tournaments::replays::show)),
        ("/tournaments/{id}/matches/{number}/replay.jsonl", get(tournaments::replays::file)),
        ("/tournaments/{id}/matches/{number}/replay.index", get(tournaments::replays::index)),
        ("/tournaments/{id}/matches/{number}/replay.json", get(tournaments::replays::summary)),
        ("/tournaments/{id}/standings.svg", get(plots::tournament)),
        ("/ladders", get(tournaments::ladders::list)),
        ("/ladders/{game}", get(tournaments::ladders::show).post(tournaments::ladders::join)),
        ("/ladders/{game}/games/{number}/replay", get(tournaments::replays::show)),
        ("/ladders/{game}/games/{number}/replay.jsonl", get(tournaments::replays::file)),
        ("/ladders/{game}/games/{number}/replay.index", get(tournaments::replays::index)),
        ("/ladders/{game}/games/{number}/replay.json", get(tournaments::replays::summary)),
        ("/agents", get(tournaments::agents::list)),
        ("/agents/{id}", get(tournaments::agents::show)),
        ("/agents/{id}/rating.svg", get(plots::agent)),
        ("/users/{id}", get(users::show)),
        ("/users/{id}/rating.svg", get(plots::user)),
        ("/leaderboard.svg", get(plots::leaderboard)),
    ];
    if cfg!(debug_assertions) {
        list.push(("/components", get(components::show)));
    }
    list
}

/// A result whose error is shown as a page.
type PageResult<T = Response> = Result<T, PageError>;

/// An error as an HTML page, with the status and text of the HTTP API.
#[derive(Debug)]
pub(crate) struct PageError(ApiError);

impl<E: Into<ApiError>> From<E> for PageError {
    fn from(error: E) -> PageError {
        PageError(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let PageError(error) = self;
        let status = error.status();
        let title = match status.as_u16() {
            404 => "Page not found",
            _ => status.canonical_reason().unwrap_or("Refused"),
        };
        let body = html! {
            section.empty {
                h1 { (title) }
                @if status.as_u16() != 404 { p { (layout::shown(error.message())) } }
                @if status.as_u16() == 404 {
                    p { "The address may be mistyped, or the item was removed." }
                    p.small { "Reason: " (layout::shown(error.message())) "." }
                }
                p { a href="/" { "Back to the home page" } }
            }
        };
        let page = unrendered(Page::new(title, NavEntry::Elsewhere, body));
        // The headers of the API's error (`Retry-After`, `WWW-Authenticate`) stay; only the body becomes HTML.
        let mut response = error.into_response();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        let (parts, body) = page.into_parts();
        response.headers_mut().extend(parts.headers);
        response.extensions_mut().extend(parts.extensions);
        *response.body_mut() = body;
        response
    }
}

/// A request for a page, parsed and within the limits. An invalid or excess request gets an error page.
pub(crate) struct Visit(Get);

impl std::ops::Deref for Visit {
    type Target = Get;

    fn deref(&self) -> &Get {
        &self.0
    }
}

impl FromRequestParts<Arena> for Visit {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, arena: &Arena) -> PageResult<Visit> {
        Ok(Visit(Get::from_request_parts(parts, arena).await?))
    }
}

/// Makes a response with a page as an extension. The middleware of all routes renders it by [`render`].
fn unrendered(page: Page) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.extend(GUARDS);
    response.extensions_mut().insert(Arc::new(page));
    response
}

/// Renders the page of a response, if there is one. Only here, and not in handlers and errors, are the links of the
/// footer known: `has_administration` is true if the client's connection has the routes of administrators.
pub(crate) fn render(
    mut response: Response,
    site: &SiteSettings,
    has_administration: bool,
    accepts_gzip: bool,
) -> Response {
    let Some(page) = response.extensions_mut().remove::<Arc<Page>>() else { return response };
    let html = page.render(site, has_administration).into_string();
    let is_packed = accepts_gzip && !page.has_secrets;
    let html = if is_packed { gzip(html.as_bytes(), Compression::default()) } else { html.into_bytes() };
    let (parts, body) = Html(html).into_response().into_parts();
    let headers = response.headers_mut();
    headers.extend(parts.headers);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    *response.body_mut() = body;
    response
}

/// Headers of every response that a browser shows. A page's address may contain an invite, so the browser must not send
/// it to other sites as a referrer. `no-referrer` would be too strict: browsers would then submit the pages' forms with
/// `Origin: null`.
const GUARDS: [(HeaderName, HeaderValue); 1] = [(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"))];

/// Returns the base URL under which the client reached this server.
fn base(arena: &Arena, headers: &HeaderMap) -> String {
    crate::routes::base(headers, arena.settings.listen)
}

/// Returns `path` with the parameters of `query`, with `name` set to `value`. An empty value removes the parameter.
fn with_query(path: &str, query: &Query, name: &str, value: &str) -> String {
    let encode =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let others = query.pairs().filter(|(other, _)| *other != name);
    let all = others.chain((!value.is_empty()).then_some((name, value)));
    let text: Vec<String> = all.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if text.is_empty() { path.to_owned() } else { format!("{path}?{}", text.join("&")) }
}

/// Renders the links to the previous and the next page of a list.
fn pager(path: &str, query: &Query, (offset, limit, total): (u64, usize, u64)) -> Markup {
    let limit = limit as u64;
    let to = |offset: u64| {
        let text = if offset == 0 { String::new() } else { offset.to_string() };
        with_query(path, query, "offset", &text)
    };
    html! {
        @if total > limit || offset > 0 {
            nav.pager aria-label="Pages" {
                @if offset > 0 { a rel="prev" href=(to(offset.saturating_sub(limit))) { "← newer" } }
                span { (offset.min(total) + u64::from(total > offset)) "–" (offset.saturating_add(limit).min(total)) " of " (total) }
                @if offset.saturating_add(limit) < total { a rel="next" href=(to(offset + limit)) { "older →" } }
            }
        }
    }
}
