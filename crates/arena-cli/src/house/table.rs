//! Plays a bot's seat in a board game over HTTP like any player.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_games::bots::{BotGame, HouseBot};
use arena_wire::Messages;

use super::seat::{TakenSeat, WAIT_S};
use crate::client::{CallError, Read};
use crate::play::Said;

/// The maximum time without a new message. People may think long or leave; the server's own deadline comes earlier.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The settings for playing a seat.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// The pause before a move, so that people can follow.
    pub pace: Duration,
    /// The flag that is set when the server stops.
    pub stop: &'a AtomicBool,
}

/// Plays a seat until the game is over or `stop` is set.
pub fn play(seat: &TakenSeat, player: &'static HouseBot, manner: Manner<'_>) -> Result<(), CallError> {
    let TakenSeat { arena, session, invite } = seat;
    let mut mind = BotGame::of(player);
    let (mut index, mut until) = (1, Instant::now() + IDLE_TIMEOUT);
    while !manner.stop.load(Ordering::Relaxed) && Instant::now() < until {
        let read = Read { index: Some(index), wait: Some(WAIT_S) };
        let Messages { messages, .. } = arena.operator_messages(session, read)?.read()?;
        let mut asked = None;
        for message in &messages {
            match Said::parse(&message.content).filter(|_| message.from == "operator") {
                Some(Said::State(state)) => asked = Some(state).filter(|state| state.asks(invite)),
                Some(Said::Start { config, .. }) => mind.learn(config),
                Some(Said::Result { .. }) => return Ok(()),
                // A later message from this seat to the operator has answered the state.
                _ if message.from == *invite => asked = None,
                _ if message.content.starts_with("Game ended.") => return Ok(()),
                _ => {}
            }
            (index, until) = (message.index + 1, Instant::now() + IDLE_TIMEOUT);
        }
        let Some(state) = asked else { continue };
        thread::sleep(manner.pace);
        let Some(action) = mind.decide(invite, &state.world_state) else { continue };
        match arena.act(session, player.method, &action) {
            // The server may refuse a move that the game no longer needs, for example after the opponent's resignation.
            Ok(_) | Err(CallError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
