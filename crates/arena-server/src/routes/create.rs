//! `POST /api/challenges/{name}`: a new session. Only this response contains all invites and the creator's key.
//!
//! `POST /api/sessions/{id}/cancel` and `…/unlist`, `GET /api/sessions/{id}/invites`: the rights of a session's creator
//! and of the administrator.

use arena_engine::{Create, EngineError, Requester, Withdrawal};
use arena_model::{InviteCode, Session, SessionId, SessionView, Status, Viewer, view};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::answer::{json as answer, to_text};
use crate::arena::Arena;
use crate::auth::{Authority, administrator_at};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{CreationKey, Sender};
use crate::request::{Get, Post};

/// Settings of a new session.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({}))]
struct NewChallenge {
    /// Overrides of the arena's options. The challenge type determines the options that a session may override.
    #[schema(value_type = Object, required = false)]
    options: Option<Map<String, Value>>,
    /// True for a session that no list shows or counts: the session is in no history, and its game is unrated. Anyone
    /// who knows its id can watch it.
    #[schema(required = false)]
    unlisted: Option<bool>,
}

/// Creates a session.
///
/// Only this response contains all invites: pass them on to the players. It also contains the creator's key, which cancels
/// and unlists the session, and lists its free invites.
#[utoipa::path(post, path = "/api/challenges/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"), Sender, CreationKey),
    request_body(content = Option<NewChallenge>, description = "Optional."),
    responses((status = 200, body = NewSession, description = "The session."),
        (status = 400, description = "
            `UNKNOWN_CHALLENGE`: this server doesn't host the challenge type.
            `INVALID_OPTIONS`: the options are invalid.
            `CHALLENGE_FAILED`: the challenge's script failed.
            `…`: any other code comes from the challenge."),
        (status = 429, description = "`TOO_MANY_SESSIONS`: too many sessions of this address haven't ended."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn create_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: Option<NewChallenge> = request.find_body()?;
    let (options, unlisted) = wanted.map_or((None, None), |wanted| (wanted.options, wanted.unlisted));
    let once = request.once_creating()?;
    arena.admit_session(request.address, once).await?;
    let create = Create {
        challenge: request.param("name").to_owned(),
        options: options.unwrap_or_default(),
        is_rated: true,
        is_unlisted: unlisted == Some(true),
        deal: None,
    };
    let respond = arena.ledger.charging(request.address, |written| {
        to_text(&view(written.session, Viewer::Creator).with_name(&written.challenge.metadata().name))
    });
    let created = arena.engine.create(create, once, respond).await?;
    Ok(answer(with_creator_key(&arena, created)?))
}

/// A new session with its creator's key.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSession)]
#[expect(dead_code, reason = "the type only describes responses")]
struct NewSession<'s> {
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
fn with_creator_key(arena: &Arena, mut stored: String) -> ApiResult<String> {
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    let id = serde_json::from_str(&stored).ok().and_then(|Created { id }| id.parse::<SessionId>().ok());
    let id =
        id.ok_or_else(|| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "the stored answer is damaged"))?;
    let brace = stored.pop();
    debug_assert_eq!(brace, Some('}'), "an answer to a creation is an object with fields");
    stored.push_str(&format!(r#","creatorKey":"{}"}}"#, arena.records.creator_key(id)));
    Ok(stored)
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
    Ok(answer(to_text(&Canceled { canceled: true })))
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
    Ok(answer(to_text(&Unlisted { unlisted: true })))
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
    let session = arena.engine.find_session(id).await?.ok_or_else(ApiError::challenge_not_found)?;
    by.record_audit(&arena, "invites", json!({ "session": id })).await?;
    Ok(answer(to_text(&FreeInvites { invites: free_invites(&session) })))
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
    Ok((by, id.ok_or_else(ApiError::challenge_not_found)?))
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
    // The audit has the address only.
    let caller = administrator_at(request.address);
    arena.engine.withdraw_session(caller, id, withdrawal(requester)).await.map_err(not_found)
}

pub(super) fn not_found(error: EngineError) -> ApiError {
    if matches!(error, EngineError::UnknownSession) { ApiError::challenge_not_found() } else { error.into() }
}
