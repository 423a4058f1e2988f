//! A seat in a session and its player's actions. A player takes the seat with an invite, or returns to a seat taken
//! before.

use std::collections::BTreeSet;
use std::fmt;

use arena_house::Step;
use arena_model::ChallengeMetadata;
use arena_wire::{Joined, Message, Messages, Session, SessionPage, SessionState};
use serde::Serialize;
use serde_json::{Value, json};

use super::client::{Arena, CallError, HttpAnswer, Identity, Read};
use super::{ChannelKind, OUTAGE};

/// The lists that are searched for a session on servers that don't know players: the status filter and the number of
/// pages of each. Lists begin with the newest session.
const LISTS: [(Option<&str>, u64); 3] = [(None, 3), (Some("active"), 20), (Some("open"), 20)];

/// Number of sessions on a page, which is the maximum that servers allow.
const PAGE: u32 = 100;

#[derive(Debug, Clone)]
pub struct HttpSeat {
    /// The client of this seat.
    pub arena: Arena,
    pub session: String,
    /// The challenge type, such as `psi`. The challenge's name if the server doesn't find the session.
    pub challenge: String,
    pub metadata: ChallengeMetadata,
    /// The player's public name: the invite.
    pub you: String,
    /// The public names of the joined players, by seat.
    players: Vec<String>,
    /// Names that belonged to no known player when they first appeared. Each of them causes only one request for the
    /// list of players.
    strangers: BTreeSet<String>,
    /// True until a search of the server's lists fails to find the session.
    is_listed: bool,
    /// The command to return to the seat.
    back: String,
}

/// The server's refusal of an action, which had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The stable code for programs.
    pub code: Option<String>,
    pub error: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{} ({code})", self.error),
            None => f.write_str(&self.error),
        }
    }
}

impl HttpSeat {
    /// Takes the seat of an invite.
    ///
    /// # Errors
    /// If the invite doesn't exist or is used, or a request fails.
    pub fn take(arena: &Arena, invite: &str, identity: Identity<'_>) -> Result<HttpSeat, CallError> {
        HttpSeat::of_join(arena, invite, arena.join(invite, identity)?.read()?)
    }

    /// Creates the seat from the answer to a join.
    ///
    /// # Errors
    /// If a request fails.
    pub fn of_join(arena: &Arena, invite: &str, joined: Joined<'_>) -> Result<HttpSeat, CallError> {
        let Joined { session, info, key } = joined;
        let back = way_back(invite, key.as_deref());
        let arena = arena.seen_by(invite).with_key(key);
        let metadata = info.metadata.into_owned();
        // A session can be played even if no list contains it.
        let found = find(&arena, invite, None, |listed| listed.id == session)?;
        let is_listed = found.is_some();
        let (challenge, players) = found
            .map_or_else(|| (metadata.name.clone(), Vec::new()), |found| (found.challenge_type, found.state.players));
        let you = invite.to_owned();
        Ok(HttpSeat { arena, session, challenge, metadata, you, players, strangers: BTreeSet::new(), is_listed, back })
    }

    /// Returns to the seat that was taken with `invite`; `None` if no session has this player. `arena` is the client of
    /// that player. The seat's client retries requests while the server is unreachable.
    ///
    /// # Errors
    /// If a request fails.
    pub fn find(arena: &Arena, invite: &str) -> Result<Option<HttpSeat>, CallError> {
        let is_player = |listed: &Session| listed.state.players.iter().any(|player| player == invite);
        let Some(Session { id, challenge_type, state, .. }) = find(arena, invite, None, is_player)? else {
            return Ok(None);
        };
        Ok(Some(HttpSeat {
            arena: arena.clone().with_retries_for(OUTAGE),
            session: id,
            metadata: arena.metadata(Some(&challenge_type))?.read()?,
            challenge: challenge_type,
            you: invite.to_owned(),
            players: state.players,
            strangers: BTreeSet::new(),
            is_listed: true,
            // The command contains a placeholder instead of the key, since the output may be logged.
            back: way_back(invite, arena.has_key().then_some("KEY")),
        }))
    }

    /// Returns the messages of a channel from the index `from` on. Waits for a message for at most `wait_s` seconds.
    ///
    /// # Errors
    /// If the request fails.
    pub fn messages(&self, kind: ChannelKind, from: u64, wait_s: u8) -> Result<Vec<Message>, CallError> {
        let read = Read { index: Some(from), wait: Some(wait_s) };
        let Messages { messages, .. } = self.arena.messages(kind, &self.session, read)?.read()?;
        Ok(messages)
    }

    /// Performs a step. Returns the refusal if the server refused it.
    ///
    /// # Errors
    /// As [`HttpSeat::act`].
    pub fn perform(&self, step: &Step) -> Result<Option<Refusal>, CallError> {
        match step {
            Step::Say { content, to } => self.say(content, to.as_deref()),
            Step::Act { method, content } => self.act(method, content),
        }
    }

    /// Calls a method of the challenge. Returns the refusal if the server refused the call.
    ///
    /// # Errors
    /// If the server is unreachable for a long time, or fails.
    pub fn act(&self, method: &str, content: &str) -> Result<Option<Refusal>, CallError> {
        refusal(self.arena.act(&self.session, method, content))
    }

    /// Sends a message to all players, or to the player with this public name.
    ///
    /// # Errors
    /// As [`HttpSeat::act`].
    pub fn say(&self, text: &str, to: Option<&str>) -> Result<Option<Refusal>, CallError> {
        refusal(self.arena.say(&self.session, text, to))
    }

    pub fn has_method(&self, name: &str) -> bool {
        self.metadata.methods.iter().any(|method| method.name == name)
    }

    /// Resigns if the challenge has a method for it. Returns true if the server accepted the resignation.
    pub fn resign(&self, reason: &str) -> Result<bool, CallError> {
        // The server refuses the resignation of a player who is already out of the game.
        Ok(self.has_method("resign") && self.act("resign", reason)?.is_none())
    }

    pub fn back(&self) -> &str {
        &self.back
    }

    /// Returns the seat's number, from 0; `None` while it is unknown.
    pub fn number(&self) -> Option<usize> {
        self.players.iter().position(|player| *player == self.you)
    }

    /// Returns the players' public names by seat; `None` for seats without a player.
    pub fn players(&self) -> Vec<Option<String>> {
        let seats = self.metadata.players.max(self.players.len());
        (0..seats).map(|seat| self.players.get(seat).cloned()).collect()
    }

    pub fn joined(&self) -> &[String] {
        &self.players
    }

    /// Records a public name. If the name is new, requests the list of players.
    pub fn meet(&mut self, id: &str) -> Result<(), CallError> {
        let is_known = id == "operator" || self.players.iter().any(|player| player == id);
        match is_known || !self.strangers.insert(id.to_owned()) {
            true => Ok(()),
            false => self.look_who_plays(),
        }
    }

    /// Requests the list of players unless all of them are known.
    pub fn look_for_others(&mut self) -> Result<(), CallError> {
        match self.players.len() < self.metadata.players {
            true => self.look_who_plays(),
            false => Ok(()),
        }
    }

    fn look_who_plays(&mut self) -> Result<(), CallError> {
        if !self.is_listed {
            return Ok(());
        }
        match self.state()? {
            Some(state) => self.players = state.players,
            // The program doesn't search again, since repeated searches of all lists would burden the server.
            None => self.is_listed = false,
        }
        Ok(())
    }

    /// Requests the state of the session; `None` if the server doesn't find the session.
    ///
    /// # Errors
    /// If a request fails.
    pub fn state(&self) -> Result<Option<SessionState>, CallError> {
        let found = find(&self.arena, &self.you, Some(&self.challenge), |listed| listed.id == self.session)?;
        Ok(found.map(|found| found.state))
    }

    /// Returns a player's name for people: `Player 2`, `Player 1 (you)`.
    pub fn name_of(&self, id: &str) -> String {
        let mark = if id == self.you { " (you)" } else { "" };
        match self.players.iter().position(|player| player == id) {
            Some(seat) => format!("Player {}{mark}", seat + 1),
            None if id == self.you => "you".to_owned(),
            None => id.to_owned(),
        }
    }

    /// Finds the public name of a player. `name` is the player's number, `Player 2`, or the public name itself.
    pub fn find_player(&self, name: &str) -> Option<&str> {
        let number = name.trim().strip_prefix("Player").unwrap_or(name).trim();
        let by_number = number.parse::<usize>().ok().and_then(|number| self.players.get(number.checked_sub(1)?));
        by_number.or_else(|| self.players.iter().find(|player| *player == name)).map(String::as_str)
    }

    /// Returns the players' public names by seat: those in the result, or else the names known before the end.
    pub fn players_at<'e>(&'e self, ending: &'e SessionState) -> &'e [String] {
        if ending.players.is_empty() { &self.players } else { &ending.players }
    }

    pub fn result(&self, ending: &SessionState) -> Value {
        let players = self.players_at(ending);
        json!({
            "session": self.session,
            "challenge": self.challenge,
            "you": self.you,
            "seat": players.iter().position(|player| *player == self.you),
            "players": players,
            "scores": ending.scores,
            "abandoned": ending.abandoned,
        })
    }
}

/// Returns the command to return to a seat.
pub fn way_back(invite: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(" --auth {key}")).unwrap_or_default();
    format!("arena play --from {invite}{key}")
}

/// Converts a refusal into a value.
fn refusal(called: Result<HttpAnswer, CallError>) -> Result<Option<Refusal>, CallError> {
    match called {
        Ok(_) => Ok(None),
        Err(CallError::Refused { status, error, code }) if status != 401 => Ok(Some(Refusal { code, error })),
        Err(error) => Err(error),
    }
}

/// Finds the session of the player `you`. Other servers may not know players, so the newest session that satisfies
/// `is_it` in the searched lists is found too.
fn find(
    arena: &Arena,
    you: &str,
    challenge: Option<&str>,
    is_it: impl Fn(&Session) -> bool,
) -> Result<Option<Session>, CallError> {
    match arena.find_player(you) {
        Ok(answer) => return Ok(Some(answer.read()?)),
        Err(CallError::Refused { code: Some(code), .. }) if code == "PLAYER_NOT_FOUND" => return Ok(None),
        Err(CallError::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    for (status, pages) in LISTS {
        for page in 0..pages {
            let offset = page * u64::from(PAGE);
            let SessionPage { challenges } = arena.list(challenge, status, Some(PAGE), Some(offset))?.read()?;
            let is_last = challenges.len() < PAGE as usize;
            if let Some(found) = challenges.into_iter().find(&is_it) {
                return Ok(Some(found));
            }
            if is_last {
                break;
            }
        }
    }
    Ok(None)
}
