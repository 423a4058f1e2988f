//! `GET /api/admin/audit`: the audit log, newest first, paged.

use arena_store::AuditNo;
use arena_wire::{AuditEntry, AuditPage};
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Paging;
use crate::request::Get;

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
