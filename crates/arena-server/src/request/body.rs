//! Bodies of requests, read as a whole within the limits of size, time and memory.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use serde_json::Value;

use crate::error::{ApiError, ApiResult};
use crate::limits::memory::{FREE, busy, with_reservation};
use crate::limits::{LimitSettings, RequestConnection, Reservation};

/// Maximum memory in bytes that the parser needs per byte of JSON. For example, `[[],[],…` becomes a value of 32 bytes
/// for every three bytes of text.
pub(crate) const JSON_WEIGHT: usize = 16;

pub(crate) struct BodyLimit<'s> {
    pub(crate) bytes: usize,
    pub(crate) setting: &'s str,
    /// Memory to reserve for each byte of the complete body, in bytes.
    pub(crate) weight: usize,
}

/// Reads the whole body of a request. A body of more than [`FREE`] bytes holds a memory reservation until the last
/// handle to the body is dropped.
///
/// # Errors
/// If the body is too large, too slow or incomplete, or if there is no memory for it.
pub(crate) async fn read_body(
    body: Body,
    limit: BodyLimit<'_>,
    limits: &LimitSettings,
    request_connection: Option<&RequestConnection>,
) -> Result<Bytes, ApiError> {
    let until = tokio::time::Instant::now() + Duration::from_millis(limits.request_ms);
    // Without a declared length, the maximum length is assumed.
    let declared = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(limit.bytes);
    let mut body = std::pin::pin!(Limited::new(body, limit.bytes));
    let mut pieces: Vec<u8> = Vec::with_capacity(declared.min(FREE));
    let mut reservation: Option<Reservation> = None;
    loop {
        let frame = match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => {
                let text = format!("the request body is larger than {} bytes ({})", limit.bytes, limit.setting);
                return Err(ApiError::too_large("BODY_TOO_LARGE", text));
            }
            Ok(Some(Err(_))) => {
                return Err(ApiError::bad_request("BODY_INCOMPLETE", "the request body ended early"));
            }
            Err(_) => {
                let ms = limits.request_ms;
                let text = format!("the request did not arrive within {ms} ms (limits.request_ms)");
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", text));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        let budget =
            request_connection.map(|request_connection| &request_connection.budget).filter(|_| reservation.is_none());
        if let Some(budget) = budget.filter(|_| pieces.len() + data.len() > FREE) {
            let wanted = budget.hold(declared.min(limit.bytes));
            reservation = Some(tokio::time::timeout_at(until, wanted).await.map_err(|_| busy())?);
            pieces.reserve_exact(declared.min(limit.bytes).saturating_sub(pieces.len()));
        }
        pieces.extend_from_slice(&data);
    }
    // A parsed body may take many times the memory of its text. This memory is reserved only when the body is complete.
    // Otherwise a client could reserve it by declaring a large body and sending that slowly.
    if let Some(request_connection) = request_connection.filter(|_| limit.weight > 1 && reservation.is_some()) {
        drop(reservation.take());
        let wanted = request_connection.budget.hold(pieces.len().saturating_mul(limit.weight));
        reservation = Some(tokio::time::timeout_at(until, wanted).await.map_err(|_| busy())?);
    }
    Ok(with_reservation(pieces, reservation))
}

/// Parses the JSON object of a body. Returns `None` for an empty body.
pub(crate) fn parse_object(body: &[u8]) -> ApiResult<Option<Value>> {
    if body.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(body).map(|object| Some(Value::Object(object))).map_err(|_| invalid_json())
}

pub(crate) fn invalid_json() -> ApiError {
    ApiError::bad_request("INVALID_JSON", "Invalid JSON in request body")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use futures_util::{FutureExt, stream};

    use crate::limits::{Connections, TrustedProxies};

    #[tokio::test]
    async fn a_body_takes_room_once_more_of_it_has_come_than_is_free_and_for_its_weight_when_it_is_whole() {
        const KIB: usize = 1024;
        let limits = LimitSettings::default();
        let connections = Arc::new(Connections::new(&limits, &TrustedProxies::default(), 9));
        let guard = connections.enter(std::net::Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let request_connection = RequestConnection::new(&guard.connection, true);
        let held = || connections.memory().held() / KIB as u64;
        let (send, sent) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let pieces = stream::unfold(sent, async |mut sent| {
            sent.recv().await.map(|piece| (Ok::<_, std::convert::Infallible>(piece), sent))
        });
        let limit = BodyLimit { bytes: 100 * KIB, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let mut read = Box::pin(read_body(Body::from_stream(pieces), limit, &limits, Some(&request_connection)));
        let mut taken = Vec::new();
        for _ in 0..4 {
            send.send(Bytes::from(vec![b' '; 16 * KIB])).expect("it is read");
            assert!((&mut read).now_or_never().is_none(), "the body goes on");
            taken.push(held());
        }
        // The first 32 KiB aren't counted; then the maximum is reserved.
        assert_eq!(taken, [0, 0, 100, 100]);
        drop(send);
        let body = read.await.expect("a body");
        assert_eq!((body.len(), held()), (64 * KIB, (64 * JSON_WEIGHT) as u64));
        let part = body.slice(1..2);
        drop(body);
        assert_eq!(held(), (64 * JSON_WEIGHT) as u64, "as long as any of it is in use");
        drop(part);
        assert_eq!(held(), 0);
    }

    #[tokio::test]
    async fn a_body_that_finds_no_room_is_refused_when_its_time_is_over() {
        let limits = LimitSettings { waiting_bytes: 64 * 1024, request_ms: 50, ..LimitSettings::default() };
        let connections = Arc::new(Connections::new(&limits, &TrustedProxies::default(), 9));
        let guard = connections.enter(std::net::Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let request_connection = RequestConnection::new(&guard.connection, true);
        let all = request_connection.budget.try_hold(64 * 1024).expect("there is room");
        let read = async || {
            let limit = BodyLimit { bytes: 1024 * 1024, setting: "limits.body_bytes", weight: 1 };
            read_body(Body::from(vec![b' '; FREE + 1]), limit, &limits, Some(&request_connection)).await
        };
        let refused = read().await.expect_err("there is no room");
        assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(all);
        assert_eq!(read().await.expect("there is room").len(), FREE + 1);
    }
}
