//! A seat in a session: taken with an invite or taken up again, and what one does from it. Whoever plays there speaks through it.

use std::collections::BTreeSet;
use std::fmt;

use arena_engine::Environment;
use arena_model::ChallengeMetadata;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::news::Ending;
use crate::args::JoinArgs;
use crate::client::{Arena, CallError};
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::note;

/// For how long an arena may be away before a seat is given up.
pub const OUTAGE: std::time::Duration = std::time::Duration::from_secs(300);

/// The lists that are looked through for a session, and how many pages of each: the newest of all first.
const LISTS: [(Option<&str>, u64); 3] = [(None, 3), (Some("active"), 20), (Some("open"), 20)];

/// Sessions on a page: the most that arenas give.
const PAGE: u32 = 100;

/// A seat that is ours.
pub struct Seat {
    /// The arena in the eyes of this seat. Requests hold out while the arena is away.
    pub arena: Arena,
    /// The session.
    pub session: String,
    /// The challenge type, such as `psi`.
    pub challenge: String,
    /// Its rules.
    pub metadata: ChallengeMetadata,
    /// Our public name: the invite.
    pub you: String,
    /// The public names of those who have joined, in the order of their seats.
    players: Vec<String>,
    /// Names that were seen and don't belong to anybody who plays, as far as the arena tells.
    strangers: BTreeSet<String>,
    /// Whether the arena's lists show the session.
    is_listed: bool,
    /// The command that comes back to the seat.
    back: String,
}

/// The arena's no to something that a player did. Nothing has happened then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Stable, for programs.
    pub code: Option<String>,
    /// A sentence.
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
struct Joined {
    #[serde(rename = "ChallengeID")]
    session: String,
    #[serde(rename = "ChallengeInfo")]
    metadata: ChallengeMetadata,
    #[serde(rename = "sessionKey")]
    key: Option<String>,
}

/// A session as lists show it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    challenge_type: String,
    state: State,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    status: String,
    #[serde(default)]
    players: Vec<String>,
}

#[derive(Deserialize)]
struct Page {
    challenges: Vec<Listed>,
}

impl Seat {
    /// Takes the seat of an invite, and says how one comes back to it.
    ///
    /// # Errors
    /// When there is no such invite, or somebody has it.
    pub fn take(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<Seat, Failure> {
        let (known, joined) = join(arena, invite, args)?;
        // At once, since whatever goes wrong from here on can be made good by whoever knows this.
        note(&format!("the seat is yours; to come back to it: {}", way_back(invite, joined.key.as_deref())));
        Seat::of(arena, invite, known, joined)
    }

    /// Takes the seat of an invite in an arena that doesn't outlast this program, so that there is nothing to come back to.
    ///
    /// # Errors
    /// As [`Seat::take`].
    pub fn take_for_now(arena: &Arena, invite: &str) -> Result<Seat, Failure> {
        let (known, joined) = join(arena, invite, &JoinArgs { user_id: None, sign: None })?;
        Seat::of(arena, invite, known, joined)
    }

    fn of(arena: &Arena, invite: &str, known: Option<Listed>, joined: Joined) -> Result<Seat, Failure> {
        let Joined { session, metadata, key } = joined;
        let back = way_back(invite, key.as_deref());
        let arena = arena.seen_by(invite).with_key(key).holding_out(OUTAGE);
        let known = match known {
            Some(known) => Some(known),
            None => find(&arena, None, |listed| listed.id == session)?,
        };
        // A list that doesn't show the session is no reason not to play in it.
        let challenge = known.map_or_else(|| metadata.name.clone(), |known| known.challenge_type);
        let mut seat = Seat {
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

    /// Takes up a seat that we have taken before: that of the player whom `arena` speaks for.
    ///
    /// # Errors
    /// When no session shows such a player.
    pub fn take_up(arena: &Arena, invite: &str) -> Result<Seat, Failure> {
        let found = find(arena, None, |listed| listed.state.players.iter().any(|player| player == invite))?;
        let Some(listed) = found else {
            let sentence = format!(
                "no session shows {invite} among its players; without --from, \"arena play {invite}\" takes the seat of an invite"
            );
            return Err(Failure::new(Exit::Refused, sentence));
        };
        if arena.lacks_key() {
            let sentence =
                "this arena asks for keys: take the seat up with --auth KEY, the key that the join was answered with";
            return Err(Failure::new(Exit::Usage, sentence));
        }
        let metadata = arena.metadata(Some(&listed.challenge_type))?.read()?;
        Ok(Seat {
            arena: arena.clone().holding_out(OUTAGE),
            session: listed.id,
            challenge: listed.challenge_type,
            metadata,
            you: invite.to_owned(),
            players: listed.state.players,
            strangers: BTreeSet::new(),
            is_listed: true,
            // Its key is known to the caller, and need not stand in a log.
            back: way_back(invite, arena.has_key().then_some("KEY")),
        })
    }

    /// Does something by one of the challenge's methods. `Some`: the arena said no.
    ///
    /// # Errors
    /// When the arena can't be reached for a long time, or fails.
    pub fn act(&self, method: &str, content: &str) -> Result<Option<Refusal>, Failure> {
        refusal(self.arena.act(&self.session, method, content))
    }

    /// Says something to all, or to the player of this public name.
    ///
    /// # Errors
    /// As [`Seat::act`].
    pub fn say(&self, text: &str, to: Option<&str>) -> Result<Option<Refusal>, Failure> {
        refusal(self.arena.say(&self.session, text, to))
    }

    /// Tells the arena what a step of our play has cost, where it wants to know. `report` has the fields of the wire. Why it isn't
    /// taken, if it isn't: that is no reason to stop playing, and other arenas know of no such reports.
    pub fn report_usage(&self, report: &Map<String, Value>) -> Option<CallError> {
        self.arena.report_usage(&self.session, report).err()
    }

    /// Whether the challenge has a method of this name.
    pub fn has_method(&self, name: &str) -> bool {
        self.metadata.methods.iter().any(|method| method.name == name)
    }

    /// Gives up, where the challenge lets one. Tells whether it does.
    pub fn resign(&self, reason: &str) -> Result<bool, Failure> {
        // Refused is whoever is out of the game already.
        Ok(self.has_method("resign") && self.act("resign", reason)?.is_none())
    }

    /// The command that comes back to the seat.
    pub fn back(&self) -> &str {
        &self.back
    }

    /// Our seat, from 0, once it is known.
    pub fn number(&self) -> Option<usize> {
        self.players.iter().position(|player| *player == self.you)
    }

    /// The public names of the players, in the order of their seats; `None` for those who haven't joined yet.
    pub fn players(&self) -> Vec<Option<String>> {
        let seats = self.metadata.players.max(self.players.len());
        (0..seats).map(|seat| self.players.get(seat).cloned()).collect()
    }

    /// Takes notice of a public name that was seen, and asks who plays if it is new.
    pub fn meet(&mut self, id: &str) -> Result<(), Failure> {
        let is_known = id == "operator" || self.players.iter().any(|player| player == id);
        match is_known || !self.strangers.insert(id.to_owned()) {
            true => Ok(()),
            false => self.look_who_plays(),
        }
    }

    /// Asks who has joined, as long as somebody is missing.
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
        match find(&self.arena, Some(&self.challenge), |listed| listed.id == self.session)? {
            Some(listed) => self.players = listed.state.players,
            // Looking through all lists again and again would be a burden.
            None => self.is_listed = false,
        }
        Ok(())
    }

    /// Whether the arena lists the session as one that has ended.
    pub fn has_ended(&self) -> Result<bool, Failure> {
        let listed = find(&self.arena, Some(&self.challenge), |listed| listed.id == self.session)?;
        Ok(listed.is_some_and(|listed| listed.state.status == "ended"))
    }

    /// What people call a player: `Player 2`, `Player 1 (you)`.
    pub fn name_of(&self, id: &str) -> String {
        let mark = if id == self.you { " (you)" } else { "" };
        match self.players.iter().position(|player| player == id) {
            Some(seat) => format!("Player {}{mark}", seat + 1),
            None if id == self.you => "you".to_owned(),
            None => id.to_owned(),
        }
    }

    /// The public name of whoever is called so: a number, `Player 2`, or the name itself.
    pub fn find_player(&self, name: &str) -> Option<&str> {
        let number = name.trim().strip_prefix("Player").unwrap_or(name).trim();
        let by_number = number.parse::<usize>().ok().and_then(|number| self.players.get(number.checked_sub(1)?));
        by_number.or_else(|| self.players.iter().find(|player| *player == name)).map(String::as_str)
    }

    /// The public names of the players at the end, by seat: as the arena has told them with it, or as they are known.
    pub fn players_at<'e>(&'e self, ending: &'e Ending) -> &'e [String] {
        if ending.players.is_empty() { &self.players } else { &ending.players }
    }

    /// How the session ended, for programs.
    pub fn result(&self, ending: &Ending) -> Value {
        let players = self.players_at(ending);
        let mut result = serde_json::json!({
            "session": self.session,
            "challenge": self.challenge,
            "you": self.you,
            "seat": players.iter().position(|player| *player == self.you),
            "players": players,
            "scores": ending.scores,
            "abandoned": ending.abandoned,
        });
        if !ending.reported_usage.is_empty() {
            result["reportedUsage"] = serde_json::json!(ending.reported_usage);
        }
        result
    }
}

/// Joins with an invite. What was known of its session before comes with it.
fn join(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<(Option<Listed>, Joined), Failure> {
    let known = match arena.find_invite(invite) {
        Ok(answer) => Some(answer.read::<Listed>()?),
        // Whether it is used or only claimed, and whether there is one at all, the join will tell.
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

/// A call's refusal, apart from what else may go wrong with it.
fn refusal(called: Result<crate::client::Answer, CallError>) -> Result<Option<Refusal>, Failure> {
    match called {
        Ok(_) => Ok(None),
        Err(CallError::Refused { status, error, code }) if status != 401 => Ok(Some(Refusal { code, error })),
        Err(error) => Err(error.into()),
    }
}

/// The newest session that `is_it`, of all those that are looked through.
fn find(arena: &Arena, challenge: Option<&str>, is_it: impl Fn(&Listed) -> bool) -> Result<Option<Listed>, Failure> {
    for (status, pages) in LISTS {
        for page in 0..pages {
            let offset = page * u64::from(PAGE);
            let Page { challenges } = arena.list(challenge, status, Some(PAGE), Some(offset))?.read()?;
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

/// What may help against a join that failed.
fn advise(error: CallError, invite: &str) -> Failure {
    let is_used = matches!(&error, CallError::Refused { code: Some(code), .. } if code == "INVITE_ALREADY_USED");
    match is_used {
        true => Failure::new(
            Exit::Refused,
            format_args!("{error}; if it was you who used it, take the seat up again: arena play --from {invite}"),
        ),
        false => error.into(),
    }
}
