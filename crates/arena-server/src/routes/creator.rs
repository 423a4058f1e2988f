//! `POST /api/sessions/{id}/cancel` and `…/unlist`, `GET /api/sessions/{id}/invites`: the rights of a session's
//! creator and of the administrator. The answer to the creation contains the creator's key.

use std::net::{IpAddr, Ipv4Addr};

use arena_engine::{Administrator, EngineError, Requester, Withdrawal};
use arena_model::{InviteCode, Session, SessionId, SessionView, Status};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::authority::Authority;
use crate::error::{ApiError, ApiResult};
use crate::request::{Get, Post};

/// A new session with its creator's key.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSession)]
#[expect(dead_code, reason = "the type only describes responses")]
pub(super) struct NewSession<'s> {
    #[serde(flatten)]
    session: SessionView<'s>,
    /// The creator's key, which authorizes its holder as a bearer token to cancel and unlist the session. Only this response
    /// contains it.
    #[schema(pattern = "^o_[0-9a-f]{64}$")]
    creator_key: String,
}

/// Adds the creator's key to the stored answer to a creation, which has none. Keys are ASCII without quotes, so no
/// escaping is needed.
///
/// # Errors
/// If the answer isn't that of a creation.
pub(super) fn with_creator_key(arena: &Arena, mut answer: String) -> ApiResult<String> {
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    let id = serde_json::from_str(&answer).ok().and_then(|Created { id }| id.parse::<SessionId>().ok());
    let id =
        id.ok_or_else(|| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "the stored answer is damaged"))?;
    let brace = answer.pop();
    debug_assert_eq!(brace, Some('}'), "an answer to a creation is an object with fields");
    answer.push_str(&format!(r#","creatorKey":"{}"}}"#, arena.records.creator_key(id)));
    Ok(answer)
}

/// The session was canceled.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "canceled": true }))]
struct Canceled {
    canceled: bool,
}

/// Cancels a session that hasn't ended: removes it with its messages and invites.
///
/// The arena's log shows that the session was created and canceled. Once all players have joined a rated session, only an
/// administrator can cancel it, because its creator could drop a game that it is about to lose.
#[utoipa::path(post, path = "/api/sessions/{id}/cancel", tag = "challenges", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = Canceled, description = "The session was canceled."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 409, description = "
            `SESSION_ENDED`: the session has ended.
            `RATED_GAME`: a rated game has begun, so only an administrator can cancel it.")))]
pub(crate) async fn cancel_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    withdraw(&arena, &request, Withdrawal::Cancel).await?;
    Ok(json(to_text(&Canceled { canceled: true })))
}

/// The session is unlisted.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "unlisted": true }))]
struct Unlisted {
    unlisted: bool,
}

/// Takes a session that hasn't ended from all lists. Its game is unrated from now on.
///
/// If the arena's log has the creation already, the log also shows that the session was unlisted. Once all players have
/// joined a rated session, only an administrator can unlist it, because its creator could drop a game that it is about to
/// lose.
#[utoipa::path(post, path = "/api/sessions/{id}/unlist", tag = "challenges", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = Unlisted, description = "The session is unlisted."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 409, description = "
            `SESSION_ENDED`: the session has ended.
            `RATED_GAME`: a rated game has begun, so only an administrator can unlist it.")))]
pub(crate) async fn unlist_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    withdraw(&arena, &request, Withdrawal::Unlist).await?;
    Ok(json(to_text(&Unlisted { unlisted: true })))
}

/// The invites of the free seats.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "invites": ["inv_018f6b2e-0000-7000-8000-00000000abcd"] }))]
struct FreeInvites {
    /// The invites of the seats that no player has taken, without those that were announced to the public.
    invites: Vec<String>,
}

/// Returns the invites of a session's free seats.
#[utoipa::path(get, path = "/api/sessions/{id}/invites", tag = "challenges", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = FreeInvites, description = "The invites."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist.")))]
pub(crate) async fn list_invites(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (by, id) = authorize(&arena, &request)?;
    let session = arena.engine.find_session(id).await?.ok_or_else(unknown)?;
    by.record_audit(&arena, "invites", json!({ "session": id })).await?;
    Ok(json(to_text(&FreeInvites { invites: free_invites(&session) })))
}

fn free_invites(session: &Session) -> Vec<String> {
    let is_free = |invite: &&InviteCode| session.seat_of(**invite).is_none() && !session.announced.contains(*invite);
    let is_open = session.status() == Status::Open;
    session.facts.invites.iter().filter(is_free).filter(|_| is_open).map(ToString::to_string).collect()
}

/// Returns the authority of the caller and the session's id.
///
/// # Errors
/// 401 if the caller is neither the session's creator nor the administrator, 404 if the id is malformed.
fn authorize(arena: &Arena, request: &Get) -> ApiResult<(Authority, SessionId)> {
    let id: Option<SessionId> = request.param("id").parse().ok();
    let owns = |key: &str| id.is_some_and(|id| arena.records.is_creator(key, id));
    let by = Authority::of(arena, &request.headers, request.address, owns)?.require_credentials()?;
    Ok((by, id.ok_or_else(unknown)?))
}

/// Withdraws the session of a request, in the name of the caller.
///
/// # Errors
/// If the caller may not withdraw it, or the store can't write.
async fn withdraw(arena: &Arena, request: &Get, withdrawal: fn(Requester) -> Withdrawal) -> ApiResult<()> {
    let (by, id) = authorize(arena, request)?;
    let requester = match by {
        Authority::Administrator(_) => Requester::Administrator,
        Authority::Owner | Authority::Anonymous => Requester::Creator,
    };
    // The audit has the address only. It is unknown only in tests that call the router without a socket.
    let caller = Administrator { address: request.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) };
    arena.engine.withdraw_session(caller, id, withdrawal(requester)).await.map_err(not_found)
}

fn not_found(error: EngineError) -> ApiError {
    if matches!(error, EngineError::UnknownSession) { unknown() } else { error.into() }
}

fn unknown() -> ApiError {
    ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found")
}
