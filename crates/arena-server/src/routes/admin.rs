//! `/api/admin…`: the administrator's routes, and their token check.

mod archive;
mod audit;
mod bans;
mod budgets;
mod export;
mod import;
mod moderation;
mod recompute;
mod users;

use arena_engine::Administrator;
use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use utoipa_axum::router::UtoipaMethodRouterExt;
use utoipa_axum::routes;

use super::Route;
use crate::arena::Arena;
use crate::auth::{administrator_at, unauthenticated};
use crate::error::ApiResult;
use crate::limits::RequestConnection;
use crate::request::admit;

/// The administrator that [`require_token`] passes to a handler.
type ByAdministrator = Extension<Administrator>;

/// Returns the administrator's routes, each with the token check.
pub(super) fn list(arena: &Arena) -> Vec<Route> {
    let routes: Vec<Route> = vec![
        routes!(archive::archive),
        routes!(archive::restore),
        routes!(audit::list_audit),
        routes!(bans::list_bans, bans::ban),
        routes!(bans::lift_ban),
        routes!(budgets::list_budgets),
        routes!(export::export),
        routes!(import::import),
        routes!(moderation::hide_message),
        routes!(recompute::recompute),
        routes!(recompute::recompute_strategy),
        routes!(moderation::remove_session),
        routes!(users::set_benchmark),
        routes!(users::delete_user),
    ];
    let require_token = middleware::from_fn_with_state(arena.clone(), require_token);
    routes.into_iter().map(|route| route.layer(require_token.clone())).collect()
}

/// Passes the [`Administrator`] to the handlers. Rate limits apply first, so that they slow down guessing.
async fn require_token(State(arena): State<Arena>, mut request: Request, next: Next) -> ApiResult {
    let address = admit(request.extensions(), &arena)?;
    if !arena.settings.admin_token.as_ref().is_some_and(|token| token.authorizes(request.headers())) {
        return Err(unauthenticated());
    }
    if let Some(request_connection) = RequestConnection::of(request.extensions()) {
        request_connection.connection.mark_known();
    }
    request.extensions_mut().insert(administrator_at(address));
    Ok(next.run(request).await)
}
