//! Taking a seat, and returning to it.

use arena_players::http::{Arena, CallError, HttpSeat, OUTAGE, way_back};
use arena_wire::Joined;

use crate::client::{JoinArgs, join};
use crate::exit::{Exit, Failure};
use crate::output::note;

/// Takes the seat of an invite, and prints the command to return to it.
///
/// # Errors
/// If the invite doesn't exist or is used.
pub fn take(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<HttpSeat, Failure> {
    let joined: Joined<'_> = join(arena, invite, args)?.map_err(|error| advise(error, invite))?.read()?;
    // The command to return is printed at once, so that the user can recover from any later failure.
    note(&format!("the seat is yours; to return to it: {}", way_back(invite, joined.key.as_deref())));
    Ok(HttpSeat::of_join(&arena.clone().with_retries_for(OUTAGE), invite, joined)?)
}

/// Returns to the seat that was taken with `invite`. `arena` is the client of that player.
///
/// # Errors
/// If no session has this player, or the server requires a key and the client has none.
pub fn find(arena: &Arena, invite: &str) -> Result<HttpSeat, Failure> {
    let Some(seat) = HttpSeat::find(arena, invite)? else {
        let sentence = format!(
            "no session has the player {invite}; to take a new seat, use \"arena play {invite}\" without --from"
        );
        return Err(Failure::new(Exit::Refused, sentence));
    };
    if arena.lacks_key() {
        let sentence = "this server requires keys: give --auth KEY with the session key from your join";
        return Err(Failure::usage(sentence));
    }
    Ok(seat)
}

/// Adds advice to the error of a failed join.
fn advise(error: CallError, invite: &str) -> Failure {
    let is_used = matches!(&error, CallError::Refused { code: Some(code), .. } if code == "INVITE_ALREADY_USED");
    match is_used {
        true => Failure::new(
            Exit::Refused,
            format_args!("{error}; if you used it, return to your seat with: arena play --from {invite}"),
        ),
        false => error.into(),
    }
}
