//! `GET /health`, `GET /ready`, `GET /metrics`: monitoring.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use utoipa::ToSchema;

use crate::answer::{accepts, json};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::metrics::to_plain;

/// The server's status.
#[derive(ToSchema)]
#[schema(example = json!({ "status": "ok" }))]
#[expect(dead_code, reason = "the type only describes the response")]
struct Health {
    /// `ok` from `/health`, `ready` from `/ready`.
    status: String,
    /// State of the connection to NATS, for nodes that exchange events: `flowing` or `out of reach`. Without the
    /// connection, changes of other nodes arrive later.
    #[schema(nullable = false)]
    events: Option<String>,
}

/// Reports that the process responds.
#[utoipa::path(get, path = "/health", tag = "health", responses((status = 200, body = Health, description = "The process responds.")))]
pub(crate) async fn health() -> Response {
    json(r#"{"status":"ok"}"#)
}

/// Time limit for the store's response to a readiness check. It is short, since load balancers use short timeouts.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Reports whether the process can serve requests.
#[utoipa::path(get, path = "/ready", tag = "health", responses((status = 200, body = Health, description = "The process can serve requests."),
    (status = 404, description = "`STOPPING`: the server is stopping. Balancers send it no new requests, and let its open ones end."),
    (status = 503, description = "
        `RESTARTING`: a task of the server failed and is restarting.
        `STORE_UNAVAILABLE`: the store can't be read or written.")))]
pub(crate) async fn ready(State(arena): State<Arena>) -> ApiResult {
    if arena.draining.load(Ordering::SeqCst) || *arena.stopping.borrow() {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "STOPPING", "the server is stopping"));
    }
    if arena.restarting.is_any() {
        let error = ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "RESTARTING",
            "a task of the server failed and is restarting",
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
            let message = format!("the store did not respond within {} s", READY_WITHIN.as_secs());
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE", message);
            return Err(error.retry_after(Duration::from_secs(1)));
        }
    }
    Ok(json(match arena.engine.node_metrics().and_then(|node_metrics| node_metrics.events) {
        None => r#"{"status":"ready"}"#,
        Some(events) if events.connected => r#"{"status":"ready","events":"flowing"}"#,
        Some(_) => r#"{"status":"ready","events":"out of reach"}"#,
    }))
}

/// Returns metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "Metrics as OpenMetrics, or as plain text for clients that don't accept OpenMetrics.",
            content((String = "application/openmetrics-text"), (String = "text/plain"))),
        (status = 500, description = "`INTERNAL`: an error of the server.")))]
pub(crate) async fn metrics(State(arena): State<Arena>, headers: HeaderMap) -> ApiResult {
    let text = arena.metrics.text().map_err(|error| {
        tracing::error!(%error, "cannot write metrics: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "cannot write metrics")
    })?;
    // Browsers display plain text but download OpenMetrics.
    let is_plain = accepts(&headers, "text/") && !accepts(&headers, "openmetrics");
    let (text, text_format) = match is_plain {
        true => (to_plain(&text), HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8")),
        false => (text, HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8")),
    };
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, text_format);
    Ok(response)
}
