//! `GET /api/admin/audit`: the audit log, newest first, paged.

use arena_model::Timestamp;
use arena_store::AuditNo;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Paging;
use crate::request::Get;

/// A page of the audit.
#[derive(Serialize, ToSchema)]
struct AuditPage {
    entries: Vec<AuditEntry>,
    /// The number of entries on all pages.
    total: u64,
    /// The maximum number of entries on a page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// The number of entries before this page.
    offset: u64,
}

/// An administrator's action.
#[derive(Serialize, ToSchema)]
struct AuditEntry {
    /// The entry's number, from 1.
    no: u64,
    at: Timestamp,
    address: String,
    action: String,
    /// The object of the action.
    #[schema(value_type = Object)]
    detail: Value,
}

/// Lists the audit log of administrators' actions, newest first.
#[utoipa::path(get, path = "/api/admin/audit", tag = "administration", security(("administratorToken" = [])), params(Paging),
    responses((status = 200, body = AuditPage, description = "A page, of 50 by default.")))]
pub(super) async fn list_audit(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let page = arena.engine.list_audit(offset, limit).await?;
    let to_wire = |(AuditNo(no), arena_store::AuditEntry { at, address, action, detail })| AuditEntry {
        no,
        at,
        address,
        action,
        detail,
    };
    let entries = page.items.into_iter().map(to_wire).collect();
    Ok(json(to_text(&AuditPage { entries, total: page.total, limit, offset })))
}
