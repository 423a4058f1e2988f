//! `POST /api/sessions/{id}/fork`, `…/cancel` and `…/unlist`, `GET /api/sessions/{id}/invites`: the rights of a session's
//! creator and of the administrator. The answer to the creation contains the creator's key.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Administrator, EngineError, Fork, Requester, Withdrawal};
use arena_model::{InviteCode, Seat, Session, SessionId, SessionView, Status};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::authority::Authority;
use crate::error::{ApiError, ApiResult};
use crate::ledger::bytes_of;
use crate::openapi::CreationKey;
use crate::records::RecordFailure;
use crate::records::forks::{ForkFailure, WantedFork};
use crate::request::{Get, Post};

/// The number of forks that are made at the same time. Each plays a game again, with the whole record in memory.
pub(crate) const FORKS_AT_ONCE: usize = 2;

/// Maximum time that a request waits for its turn to make a fork.
const FORK_WAIT: Duration = Duration::from_secs(10);

/// A new session with its creator's key.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSession)]
#[expect(dead_code, reason = "the type only describes responses")]
pub(super) struct NewSession<'s> {
    #[serde(flatten)]
    session: SessionView<'s>,
    /// The creator's key, which authorizes its holder as a bearer token to cancel, unlist and fork the session. Only this
    /// response contains it.
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
    let id = id.ok_or_else(damaged)?;
    let brace = answer.pop();
    debug_assert_eq!(brace, Some('}'), "an answer to a creation is an object with fields");
    answer.push_str(&format!(r#","creatorKey":"{}"}}"#, arena.records.creator_key(id)));
    Ok(answer)
}

fn damaged() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "the stored answer is damaged")
}

/// A fork of a session.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "at": 4 }))]
struct ForkRequest {
    /// The number of the last event that the fork shares with the original, as in the original's record. All players must
    /// have joined, and the game must not be over.
    #[schema(minimum = 1)]
    at: u64,
    /// True for other random numbers after the event. By default, the fork continues with those of the original.
    #[schema(required = false)]
    reseed: Option<bool>,
}

/// The fork of a session. It is active: its players act at once, without a join.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ForkedSession {
    /// The fork's id.
    #[schema(example = "018f6b2e-0000-7000-8000-00000000abcd")]
    id: String,
    /// The original's id.
    #[schema(example = "018f6b2e-0000-7000-8000-00000000abce")]
    of: String,
    /// The number of the last common event.
    at: u64,
    /// True if the fork has other random numbers after the event.
    reseeded: bool,
    /// The new invites of the players by seat. Each is the name of its player.
    #[schema(example = json!(["inv_018f6b2e-0000-7000-8000-00000000abcd"]))]
    players: Vec<String>,
    /// The session keys by seat, which identify the players' requests. Absent where players don't sign.
    // The stored response has no keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    session_keys: Option<Vec<String>>,
    /// The key of the fork's creator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, pattern = "^o_[0-9a-f]{64}$")]
    creator_key: Option<String>,
}

/// Continues an ended session from one of its events, as a new session.
///
/// The fork has the same past and new invites for all seats. Contents name the players by their new invites. Its times
/// are shifted, so that the last common event is now, and its deadlines run at once. It is unlisted and counts on no board.
/// Its record names the original. If the original's past contains private chat that isn't public, only an administrator
/// can fork it. A fork counts as 20 requests against the limit of the caller's address.
#[utoipa::path(post, path = "/api/sessions/{id}/fork", tag = "records", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"), CreationKey),
    request_body = ForkRequest,
    responses((status = 200, body = ForkedSession, description = "The fork."),
        (status = 400, description = "`UNKNOWN_CHALLENGE`: this server doesn't host the challenge type."),
        (status = 403, description = "`PRIVATE_CHAT`: the past contains private chat, so only an administrator can fork it."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 409, description = "
            `CANNOT_FORK`: the session can't be continued from this event.
            `SCRIPT_MISSING`: the session uses a version of a script that this server doesn't have."),
        (status = 422, description = "`RECORD_TOO_LONG`: the session's messages have more than 128 MiB."),
        (status = 429, description = "`TOO_MANY_SESSIONS`: too many sessions of this address haven't ended."),
        (status = 503, description = "
            `SERVER_BUSY`: the server is making other forks.
            `LOG_NOT_READY`: the server is still reading its log."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn fork_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let (by, id) = authorize(&arena, &request)?;
    let ForkRequest { at, reseed } = request.body()?;
    let is_reseeded = reseed == Some(true);
    request.check_unguessable()?;
    let once = request.once(&format!("fork {id} {}", by.scope(request.address)));
    if let Some(answer) = arena.engine.find_answer(once).await? {
        return forked(&arena, &answer);
    }
    let sees_private_chat = matches!(by, Authority::Administrator(_)) || arena.settings.sessions.reveal_chat;
    let wanted = WantedFork { of: id, at, is_reseeded, sees_private_chat };
    arena.rates.admit_fork(request.address)?;
    arena.admit_session(request.address, None).await?;
    let fork = match make_fork(&arena, wanted).await? {
        Ok(fork) => fork,
        Err(ForkFailure::Engine(error) | ForkFailure::Record(RecordFailure::Engine(error))) => {
            return Err(not_found(error));
        }
        Err(ForkFailure::Record(RecordFailure::Starting)) => return Err(super::log::starting()),
        Err(ForkFailure::Record(error)) => {
            tracing::error!(%error, session = %id, "cannot write the record of a session to fork: {error}");
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "cannot write the record"));
        }
        Err(error @ ForkFailure::Impossible(_)) => {
            return Err(ApiError::new(StatusCode::CONFLICT, "CANNOT_FORK", format!("cannot fork: {error}")));
        }
        Err(error @ ForkFailure::NoEvent(_)) => return Err(ApiError::bad_request("INVALID_FIELD", error.to_string())),
        Err(error @ ForkFailure::PrivateChat(_)) => {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "PRIVATE_CHAT", error.to_string()));
        }
    };
    by.record_audit(&arena, "fork", json!({ "session": id, "fork": fork.session.facts.id, "at": at })).await?;
    let respond = arena.charging(request.address, move |written| {
        let session = written.session;
        to_text(&ForkedSession {
            id: session.facts.id.to_string(),
            of: id.to_string(),
            at,
            reseeded: is_reseeded,
            players: session.seats.iter().map(|occupant| occupant.invite.to_string()).collect(),
            session_keys: None,
            creator_key: None,
        })
    });
    // The past of a fork isn't among the messages that the fork itself writes.
    let past = bytes_of(&fork.session, &fork.messages);
    let fork_id = fork.session.facts.id;
    let answer = arena.engine.fork(fork, once, respond).await?;
    arena.ledger.charge(request.address, past);
    arena.ledger.note_session(request.address, fork_id);
    forked(&arena, &answer)
}

/// Makes a fork when it is this request's turn.
///
/// # Errors
/// 503 if other forks take too long.
async fn make_fork(arena: &Arena, wanted: WantedFork) -> ApiResult<Result<Fork, ForkFailure>> {
    let place = Arc::clone(&arena.fork_places).acquire_owned();
    let Ok(Ok(place)) = tokio::time::timeout(FORK_WAIT, place).await else {
        return Err(ApiError::busy("the server is making other forks"));
    };
    let arena = arena.clone();
    // The work continues if the client closes the connection, so a task keeps the place until the work is done.
    let work = tokio::spawn(async move {
        let _place = place;
        arena.records.follow_log(&arena).await;
        arena.records.make_fork(&arena.engine, wanted).await
    });
    work.await.map_err(|error| {
        tracing::error!(%error, session = %wanted.of, "cannot make a fork: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "cannot make the fork")
    })
}

/// Adds the keys to the stored answer to a fork.
fn forked(arena: &Arena, answer: &str) -> ApiResult {
    let mut fork: ForkedSession = serde_json::from_str(answer).map_err(|_| damaged())?;
    let id: SessionId = fork.id.parse().map_err(|_| damaged())?;
    fork.session_keys = arena.auth.as_ref().map(|auth| {
        let key = |seat| auth.secret.session_key(id, Seat(seat)).reveal();
        (0..fork.players.len()).map(key).collect()
    });
    fork.creator_key = Some(arena.records.creator_key(id));
    Ok(json(to_text(&fork)))
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
