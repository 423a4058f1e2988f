//! The ceiling: a server without any logic, as fast as axum allows. The same client measures the ceiling and the arena
//! in the same run, for comparison. The ceiling is a separate process, so that its CPU time can be read as the
//! arena's.
//!
//! The ceiling answers every request with `{}`. Its event stream is the simplest one without losses: events are stored
//! in memory, and each subscriber receives its missing events, up to 64 KiB at a time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The path for messages to the ceiling's subscribers. It has the length of the arena's `/api/chat/send`.
pub const PUBLISH: &str = "/api/v1/chat/cast";

/// The largest number of bytes sent to a subscriber at once.
const PIECE: usize = 64 * 1024;

/// Serves until the process is killed.
///
/// # Errors
/// If the ceiling can't listen.
pub fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("could not start the ceiling server's runtime")?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("the ceiling server could not listen")?;
        let address = listener.local_addr().context("the ceiling server has no address")?;
        println!("the ceiling listens on http://{address}");
        axum::serve(listener, router()).await.context("the ceiling server failed")
    })
}

fn router() -> Router {
    Router::new()
        .route("/api/v1/chat/ws/{id}", get(subscribe))
        .route(PUBLISH, post(publish))
        .with_state(Arc::new(Log { events: Mutex::default(), grown: watch::Sender::default() }))
        .fallback(nothing)
}

async fn nothing() -> Response {
    json()
}

fn json() -> Response {
    let mut response = Response::new(Body::from("{}"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// All events since the start, for all subscribers.
struct Log {
    events: Mutex<Events>,
    grown: watch::Sender<()>,
}

#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
    count: u64,
}

async fn publish(State(log): State<Arc<Log>>, body: String) -> Response {
    {
        let mut events = log.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.count += 1;
        // The fields of the message are copied unchanged, without the opening brace.
        let fields = body.trim_start_matches('{');
        let index = events.count;
        let event = format!(
            "id: {index}\ndata: {{\"type\":\"new_message\",\"message\":{{\"index\":{index},\"timestamp\":1700000000000,{fields}}}\n\n"
        );
        events.bytes.extend_from_slice(event.as_bytes());
    }
    log.grown.send_replace(());
    json()
}

async fn subscribe(State(log): State<Arc<Log>>) -> Response {
    let grown = log.grown.subscribe();
    let sent = log.events.lock().unwrap_or_else(PoisonError::into_inner).bytes.len();
    let first = Bytes::from_static(b"data: {\"type\":\"initial\",\"messages\":[]}\n\n");
    let pieces = stream::unfold((Some(first), sent, grown, log), |(first, mut sent, mut grown, log)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (None, sent, grown, log)));
        }
        loop {
            grown.borrow_and_update();
            let piece = {
                let events = log.events.lock().unwrap_or_else(PoisonError::into_inner);
                let end = events.bytes.len().min(sent + PIECE);
                Bytes::copy_from_slice(&events.bytes[sent..end])
            };
            if !piece.is_empty() {
                sent += piece.len();
                return Some((Ok(piece), (None, sent, grown, log)));
            }
            grown.changed().await.ok()?;
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
