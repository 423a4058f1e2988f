//! The list of routes; each has a file with its handler. `/api/v1` is `/api`.

mod act;
mod channel;
mod chat;
mod create;
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

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};

use crate::arena::Arena;
use crate::error::ApiError;
use crate::mcp::{Endpoint, ToolSet};
pub(crate) use sync::MAX_WAIT_S;

/// The arena's routes, callable without a socket.
pub(crate) fn app(arena: Arena) -> Router {
    let mut router = Router::new()
        .route("/", get(page::home))
        .route("/style.css", get(page::style))
        .route("/skill.md", get(skill::skill_text))
        .route("/skill.json", get(skill::skill_data))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(health::metrics));
    let keys = arena.asks_for_keys();
    let [play, talk] = [ToolSet::arena(keys), ToolSet::chat(keys)]
        .map(|tools| Endpoint::new(tools, arena.clone(), behind_tools(arena.clone())));
    // Each twice rather than nested, which would take every path apart and put it together again.
    for api in ["/api", "/api/v1"] {
        let at = |path: &str| format!("{api}{path}");
        let [play, talk] = [play.clone(), talk.clone()];
        router = router
            .route(&at("/metadata"), get(metadata::list_metadata))
            .route(&at("/metadata/{name}"), get(metadata::find_metadata))
            .route(&at("/challenges"), get(list::list_sessions))
            .route(&at("/challenges/{name}"), get(list::list_sessions_of_type).post(create::create_session))
            .route(&at("/invites"), post(invites::announce_invite))
            .route(&at("/invites/{invite}"), get(invites::find_invite))
            .route(&at("/arena/join"), post(join::join_session))
            .route(&at("/arena/message"), post(act::act_in_session))
            .route(&at("/arena/sync"), get(sync::sync_operator))
            .route(&at("/chat/send"), post(chat::send_chat))
            .route(&at("/chat/sync"), get(sync::sync_chat))
            .route(&at("/chat/ws/{channel}"), get(stream::stream_channel))
            .route(&at("/users"), get(users::list_users).post(users::change_profile))
            .route(&at("/users/batch"), get(users::find_users))
            .route(&at("/users/{userId}"), get(users::find_user))
            .route(&at("/users/{userId}/challenges"), get(users::list_played))
            .route(&at("/users/{userId}/scores"), get(users::find_scores))
            .route(&at("/scoring"), get(scoring::list_global))
            .route(&at("/scoring/{name}"), get(scoring::list_of_type))
            .route(&at("/stats"), get(scoring::find_stats))
            .route(&at("/arena/mcp"), post(|request: Request| play.answer(request)))
            .route(&at("/chat/mcp"), post(|request: Request| talk.answer(request)));
    }
    router
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn_with_state(arena.clone(), measure))
        .fallback(not_found)
        .with_state(arena)
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
