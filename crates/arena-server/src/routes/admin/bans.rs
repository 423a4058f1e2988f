//! `/api/admin/bans`: bans. A ban is lifted with `POST`, since some clients and proxies drop the body of a `DELETE`.

use arena_identity::PublicKey;
use arena_model::{Timestamp, UserId};
use arena_store::{AddressRange, BanSubject};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::{Get, Is, Post};

/// All bans.
#[derive(Serialize, ToSchema)]
struct Bans {
    bans: Vec<Ban>,
}

/// A ban of a user, or of an address or range of addresses: it has either `userId` or `address`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Ban {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UserId>)]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    reason: String,
    at: Timestamp,
}

/// Maximum length of a ban's reason, in bytes. Every refusal because of the ban contains the reason.
const REASON_BYTES: usize = 500;

fn to_wire(arena_store::Ban { subject, reason, at }: arena_store::Ban) -> Ban {
    let (user_id, address) = match subject {
        BanSubject::User(user) => (Some(user.to_string()), None),
        BanSubject::Addresses(range) => (None, Some(range.to_string())),
    };
    Ban { user_id, address, reason, at }
}

/// Lists all bans.
#[utoipa::path(get, path = "/api/admin/bans", tag = "administration", security(("administratorToken" = [])),
    responses((status = 200, body = Bans, description = "All bans.")))]
pub(super) async fn list_bans(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let bans = arena.engine.list_bans().await?;
    Ok(json(to_text(&Bans { bans: bans.into_iter().map(to_wire).collect() })))
}

/// A new ban, with exactly one of `userId`, `publicKey` and `address`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "address": "192.0.2.0/24", "reason": "noise" }))]
struct BanRequest {
    #[schema(value_type = Option<String>)]
    user_id: Option<Is<UserId>>,
    /// The public key of the user to ban, in hexadecimal digits.
    #[schema(value_type = Option<String>)]
    public_key: Option<Is<PublicKey>>,
    /// An address or a range, such as `192.0.2.0/24`.
    #[schema(value_type = Option<String>)]
    address: Option<Is<AddressRange>>,
    /// The reason, which every refusal because of the ban contains: 1 to 500 bytes without control characters.
    #[schema(min_length = 1)]
    reason: String,
}

/// Bans a user, a key or an address range.
#[utoipa::path(post, path = "/api/admin/bans", tag = "administration", security(("administratorToken" = [])), request_body = BanRequest,
    responses((status = 200, body = Ban, description = "The ban.")))]
pub(super) async fn ban(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let BanRequest { user_id, public_key, address, reason } = request.body()?;
    let subject = subject_of(user_id, public_key, address)?;
    if reason.is_empty() || reason.len() > REASON_BYTES || reason.chars().any(char::is_control) {
        let text = format!("reason must be 1 to {REASON_BYTES} bytes without control characters");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let ban = arena.engine.ban(by.0, subject, reason).await?;
    Ok(json(to_text(&to_wire(ban))))
}

/// The ban to lift, with exactly one of these fields.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "address": "192.0.2.0/24" }))]
struct LiftRequest {
    #[schema(value_type = Option<String>)]
    user_id: Option<Is<UserId>>,
    #[schema(value_type = Option<String>)]
    public_key: Option<Is<PublicKey>>,
    #[schema(value_type = Option<String>)]
    address: Option<Is<AddressRange>>,
}

/// The ban was lifted.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "lifted": true }))]
struct Lifted {
    lifted: bool,
}

/// Lifts a ban.
#[utoipa::path(post, path = "/api/admin/bans/lift", tag = "administration", security(("administratorToken" = [])), request_body = LiftRequest,
    responses((status = 200, body = Lifted, description = "The ban was lifted."),
        (status = 404, description = "`BAN_NOT_FOUND`: the ban doesn't exist.")))]
pub(super) async fn lift_ban(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let LiftRequest { user_id, public_key, address } = request.body()?;
    let subject = subject_of(user_id, public_key, address)?;
    match arena.engine.lift_ban(by.0, subject).await? {
        true => Ok(json(to_text(&Lifted { lifted: true }))),
        false => Err(ApiError::not_found("BAN_NOT_FOUND", "ban not found")),
    }
}

/// Returns the subject of a ban.
///
/// # Errors
/// 400 unless exactly one of `userId`, `publicKey` and `address` is given.
fn subject_of(
    user: Option<Is<UserId>>,
    key: Option<Is<PublicKey>>,
    address: Option<Is<AddressRange>>,
) -> ApiResult<BanSubject> {
    match (user, key, address) {
        (Some(Is(user)), None, None) => Ok(BanSubject::User(user)),
        (None, Some(Is(key)), None) => Ok(BanSubject::User(key.user_id())),
        (None, None, Some(Is(range))) => Ok(BanSubject::Addresses(range)),
        _ => Err(ApiError::bad_request("MISSING_FIELD", "exactly one of userId, publicKey and address is required")),
    }
}
