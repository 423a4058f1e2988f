//! The list of routes; each has a file with its handler, and its description there. `/api/v1` is `/api`.

mod act;
mod channel;
mod chat;
mod create;
mod docs;
mod health;
mod invites;
mod join;
mod list;
mod metadata;
mod page;
mod scoring;
mod skill;
mod stream;
mod sync;
mod users;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use utoipa::openapi::path::Paths;
use utoipa_axum::router::{UtoipaMethodRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::arena::Arena;
use crate::error::ApiError;
use crate::mcp::{self, Endpoint, ToolSet};
use crate::openapi::Description;
pub(crate) use sync::MAX_WAIT_S;

/// A route: schemas and description for `/openapi.json`, and what answers.
type Route = UtoipaMethodRouter<Arena>;

/// All routes. Where they are and by which method stands at their handlers, in `#[utoipa::path]`.
fn list(arena: &Arena) -> Vec<Route> {
    let keys = arena.asks_for_keys();
    let [play, talk] = [ToolSet::arena(keys), ToolSet::chat(keys)]
        .map(|tools| Endpoint::new(tools, arena.clone(), behind_tools(arena.clone())));
    vec![
        routes!(page::home),
        routes!(page::style),
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
        routes!(join::join_session),
        routes!(act::act_in_session),
        routes!(sync::sync_operator),
        routes!(chat::send_chat),
        routes!(sync::sync_chat),
        routes!(stream::stream_channel),
        routes!(users::list_users, users::change_profile),
        routes!(users::find_users),
        routes!(users::find_user),
        routes!(users::list_played),
        routes!(users::find_scores),
        routes!(scoring::list_global),
        routes!(scoring::list_of_type),
        routes!(scoring::find_stats),
        routes!(mcp::play).layer(Extension(play)),
        routes!(mcp::talk).layer(Extension(talk)),
    ]
}

/// The arena's routes, callable without a socket.
pub(crate) fn app(arena: Arena) -> Router {
    let mut router = Router::new();
    for (_, described, handlers) in list(&arena) {
        for path in described.paths.keys() {
            router = router.route(path, handlers.clone());
            // Each twice rather than nested, which would take every path apart and put it together again.
            if let Some(rest) = path.strip_prefix("/api/") {
                router = router.route(&format!("/api/v1/{rest}"), handlers.clone());
            }
        }
    }
    router
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn_with_state(arena.clone(), measure))
        .fallback(not_found)
        .with_state(arena)
}

/// What the routes say of themselves.
fn describe(arena: &Arena) -> Description {
    let (mut schemas, mut paths) = (Vec::new(), Paths::new());
    for (needed, described, _) in list(arena) {
        schemas.extend(needed);
        paths.paths.extend(described.paths);
    }
    Description::new(schemas, paths, arena.mode())
}

/// The routes that tools call. They aren't measured: the call of the tool is.
fn behind_tools(arena: Arena) -> Router {
    Router::new()
        .route("/api/arena/join", post(join::join_session))
        .route("/api/arena/message", post(act::act_in_session))
        .route("/api/arena/sync", get(sync::sync_operator))
        .route("/api/chat/send", post(chat::send_chat))
        .route("/api/chat/sync", get(sync::sync_chat))
        .with_state(arena)
}

async fn not_found(request: Request) -> ApiError {
    ApiError::not_found("NOT_FOUND", format!("there is nothing at {}", request.uri().path()))
}

async fn method_not_allowed(request: Request) -> ApiError {
    let text = format!("{} isn't possible at {}", request.method(), request.uri().path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", text)
}

/// Methods that are counted by name. Every other is whatever a client made up, and a counter stays for good.
const COUNTED_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// Counts answers by route.
async fn measure(State(arena): State<Arena>, request: Request, next: Next) -> Response {
    let started = tokio::time::Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let took = started.elapsed();
    let status = response.status().as_u16();
    let counted = COUNTED_METHODS.into_iter().find(|counted| *counted == method.as_str()).unwrap_or("other");
    arena.metrics.answered(route, counted, status, took);
    tracing::debug!(
        route,
        method = method.as_str(),
        status,
        took_us = took.as_micros() as u64,
        "{method} {route} {status}"
    );
    response
}
