//! `arena replay serve`: replays in the browser, from a small server on the loopback.
//!
//! Any web page can send requests to a server on this machine. So the server answers only requests whose `Host` is the
//! loopback, since an attacker may own another name that resolves to the loopback. Response headers keep other pages
//! from reading answers. The server serves no files except replays and their indexes.

mod library;
mod list;

use std::net::Ipv4Addr;
use std::sync::Arc;

use arena_web::{ASSETS, POLICY, ViewerUrls, replay_page};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tower_http::services::ServeFile;

use self::library::{Indexed, Library};
use super::html::{INDEX, REPLAY, SUMMARY, remark, title};
use super::open;
use crate::args::ReplayServeArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Style, note, print};
use crate::serve::{runtime, stop_signal};

/// The relative URLs of the assets, from the pages below `/replays/N/` and from the list.
const FROM_REPLAY: &str = "../../assets/";

pub fn run(args: &ReplayServeArgs, style: Style) -> Result<(), Failure> {
    let library = Arc::new(Library::open(&args.path)?);
    // If a single replay is unreadable, the command fails here, before a browser opens it.
    if library.single {
        let indexed = library.indexed(0)?;
        if let Some(remark) = remark(&args.path, &indexed.summary) {
            note(&remark);
        }
    }
    let cannot = |error: std::io::Error| {
        Failure::new(
            Exit::CannotListen,
            format_args!("cannot listen on 127.0.0.1:{}: {error}; choose another port, or 0 for a free one", args.port),
        )
    };
    runtime()?.block_on(async {
        let stop = stop_signal()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await.map_err(cannot)?;
        let url = format!("http://{}/", listener.local_addr().map_err(cannot)?);
        match style {
            Style::Json => print(&json!({"url": url}).to_string())?,
            Style::Pretty | Style::Compact => print(&format!("replays are at {url}"))?,
        }
        let served = axum::serve(listener, routes(library)).with_graceful_shutdown(stop).await;
        served.map_err(|error| Failure::caused(Exit::Internal, &error))
    })
}

fn routes(library: Arc<Library>) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/replays/{number}/", get(page))
        .route(&format!("/replays/{{number}}/{REPLAY}"), get(replay))
        .route(&format!("/replays/{{number}}/{INDEX}"), get(index))
        .route(&format!("/replays/{{number}}/{SUMMARY}"), get(summary))
        .route("/assets/{*path}", get(asset))
        .fallback(|| async { (StatusCode::NOT_FOUND, "not found\n") })
        .with_state(library)
        .layer(middleware::from_fn(guard))
}

/// Refuses requests with a `Host` other than the loopback, and adds security headers to all answers.
async fn guard(request: Request, next: Next) -> Response {
    let mut answer = match is_local(request.headers()) {
        true => next.run(request).await,
        false => (
            StatusCode::MISDIRECTED_REQUEST,
            "use 127.0.0.1 or localhost: this server accepts requests of its own machine only\n",
        )
            .into_response(),
    };
    let headers = answer.headers_mut();
    let policy = format!("{POLICY}; frame-ancestors 'none'");
    let policy = HeaderValue::try_from(policy).expect("policies are plain ASCII");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // Answers aren't cached, since a later run of this command may serve another replay at the same URL.
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Returns true if the `Host` of a request is the loopback. Any port is allowed, since the server's port may be
/// forwarded from another port.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let is_port =
        |text: &str| text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.strip_prefix(name).is_some_and(is_port))
}

#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

async fn home(State(library): State<Arc<Library>>, Query(From { from }): Query<From>) -> Response {
    if library.single {
        return Redirect::to("/replays/0/").into_response();
    }
    blocking(move || library.list(from).map(|page| Html(list::page(&page)).into_response())).await
}

async fn page(State(library): State<Arc<Library>>, Path(number): Path<usize>) -> Response {
    let page = move || {
        let header = open(&library.path(number)?)?.header;
        let list = (!library.single).then_some("../../");
        let urls = ViewerUrls { assets: FROM_REPLAY, replay: REPLAY, index: INDEX, summary: SUMMARY, list };
        Ok(Html(replay_page(&title(&header), &urls)).into_response())
    };
    blocking(page).await
}

async fn summary(State(library): State<Arc<Library>>, Path(number): Path<usize>) -> Response {
    let summary = move || {
        let indexed = library.indexed(number)?;
        let text = serde_json::to_string(&indexed.summary).expect("a summary is plain data");
        Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
    };
    blocking(summary).await
}

async fn replay(State(library): State<Arc<Library>>, Path(number): Path<usize>, request: Request) -> Response {
    match library.path(number) {
        Ok(path) => file(&path, request).await,
        Err(failure) => refuse(&failure),
    }
}

async fn index(State(library): State<Arc<Library>>, Path(number): Path<usize>, request: Request) -> Response {
    let indexed = tokio::task::spawn_blocking(move || library.indexed(number)).await;
    match indexed.expect("indexing doesn't panic") {
        Ok(Indexed { index, .. }) => file(&index, request).await,
        Err(failure) => refuse(&failure),
    }
}

async fn asset(Path(path): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.path == path) {
        Some(asset) => ([(header::CONTENT_TYPE, asset.media_type)], asset.text).into_response(),
        None => (StatusCode::NOT_FOUND, "not found\n").into_response(),
    }
}

/// Answers with a file, or with the requested range of the file.
async fn file(path: &std::path::Path, request: Request) -> Response {
    match ServeFile::new(path).try_call(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => {
            let sentence = format!("{} cannot be read: {error}", path.display());
            refuse(&Failure::new(Exit::BadReplay, sentence))
        }
    }
}

/// Runs a task that reads files on a blocking thread.
async fn blocking(work: impl FnOnce() -> Result<Response, Failure> + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("reading replays doesn't panic").unwrap_or_else(|failure| refuse(&failure))
}

/// Converts a failure into an answer with its message.
fn refuse(failure: &Failure) -> Response {
    let status = match failure.exit {
        Exit::Usage => StatusCode::NOT_FOUND,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    (status, format!("{}\n", failure.sentence())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        let check = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            is_local(&headers)
        };
        for host in ["127.0.0.1:4000", "localhost", "localhost:80", "[::1]:9"] {
            assert!(check(host), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "127.0.0.1:x", "10.0.0.1:80"]
        {
            assert!(!check(host), "{host}");
        }
    }
}
