//! `GET /api/invites/{invite}`: the session of an open invite. `POST /api/invites`: offer an invite to the public.

use arena_engine::EngineError;
use arena_model::{InviteCode, Viewer, view};
use axum::extract::State;
use axum::http::StatusCode;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::{Get, Post};

pub(crate) async fn find_invite(State(arena): State<Arena>, request: Get) -> ApiResult {
    let text = request.param("invite");
    let invite: InviteCode = text.parse().map_err(|_| unknown(text))?;
    let session = arena.engine.find_invited(invite).await?.ok_or_else(|| unknown(text))?;
    if session.seat_of(invite).is_some() || session.announced.contains(&invite) {
        return Err(used(text));
    }
    Ok(json(to_text(&view(&session, Viewer::Holder(invite)))))
}

pub(crate) async fn announce_invite(State(arena): State<Arena>, request: Post) -> ApiResult {
    let text = request.fields()?.text("inviteId")?;
    let invite: InviteCode = text.parse().map_err(|_| unknown(text))?;
    let respond = Box::new(|_: &arena_engine::Written<'_>| r#"{"success":true}"#.to_owned());
    match arena.engine.announce(invite, request.once_for_anybody(&arena)?, respond).await {
        Ok(body) => Ok(json(body)),
        Err(EngineError::UnknownInvite(_)) => Err(unknown(text)),
        Err(EngineError::InviteUsed(_)) => Err(used(text)),
        Err(error) => Err(error.into()),
    }
}

fn unknown(invite: &str) -> ApiError {
    ApiError::not_found("INVITE_NOT_FOUND", format!("Challenge not found for invite: {invite}"))
}

fn used(invite: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "INVITE_ALREADY_USED", format!("Invite already used: {invite}"))
}
