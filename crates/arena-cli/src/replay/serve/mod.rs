//! `arena replay serve`: replays in the browser. The server serves no files except replays and their indexes.

mod library;
mod list;
mod local_pages;

use std::path::PathBuf;
use std::sync::Arc;

use arena_web::{ASSETS, POLICY, ViewerUrls, replay_page};
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, middleware};
use clap::Args;
use serde::Deserialize;
use tower_http::services::ServeFile;

use super::html::{INDEX, REPLAY, SUMMARY, note_incomplete, title};
use super::{open, unreadable};
use crate::exit::{Exit, Failure};
use crate::output::Style;

use self::library::{Indexed, Library};

/// Options of `arena replay serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena replay serve game.jsonl                 one replay
  arena replay serve games                      all replays in a folder and its subfolders
  arena replay serve games --port 8080          on a fixed port

It prints one line on stdout: replays are at http://127.0.0.1:PORT/
Only this machine can connect. Ctrl-C stops it. Keys in the browser: Space plays and pauses, the arrow keys step (with Shift \
by ten), Home and End jump to the ends, N and P to the next and the previous fault. Long replays open at once, since the \
browser loads only the parts that it shows.")]
pub struct ReplayServeArgs {
    /// Replay file, or a folder with replays.
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

/// The relative URLs of the assets, from the pages below `/replays/N/` and from the list.
const FROM_REPLAY: &str = "../../assets/";

pub fn run(args: &ReplayServeArgs, style: Style) -> Result<(), Failure> {
    let library = Arc::new(Library::open(&args.path)?);
    // If a single replay is unreadable, the command fails here, before a browser opens it.
    if library.single {
        note_incomplete(&args.path, &library.indexed(0)?.summary);
    }
    local_pages::serve("replays", args.port, routes(library), style)
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
        .layer(middleware::map_response(restrict))
}

/// Adds the content security policy to an answer.
async fn restrict(mut answer: Response) -> Response {
    let policy = HeaderValue::try_from(format!("{POLICY}; frame-ancestors 'none'")).expect("policies are plain ASCII");
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    answer
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
        Err(error) => refuse(&unreadable(path, error)),
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
