//! `GET /api/challenges`, `GET /api/challenges/{name}`: sessions, newest first, by pages.

use std::collections::BTreeMap;

use arena_model::{SessionView, Status, UserId, UserProfile, Viewer, view};
use arena_store::SessionFilter;
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::{Get, Query};

#[derive(Serialize)]
struct Page<'s> {
    challenges: Vec<SessionView<'s>>,
    total: u64,
    limit: usize,
    offset: u64,
    profiles: BTreeMap<UserId, UserProfile>,
}

pub(crate) async fn list_sessions(State(arena): State<Arena>, request: Get) -> ApiResult {
    page_of(&arena, &request.query, None, 50).await
}

pub(crate) async fn list_sessions_of_type(State(arena): State<Arena>, request: Get) -> ApiResult {
    page_of(&arena, &request.query, Some(request.param("name").to_owned()), 10).await
}

async fn page_of(arena: &Arena, query: &Query, challenge: Option<String>, default_limit: usize) -> ApiResult {
    let (offset, limit) = query.page(default_limit);
    let filter = SessionFilter { challenge, status: query.get("status").and_then(Status::from_wire) };
    let page = arena.engine.list_sessions(&filter, offset, limit).await?;
    Ok(json(to_text(&Page {
        challenges: page.items.iter().map(|session| view(session, Viewer::Nobody)).collect(),
        total: page.total,
        limit,
        offset,
        profiles: arena.engine.profiles(&page.items).await?,
    })))
}
