//! A seat that a house bot has taken, over HTTP like any player.

use arena_engine::Environment;
use arena_identity::KeyPair;
use serde::Deserialize;

use crate::client::{Arena, CallError};

/// Waiting time of a long poll, in seconds. It is short, so that a server can stop its bots quickly.
pub const WAIT_S: u8 = 2;

/// The number of sessions in which a bot searches for its own.
const SEARCHED_SESSIONS: u32 = 100;

#[derive(Debug)]
pub struct TakenSeat {
    pub arena: Arena,
    pub session: String,
    /// The invite, which is the player's public name.
    pub invite: String,
}

#[derive(Debug, Deserialize)]
struct JoinedSession {
    #[serde(rename = "ChallengeID")]
    session: String,
    /// The session key, in authentication mode.
    #[serde(rename = "sessionKey")]
    key: Option<String>,
}

/// A page of the list of sessions.
#[derive(Deserialize)]
struct RecentSessions {
    challenges: Vec<RecentSession>,
}

#[derive(Deserialize)]
struct RecentSession {
    id: String,
    state: RecentState,
}

#[derive(Debug, Deserialize)]
pub struct RecentState {
    /// `open` while the session waits for players.
    pub status: String,
    /// The players' public names, by seat.
    pub players: Vec<String>,
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

    /// Returns the state of the seat's session; `None` if it isn't among the latest ones of its challenge.
    pub fn find_listed(&self, challenge: &str) -> Result<Option<RecentState>, CallError> {
        let page = self.arena.list(Some(challenge), None, Some(SEARCHED_SESSIONS), None)?;
        let RecentSessions { challenges } = page.read()?;
        Ok(challenges.into_iter().find(|listed| listed.id == self.session).map(|listed| listed.state))
    }

    fn of(arena: &Arena, invite: &str, JoinedSession { session, key }: JoinedSession) -> TakenSeat {
        TakenSeat { arena: arena.seen_by(invite).with_key(key), session, invite: invite.to_owned() }
    }
}
