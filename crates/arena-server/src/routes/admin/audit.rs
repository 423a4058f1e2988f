//! `GET /api/admin/audit`: what administrators did, newest first, by pages.

use arena_model::Timestamp;
use arena_store::{AuditEntry, AuditNo};
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Get;

#[derive(Serialize)]
struct Page {
    entries: Vec<Entry>,
    total: u64,
    limit: usize,
    offset: u64,
}

#[derive(Serialize)]
struct Entry {
    no: u64,
    at: Timestamp,
    address: String,
    action: String,
    detail: Value,
}

impl From<(AuditNo, AuditEntry)> for Entry {
    fn from((AuditNo(no), entry): (AuditNo, AuditEntry)) -> Entry {
        let AuditEntry { at, address, action, detail } = entry;
        Entry { no, at, address, action, detail }
    }
}

pub(super) async fn list_audit(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query.page(50);
    let page = arena.engine.list_audit(offset, limit).await?;
    let entries = page.items.into_iter().map(Entry::from).collect();
    Ok(json(to_text(&Page { entries, total: page.total, limit, offset })))
}
