//! `/api/admin/bans`: who isn't let in. `POST /api/admin/bans/lift` rather than `DELETE`, whose bodies some clients and proxies
//! leave out.

use arena_engine::Administrator;
use arena_identity::PublicKey;
use arena_model::{Timestamp, UserId};
use arena_store::{AddressRange, Ban, BanSubject};
use axum::Extension;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::{Fields, Get, Post};

/// Longest reason of a ban, in bytes. It is told with every refusal.
const REASON_BYTES: usize = 500;

/// All bans.
#[derive(Serialize, ToSchema)]
#[schema(as = Bans)]
struct Listed {
    bans: Vec<BanView>,
}

/// A ban of a user, or of everybody at an address or in a range of addresses: either `userId` or `address` is there.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Ban)]
struct BanView {
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    reason: String,
    at: Timestamp,
}

impl From<Ban> for BanView {
    fn from(Ban { subject, reason, at }: Ban) -> BanView {
        let (user_id, address) = match subject {
            BanSubject::User(user) => (Some(user), None),
            BanSubject::Addresses(range) => (None, Some(range.to_string())),
        };
        BanView { user_id, address, reason, at }
    }
}

/// Who isn't let in.
#[utoipa::path(get, path = "/api/admin/bans", tag = "administration", security(("administratorToken" = [])),
    responses((status = 200, body = Listed, description = "All bans.")))]
pub(super) async fn list_bans(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let bans = arena.engine.list_bans().await?;
    Ok(json(to_text(&Listed { bans: bans.into_iter().map(BanView::from).collect() })))
}

/// Whom to let in no more: exactly one of `userId`, `publicKey` and `address`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "address": "192.0.2.0/24", "reason": "noise" }))]
#[expect(dead_code, reason = "read by hand; this is its description")]
struct BanRequest {
    user_id: Option<String>,
    /// A key, in hexadecimal digits; its user is banned.
    public_key: Option<String>,
    /// An address, or a range of them such as `192.0.2.0/24`.
    address: Option<String>,
    /// Told with every refusal: 1 to 500 bytes without control characters.
    #[schema(min_length = 1)]
    reason: String,
}

/// Let somebody in no more.
#[utoipa::path(post, path = "/api/admin/bans", tag = "administration", security(("administratorToken" = [])), request_body = BanRequest,
    responses((status = 200, body = BanView, description = "The ban.")))]
pub(super) async fn ban(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let fields = request.fields()?;
    let subject = subject_of(fields)?;
    let reason = fields.text("reason")?;
    if reason.is_empty() || reason.len() > REASON_BYTES || reason.chars().any(char::is_control) {
        let text = format!("reason must be 1 to {REASON_BYTES} bytes without control characters");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let ban = arena.engine.ban(by, subject, reason.to_owned()).await?;
    Ok(json(to_text(&BanView::from(ban))))
}

/// Whom to let in again: exactly one of these.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "address": "192.0.2.0/24" }))]
#[expect(dead_code, reason = "read by hand; this is its description")]
struct LiftRequest {
    user_id: Option<String>,
    public_key: Option<String>,
    address: Option<String>,
}

/// The ban was lifted.
#[derive(ToSchema)]
#[schema(example = json!({ "lifted": true }))]
#[expect(dead_code, reason = "written by hand; this is its description")]
struct Lifted {
    lifted: bool,
}

/// Let somebody in again.
#[utoipa::path(post, path = "/api/admin/bans/lift", tag = "administration", security(("administratorToken" = [])), request_body = LiftRequest,
    responses((status = 200, body = Lifted, description = "It is lifted."),
        (status = 404, description = "`BAN_NOT_FOUND`: there is no such ban.")))]
pub(super) async fn lift_ban(
    State(arena): State<Arena>,
    Extension(by): Extension<Administrator>,
    request: Post,
) -> ApiResult {
    let subject = subject_of(request.fields()?)?;
    match arena.engine.lift_ban(by, subject).await? {
        true => Ok(json(r#"{"lifted":true}"#)),
        false => Err(ApiError::not_found("BAN_NOT_FOUND", "there is no such ban")),
    }
}

/// Whom a ban is about: exactly one of `userId`, `publicKey` and `address`.
fn subject_of(fields: &Fields) -> ApiResult<BanSubject> {
    let invalid =
        |name: &str, what: &dyn std::fmt::Display| ApiError::bad_request("INVALID_FIELD", format!("{name} is {what}"));
    match (fields.find_text("userId")?, fields.find_text("publicKey")?, fields.find_text("address")?) {
        (Some(user), None, None) => user.parse().map(BanSubject::User).map_err(|error| invalid("userId", &error)),
        (None, Some(key), None) => {
            let key: PublicKey = key.parse().map_err(|error| invalid("publicKey", &error))?;
            Ok(BanSubject::User(key.user_id()))
        }
        (None, None, Some(range)) => {
            let range: AddressRange = range.parse().map_err(|error| invalid("address", &error))?;
            Ok(BanSubject::Addresses(range))
        }
        _ => Err(ApiError::bad_request("MISSING_FIELD", "one of userId, publicKey and address is required")),
    }
}
