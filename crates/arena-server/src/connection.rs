//! Accepts connections and serves their requests, until the server stops.

mod proxy_protocol;
mod socket;
mod threads;
pub(crate) mod tls;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tower_http::cors::{Any, Cors, CorsLayer};

use crate::arena::Arena;
use crate::limits::{
    ClientHeader, Connection, ConnectionGuard, ConnectionRefusal, Connections, Ledger, RequestConnection, client_of,
    memory,
};
use crate::metrics::GaugeGuard;
use crate::request::{ClientAddress, REQUEST_ID, RequestId};
use crate::routes::{self, DirectRoute};
use crate::settings::NetworkSettings;
use proxy_protocol::read_client;
use socket::{Socket, TimedStream, last_response};
pub(crate) use threads::ConnectionThreads;
use tls::Tls;

/// Time for which a stopping server still accepts pending connections and reads their requests.
const LAST_CALL: Duration = Duration::from_millis(20);

/// Timeout of an idle connection, and time limit for receiving the headers of a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(75);

/// Idle timeout and header timeout of a connection from the reserve, until its caller is known.
const HURRIED_HEADERS_WITHIN: Duration = Duration::from_secs(5);

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Maximum bytes of a response that a connection buffers; also the maximum size of a request's head.
const CONNECTION_BUFFER: usize = 32 * 1024;

/// Requested size of the kernel's send buffer per connection, in bytes. Linux doubles it.
const SEND_BUFFER: usize = 128 * 1024;

/// The name of the header in which proxies report TLS.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

pub(crate) struct Listeners {
    pub(crate) public: TcpListener,
    pub(crate) private: Option<TcpListener>,
    /// The listener for house bots, on loopback. It has neither TLS nor headers of balancers.
    pub(crate) house: Option<TcpListener>,
    pub(crate) tls: Option<Arc<Tls>>,
}

pub(crate) struct Acceptor {
    listeners: Listeners,
    arena: Arena,
    app: App,
    connections: Arc<Connections>,
    threads: ConnectionThreads,
    /// Becomes true when connections must end. Each holds a receiver, so the receivers count the open connections.
    ending: watch::Sender<bool>,
}

/// The maximum number of proxies' connections whose client isn't known yet.
const MAX_UNNAMED: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenerKind {
    Public,
    Private,
    House,
}

impl Acceptor {
    pub(crate) fn new(listeners: Listeners, arena: Arena, threads: ConnectionThreads) -> Acceptor {
        let app = cors().layer(routes::app(arena.clone()));
        let connections = Arc::clone(&arena.connections);
        Acceptor { listeners, arena, app, connections, threads, ending: watch::Sender::new(false) }
    }

    pub(crate) async fn accept_all(&self) {
        let mut unnamed = FuturesUnordered::new();
        loop {
            let (accepted, by) = tokio::select! {
                accepted = self.listeners.public.accept() => (accepted, ListenerKind::Public),
                accepted = accept_if_any(self.listeners.private.as_ref()) => (accepted, ListenerKind::Private),
                accepted = accept_if_any(self.listeners.house.as_ref()) => (accepted, ListenerKind::House),
                Some(named) = unnamed.next() => {
                    self.take_named(named);
                    continue;
                }
            };
            match accepted {
                Ok((stream, peer)) if by == ListenerKind::Public && self.names_client(peer) => {
                    match unnamed.len() < MAX_UNNAMED {
                        true => unnamed.push(read_client(stream, peer)),
                        false => drop(self.arena.metrics.refused_connections.inc()),
                    }
                }
                Ok((stream, peer)) => self.take(stream, peer, by),
                Err(error) => {
                    // The usual cause is a lack of file descriptors. The pause lets other connections close.
                    tracing::warn!(%error, "cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Accepts the pending connections of players, closes the listeners, and returns the open connections.
    pub(crate) async fn close(self) -> (OpenConnections, ConnectionThreads) {
        let until = Instant::now() + LAST_CALL;
        while let Ok(Ok((stream, peer))) = tokio::time::timeout_at(until, self.listeners.public.accept()).await {
            match self.names_client(peer) {
                true => {
                    // A header that is slow to arrive doesn't delay the stop.
                    if let Ok(named) = tokio::time::timeout_at(until, read_client(stream, peer)).await {
                        self.take_named(named);
                    }
                }
                false => self.take(stream, peer, ListenerKind::Public),
            }
        }
        drop(self.listeners);
        // A notified connection that has read nothing closes at once. The pause lets it read its request first.
        tokio::time::sleep(LAST_CALL).await;
        (OpenConnections(self.ending), self.threads)
    }

    /// Returns true if connections from this address begin with a header that names the client.
    fn names_client(&self, peer: SocketAddr) -> bool {
        let network = &self.arena.settings.network;
        network.client_header == ClientHeader::Proxy && network.trusted_proxies.contain(peer.ip())
    }

    /// Takes a connection whose header was read.
    fn take_named(&self, named: io::Result<(TcpStream, SocketAddr)>) {
        match named {
            Ok((stream, client)) => self.take(stream, client, ListenerKind::Public),
            Err(error) => {
                self.arena.metrics.refused_connections.inc();
                tracing::debug!(%error, "refused a connection of a proxy: {error}");
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, by: ListenerKind) {
        let tls = self.listeners.tls.as_ref().filter(|_| by == ListenerKind::Public);
        // A handshake takes much more CPU time than accepting a connection, so it counts as a request.
        let is_proxy = self.arena.settings.network.trusted_proxies.contain(peer.ip());
        if tls.is_some() && !is_proxy && self.arena.rates.admit(peer.ip()).is_err() {
            self.count_refused(peer);
            return tracing::debug!(%peer, "refused a handshake with {peer} because of limits.requests_per_second");
        }
        match self.connections.enter(peer.ip()) {
            Ok(guard) => {
                let has_administration = by == ListenerKind::Private || self.listeners.private.is_none();
                let request_connection = RequestConnection::new(&guard.connection, has_administration);
                let (app, arena, shared) = (self.app.clone(), self.arena.clone(), Handle::current());
                let answering = ClientAnswering { app, arena, peer: peer.ip(), request_connection, shared };
                self.serve(stream, peer, guard, answering, tls.cloned());
            }
            Err(full) => {
                self.count_refused(peer);
                tracing::debug!(%peer, "refused a connection from {peer}: {full:?}");
                // The response is best effort: the server sends only as much of it as fits into the socket's buffer.
                // With TLS, a handshake would come first.
                if tls.is_none() {
                    let _ = stream.try_write(refusal_of(full).as_bytes());
                }
            }
        }
    }

    fn count_refused(&self, peer: SocketAddr) {
        self.arena.metrics.refused_connections.inc();
        self.arena.ledger.count_refusal(peer.ip());
    }

    /// Serves a connection on one of the threads.
    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        guard: ConnectionGuard,
        answering: ClientAnswering,
        tls: Option<Arc<Tls>>,
    ) {
        let arena = self.arena.clone();
        let mut ending = self.ending.subscribe();
        // The socket belongs to the runtime that accepted it, and must be registered with the one that serves it.
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection: {error}"),
        };
        self.threads.spawn(async move {
            let stream = match TcpStream::from_std(stream) {
                Ok(stream) => stream,
                Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection: {error}"),
            };
            let _open = GaugeGuard::by(&arena.metrics.connections);
            let closing = async {
                tokio::select! {
                    () = guard.connection.closing() => {}
                    // An error means that the sender was dropped, so the server has ended.
                    _ = ending.wait_for(|ending| *ending) => {}
                }
            };
            let mut closing = std::pin::pin!(closing);
            let socket = tokio::select! {
                biased;
                socket = socket_of(stream, tls.as_deref(), answering.heads_within()) => socket,
                () = closing.as_mut() => return,
            };
            let socket = match socket {
                Ok(socket) => socket,
                Err(error) => return tracing::debug!(%peer, %error, "no TLS with {peer}: {error}"),
            };
            let mut connection = std::pin::pin!(connection(socket, answering));
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = closing.as_mut() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "connection from {peer} ended: {error}");
            }
        });
    }
}

/// Accepts a connection; waits forever without a listener.
async fn accept_if_any(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The connections that are open after the listeners were closed.
pub(crate) struct OpenConnections(watch::Sender<bool>);

impl OpenConnections {
    pub(crate) fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Requests that all connections close after their current response, and waits until all are closed.
    pub(crate) async fn shutdown(self) {
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

/// Returns the response to a refused connection.
fn refusal_of(full: ConnectionRefusal) -> String {
    let (status, code, error) = match full {
        ConnectionRefusal::Address => (
            "429 Too Many Requests",
            "TOO_MANY_CONNECTIONS",
            "too many connections from this address (limits.connections_per_address)",
        ),
        ConnectionRefusal::Server => {
            ("503 Service Unavailable", "SERVER_BUSY", "too many connections to this server (limits.connections)")
        }
    };
    let body = format!(r#"{{"error":"{error}","code":"{code}","retryAfterMs":1000}}"#);
    last_response(status, "retry-after: 1\r\n", &body)
}

/// Returns the socket of a new connection, after the handshake if there is TLS.
///
/// # Errors
/// If the handshake fails, or isn't complete within its time limit or `heads_within`.
async fn socket_of(stream: TcpStream, tls: Option<&Tls>, heads_within: Duration) -> io::Result<Socket> {
    // Responses are written whole, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    // The kernel's send buffer isn't part of the memory budget, so it is kept small.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let Some(tls) = tls else { return Ok(Socket::Plain(stream)) };
    // The state of a handshake is large, and connections without TLS shouldn't reserve memory for it.
    let accepted = tokio::time::timeout(HANDSHAKE_WITHIN.min(heads_within), Box::pin(tls.accept(stream))).await;
    let accepted = accepted.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long"))?;
    accepted.map(|stream| Socket::Tls(Box::new(stream)))
}

type App = Cors<Router>;

/// The part of a client's connection that answers requests.
struct ClientAnswering {
    app: App,
    arena: Arena,
    peer: IpAddr,
    request_connection: RequestConnection,
    /// The runtime for all but the routes of play.
    shared: Handle,
}

impl ClientAnswering {
    /// Returns the limit for the head of a request and for an idle connection.
    fn heads_within(&self) -> Duration {
        let is_reserve = self.request_connection.connection.is_reserve();
        if is_reserve { HURRIED_HEADERS_WITHIN } else { HEADERS_WITHIN }
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response {
        let ClientAnswering { app, arena, peer, request_connection, shared } = self;
        routes::remove_version(request.uri_mut());
        let (connections, connection) = (&arena.connections, &request_connection.connection);
        // An MCP tool call is always a POST. It counts as a read, since only tools that read have large responses.
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD)
            || request.uri().path().trim_end_matches('/').ends_with("/mcp");
        connections.begin(connection);
        let NetworkSettings { trusted_proxies, client_header, .. } = &arena.settings.network;
        let client = match client_of(trusted_proxies, *client_header, *peer, request.headers()) {
            Ok(client) => client,
            Err(error) => return answered(error.into_response(), connections, connection),
        };
        let mut request_connection = request_connection.clone();
        if client != *peer {
            request_connection.budget = connections.budget_behind_proxy(client);
        }
        let budget = request_connection.budget.clone();
        let mut request = request.map(Body::new);
        // Only a proxy that may name its clients may also name requests.
        let id = match client != *peer {
            true => RequestId::given(request.headers()),
            false => RequestId::new(),
        };
        request.extensions_mut().insert(id);
        request.extensions_mut().insert(ClientAddress(client));
        request.extensions_mut().insert(request_connection);
        let response = match DirectRoute::of(&request) {
            Some(route) => route.answer(request, arena.clone()).await,
            None => {
                // The set aborts its task when it is dropped.
                let mut tasks = JoinSet::new();
                let app = app.clone();
                tasks
                    .spawn_on(async move { app.oneshot(request).await.unwrap_or_else(|never| match never {}) }, shared);
                match tasks.join_next().await {
                    Some(Ok(response)) => response,
                    Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                    // The runtime is shutting down.
                    Some(Err(_)) | None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                }
            }
        };
        if Ledger::is_refusal(response.status()) {
            arena.ledger.count_refusal(client);
            arena.metrics.refused(response.extensions().get());
        }
        answered(memory::count(response, &budget, is_read), connections, connection)
    }
}

fn connection(
    socket: Socket,
    answering: ClientAnswering,
) -> http1::Connection<
    TokioIo<TimedStream>,
    impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + use<>,
> {
    let heads_within = answering.heads_within();
    let stalled = Duration::from_millis(answering.arena.settings.limits.stalled_ms);
    let is_tls = socket.is_tls();
    let answering = Arc::new(answering);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if is_tls {
            request.headers_mut().insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        }
        let answering = Arc::clone(&answering);
        async move { Ok(answering.answer(request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(heads_within)
        .max_buf_size(CONNECTION_BUFFER)
        .serve_connection(TokioIo::new(TimedStream::new(socket, stalled)), service)
}

/// Prepares a response for sending. The connection becomes idle when the response ends.
fn answered(mut response: Response, connections: &Arc<Connections>, connection: &Arc<Connection>) -> Response {
    if connection.is_brief() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // A response of known length is written completely even if the registry requests the close of an idle connection.
    if response.body().size_hint().exact().is_some() {
        connections.end(connection);
        return response;
    }
    let guard = IdleGuard { connections: Arc::clone(connections), connection: Arc::clone(connection) };
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &guard;
            frame
        }))
    })
}

/// A guard in a response body that marks the connection as idle on drop.
struct IdleGuard {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for IdleGuard {
    fn drop(&mut self) {
        self.connections.end(&self.connection);
    }
}

/// Returns the CORS policy: pages of all origins may send requests and read responses. There are no cookies to abuse,
/// and `request/origin.rs` checks writes.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::AUTHORIZATION,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            // Headers of MCP clients.
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
        ])
        .expose_headers([header::RETRY_AFTER, header::LINK, routes::TOTAL, REQUEST_ID])
        .max_age(Duration::from_secs(24 * 60 * 60))
}
