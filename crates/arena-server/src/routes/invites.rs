//! `GET /api/invites/{invite}`: the session of an open invite. `POST /api/invites`: offer an invite to the public.

use arena_engine::EngineError;
use arena_model::{InviteCode, SessionView, Status, Viewer, view};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::fields::Filled;
use crate::openapi::{OnceKey, Sender};
use crate::request::{Get, Post};

/// The session of an open invite.
#[utoipa::path(get, path = "/api/invites/{invite}", tag = "challenges",
    params(("invite" = String, Path, description = "The invite.", example = "inv_018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = SessionView, description = "As a stranger sees it, and this invite."),
        (status = 404, description = "`INVITE_NOT_FOUND`: there is no such invite."),
        (status = 409, description = "`INVITE_ALREADY_USED`: its player has joined, or it has been offered to the public.")))]
pub(crate) async fn find_invite(State(arena): State<Arena>, request: Get) -> ApiResult {
    let text = request.param("invite");
    let invite: InviteCode = text.parse().map_err(|_| unknown(text))?;
    let session = arena.engine.find_invited(invite).await?.ok_or_else(|| unknown(text))?;
    if session.status() != Status::Open || session.seat_of(invite).is_some() || session.announced.contains(&invite) {
        return Err(used(text));
    }
    Ok(json(to_text(&view(&session, Viewer::Holder(invite)))))
}

/// Which invite to offer.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "inviteId": "inv_018f6b2e-0000-7000-8000-00000000abcd" }))]
struct Offer {
    #[schema(value_type = String, min_length = 1)]
    invite_id: Filled,
}

/// It was offered.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "success": true }))]
struct Offered {
    success: bool,
}

/// Offer an invite to whoever wants to play.
///
/// It is announced on the public channel `invites`.
#[utoipa::path(post, path = "/api/invites", tag = "challenges", params(Sender, OnceKey), request_body = Offer,
    responses((status = 200, body = Offered, description = "It is announced."),
        (status = 404, description = "`INVITE_NOT_FOUND`: there is no such invite."),
        (status = 409, description = "`INVITE_ALREADY_USED`: its player has joined, or it has been offered before.")))]
pub(crate) async fn announce_invite(State(arena): State<Arena>, request: Post) -> ApiResult {
    let Offer { invite_id: Filled(text) } = request.body()?;
    let invite: InviteCode = text.parse().map_err(|_| unknown(&text))?;
    let respond = Box::new(|_: &arena_engine::Written<'_>| to_text(&Offered { success: true }));
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
