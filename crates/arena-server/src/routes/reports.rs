//! `POST /api/reports`: a reader asks the administrator to look at a message.

use std::net::IpAddr;

use arena_engine::EngineError;
use arena_store::{AddressRange, ReportedMessage};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::channel::parse_channel;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::fields::Filled;
use crate::request::{Get, Post};

/// The maximum length of a reason, in characters.
pub(crate) const MAX_REASON: usize = 500;

/// A message and the reason of its report.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "channel": "018f6b2e-0000-7000-8000-00000000abcd", "index": 7, "reason": "insults a player" }))]
struct ReportRequest {
    #[schema(value_type = String)]
    channel: Filled,
    index: i64,
    #[schema(value_type = String)]
    reason: Filled,
}

/// The confirmation of a report.
#[derive(Serialize, ToSchema)]
struct Reported {
    reported: bool,
}

/// Reports a message to the server's administrator.
///
/// A further report of the same message from the same address replaces the first.
#[utoipa::path(post, path = "/api/reports", tag = "chat", request_body = ReportRequest,
    responses((status = 200, body = Reported, description = "The administrator will see the report."),
        (status = 404, description = "`MESSAGE_NOT_FOUND`: the message doesn't exist."),
        (status = 429, description = "`TOO_MANY_REPORTS`: too many reports wait for the administrator.")))]
pub(crate) async fn report_message(State(arena): State<Arena>, request: Post) -> ApiResult {
    let ReportRequest { channel: Filled(channel), index, reason: Filled(reason) } = request.body()?;
    report(&arena, &request, &channel, index, reason).await?;
    Ok(json(to_text(&Reported { reported: true })))
}

/// Stores a report of the message at `index` of the channel with this name.
///
/// # Errors
/// If the reason is too long, the message doesn't exist, or there are too many reports.
pub(crate) async fn report(arena: &Arena, head: &Get, channel: &str, index: i64, reason: String) -> ApiResult<()> {
    if reason.chars().count() > MAX_REASON {
        let text = format!("reason must have at most {MAX_REASON} characters");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let unknown =
        || ApiError::not_found("MESSAGE_NOT_FOUND", format!("message {index} not found in channel {channel}"));
    let message = ReportedMessage {
        channel: parse_channel(channel).ok_or_else(unknown)?,
        index: u64::try_from(index).map_err(|_| unknown())?,
    };
    let network = head.address.map(reporter_of).unwrap_or_default();
    match arena.engine.report_message(message, network, reason).await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let text = "too many reports wait for the administrator; try later";
            Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REPORTS", text))
        }
        Err(EngineError::UnknownSession | EngineError::UnknownMessage { .. }) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the address under which the reports of a client count. A household may have many IPv6 networks of /64, so its
/// /48 counts.
fn reporter_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let range = AddressRange::parse_any(&format!("{address}/48"));
            range.map_or_else(|_| address.to_string(), |range| range.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_a_household_count_together() {
        let check = |address: &str, expected: &str| assert_eq!(reporter_of(address.parse().unwrap()), expected);
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3::4", "2001:db8:1::/48");
    }
}
