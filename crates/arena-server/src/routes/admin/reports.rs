//! `/api/admin/reports`: the reports of messages, and their dismissal.

use arena_engine::Administrator;
use arena_store::{ReportSelection, ReportedMessage};
use arena_wire::{Dismissed, MessageReport, ReportPage};
use axum::Extension;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Paging;
use crate::request::{Get, Post};
use crate::routes::channel::parse_channel;

/// The message whose reports are dismissed, or the address whose reports are.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "channel": "018f6b2e-0000-7000-8000-00000000abcd", "index": 7 }))]
struct DismissalRequest {
    channel: Option<String>,
    index: Option<i64>,
    address: Option<String>,
}

/// Lists the reports of messages that weren't hidden and whose reports weren't dismissed, newest first.
#[utoipa::path(get, path = "/api/admin/reports", tag = "administration", security(("administratorToken" = [])), params(Paging),
    responses((status = 200, body = ReportPage, description = "A page, of 50 by default.")))]
pub(super) async fn list_reports(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let page = arena.engine.list_reports(offset, limit).await?;
    let to_wire = |arena_store::StoredReport { channel, index, network, reason, at }| MessageReport {
        channel,
        index,
        address: network,
        reason,
        at,
    };
    Ok(json(to_text(&ReportPage { reports: page.items.into_iter().map(to_wire).collect(), total: page.total })))
}

/// Dismisses all reports of a message, or all of an address as the list shows it. The messages stay.
#[utoipa::path(post, path = "/api/admin/reports/dismiss", tag = "administration", security(("administratorToken" = [])),
    request_body = DismissalRequest,
    responses((status = 200, body = Dismissed, description = "The number of dismissed reports, 0 if there were none.")))]
pub(super) async fn dismiss_reports(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let DismissalRequest { channel, index, address } = request.body()?;
    let selection = match (channel, index, address) {
        (Some(name), Some(index), None) => {
            let unknown = |field| ApiError::bad_request("INVALID_FIELD", format!("{field} isn't that of a message"));
            ReportSelection::Message(ReportedMessage {
                channel: parse_channel(&name).ok_or_else(|| unknown("channel"))?,
                index: u64::try_from(index).map_err(|_| unknown("index"))?,
            })
        }
        (None, None, Some(address)) => ReportSelection::Network(address),
        _ => {
            let text = "give either channel and index of a message, or an address";
            return Err(ApiError::bad_request("INVALID_FIELD", text));
        }
    };
    let dismissed = arena.engine.dismiss_reports(by, selection).await?;
    Ok(json(to_text(&Dismissed { dismissed })))
}
