//! `GET /health`, `GET /ready`, `GET /metrics`: for those who watch over the server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use utoipa::ToSchema;

use crate::answer::json;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::accepts;

/// How the server is.
#[derive(ToSchema)]
#[schema(example = json!({ "status": "ok" }))]
#[expect(dead_code, reason = "written by hand; this is its description")]
struct Health {
    /// `ok`, or `ready`.
    status: String,
    /// Of a node that exchanges events with others over NATS: `flowing`, or `out of reach`; then watchers are told a little later.
    #[schema(nullable = false)]
    events: Option<String>,
}

/// The process answers.
#[utoipa::path(get, path = "/health", tag = "health", responses((status = 200, body = Health, description = "It does.")))]
pub(crate) async fn health() -> Response {
    json(r#"{"status":"ok"}"#)
}

/// How long the store may take to answer those who ask whether the process can do its work. Balancers don't wait for long.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// The process can do its work: send it requests.
#[utoipa::path(get, path = "/ready", tag = "health", responses((status = 200, body = Health, description = "It can."),
    (status = 503, description = "
        `STOPPING`: it was told to stop.
        `RESTARTING`: a part of it has failed and is about to begin again.
        `STORE_UNAVAILABLE`: the store can't be read, or can't be written to.")))]
pub(crate) async fn ready(State(arena): State<Arena>) -> ApiResult {
    if arena.draining.load(Ordering::SeqCst) || *arena.stopping.borrow() {
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STOPPING", "the server is stopping"));
    }
    if arena.fallen.is_any() {
        let error = ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "RESTARTING",
            "a part of the server has failed and begins again",
        );
        return Err(error.retry_after(Duration::from_secs(1)));
    }
    let looked = async {
        arena.engine.catch_up().await?;
        arena.engine.check().await
    };
    match tokio::time::timeout(READY_WITHIN, looked).await {
        Ok(found) => found?,
        Err(_) => {
            let message = format!("the store hasn't answered within {} s", READY_WITHIN.as_secs());
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE", message);
            return Err(error.retry_after(Duration::from_secs(1)));
        }
    }
    Ok(json(match arena.engine.neighbours().and_then(|neighbours| neighbours.events) {
        None => r#"{"status":"ready"}"#,
        Some(events) if events.connected => r#"{"status":"ready","events":"flowing"}"#,
        Some(_) => r#"{"status":"ready","events":"out of reach"}"#,
    }))
}

/// Counters, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "OpenMetrics; as plain text for those who don't accept it.",
            content((String = "application/openmetrics-text"), (String = "text/plain"))),
        (status = 500, description = "`INTERNAL`: the server is at fault.")))]
pub(crate) async fn metrics(State(arena): State<Arena>, headers: HeaderMap) -> ApiResult {
    let text = arena.metrics.text().map_err(|error| {
        tracing::error!(%error, "metrics could not be written: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "metrics could not be written")
    })?;
    let mut response = Response::new(text.into());
    // Browsers show plain text and save everything else.
    let text_format = HeaderValue::from_static(if accepts(&headers, "text/") && !accepts(&headers, "openmetrics") {
        "text/plain; charset=utf-8"
    } else {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    });
    response.headers_mut().insert(header::CONTENT_TYPE, text_format);
    Ok(response)
}
