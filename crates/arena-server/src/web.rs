//! The pages for people: what is played here, watched and played in a browser. A file each, and the list of them here.
//!
//! A page is one more client. Of sessions and messages it knows what `view` and `redact` give for whoever looks, and nothing else
//! (`seen.rs`); what it can do, the HTTP interface can do as well. Every page can be read without a script; scripts keep it up to
//! date and draw boards. Pages aren't part of the description of the interface, since they are made for eyes and may change.

mod admin;
mod agents;
mod assets;
mod board;
mod challenges;
mod events;
mod form;
mod history;
mod home;
mod layout;
mod play;
mod plots;
mod replays;
mod seen;
mod sessions;
mod tournaments;
mod users;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{Markup, html};

use crate::arena::Arena;
use crate::error::ApiError;
use crate::request::{Get, Query};
use layout::{Page, Place};
pub(crate) use layout::{explained, head, top};

/// What a page may do: show what this server itself sends, and ask this server. Texts of players can't become more than text.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);

/// All pages and what they load: where that is, and what answers.
pub(crate) fn list(_arena: &Arena) -> Vec<(&'static str, MethodRouter<Arena>)> {
    vec![
        ("/", get(home::show)),
        ("/admin", get(admin::show)),
        ("/style.css", get(assets::style)),
        ("/web/{*file}", get(assets::file)),
        ("/challenges", get(challenges::list)),
        ("/challenges/{name}", get(challenges::show).post(challenges::create)),
        ("/sessions/{id}", get(sessions::show)),
        ("/sessions/{id}/replay", get(events::show)),
        ("/sessions/{id}/events", get(events::list)),
        ("/play/{invite}", get(play::show).post(play::act)),
        ("/tournaments", get(tournaments::list)),
        ("/tournaments/{id}", get(tournaments::show)),
        ("/tournaments/{id}/matches/{number}/replay", get(replays::show)),
        ("/tournaments/{id}/matches/{number}/replay.jsonl", get(replays::file)),
        ("/tournaments/{id}/matches/{number}/replay.index", get(replays::index)),
        ("/tournaments/{id}/matches/{number}/replay.json", get(replays::summary)),
        ("/tournaments/{id}/standings.svg", get(plots::tournament)),
        ("/agents", get(agents::list)),
        ("/agents/{id}", get(agents::show)),
        ("/agents/{id}/rating.svg", get(plots::agent)),
        ("/users/{id}", get(users::show)),
        ("/users/{id}/rating.svg", get(plots::user)),
        ("/leaderboard.svg", get(plots::leaderboard)),
    ]
}

/// A page, or why there is none.
type PageResult<T = Response> = Result<T, PageError>;

/// Why there is no page, told on a page: the same refusals as those of the HTTP interface.
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
        let title = status.canonical_reason().unwrap_or("Refused");
        let body = html! {
            section.empty {
                h1 { (title) }
                p { (layout::shown(error.message())) }
                p { a href="/" { "To the front page" } }
            }
        };
        let page = answer(&Page::new(title, Place::Elsewhere, body));
        // What waits, or asks for a key, is said in the head; the body is for people.
        let mut response = error.into_response();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        let (parts, body) = page.into_parts();
        response.headers_mut().extend(parts.headers);
        *response.body_mut() = body;
        response
    }
}

/// A look at a page: the query, parsed and limited. What is wrong with it is told on a page.
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

/// The answer that is a page.
fn answer(page: &Page) -> Response {
    let mut response = Html(page.render().into_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.extend(GUARDS);
    response
}

/// Headers of every answer that a browser shows. The address of a page may hold an invite, so no other site is told it. With `no-referrer`
/// browsers would send forms of these pages with `Origin: null`, as pages of nobody.
const GUARDS: [(HeaderName, HeaderValue); 1] = [(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"))];

/// Where the asker reached this server.
fn base(arena: &Arena, headers: &HeaderMap) -> String {
    crate::routes::base(headers, arena.settings.listen)
}

/// A path to a page of a list, with the other words of the query left as they are.
fn with_query(path: &str, query: &Query, name: &str, value: &str) -> String {
    let encode =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let others = query.pairs().filter(|(other, _)| *other != name);
    let all = others.chain((!value.is_empty()).then_some((name, value)));
    let text: Vec<String> = all.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if text.is_empty() { path.to_owned() } else { format!("{path}?{}", text.join("&")) }
}

/// Links to the pages before and behind this one of a list, where there are any.
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
