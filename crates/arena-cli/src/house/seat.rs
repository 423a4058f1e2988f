//! A seat that a house bot has taken, over HTTP like any player.

use arena_engine::Environment;
use arena_identity::KeyPair;
use serde::Deserialize;

use crate::client::{Arena, CallError};

/// Waiting time of a long poll, in seconds. It is short, so that a server can stop its bots quickly.
pub const WAIT_S: u8 = 2;

/// A bot's seat.
#[derive(Debug)]
pub struct TakenSeat {
    /// The client of this player.
    pub arena: Arena,
    /// The id of the seat's session.
    pub session: String,
    /// The invite, which is the player's public name.
    pub invite: String,
}

/// The answer to a join.
#[derive(Debug, Deserialize)]
struct JoinedSession {
    #[serde(rename = "ChallengeID")]
    session: String,
    /// The session key, in authentication mode.
    #[serde(rename = "sessionKey")]
    key: Option<String>,
}

impl TakenSeat {
    /// Takes the seat of `invite` under a name, in standalone mode.
    pub fn take(arena: &Arena, invite: &str, name: &str) -> Result<TakenSeat, CallError> {
        Ok(TakenSeat::of(arena, invite, arena.join(invite, Some(name))?.read()?))
    }

    /// Takes the seat of `invite` as the owner of a key, in authentication mode.
    pub fn take_signed(arena: &Arena, invite: &str, pair: &KeyPair) -> Result<TakenSeat, CallError> {
        let code = invite.parse().map_err(|error| CallError::Request(format!("{invite} is {error}")))?;
        let joined = arena.join_signed(code, pair, Environment::system().now())?.read()?;
        Ok(TakenSeat::of(arena, invite, joined))
    }

    fn of(arena: &Arena, invite: &str, JoinedSession { session, key }: JoinedSession) -> TakenSeat {
        TakenSeat { arena: arena.seen_by(invite).with_key(key), session, invite: invite.to_owned() }
    }
}
