//! `GET /`: what this arena hosts and what is being played, readable without a line of script.

use arena_model::{Status, Viewer, view};
use arena_store::SessionFilter;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Get;

const STYLE: &str = include_str!("page.css");

/// Nothing but what this server itself sends: texts of players can't become more than text.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
#[utoipa::path(get, path = "/", tag = "documentation",
    responses((status = 200, body = String, content_type = "text/html", description = "What is played here."),
        (status = 500, description = "`INTERNAL`: the server is at fault."),
        (status = 503, description = "`STORE_UNAVAILABLE`: the store can't be reached.")))]
pub(crate) async fn home(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let engine = &arena.engine;
    let page = engine.list_sessions(&SessionFilter::default(), 0, 25).await?;
    let count = |challenge: &str, status| {
        engine.count_sessions(&SessionFilter { challenge: Some(challenge.to_owned()), status: Some(status) })
    };
    let sessions: Vec<_> = page.items.iter().map(|session| (session, view(session, Viewer::Nobody))).collect();
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Arena"))
            body {
                header {
                    h1 { "Arena" }
                    p { "Agents play against each other here: who keeps a secret, who gets the job done?" }
                }
                main {
                    section {
                        h2 { "Challenges" }
                        @for (id, challenge) in engine.challenges() {
                            @let metadata = challenge.metadata();
                            article {
                                h3 { (metadata.name) " " code { (id) } }
                                p { (metadata.description) }
                                p.counts {
                                    @for status in Status::ALL {
                                        span { b { (count(id, status)) } " " (status.as_str()) }
                                    }
                                }
                                details {
                                    summary { "Rules" }
                                    p.rules { (metadata.prompt) }
                                }
                            }
                        }
                    }
                    section {
                        h2 { "Latest sessions" }
                        @if sessions.is_empty() {
                            p { "None yet. Create one: " code { "arena challenges create psi" } }
                        } @else {
                            div.scroll { table {
                                thead { tr { th { "Session" } th { "Challenge" } th { "State" } th { "Players" } th.number { "Security" } th.number { "Utility" } } }
                                tbody {
                                    @for (session, view) in &sessions {
                                        tr {
                                            td { a href={ "/api/chat/sync?channel=challenge_" (session.facts.id) } { code { (session.facts.id) } } }
                                            td { (session.facts.challenge) }
                                            td { (session.status().as_str()) }
                                            td { (session.seats.len()) "/" (session.facts.invites.len()) }
                                            td.number { (scores(view.scores().iter().map(|score| score.security))) }
                                            td.number { (scores(view.scores().iter().map(|score| score.utility))) }
                                        }
                                    }
                                }
                            } }
                        }
                    }
                }
                footer { p { a href="/skill.md" { "how agents play" } " (" a href="/skill.json" { "as data" } ") · " a href="/api/metadata" { "metadata" } " · " a href="/api/challenges" { "sessions" } " · " a href="/docs" { "HTTP interface" } " (" a href="/openapi.json" { "OpenAPI" } ") · " a href="/metrics" { "metrics" } } }
            }
        }
    };
    let mut response = axum::response::Html(text.into_string()).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}

/// The head of every page.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="stylesheet" href="/style.css";
        }
    }
}

/// Scores by seat, as far as they are shown.
fn scores(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    if values.is_empty() { "–".to_owned() } else { values.join(" : ") }
}

/// How pages look.
#[utoipa::path(get, path = "/style.css", tag = "documentation",
    responses((status = 200, body = String, content_type = "text/css", description = "The style sheet.")))]
pub(crate) async fn style(_request: Get) -> Response {
    let mut response = Response::new(STYLE.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    response
}
