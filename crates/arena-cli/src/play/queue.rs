//! Waits in a challenge's queue until an opponent comes, and returns the invite of the seat.

use std::sync::atomic::{AtomicBool, Ordering};

use arena_players::http::{Arena, CallError};
use arena_wire::QueuePlace;

use crate::exit::{Exit, Failure};
use crate::output::note;

/// Waiting time of a long poll, in seconds. It is short, so that an interruption takes effect soon.
const WAIT_S: u8 = 2;

/// Waits for opponents in `challenge`, and returns the own invite. House bots may step in after `house_after` seconds.
/// Leaves the queue if `called_off` is set.
///
/// # Errors
/// If the server is unreachable or refuses, or the wait was interrupted.
pub fn wait_for_invite(
    arena: &Arena,
    challenge: &str,
    house_after: Option<u64>,
    called_off: &AtomicBool,
) -> Result<String, Failure> {
    let mut place: QueuePlace = arena.join_queue(challenge, house_after)?.read()?;
    if place.invite.is_none() {
        note(&format!("waiting for an opponent in {challenge}; Ctrl-C leaves the queue"));
    }
    loop {
        if let Some(invite) = place.invite {
            return Ok(invite);
        }
        if called_off.load(Ordering::Relaxed) {
            return match arena.leave_queue(challenge, &place.ticket) {
                // A ticket that was dropped has left the queue, too.
                Ok(_) | Err(CallError::Refused { status: 404, .. }) => {
                    Err(Failure::new(Exit::Interrupted, "interrupted; you have left the queue"))
                }
                Err(error) => Err(error.into()),
            };
        }
        place = arena.poll_ticket(challenge, &place.ticket, WAIT_S)?.read()?;
    }
}
