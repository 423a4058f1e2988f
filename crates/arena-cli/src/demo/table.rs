//! One seat of a game with a board: joins with its invite, and moves when it is asked, over HTTP as everybody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_games::bots::{Mind, Player};
use arena_wire::Messages;

use super::seat::{Joined, WAIT_S};
use crate::client::{Arena, CallError, Read};
use crate::play::Said;

/// How long a seat waits for the next thing to happen. People think, and go away; the arena's own deadline is sooner.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How a seat is played.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// Between being asked and answering, so that people can follow.
    pub pace: Duration,
    /// Raised when no more is to be played.
    pub stop: &'a AtomicBool,
}

/// Plays the seat of `invite` until the game is over or somebody says stop.
pub fn play(arena: &Arena, player: &'static Player, invite: &str, manner: Manner<'_>) -> Result<(), CallError> {
    let Joined { session } = arena.join(invite, Some(player.name))?.read()?;
    let arena = arena.seen_by(invite);
    let mut mind = Mind::of(player);
    let (mut index, mut until) = (1, Instant::now() + PATIENCE);
    while !manner.stop.load(Ordering::Relaxed) && Instant::now() < until {
        let read = Read { index: Some(index), wait: Some(WAIT_S) };
        let Messages { messages, .. } = arena.operator_messages(&session, read)?.read()?;
        let mut asked = None;
        for message in &messages {
            match Said::parse(&message.content).filter(|_| message.from == "operator") {
                Some(Said::State(state)) => asked = Some(state).filter(|state| state.asks(invite)),
                Some(Said::Result { .. }) => return Ok(()),
                // What this seat said to the operator was its answer.
                _ if message.from == invite => asked = None,
                _ if message.content.starts_with("Game ended.") => return Ok(()),
                _ => {}
            }
            (index, until) = (message.index + 1, Instant::now() + PATIENCE);
        }
        let Some(state) = asked else { continue };
        thread::sleep(manner.pace);
        let Some(action) = mind.decide(invite, &state.world_state) else { continue };
        match arena.act(&session, "move", &action) {
            // The game went on without it, as games do where the other resigns.
            Ok(_) | Err(CallError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
