//! The reports of evaluations: static files that `arena eval report` wrote below the folder that the settings name.

use std::fs;
use std::path::{Path, PathBuf};

use arena_report::is_report_file;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use maud::html;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::components::empty;
use super::layout::{NavEntry, Page, shown};
use super::tournaments::replays::send;
use super::{PageResult, Visit, unrendered};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::removed_route;

/// The content security policy of reports: no scripts, and no other resources than the style sheet beside them.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

fn absent() -> ApiError {
    ApiError::not_found("NOT_FOUND", "report not found")
}

/// `GET /evals`: the runs with a report.
pub(super) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let folder = arena.settings.evals.folder.clone().ok_or_else(absent)?;
    let runs = tokio::task::spawn_blocking(move || runs(&folder)).await.unwrap_or_default();
    let body = html! {
        h1 { "Evaluations" }
        p.lead { "Language models in many games against each other, with intervals and costs." }
        @if runs.is_empty() { (empty("There are no reports yet.", None)) }
        ul { @for run in &runs {
            li { a href={ "/evals/" (utf8_percent_encode(run, NON_ALPHANUMERIC)) "/index.html" } { (shown(run)) } }
        } }
    };
    Ok(unrendered(Page::new("Evaluations", NavEntry::Elsewhere, body)))
}

/// `GET /evals/{run}/{*file}`: a file of a report.
pub(super) async fn file(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let folder = arena.settings.evals.folder.clone().ok_or_else(absent)?;
    let (run, file) = (visit.param("run").to_owned(), visit.param("file").to_owned());
    let kind = if file.ends_with(".css") { "text/css; charset=utf-8" } else { "text/html; charset=utf-8" };
    let found = tokio::task::spawn_blocking(move || find(&folder, &run, &file)).await.ok().flatten();
    let path = found.ok_or_else(|| removed_route(visit.uri.path()).unwrap_or_else(absent))?;
    let mut response = send(&path, &visit, kind).await.map_err(|_| absent())?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    Ok(response)
}

/// Returns the names of the runs with a report, in alphabetical order.
fn runs(folder: &Path) -> Vec<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "cannot read the folder of evaluations: {error}");
            return Vec::new();
        }
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut runs: Vec<String> = names.filter(|run| find(folder, run, "index.html").is_some()).collect();
    runs.sort();
    runs
}

/// Returns the path of a report's file. A run or file that is a symbolic link isn't found, nor one outside of reports.
fn find(folder: &Path, run: &str, file: &str) -> Option<PathBuf> {
    if run.is_empty() || run.starts_with('.') || run.contains('/') || !is_report_file(file) {
        return None;
    }
    let path = folder.canonicalize().ok()?.join(run).join("report").join(file);
    (path.canonicalize().ok()? == path && path.is_file()).then_some(path)
}
