//! `/api/admin…`: what only the administrator may do. Each route has a file; here is the door that all of them are behind.

mod audit;
mod bans;
mod benchmark;
mod export;
mod import;
mod messages;
mod recompute;
mod sessions;

use std::net::{IpAddr, Ipv4Addr};

use arena_engine::Administrator;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::routing::{get, post};

use crate::arena::Arena;
use crate::error::ApiResult;
use crate::identity::unauthenticated;
use crate::request::admit;

/// The administrator's routes below `root`. Every one of them is behind the door, also one that is added here some day.
pub(super) fn routes(root: &str, arena: &Arena) -> Router<Arena> {
    let at = |path: &str| format!("{root}{path}");
    Router::new()
        .route(&at("/audit"), get(audit::list_audit))
        .route(&at("/bans"), get(bans::list_bans).post(bans::ban))
        .route(&at("/bans/lift"), post(bans::lift_ban))
        .route(&at("/export"), get(export::export))
        .route(&at("/import"), post(import::import))
        .route(&at("/messages/hide"), post(messages::hide_message))
        .route(&at("/recompute"), post(recompute::recompute))
        .route(&at("/sessions/{id}/remove"), post(sessions::remove_session))
        .route(&at("/users/{userId}/benchmark"), post(benchmark::set_benchmark))
        .route_layer(middleware::from_fn_with_state(arena.clone(), door))
}

/// Lets the administrator in, and says to the handlers behind who that is. Whoever tries tokens out is slowed by the same
/// limits as everybody.
async fn door(State(arena): State<Arena>, mut request: Request, next: Next) -> ApiResult {
    let address = admit(request.extensions(), &arena)?;
    if !arena.settings.admin_token.as_ref().is_some_and(|token| token.opens(request.headers())) {
        return Err(unauthenticated());
    }
    // Unknown only in tests that call the router without a socket.
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    request.extensions_mut().insert(Administrator { address });
    Ok(next.run(request).await)
}
