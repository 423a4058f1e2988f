//! A seat in a session and its player's actions. A player takes the seat with an invite, or returns to a seat taken
//! before. All kinds of player act through [`PlayerSeat`].

use std::collections::BTreeSet;
use std::fmt;

use arena_engine::Environment;
use arena_model::ChallengeMetadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::news::Ending;
use crate::args::JoinArgs;
use crate::client::{Arena, CallError};
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::note;

/// The time for which a server may be unreachable before the program gives up the seat.
pub const OUTAGE: std::time::Duration = std::time::Duration::from_secs(300);

/// The lists that are searched for a session on servers that don't know players: the status filter and the number of pages of each. Lists begin with the
/// newest session.
const LISTS: [(Option<&str>, u64); 3] = [(None, 3), (Some("active"), 20), (Some("open"), 20)];

/// Number of sessions on a page, which is the maximum that servers allow.
const PAGE: u32 = 100;

pub struct PlayerSeat {
    /// The client of this seat. It retries requests while the server is unreachable.
    pub arena: Arena,
    pub session: String,
    /// The challenge type, such as `psi`.
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

#[derive(Deserialize)]
struct JoinedSeat {
    #[serde(rename = "ChallengeID")]
    session: String,
    #[serde(rename = "ChallengeInfo")]
    metadata: ChallengeMetadata,
    #[serde(rename = "sessionKey")]
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    challenge_type: String,
    state: ListedState,
}

#[derive(Deserialize)]
struct ListedState {
    #[serde(default)]
    status: String,
    #[serde(default)]
    players: Vec<String>,
}

#[derive(Deserialize)]
struct SessionPage {
    challenges: Vec<Listed>,
}

impl PlayerSeat {
    /// Takes the seat of an invite, and prints the command to return to it.
    ///
    /// # Errors
    /// If the invite doesn't exist or is used.
    pub fn take(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<PlayerSeat, Failure> {
        let (known, joined) = join(arena, invite, args)?;
        // The command to return is printed at once, so that the user can recover from any later failure.
        note(&format!("the seat is yours; to return to it: {}", way_back(invite, joined.key.as_deref())));
        PlayerSeat::of(arena, invite, known, joined)
    }

    /// Takes the seat of an invite on a temporary server. No command to return is printed, since the server doesn't
    /// outlive the program.
    ///
    /// # Errors
    /// As [`PlayerSeat::take`].
    pub fn take_for_now(arena: &Arena, invite: &str) -> Result<PlayerSeat, Failure> {
        let (known, joined) = join(arena, invite, &JoinArgs { user_id: None, sign: None })?;
        PlayerSeat::of(arena, invite, known, joined)
    }

    fn of(arena: &Arena, invite: &str, known: Option<Listed>, joined: JoinedSeat) -> Result<PlayerSeat, Failure> {
        let JoinedSeat { session, metadata, key } = joined;
        let back = way_back(invite, key.as_deref());
        let arena = arena.seen_by(invite).with_key(key).with_retries_for(OUTAGE);
        let known = match known {
            Some(known) => Some(known),
            None => find(&arena, invite, None, |listed| listed.id == session)?,
        };
        // A session can be played even if no list contains it.
        let challenge = known.map_or_else(|| metadata.name.clone(), |known| known.challenge_type);
        let mut seat = PlayerSeat {
            arena,
            session,
            challenge,
            metadata,
            you: invite.to_owned(),
            players: Vec::new(),
            strangers: BTreeSet::new(),
            is_listed: true,
            back,
        };
        seat.look_who_plays()?;
        Ok(seat)
    }

    /// Returns to the seat that was taken with `invite`. `arena` is the client of that player.
    ///
    /// # Errors
    /// If no session has this player.
    pub fn take_up(arena: &Arena, invite: &str) -> Result<PlayerSeat, Failure> {
        let is_player = |listed: &Listed| listed.state.players.iter().any(|player| player == invite);
        let Some(listed) = find(arena, invite, None, is_player)? else {
            let sentence = format!(
                "no session has the player {invite}; to take a new seat, use \"arena play {invite}\" without --from"
            );
            return Err(Failure::new(Exit::Refused, sentence));
        };
        if arena.lacks_key() {
            let sentence = "this server requires keys: give --auth KEY with the session key from your join";
            return Err(Failure::new(Exit::Usage, sentence));
        }
        let metadata = arena.metadata(Some(&listed.challenge_type))?.read()?;
        Ok(PlayerSeat {
            arena: arena.clone().with_retries_for(OUTAGE),
            session: listed.id,
            challenge: listed.challenge_type,
            metadata,
            you: invite.to_owned(),
            players: listed.state.players,
            strangers: BTreeSet::new(),
            is_listed: true,
            // The command contains a placeholder instead of the key, since the output may be logged.
            back: way_back(invite, arena.has_key().then_some("KEY")),
        })
    }

    /// Calls a method of the challenge. Returns the refusal if the server refused the call.
    ///
    /// # Errors
    /// If the server is unreachable for a long time, or fails.
    pub fn act(&self, method: &str, content: &str) -> Result<Option<Refusal>, Failure> {
        refusal(self.arena.act(&self.session, method, content))
    }

    /// Sends a message to all players, or to the player with this public name.
    ///
    /// # Errors
    /// As [`PlayerSeat::act`].
    pub fn say(&self, text: &str, to: Option<&str>) -> Result<Option<Refusal>, Failure> {
        refusal(self.arena.say(&self.session, text, to))
    }

    pub fn has_method(&self, name: &str) -> bool {
        self.metadata.methods.iter().any(|method| method.name == name)
    }

    /// Resigns if the challenge has a method for it. Returns true if the server accepted the resignation.
    pub fn resign(&self, reason: &str) -> Result<bool, Failure> {
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
    pub fn meet(&mut self, id: &str) -> Result<(), Failure> {
        let is_known = id == "operator" || self.players.iter().any(|player| player == id);
        match is_known || !self.strangers.insert(id.to_owned()) {
            true => Ok(()),
            false => self.look_who_plays(),
        }
    }

    /// Requests the list of players unless all of them are known.
    pub fn look_for_others(&mut self) -> Result<(), Failure> {
        match self.players.len() < self.metadata.players {
            true => self.look_who_plays(),
            false => Ok(()),
        }
    }

    fn look_who_plays(&mut self) -> Result<(), Failure> {
        if !self.is_listed {
            return Ok(());
        }
        match self.find_again()? {
            Some(listed) => self.players = listed.state.players,
            // The program doesn't search again, since repeated searches of all lists would burden the server.
            None => self.is_listed = false,
        }
        Ok(())
    }

    /// Returns true if the server lists the session as ended.
    pub fn has_ended(&self) -> Result<bool, Failure> {
        Ok(self.find_again()?.is_some_and(|listed| listed.state.status == "ended"))
    }

    fn find_again(&self) -> Result<Option<Listed>, Failure> {
        find(&self.arena, &self.you, Some(&self.challenge), |listed| listed.id == self.session)
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
    pub fn players_at<'e>(&'e self, ending: &'e Ending) -> &'e [String] {
        if ending.players.is_empty() { &self.players } else { &ending.players }
    }

    pub fn result(&self, ending: &Ending) -> Value {
        let players = self.players_at(ending);
        serde_json::json!({
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

/// Returns the session's list entry from before the join, if there was one, and the response to the join.
fn join(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<(Option<Listed>, JoinedSeat), Failure> {
    let known = match arena.find_invite(invite) {
        Ok(answer) => Some(answer.read::<Listed>()?),
        // The server refuses an unknown or used invite. The join below reports the error.
        Err(CallError::Refused { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let joined = match &args.sign {
        None => arena.join(invite, args.user_id.as_deref()),
        Some(name) => {
            let pair = Keys::at_home()?.read(name.as_deref())?;
            let code =
                invite.parse().map_err(|error| Failure::new(Exit::Usage, format_args!("{invite} is {error}")))?;
            arena.join_signed(code, &pair, Environment::system().now())
        }
    };
    Ok((known, joined.map_err(|error| advise(error, invite))?.read()?))
}

fn way_back(invite: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(" --auth {key}")).unwrap_or_default();
    format!("arena play --from {invite}{key}")
}

/// Converts a refusal into a value, and other errors into failures.
fn refusal(called: Result<crate::client::Answer, CallError>) -> Result<Option<Refusal>, Failure> {
    match called {
        Ok(_) => Ok(None),
        Err(CallError::Refused { status, error, code }) if status != 401 => Ok(Some(Refusal { code, error })),
        Err(error) => Err(error.into()),
    }
}

/// Finds the session of the player `you`. Other servers may not know players, so the newest session that satisfies
/// `is_it` in the searched lists is found too.
fn find(
    arena: &Arena,
    you: &str,
    challenge: Option<&str>,
    is_it: impl Fn(&Listed) -> bool,
) -> Result<Option<Listed>, Failure> {
    match arena.find_player(you) {
        Ok(answer) => return Ok(Some(answer.read()?)),
        Err(CallError::Refused { code: Some(code), .. }) if code == "PLAYER_NOT_FOUND" => return Ok(None),
        Err(CallError::Refused { .. }) => {}
        Err(error) => return Err(error.into()),
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
