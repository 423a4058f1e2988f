//! `GET /api/admin/audit`: what administrators did, newest first, by pages.

use arena_model::Timestamp;
use arena_store::{AuditEntry, AuditNo};
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Paging;
use crate::request::Get;

/// A page of what administrators did.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditPage)]
struct Page {
    entries: Vec<Entry>,
    /// Entries on all pages.
    total: u64,
    /// Most entries on a page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// Entries passed over.
    offset: u64,
}

/// What an administrator did.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct Entry {
    /// Its number, from 1.
    no: u64,
    at: Timestamp,
    address: String,
    action: String,
    /// What it was done to.
    #[schema(value_type = Object)]
    detail: Value,
}

impl From<(AuditNo, AuditEntry)> for Entry {
    fn from((AuditNo(no), entry): (AuditNo, AuditEntry)) -> Entry {
        let AuditEntry { at, address, action, detail } = entry;
        Entry { no, at, address, action, detail }
    }
}

/// What administrators did, newest first.
#[utoipa::path(get, path = "/api/admin/audit", tag = "administration", security(("administratorToken" = [])), params(Paging),
    responses((status = 200, body = Page, description = "A page of 50, unless `limit` says otherwise.")))]
pub(super) async fn list_audit(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let page = arena.engine.list_audit(offset, limit).await?;
    let entries = page.items.into_iter().map(Entry::from).collect();
    Ok(json(to_text(&Page { entries, total: page.total, limit, offset })))
}
