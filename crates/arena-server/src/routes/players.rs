//! `GET /api/players/{invite}`: the session of a player, for programs that return to a seat.

use arena_model::{InviteCode, SessionView, Viewer};
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Get;

use super::list::view_of;

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
