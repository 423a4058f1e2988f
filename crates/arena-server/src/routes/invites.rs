//! `GET /api/invites/{invite}`: the session of an open invite. `POST /api/invites`: announces an invite to the public.
//! `GET /api/players/{invite}`: the session of a player, for programs that return to a seat.

use arena_engine::{EngineError, Respond};
use arena_model::{InviteCode, SessionView, Status, Viewer};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::view_of;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{OnceKey, Sender};
use crate::request::{Filled, Get, Post};

/// Returns the session of an open invite.
#[utoipa::path(get, path = "/api/invites/{invite}", tag = "challenges",
    params(("invite" = String, Path, description = "The invite's code.", example = "inv_018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = SessionView, description = "The public view of the session, with this invite."),
        (status = 404, description = "`INVITE_NOT_FOUND`: the invite doesn't exist."),
        (status = 409, description = "`INVITE_ALREADY_USED`: a player has joined with the invite, or it has been announced.")))]
pub(crate) async fn find_invite(State(arena): State<Arena>, request: Get) -> ApiResult {
    let text = request.param("invite");
    let invite: InviteCode = text.parse().map_err(|_| unknown(text))?;
    let session = arena.engine.find_invited(invite).await?.ok_or_else(|| unknown(text))?;
    if session.status() != Status::Open || session.seat_of(invite).is_some() || session.announced.contains(&invite) {
        return Err(used(text));
    }
    Ok(json(to_text(&view_of(&session, Viewer::Holder(invite), &arena.engine.challenges()))))
}

/// Returns the session in which a player has this public name.
///
/// Unlisted sessions are found too.
#[utoipa::path(get, path = "/api/players/{invite}", tag = "challenges",
    params(("invite" = String, Path, description = "The public name of the player: the invite of the seat.", example = "inv_018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = SessionView, description = "The public view of the session."),
        (status = 404, description = "`PLAYER_NOT_FOUND`: no player has joined with this invite.")))]
pub(crate) async fn find_player(State(arena): State<Arena>, request: Get) -> ApiResult {
    let text = request.param("invite");
    let unknown = || ApiError::not_found("PLAYER_NOT_FOUND", format!("No session has the player {text}"));
    let invite: InviteCode = text.parse().map_err(|_| unknown())?;
    let session = arena.engine.find_invited(invite).await?.filter(|session| session.seat_of(invite).is_some());
    let session = session.ok_or_else(unknown)?;
    Ok(json(to_text(&view_of(&session, Viewer::Nobody, &arena.engine.challenges()))))
}

/// The invite to announce.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "inviteId": "inv_018f6b2e-0000-7000-8000-00000000abcd" }))]
struct Offer {
    #[schema(value_type = String, min_length = 1)]
    invite_id: Filled,
}

/// The invite was announced.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "success": true }))]
struct Offered {
    success: bool,
}

/// Announces an invite to the public.
///
/// The announcement appears on the public channel `invites`. The first player to use the invite takes the seat.
#[utoipa::path(post, path = "/api/invites", tag = "challenges", params(Sender, OnceKey), request_body = Offer,
    responses((status = 200, body = Offered, description = "The invite was announced."),
        (status = 404, description = "`INVITE_NOT_FOUND`: the invite doesn't exist."),
        (status = 409, description = "`INVITE_ALREADY_USED`: a player has joined with the invite, or it has been announced before.")))]
pub(crate) async fn announce_invite(State(arena): State<Arena>, request: Post) -> ApiResult {
    let Offer { invite_id: Filled(text) } = request.body()?;
    let invite: InviteCode = text.parse().map_err(|_| unknown(&text))?;
    let respond = Respond::new(|_| to_text(&Offered { success: true }));
    let once = request.once_about(&invite.to_string());
    match arena.engine.announce(invite, once, respond).await {
        Ok(body) => Ok(json(body)),
        Err(EngineError::UnknownInvite(_)) => Err(unknown(&text)),
        Err(EngineError::InviteUsed(_)) => Err(used(&text)),
        Err(error) => Err(error.into()),
    }
}

fn unknown(invite: &str) -> ApiError {
    ApiError::not_found("INVITE_NOT_FOUND", format!("Challenge not found for invite: {invite}"))
}

fn used(invite: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "INVITE_ALREADY_USED", format!("Invite already used: {invite}"))
}
