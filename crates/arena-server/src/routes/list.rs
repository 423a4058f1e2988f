//! `GET /api/challenges`, `GET /api/challenges/{name}`: sessions, newest first, paged.

use std::collections::BTreeMap;

use arena_engine::Hosted;
use arena_model::{Session, SessionView, Status, UserId, UserProfile, Viewer, view};
use arena_store::{Page, SessionFilter};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Paging;
use crate::request::Get;

/// A page of a list of sessions.
#[derive(Serialize, ToSchema)]
#[schema(as = ChallengePage)]
pub(super) struct SessionPage<'s> {
    #[schema(value_type = [SessionView])]
    pub(super) challenges: Vec<SessionView<'s>>,
    /// Number of sessions on all pages.
    pub(super) total: u64,
    /// Maximum number of sessions per page.
    #[schema(minimum = 1, maximum = 100)]
    pub(super) limit: usize,
    /// Number of sessions skipped.
    pub(super) offset: u64,
    /// Profiles of the users that this page identifies, by user id.
    #[schema(value_type = BTreeMap<String, UserProfile>)]
    pub(super) profiles: BTreeMap<UserId, UserProfile>,
}

/// The filter of a list of sessions.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StatusFilter {
    /// Filter by status; an unknown value selects all.
    #[param(value_type = Option<Status>)]
    status: Option<String>,
}

/// Lists sessions, newest first.
#[utoipa::path(get, path = "/api/challenges", tag = "challenges", params(StatusFilter, Paging),
    responses((status = 200, body = SessionPage, description = "A page, of 50 by default.")))]
pub(crate) async fn list_sessions(State(arena): State<Arena>, request: Get) -> ApiResult {
    list(&arena, &request, None, 50).await
}

/// Lists the sessions of one challenge type, newest first.
#[utoipa::path(get, path = "/api/challenges/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id. For an unknown id the page is empty.", example = "psi"),
        StatusFilter, Paging),
    responses((status = 200, body = SessionPage, description = "A page, of 10 by default.")))]
pub(crate) async fn list_sessions_of_type(State(arena): State<Arena>, request: Get) -> ApiResult {
    list(&arena, &request, Some(request.param("name").to_owned()), 10).await
}

async fn list(arena: &Arena, request: &Get, challenge: Option<String>, default_limit: usize) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(default_limit);
    let status = request.query::<StatusFilter>()?.status;
    let filter = SessionFilter { challenge, status: status.as_deref().and_then(Status::from_wire) };
    page_of(arena, arena.engine.list_sessions(&filter, offset, limit).await?, limit, offset).await
}

/// Builds the page with the public views of these sessions.
pub(super) async fn page_of(arena: &Arena, page: Page<Session>, limit: usize, offset: u64) -> ApiResult {
    let hosted = arena.engine.challenges();
    Ok(json(to_text(&SessionPage {
        challenges: page.items.iter().map(|session| view_of(session, Viewer::Nobody, &hosted)).collect(),
        total: page.total,
        limit,
        offset,
        profiles: arena.engine.profiles(&page.items).await?,
    })))
}

/// Returns a session as `viewer` may see it, with the name of its challenge.
pub(super) fn view_of<'s>(session: &'s Session, viewer: Viewer, hosted: &'s Hosted) -> SessionView<'s> {
    let view = view(session, viewer);
    match hosted.get(&session.facts.challenge) {
        Some(challenge) => view.with_name(&challenge.metadata().name),
        None => view,
    }
}
