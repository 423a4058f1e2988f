//! The pages of evaluations: runs, cells of the matrix, games, and the calls of models.
//!
//! The pages read the folders of runs, and need neither the store nor JavaScript. A server shows them below `/evals`
//! if the settings name a folder of runs; [`router`] shows some runs without a server. Texts of models are untrusted:
//! the pages escape markup and control characters.

mod calls;
mod cell;
mod compared;
mod game;
mod library;
mod loaded;
mod rounds;
mod run;
#[cfg(test)]
mod tests;
mod texts;

use std::path::PathBuf;
use std::sync::Arc;

use arena_eval::FolderError;
use arena_report::printable;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{DOCTYPE, Markup, html};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::library::{RunLibrary, RunSource};
use self::loaded::LoadedEval;
use super::layout::{NavEntry, Page, head_with, shown};
use super::{GUARDS, POLICY, PageError, answer, assets};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::request::{Query, admit, path_params};

/// The path of the pages on a server.
const ON_SERVER: &str = "/evals";

/// The style sheet of the pages.
const STYLE: &str = "evals.css";

/// The pages of these runs, from `/` on. The caller checks the `Host` of requests, because they have no accounts.
pub fn router(dirs: Vec<PathBuf>) -> Router {
    let site = EvalSite::new("", RunSource::of_runs(dirs));
    routes("")
        .route("/style.css", get(|request: Request| async move { assets::style_for(request.headers()) }))
        .route("/web/{*file}", get(file))
        .fallback(|State(site): State<EvalSite>| async move { site.refuse(&EvalPageError::absent("the page")) })
        .with_state(site)
}

/// Builds the pages on a server. `None` if the settings name no folder of runs.
pub(crate) fn on_server(arena: &Arena) -> Option<Router<Arena>> {
    let folder = arena.settings.evals.folder.clone()?;
    let site = EvalSite::new(ON_SERVER, RunSource::Folder(folder));
    Some(routes(ON_SERVER).route_layer(middleware::from_fn_with_state(arena.clone(), count)).with_state(site))
}

fn routes(base: &str) -> Router<EvalSite> {
    let at = |path: &str| format!("{base}{path}");
    let home = if base.is_empty() { "/" } else { base };
    Router::new()
        .route(home, page(run::list))
        .route(&at("/runs/{run}"), page(run::show))
        .route(&at("/runs/{run}/report.html"), page(run::report_html))
        .route(&at("/runs/{run}/report.json"), page(run::report_json))
        .route(&at("/runs/{run}/report.csv"), page(run::report_csv))
        .route(&at("/runs/{run}/cell"), page(cell::show))
        .route(&at("/runs/{run}/search"), page(calls::search))
        .route(&at("/runs/{run}/games/{game}"), page(game::show))
        .route(&at("/runs/{run}/games/{game}/seats"), page(rounds::show))
        .route(&at("/runs/{run}/games/{game}/diff"), page(compared::show))
        .route(&at("/runs/{run}/games/{game}/calls/{call}"), page(calls::show))
}

/// Counts a request against the rate limit of its address.
async fn count(State(arena): State<Arena>, request: Request, next: Next) -> Response {
    match admit(request.extensions(), &arena) {
        Ok(_) => next.run(request).await,
        Err(error) => PageError::from(error).into_response(),
    }
}

/// `GET /web/{*file}`, without a server.
async fn file(State(site): State<EvalSite>, request: Request) -> Response {
    let name = request.uri().path().strip_prefix("/web/").unwrap_or_default();
    let found = assets::file_for(name, request.headers());
    found.unwrap_or_else(|| site.refuse(&EvalPageError::absent("the file")))
}

/// The function of a page. It may read files.
type ShowEval = fn(&EvalSite, &EvalVisit) -> EvalPageResult;

type EvalPageResult<T = Response> = Result<T, EvalPageError>;

fn page(show: ShowEval) -> MethodRouter<EvalSite> {
    get(move |State(site): State<EvalSite>, request: Request| answer_visit(site, request, show))
}

async fn answer_visit(site: EvalSite, request: Request, show: ShowEval) -> Response {
    let (mut parts, _) = request.into_parts();
    let query = Query::parse(&parts.uri);
    let read = path_params(&mut parts).await.and_then(|params| Ok(EvalVisit { params, query: query? }));
    let visit = match read {
        Ok(visit) => visit,
        Err(error) => return site.refuse(&error.into()),
    };
    let reader = site.clone();
    match tokio::task::spawn_blocking(move || show(&reader, &visit)).await {
        Ok(shown) => shown.unwrap_or_else(|error| site.refuse(&error)),
        // A panic, which is already logged.
        Err(_) => site.refuse(&EvalPageError::broken("the page failed".to_owned())),
    }
}

struct EvalVisit {
    params: Vec<(String, String)>,
    query: Query,
}

impl EvalVisit {
    /// Returns a parameter of the path; empty if the route has none of this name.
    fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Returns the number of items before the page, from the query.
    fn offset(&self) -> usize {
        self.query.number("offset").and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0)
    }
}

/// The error of a page. Its text is a part of a sentence.
#[derive(Debug)]
struct EvalPageError {
    status: StatusCode,
    text: String,
}

impl EvalPageError {
    fn absent(item: &str) -> EvalPageError {
        EvalPageError { status: StatusCode::NOT_FOUND, text: format!("{item} does not exist") }
    }

    /// Builds the error of a search that waited for others.
    fn busy() -> EvalPageError {
        let text = "other searches are in progress; try again".to_owned();
        EvalPageError { status: StatusCode::SERVICE_UNAVAILABLE, text }
    }

    /// Builds the error of a folder that can't be read.
    fn broken(text: String) -> EvalPageError {
        EvalPageError { status: StatusCode::INTERNAL_SERVER_ERROR, text }
    }
}

impl From<FolderError> for EvalPageError {
    fn from(error: FolderError) -> EvalPageError {
        EvalPageError::broken(error.to_string())
    }
}

impl From<ApiError> for EvalPageError {
    fn from(error: ApiError) -> EvalPageError {
        EvalPageError { status: error.status(), text: error.message().to_owned() }
    }
}

/// The pages of some runs. Clones share the parsed runs.
#[derive(Clone)]
struct EvalSite {
    /// The path before all pages: empty, or [`ON_SERVER`].
    base: &'static str,
    library: Arc<RunLibrary>,
    /// Held by a search, which reads all calls of a run. Visitors can't start many searches at the same time.
    searching: Arc<Mutex<()>>,
}

impl EvalSite {
    fn new(base: &'static str, source: RunSource) -> EvalSite {
        EvalSite { base, library: Arc::new(RunLibrary::new(source)), searching: Arc::default() }
    }

    fn run(&self, visit: &EvalVisit) -> EvalPageResult<Arc<LoadedEval>> {
        self.library.load(visit.param("run"))
    }

    fn home(&self) -> &'static str {
        if self.base.is_empty() { "/" } else { self.base }
    }

    /// Returns the path of the run with this name, or of a page below it.
    fn path(&self, run: &str, below: &str) -> String {
        format!("{}/runs/{}{below}", self.base, encode(run))
    }

    /// Returns the path of a game, or of a page below it.
    fn game_path(&self, run: &str, game: &str, below: &str) -> String {
        self.path(run, &format!("/games/{}{below}", encode(game)))
    }

    /// Renders a page. `trail` has the paths and names of the pages above it.
    fn answer(&self, title: &str, trail: &[(String, String)], body: &Markup) -> Response {
        self.answer_as(StatusCode::OK, title, trail, body)
    }

    fn answer_as(&self, status: StatusCode, title: &str, trail: &[(String, String)], body: &Markup) -> Response {
        let content = html! {
            @if !trail.is_empty() {
                nav.trail aria-label="Path" {
                    @for (at, (path, name)) in trail.iter().enumerate() {
                        @if at > 0 { span aria-hidden="true" { "/" } }
                        a href=(path) { (shown(name)) }
                    }
                }
            }
            (body)
        };
        let mut response = match self.base.is_empty() {
            false => answer(Page::new(title, NavEntry::Elsewhere, content).with_style(STYLE)),
            true => {
                let mut response = Html(alone(title, &content).into_string()).into_response();
                response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
                response.headers_mut().extend(GUARDS);
                response
            }
        };
        *response.status_mut() = status;
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn refuse(&self, error: &EvalPageError) -> Response {
        let is_absent = error.status == StatusCode::NOT_FOUND;
        let is_ours = error.status == StatusCode::INTERNAL_SERVER_ERROR;
        if is_ours {
            tracing::warn!(error = %error.text, "cannot show an evaluation: {}", error.text);
        }
        let title = match is_absent {
            true => "Page not found",
            false => "This page can't be shown",
        };
        // The paths of the server's folders are for its operator only.
        let reason = match is_ours && !self.base.is_empty() {
            true => "the evaluation can't be read, and the server's log has the reason",
            false => &error.text,
        };
        let body = html! {
            section.empty {
                h1 { (title) }
                p { "Reason: " (shown(reason)) "." }
                p { a href=(self.home()) { "All evaluations" } }
            }
        };
        self.answer_as(error.status, title, &[], &body)
    }
}

/// Renders a page without a server, and so without the links to the server's other pages.
fn alone(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head_with(&format!("{} · Arena", printable(title)), &["page.js"], &[STYLE], None))
            body {
                a.skip href="#content" { "Skip to content" }
                header.top { nav aria-label="Site" { a.home href="/" { "Evaluations" } } }
                main id="content" tabindex="-1" { (content) }
            }
        }
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
