//! Requests that one node passes on to another (docs/decisions/0086). The requests of a session are cheapest at the
//! session's preferred node. A node that can't pass a request on answers it itself.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use arena_engine::EngineError;
use arena_identity::ServerSecret;
use arena_model::{InviteCode, SessionId};
use arena_store::StoreError;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::uri::{PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::admin_token::AdminToken;
use crate::arena::Arena;
use crate::connections::RequestConnection;
use crate::error::ApiError;
use crate::ledger::Ledger;
use crate::memory::FREE;
use crate::request::{BodyLimit, ClientAddress, address_of, read_body};
use crate::request_id::{REQUEST_ID, RequestId};
use crate::routes::DirectRoute;
use crate::settings::NodeName;

/// The header with the secret that nodes have in common.
const SECRET: HeaderName = HeaderName::from_static("arena-node-key");

/// A session's preferred node. Clients repeat the header in their requests, and balancers choose the node by it.
pub(crate) const NODE: HeaderName = HeaderName::from_static("arena-node");

const CLIENT: HeaderName = HeaderName::from_static("arena-client");

/// The text from which the nodes' common secret is computed.
const PURPOSE: &str = "requests of nodes";

/// Headers that belong to a connection and not to the request.
const OF_CONNECTION: [HeaderName; 5] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE, header::EXPECT];

/// The status of a refused secret. No route of play has it.
const WRONG_SECRET: StatusCode = StatusCode::MISDIRECTED_REQUEST;

/// Time limit for connecting to another node.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// The time after which this node closes an idle connection to another one. The other one would close it later, so no
/// request is sent on a connection that is about to close.
const IDLE: Duration = Duration::from_secs(60);

/// The maximum number of requests that this node passes on at the same time. Each takes a socket at both nodes.
const MAX_PASSED: usize = 128;

/// The maximum number of idle connections of a thread to one other node.
const MAX_IDLE: usize = 32;

thread_local! {
    /// A connection's task runs on the thread that opened it, so requests on it need no other thread.
    static HTTP_CLIENT: Client<HttpConnector, Body> = client();
}

fn client() -> Client<HttpConnector, Body> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MAX_IDLE)
        .build(connector)
}

pub(crate) struct Passing {
    permits: Semaphore,
    secret: ServerSecret,
    /// The value of [`SECRET`].
    key: HeaderValue,
    /// The value of [`NODE`] in the answers of this node.
    name: Option<HeaderValue>,
}

impl Arena {
    /// Names this node in an answer about a session that prefers it, if the node has a name.
    pub(crate) fn name_node(&self, mut response: Response) -> Response {
        if let Some(name) = self.passing.as_ref().and_then(|passing| passing.name.as_ref()) {
            response.headers_mut().insert(NODE, name.clone());
        }
        response
    }
}

/// A request that this node answers itself.
pub(crate) struct KeptRequest {
    pub(crate) request: Request,
    /// True if this node is the preferred one of the request's session.
    pub(crate) is_preferred: bool,
}

impl KeptRequest {
    /// Returns a request whose session is unknown, or belongs to another node.
    fn elsewhere(request: Request) -> KeptRequest {
        KeptRequest { request, is_preferred: false }
    }
}

impl Passing {
    /// Creates the value. All nodes have the same token. Returns `None` if the token is too short for a secret.
    pub(crate) fn new(token: &AdminToken, name: Option<&NodeName>) -> Option<Passing> {
        let secret = ServerSecret::new(token.reveal().as_bytes()).ok()?;
        let mut key = HeaderValue::from_str(&secret.owner_key(PURPOSE)).ok()?;
        key.set_sensitive(true);
        let name = name.map(NodeName::to_header);
        Some(Passing { permits: Semaphore::new(MAX_PASSED), secret, key, name })
    }

    /// Returns the address of the client of a request that another node has passed on; `None` for others.
    fn client_of(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let key = headers.get(SECRET)?.to_str().ok()?;
        let client = headers.get(CLIENT)?.to_str().ok()?.parse().ok()?;
        self.secret.owns(key, PURPOSE).then_some(client)
    }
}

/// Returns the response of the session's preferred node, or the request if this node has to answer it itself.
pub(crate) async fn pass_on(arena: &Arena, request: Request) -> Result<Response, KeptRequest> {
    let Some((passing, client)) = arena.passing.as_ref().zip(address_of(request.extensions())) else {
        return Err(KeptRequest::elsewhere(request));
    };
    // Only this node can mark the caller of a reserved connection as a player.
    let connection = request.extensions().get::<RequestConnection>();
    if connection.is_none_or(|request_connection| request_connection.connection.is_reserve()) {
        return Err(KeptRequest::elsewhere(request));
    }
    let (parts, body) = request.into_parts();
    if body.size_hint().exact().is_none_or(|bytes| bytes > FREE as u64) {
        return Err(KeptRequest::elsewhere(Request::from_parts(parts, body)));
    }
    let limits = &arena.settings.limits;
    let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: 1 };
    let body = match read_body(body, limit, limits, None).await {
        Ok(body) => body,
        Err(error) => return Ok(error.into_response()),
    };
    let subject = subject_of(&parts, &body);
    let node = subject.and_then(|id| arena.engine.find_peer(id));
    let Some((node, _permit)) = node.zip(passing.permits.try_acquire().ok()) else {
        let is_preferred = subject.is_some() && node.is_none();
        return Err(KeptRequest { request: Request::from_parts(parts, Body::from(body)), is_preferred });
    };
    match passing.send(arena, node, client, &parts, body.clone()).await {
        Ok(response) => {
            arena.metrics.passed_on.inc();
            Ok(response)
        }
        Err(SendFailure { may_have_run }) => {
            arena.metrics.failed_passes.inc();
            if may_have_run && !is_repeatable(&parts) {
                return Ok(ApiError::from(EngineError::from(StoreError::Unsure)).into_response());
            }
            Err(KeptRequest::elsewhere(Request::from_parts(parts, Body::from(body))))
        }
    }
}

/// Returns true if the request may be carried out twice. A repeated write without a key could take effect twice.
fn is_repeatable(parts: &Parts) -> bool {
    parts.method == Method::GET || parts.headers.contains_key("idempotency-key")
}

/// The error of a request that another node didn't answer.
struct SendFailure {
    /// True if the other node may have carried out the request.
    may_have_run: bool,
}

impl Passing {
    async fn send(
        &self,
        arena: &Arena,
        node: SocketAddr,
        client: IpAddr,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Response, SendFailure> {
        let failed = |may_have_run| SendFailure { may_have_run };
        let request = self.request_to(node, client, parts, body).ok_or(failed(false))?;
        let sent = tokio::select! {
            sent = HTTP_CLIENT.with(|client| client.request(request)) => sent,
            // A node that hangs gives no sign of life.
            () = arena.engine.peer_is_lost(node) => return Err(failed(true)),
        };
        match sent {
            Ok(response) if response.status() == WRONG_SECRET => {
                arena.engine.suspect_peer(node);
                Err(failed(false))
            }
            // The node may be cut off from the database, and this one not. The caller of another write gets its answer.
            Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE && is_repeatable(parts) => {
                Err(failed(true))
            }
            Ok(mut response) => {
                for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
                    response.headers_mut().remove(name);
                }
                Ok(response.map(Body::new))
            }
            Err(error) => {
                arena.engine.suspect_peer(node);
                tracing::debug!(%node, %error, "cannot pass a request on to the node at {node}: {error}");
                Err(failed(!error.is_connect()))
            }
        }
    }

    fn request_to(&self, node: SocketAddr, client: IpAddr, parts: &Parts, body: Bytes) -> Option<Request> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = parts.method.clone();
        let place = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(node.to_string()).path_and_query(place);
        *request.uri_mut() = uri.build().ok()?;
        let headers = request.headers_mut();
        headers.extend(parts.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        for name in OF_CONNECTION {
            headers.remove(name);
        }
        headers.insert(SECRET, self.key.clone());
        if let Some(id) = parts.extensions.get::<RequestId>() {
            headers.insert(REQUEST_ID, id.header());
        }
        headers.insert(CLIENT, HeaderValue::from_str(&client.to_string()).ok()?);
        Some(request)
    }
}

/// Returns the session's id or the invite. A wrong or missing one only makes the request more expensive.
fn subject_of(parts: &Parts, body: &[u8]) -> Option<Uuid> {
    #[derive(Deserialize)]
    struct Subject<'b> {
        #[serde(borrow, rename = "challengeId")]
        session: Option<Cow<'b, str>>,
        #[serde(borrow)]
        channel: Option<Cow<'b, str>>,
        #[serde(borrow)]
        invite: Option<Cow<'b, str>>,
    }
    let of_session = |name: &str| {
        let id: SessionId = name.strip_prefix("challenge_").unwrap_or(name).parse().ok()?;
        Some(id.0)
    };
    if parts.method == Method::GET {
        let value_of =
            |name: &str| parts.uri.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        // A read that waits would occupy a connection between the nodes, and costs little anywhere.
        return of_session(value_of("channel").filter(|_| value_of("wait").is_none())?);
    }
    let Subject { session, channel, invite } = serde_json::from_slice(body).ok()?;
    match (session.or(channel), invite) {
        (Some(session), _) => of_session(&session),
        (None, Some(invite)) => invite.parse().ok().map(|InviteCode(id)| id),
        (None, None) => None,
    }
}

/// Answers a request that another node has passed on.
pub(crate) async fn answer(arena: Arena, request: Request<Incoming>) -> Response {
    let client = arena.passing.as_ref().and_then(|passing| passing.client_of(request.headers()));
    let Some(client) = client else {
        let text = "this address is for the nodes of one arena, which must have the same ADMIN_TOKEN";
        return ApiError::new(WRONG_SECRET, "NOT_A_NODE", text).into_response();
    };
    let mut request = request.map(Body::new);
    let id = RequestId::given(request.headers());
    request.extensions_mut().insert(id);
    request.extensions_mut().insert(ClientAddress(client));
    match DirectRoute::of(&request) {
        Some(route) => {
            let response = route.answer_here(request, arena.clone()).await;
            if Ledger::is_refusal(response.status()) {
                arena.metrics.refused(response.extensions().get());
            }
            arena.name_node(response)
        }
        None => ApiError::not_found("NOT_FOUND", "nodes pass only requests of play on").into_response(),
    }
}
