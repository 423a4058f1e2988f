//! The list of routes. The files of this folder contain their handlers and descriptions. Requests to `/api/v1` become
//! requests to `/api` before they reach a route. Pages are in `web.rs`.

mod act;
mod admin;
mod agents;
mod channel;
mod chat;
mod create;
mod docs;
mod games;
mod health;
mod invites;
mod join;
mod ladders;
mod list;
mod log;
mod metadata;
mod queue;
mod records;
mod rows;
mod scoring;
mod skill;
mod stream;
mod sync;
mod tournaments;
mod users;

use std::mem;

use arena_wire::removed;
use axum::extract::{MatchedPath, Request, State};
use axum::handler::Handler;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use utoipa::openapi::path::Paths;
use utoipa_axum::router::{UtoipaMethodRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::answer::accepts;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::limits::RequestConnection;
use crate::mcp::{Endpoint, ToolSet};
use crate::metrics::GaugeGuard;
use crate::openapi::Description;
use crate::request::{REQUEST_ID, RequestId, address_of, check_host, check_origin};
use crate::tournaments::TournamentRefusal;
use crate::{mcp, web};
pub(crate) use agents::{AgentView, id_of as id_of_agent, tournaments_of};
pub(crate) use ladders::{game_of as game_of_ladder, page as page_of_ladder};
pub(crate) use queue::{enqueue, poll_ticket};
pub(crate) use rows::TOTAL;
pub(crate) use scoring::orders;
pub(crate) use skill::base;
pub(crate) use sync::MAX_WAIT_S;
pub(crate) use tournaments::matches::MatchView;
pub(crate) use tournaments::{Stage, TournamentView, create_for_visitor, id_of as id_of_tournament};

/// A route: its schemas and description for `/openapi.json`, and its handlers.
type Route = UtoipaMethodRouter<Arena>;

/// Returns all routes except pages: a table. `#[utoipa::path]` at each handler declares the path and the method.
fn list(arena: &Arena) -> Vec<Route> {
    let keys = arena.is_authenticated_mode();
    let [play, talk] = [ToolSet::arena(keys), ToolSet::chat(keys)]
        .map(|tools| Endpoint::new(tools, arena.clone(), behind_tools(arena.clone())));
    let mut routes = vec![
        routes!(docs::docs),
        routes!(docs::openapi),
        routes!(skill::skill_text),
        routes!(skill::skill_data),
        routes!(health::health),
        routes!(health::ready),
        routes!(health::metrics),
        routes!(metadata::list_metadata),
        routes!(metadata::find_metadata),
        routes!(list::list_sessions),
        routes!(list::list_sessions_of_type, create::create_session),
        routes!(invites::announce_invite),
        routes!(invites::find_invite),
        routes!(invites::find_player),
        routes!(queue::join_queue),
        routes!(queue::find_ticket, queue::leave_queue),
        routes!(join::join_session),
        routes!(act::act_in_session),
        routes!(sync::sync_operator),
        routes!(chat::send_chat),
        routes!(sync::sync_chat),
        routes!(stream::stream_channel),
        routes!(stream::stream_session),
        routes!(users::list_users, users::change_profile),
        routes!(users::find_users),
        routes!(users::find_user),
        routes!(users::list_played),
        routes!(users::find_scores),
        routes!(scoring::list_global),
        routes!(scoring::list_strategies),
        routes!(scoring::list_of_type),
        routes!(scoring::list_boards),
        routes!(scoring::find_stats),
        routes!(create::cancel_session),
        routes!(create::unlist_session),
        routes!(create::list_invites),
        routes!(records::find_record),
        routes!(records::find_keys),
        routes!(mcp::play).layer(Extension(play)),
        routes!(mcp::talk).layer(Extension(talk)),
    ];
    if arena.settings.records.log {
        routes.extend([routes!(log::find_checkpoint), routes!(log::find_tile), routes!(log::find_proof)]);
    }
    if arena.tournaments.is_some() {
        routes.extend([
            routes!(games::list_games),
            routes!(agents::list_agents, agents::add_agent),
            routes!(agents::find_agent, agents::remove_agent),
            routes!(tournaments::list_tournaments, tournaments::create_tournament),
            routes!(tournaments::find_tournament, tournaments::remove_tournament),
            routes!(tournaments::stop_tournament),
            routes!(tournaments::show_standings),
            routes!(tournaments::matches::list_matches),
            routes!(tournaments::matches::find_match),
            routes!(tournaments::matches::show_replay),
            routes!(tournaments::matches::show_log),
            routes!(ladders::list_ladders),
            routes!(ladders::find_ladder),
            routes!(ladders::close_season),
            routes!(ladders::list_ladder_games),
            routes!(ladders::show_ladder_replay),
            routes!(ladders::show_ladder_log),
        ]);
    }
    routes.extend(admin::list(arena));
    routes
}

/// Replaces `/api/v1` by `/api` in the path of a request. No part of the server sees the difference.
pub(crate) fn remove_version(uri: &mut Uri) {
    let Some(rest) = uri.path_and_query().and_then(|place| place.as_str().strip_prefix("/api/v1/")) else { return };
    let Ok(place) = PathAndQuery::from_maybe_shared(Bytes::from(["/api/", rest].concat())) else { return };
    let mut parts = mem::take(uri).into_parts();
    parts.path_and_query = Some(place);
    // The other parts are those of a valid URI.
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

/// The end of the routes of MCP. They also exist with a final slash, because people configure clients with either.
const MCP: &str = "/mcp";

/// Builds the router of all routes and pages. Tests call it without a socket.
pub(crate) fn app(arena: Arena) -> Router {
    let mut router = Router::new();
    for (_, described, handlers) in list(&arena) {
        for path in described.paths.keys() {
            router = router.route(path, handlers.clone());
            if path.ends_with(MCP) {
                router = router.route(&format!("{path}/"), handlers.clone());
            }
        }
    }
    for (path, handlers) in web::list() {
        router = router.route(path, handlers);
    }
    router
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(arena.clone(), attend))
        .with_state(arena)
}

fn describe(arena: &Arena) -> Description {
    let (mut schemas, mut paths) = (Vec::new(), Paths::new());
    for (needed, described, _) in list(arena) {
        schemas.extend(needed);
        // The description has no sign for a parameter of several path segments.
        paths.paths.extend(described.paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)));
    }
    let sorts = [("/api/scoring", true), ("/api/scoring/{name}", false)];
    let sorts = sorts.map(|(path, global)| (path, scoring::sorts(arena, global)));
    Description::new(schemas, paths, &sorts)
}

/// A route that programs reach without the router and its layers, which would take a tenth of the server's time.
pub(crate) struct DirectRoute {
    method: Method,
    path: &'static str,
    handler: DirectHandler,
}

type DirectHandler = fn(Request, Arena) -> BoxFuture<'static, Response>;

/// The response headers that pages of other origins may read, beside those that they may always read.
const EXPOSED: HeaderValue = HeaderValue::from_static("retry-after, link, x-request-id");

/// The routes of play, which clients call most. [`list`] has them too, for other requests to them.
static DIRECT: [DirectRoute; 5] = [
    DirectRoute::new(Method::GET, "/api/arena/sync", |request, arena| sync::sync_operator.call(request, arena)),
    DirectRoute::new(Method::GET, "/api/chat/sync", |request, arena| sync::sync_chat.call(request, arena)),
    DirectRoute::new(Method::POST, "/api/arena/message", |request, arena| act::act_in_session.call(request, arena)),
    DirectRoute::new(Method::POST, "/api/chat/send", |request, arena| chat::send_chat.call(request, arena)),
    DirectRoute::new(Method::POST, "/api/arena/join", |request, arena| join::join_session.call(request, arena)),
];

impl DirectRoute {
    const fn new(method: Method, path: &'static str, handler: DirectHandler) -> DirectRoute {
        DirectRoute { method, path, handler }
    }

    /// Only for programs: web pages send an `Origin`, and need more of the router's layers.
    pub(crate) fn of<B>(request: &axum::http::Request<B>) -> Option<&'static DirectRoute> {
        let path = request.uri().path();
        let found = DIRECT.iter().find(|route| route.path == path && route.method == request.method());
        found.filter(|_| !request.headers().contains_key(header::ORIGIN))
    }

    /// Answers a request to this route.
    pub(crate) fn answer(&'static self, request: Request, arena: Arena) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let handler = |request| (self.handler)(request, arena.clone());
            let mut response = answer_at(&arena, self.path, request, handler).await;
            // The router's layers add these headers for pages of all origins.
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            response
        })
    }
}

/// It has no middleware: the MCP request has already passed `attend`.
fn behind_tools(arena: Arena) -> Router {
    let mut router = Router::new()
        .route("/api/queue/{name}", post(queue::join_queue))
        .route("/api/queue/{name}/{ticket}", get(queue::find_ticket));
    for route in &DIRECT {
        let arena = arena.clone();
        router = router.route(route.path, any(move |request: Request| (route.handler)(request, arena)));
    }
    router.with_state(arena)
}

/// First path segments, after `/api`, of the routes that exist only if tournaments are enabled.
const OF_TOURNAMENTS: [&str; 4] = ["games", "agents", "ladders", "tournaments"];

async fn not_found(State(arena): State<Arena>, request: Request) -> Response {
    let error = nothing_there(&arena, &request);
    // Browsers accept HTML and get an error page with links. Other programs get JSON.
    match accepts(request.headers(), "text/html") {
        true => web::PageError::from(error).into_response(),
        false => error.into_response(),
    }
}

fn nothing_there(arena: &Arena, request: &Request) -> ApiError {
    let path = request.uri().path();
    if let Some(removed) = removed_route(path) {
        return removed;
    }
    let first = path.strip_prefix("/api/").and_then(|place| place.split('/').next());
    if arena.tournaments.is_none() && first.is_some_and(|first| OF_TOURNAMENTS.contains(&first)) {
        let text = "tournaments are disabled on this server; start it with `arena serve --tournaments` to enable them";
        return ApiError::not_found("NOT_FOUND", text);
    }
    ApiError::not_found("NOT_FOUND", format!("path not found: {path}"))
}

/// Returns the answer at the path of a route of an earlier version.
pub(crate) fn removed_route(path: &str) -> Option<ApiError> {
    let sentence = removed::sentence(removed::Kind::Route, path)?;
    Some(ApiError::new(StatusCode::GONE, "REMOVED", sentence))
}

async fn method_not_allowed(request: Request) -> ApiError {
    if let Some(removed) = removed_route(request.uri().path()) {
        return removed;
    }
    let text = format!("{} is not allowed at {}", request.method(), request.uri().path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", text)
}

/// All other methods share a counter. Otherwise clients could create any number of counters with invented methods.
const COUNTED_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// The route that banned addresses may use as well, for monitoring.
pub(crate) const OPEN_TO_ALL: &str = "/health";

/// The last segments of the routes that pages of other origins may not use in any mode. MCP requires it.
const OF_OWN_ORIGIN: [&str; 2] = ["/arena/mcp", "/chat/mcp"];

/// The beginnings of the routes that are for administrators and monitoring only.
const OF_ADMINISTRATION: [&str; 3] = ["/metrics", "/admin", "/api/admin/"];

/// The target of the log's lines about requests: `--log info,access=debug` turns them on.
const ACCESS_LOG: &str = "access";

/// Routes that show nothing of the store, or check it themselves.
const OF_THIS_PROCESS: [&str; 3] = [OPEN_TO_ALL, "/metrics", "/ready"];

/// The middleware of all routes: drops lost data from memory, hides administration, refuses banned addresses and foreign
/// origins, renders pages, sets common headers, and counts responses by route.
async fn attend(State(arena): State<Arena>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let route = route.strip_suffix('/').filter(|route| route.ends_with(MCP)).unwrap_or(route);
    answer_at(&arena, route, request, |request| next.run(request)).await
}

/// Drops data that the store has lost, and reads the changes of shared tournaments that the route may show.
async fn catch_up(arena: &Arena, route: &str) -> ApiResult<()> {
    arena.engine.catch_up().await?;
    let place = route.strip_prefix("/api").unwrap_or(route);
    let is_of_tournaments = OF_TOURNAMENTS.iter().any(|first| place.trim_start_matches('/').starts_with(first));
    match arena.tournaments.as_ref().filter(|tournaments| is_of_tournaments && tournaments.is_shared()) {
        Some(tournaments) => {
            let read = tournaments.read(|tournaments| tournaments.read_changes()).await;
            Ok(read.map_err(TournamentRefusal::from)?)
        }
        None => Ok(()),
    }
}

/// Answers a request to a route by `next`, as [`attend`] describes.
async fn answer_at<F: Future<Output = Response>>(
    arena: &Arena,
    route: &str,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let started = tokio::time::Instant::now();
    let method = request.method().clone();
    let client = address_of(request.extensions());
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::new);
    let address = client.filter(|_| route != OPEN_TO_ALL);
    let _in_flight = GaugeGuard::by(&arena.metrics.in_flight);
    let current = if OF_THIS_PROCESS.contains(&route) { Ok(()) } else { catch_up(arena, route).await };
    // The registry may close an idle connection just as a request arrives on it. The request is refused before it has
    // any effect.
    let request_connection = RequestConnection::of(request.extensions());
    if request_connection.as_ref().is_some_and(|request_connection| request_connection.connection.is_closing()) {
        let text =
            "the server has closed this idle connection to accept others; send the request again on a new connection";
        return ApiError::busy(text).into_response();
    }
    let has_administration = request_connection.is_none_or(|request_connection| request_connection.has_administration);
    let is_elsewhere = !has_administration && OF_ADMINISTRATION.iter().any(|beginning| route.starts_with(beginning));
    let found = match is_elsewhere {
        true => Err(ApiError::not_found("NOT_FOUND", "administration and metrics are at the server's private address")),
        false => Ok(()),
    };
    let admitted = current.and_then(|()| Ok(address.map_or(Ok(()), |address| arena.engine.admit_address(address))?));
    let refused = check_host(request.version(), request.headers()).and(admitted).and(found).and_then(|()| {
        check_origin(
            &arena.settings,
            &method,
            request.headers(),
            OF_OWN_ORIGIN.iter().any(|path| route.ends_with(path)),
        )
    });
    // Only pages are compressed here, and the routes of play need no look at this header.
    let accepts_gzip = !route.starts_with("/api/") && web::accepts_gzip(request.headers());
    let response = match refused {
        Ok(()) => next(request).await,
        Err(error) => error.into_response(),
    };
    let mut response = web::render(response, &arena.settings.site, has_administration, accepts_gzip);
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id.header());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Most responses change often or are private. Handlers of cacheable responses set their own header.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let took = started.elapsed();
    let status = response.status().as_u16();
    let counted = COUNTED_METHODS.into_iter().find(|counted| *counted == method.as_str()).unwrap_or("other");
    arena.metrics.answered(route, counted, status, took);
    // The route has no secrets, unlike the path and the query.
    tracing::debug!(
        target: ACCESS_LOG,
        id = id.as_str(),
        client = client.map(tracing::field::display),
        route,
        method = method.as_str(),
        status,
        took_us = took.as_micros() as u64,
        "{method} {route} {status}"
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    use arena_engine::{Administrator, Chat, Create, Join, Respond, Written};
    use arena_model::{Party, SessionId};
    use arena_store::BanSubject;
    use axum::body::Body;
    use http_body_util::BodyExt;
    use tempfile::TempDir;
    use tower::ServiceExt;

    use crate::request::ClientAddress;

    /// An arena without a socket, with an active session.
    struct Stage {
        arena: Arena,
        app: Router,
        session: SessionId,
        player: Party,
        _folder: TempDir,
    }

    impl Stage {
        async fn new() -> Stage {
            let (arena, folder) = Arena::in_tests().await;
            let engine = &arena.engine;
            let options = serde_json::Map::new();
            let create =
                Create { challenge: "psi".to_owned(), options, is_rated: true, is_unlisted: false, deal: None };
            let respond = |written: &Written<'_>| {
                let facts = &written.session.facts;
                format!("{} {}", facts.id, facts.invites[0])
            };
            let created = engine.create(create, None, Respond::new(respond)).await.expect("a session");
            let (session, invite) = created.split_once(' ').expect("an id and an invite");
            let (session, invite) = (session.parse().expect("an id"), invite.parse().expect("an invite"));
            let join = Join { invite, user: None };
            engine.join(join, None, Respond::new(|_| String::new())).await.expect("a seat");
            Stage { app: app(arena.clone()), arena, session, player: Party::Player(invite), _folder: folder }
        }

        async fn ask(&self, address: &str, method: &str, path: &str) -> Response {
            let client = ClientAddress(address.parse().expect("an address"));
            let mut uri = path.parse().expect("a path");
            remove_version(&mut uri);
            let request = Request::builder().method(method).uri(uri).header(header::HOST, "arena").extension(client);
            let Ok(response) = self.app.clone().oneshot(request.body(Body::empty()).expect("a request")).await;
            response
        }

        async fn ban(&self, range: &str) {
            let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
            let subject = BanSubject::Addresses(range.parse().expect("a range"));
            self.arena.engine.ban(by, subject, "noise".to_owned()).await.expect("it can write");
        }
    }

    #[tokio::test]
    async fn a_banned_address_is_refused_on_all_routes() {
        let stage = Stage::new().await;
        let mut asked: Vec<(&str, String)> =
            ["/", "/web/style.css", "/skill.md", "/skill.json", "/ready", "/metrics", "/none"]
                .map(|path| ("GET", path.to_owned()))
                .to_vec();
        for api in ["/api", "/api/v1"] {
            for (method, path) in [
                ("GET", "/metadata"),
                ("GET", "/metadata/psi"),
                ("GET", "/challenges"),
                ("POST", "/challenges/psi"),
                ("POST", "/invites"),
                ("GET", "/invites/x"),
                ("POST", "/arena/join"),
                ("POST", "/arena/message"),
                ("GET", "/arena/sync?channel=x"),
                ("POST", "/chat/send"),
                ("GET", "/chat/sync?channel=x"),
                ("GET", "/chat/ws/invites"),
                ("HEAD", "/chat/ws/invites"),
                ("POST", "/users"),
                ("GET", "/users/ada/scores"),
                ("GET", "/scoring/psi"),
                ("GET", "/stats"),
                ("POST", "/arena/mcp"),
                ("POST", "/chat/mcp"),
                ("GET", "/admin/audit"),
                ("POST", "/admin/import"),
                ("DELETE", "/challenges"),
                ("GET", "/none"),
            ] {
                asked.push((method, format!("{api}{path}")));
            }
        }
        for (method, path) in &asked {
            assert_ne!(stage.ask("192.0.2.1", method, path).await.status(), StatusCode::FORBIDDEN, "{method} {path}");
        }
        stage.ban("192.0.2.0/24").await;
        for address in ["192.0.2.1", "::ffff:192.0.2.200"] {
            for (method, path) in &asked {
                let response = stage.ask(address, method, path).await;
                assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} {path}");
                let body = response.into_body().collect().await.expect("a body").to_bytes();
                let refusal: &[u8] = br#"{"error":"banned from this arena: noise","code":"BANNED"}"#;
                assert_eq!(&body[..], if *method == "HEAD" { b"" } else { refusal }, "{method} {path}");
            }
            assert_eq!(stage.ask(address, "GET", "/health").await.status(), StatusCode::OK);
        }
        for address in ["192.0.3.1", "127.0.0.1", "2001:db8::1"] {
            assert_eq!(stage.ask(address, "GET", "/api/challenges").await.status(), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn an_open_stream_ends_when_its_address_is_banned() {
        let stage = Stage::new().await;
        let path = format!("/api/chat/ws/{}", stage.session);
        let mut streams = Vec::new();
        for address in ["192.0.2.1", "192.0.3.1"] {
            let mut stream = stage.ask(address, "GET", &path).await.into_body();
            stream.frame().await.expect("the beginning").expect("it is read");
            streams.push(stream);
        }
        stage.ban("192.0.2.0/24").await;
        let from = stage.player.clone();
        let chat = Chat { session: stage.session, from, to: None, content: "who is still there?".to_owned() };
        stage.arena.engine.chat(chat, None, Respond::new(|_| String::new())).await.expect("it is said");
        assert!(streams[0].frame().await.is_none());
        let frame = streams[1].frame().await.expect("one more event").expect("it is read");
        assert!(String::from_utf8_lossy(frame.data_ref().expect("text")).contains("who is still there?"));
    }
}
