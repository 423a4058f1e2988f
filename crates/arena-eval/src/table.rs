//! A session in memory that a game of the run is played in, with the same transitions as on a server.

use std::sync::Arc;

use arena_model::{
    ActError, After, ChallengeType, Channel, ChatMessage, EndedGame, InviteCode, Party, Phase, Script, Seat, Seed,
    Session, SessionFacts, SessionId, SessionPolicy, Timestamp, Transition, Viewer, act, chat, hex, join, open, redact,
    wake,
};
use arena_wire::Message;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The code of a refusal that a fault of the challenge's script caused.
const SCRIPT_FAILED: &str = "CHALLENGE_FAILED";

/// The error of a session that can't go on. No player caused it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TableError(pub(crate) String);

/// A message with its place in the game.
#[derive(Debug, Clone)]
pub(crate) struct PostedMessage {
    pub(crate) message: ChatMessage,
    /// The round, from 0 for messages before the first answer.
    pub(crate) round: u32,
    /// The number of the sender's call that caused the message, from 1.
    pub(crate) call: Option<u32>,
}

impl PostedMessage {
    pub(crate) fn is_chat(&self) -> bool {
        matches!(self.message.channel, Channel::Chat(_))
    }
}

/// The round and the call that cause a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) round: u32,
    pub(crate) call: Option<u32>,
}

impl Origin {
    /// The origin of messages that no answer causes.
    pub(crate) fn none(round: u32) -> Origin {
        Origin { round, call: None }
    }
}

/// A session with all its messages.
pub(crate) struct Table {
    challenge: Arc<dyn ChallengeType>,
    /// The players' public names by seat.
    players: Vec<InviteCode>,
    /// The texts of `players`.
    names: Vec<String>,
    messages: Vec<PostedMessage>,
    turns: Turns,
    session: Session,
    now: Timestamp,
}

impl Table {
    /// Opens a session and seats all players. All its ids follow from the seed.
    pub(crate) fn open(
        challenge: Arc<dyn ChallengeType>,
        options: &Value,
        seats: usize,
        seed: &Seed,
    ) -> Result<Table, TableError> {
        let players = (0..seats)
            .map(|seat| derive_id(seed, &format!("eval/player/{seat}"), "inv_"))
            .collect::<Result<Vec<InviteCode>, TableError>>()?;
        let now = Timestamp(0);
        let facts = SessionFacts {
            id: derive_id::<SessionId>(seed, "eval/session", "")?,
            challenge: challenge.id().to_owned(),
            script: challenge.script().map(Script::version),
            created_at: now,
            seed: Some(seed.clone()),
            options: options.clone(),
            rated: None,
            is_unlisted: false,
            invites: players.clone(),
        };
        let failed = |error: &dyn std::fmt::Display| TableError(format!("the session can't start: {error}"));
        let session = calmly(&*challenge, || open(facts, &*challenge, SessionPolicy::UNBOUNDED.inactivity))
            .map_err(|error| failed(&error))?;
        let names: Vec<String> = players.iter().map(ToString::to_string).collect();
        let turns = Turns::of(seats);
        let mut table = Table { challenge, players: players.clone(), names, messages: Vec::new(), turns, session, now };
        for player in players {
            let (challenge, session) = (&*table.challenge, &table.session);
            let joined = calmly(challenge, || join(session, challenge, &SessionPolicy::UNBOUNDED, player, None, now))
                .map_err(|error| failed(&error))?;
            table.take(joined, Origin::none(0), None);
        }
        Ok(table)
    }

    /// Returns the players' public names by seat.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn messages(&self) -> &[PostedMessage] {
        &self.messages
    }

    /// Returns the public name of a sender or recipient.
    pub(crate) fn name_of<'t>(&'t self, party: &'t Party) -> &'t str {
        match party {
            Party::Operator => "operator",
            Party::Player(player) => match self.players.iter().position(|other| other == player) {
                Some(seat) => &self.names[seat],
                None => "a player",
            },
            Party::Other(name) => name,
        }
    }

    /// Returns the seat of a sender or recipient. The operator has none.
    pub(crate) fn seat_of(&self, party: &Party) -> Option<usize> {
        match party {
            Party::Player(player) => self.players.iter().position(|other| other == player),
            Party::Operator | Party::Other(_) => None,
        }
    }

    /// Returns true if the player at a seat may read a message before the end.
    pub(crate) fn is_readable(&self, posted: &PostedMessage, seat: usize) -> bool {
        redact(&posted.message, Viewer::Player(self.players[seat]), false, false).is_readable()
    }

    /// Returns a message as the player at a seat receives it.
    pub(crate) fn message_for(&self, posted: &PostedMessage, seat: usize) -> Message {
        let message = &posted.message;
        let is_readable = self.is_readable(posted, seat);
        Message {
            channel: message.channel.to_string(),
            from: self.name_of(&message.from).to_owned(),
            to: message.to.as_ref().map(|to| self.name_of(to).to_owned()),
            content: if is_readable { message.content.clone() } else { String::new() },
            index: message.index,
            timestamp: message.at,
            redacted: !is_readable,
            content_sha256: None,
            method: message.method.clone().filter(|_| is_readable),
        }
    }

    pub(crate) fn has_method(&self, name: &str) -> bool {
        self.challenge.metadata().methods.iter().any(|method| method.name == name)
    }

    /// Returns true if the game waits for an action of the player at a seat.
    pub(crate) fn awaits(&self, seat: usize) -> bool {
        if self.is_over() {
            return false;
        }
        if self.turns.asked.is_none() {
            let restored = self.challenge.restore(&self.session.facts, &self.session.state).ok();
            if let Some(awaited) = restored.and_then(|operator| operator.awaited()) {
                return awaited.contains(&Seat(seat));
            }
        }
        self.turns.awaits(seat)
    }

    /// Returns true if the rules announce the players to move with each state, and take out players at deadlines.
    pub(crate) fn announces_turns(&self) -> bool {
        self.turns.asked.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.session.phase, Phase::Ended { .. })
    }

    /// Performs an action of a player. The inner error is the refusal for the player.
    pub(crate) fn act(
        &mut self,
        seat: usize,
        method: &str,
        content: &str,
        origin: Origin,
    ) -> Result<Result<(), String>, TableError> {
        let (challenge, player) = (&*self.challenge, self.players[seat]);
        let acted = calmly(challenge, || {
            act(&self.session, challenge, &SessionPolicy::UNBOUNDED, player, Some(method), content, self.now)
        });
        match acted {
            Ok(transition) => {
                self.turns.act(seat);
                self.take(transition, origin, Some(seat));
                Ok(Ok(()))
            }
            Err(ActError::Rejected(rejection)) if rejection.code == SCRIPT_FAILED => {
                Err(TableError(format!("the rules of the challenge failed: {}", rejection.message)))
            }
            Err(ActError::Rejected(rejection)) => Ok(Err(format!("{} ({})", rejection.message, rejection.code))),
            Err(error) => Err(TableError(format!("the session failed: {error}"))),
        }
    }

    /// Posts a chat message of a player. The error is the refusal for the player.
    pub(crate) fn say(&mut self, seat: usize, content: &str, to: Option<&str>, origin: Origin) -> Result<(), String> {
        let from = Party::Player(self.players[seat]);
        let said = chat(&self.session, false, from, to.map(Party::from_wire), content);
        let transition = said.map_err(|error| error.to_string())?;
        self.take(transition, origin, Some(seat));
        Ok(())
    }

    /// Advances the clock to the session's deadline. Returns false if there is none.
    pub(crate) fn advance(&mut self, origin: Origin) -> Result<bool, TableError> {
        let Some(deadline) = self.session.deadline else { return Ok(false) };
        let at = deadline.max(self.now);
        self.now = at;
        let (challenge, session) = (&*self.challenge, &self.session);
        let woken = calmly(challenge, || wake(session, challenge, &SessionPolicy::UNBOUNDED, at, at))
            .map_err(|error| TableError(format!("the session failed: {error}")))?;
        self.take(woken, origin, None);
        Ok(true)
    }

    /// Returns the session with its scores, attributions and state.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the result as a sentence. `names` are the players' names by seat.
    pub(crate) fn tell(&self, names: &[String]) -> String {
        let Session { scores, attributions, state, .. } = &self.session;
        calmly(&*self.challenge, || self.challenge.tell(&EndedGame { names, scores, attributions, state }))
    }

    fn take(&mut self, transition: Transition, origin: Origin, actor: Option<usize>) {
        if let After::Changed(after) = transition.after {
            self.session = *after;
        }
        let begin = self.messages.len();
        for draft in transition.drafts.into_iter().filter(|draft| !draft.channel.is_inputs()) {
            let channel = draft.channel;
            let last = self.messages.iter().rev().find(|posted| posted.message.channel == channel);
            let index = last.map_or(1, |posted| posted.message.index + 1);
            let call = origin.call.filter(|_| draft.from != Party::Operator);
            self.messages.push(PostedMessage { message: draft.at(index, self.now), round: origin.round, call });
        }
        self.follow_turns(begin, actor);
    }

    /// Updates the seats that the game waits for after new messages. `actor` is the seat whose step caused them.
    fn follow_turns(&mut self, begin: usize, actor: Option<usize>) {
        let fresh = &self.messages[begin..];
        let news: Vec<&PostedMessage> =
            fresh.iter().filter(|posted| posted.message.from == Party::Operator && !posted.is_chat()).collect();
        // A private answer to an action, such as its outcome, isn't a request for another action.
        let is_answer = |posted: &&PostedMessage| {
            actor.is_some() && posted.message.to.as_ref().and_then(|to| self.seat_of(to)) == actor
        };
        let is_only_answer = news.iter().all(is_answer);
        let readable: Vec<bool> = (0..self.players.len())
            .map(|seat| {
                let is_answered = is_only_answer && actor == Some(seat);
                !is_answered && news.iter().any(|posted| self.is_readable(posted, seat))
            })
            .collect();
        let asked = news.iter().rev().find_map(|posted| AskedSeats::read(&posted.message.content));
        let asked = asked.map(|AskedSeats { asked }| {
            self.names.iter().map(|name| asked.iter().any(|other| other == name)).collect::<Vec<bool>>()
        });
        self.turns.hear(&readable, asked);
    }
}

/// The seats that act next, as far as the messages show it.
#[derive(Debug)]
struct Turns {
    /// True for each seat that has acted since the operator's last message to it.
    has_acted: Vec<bool>,
    /// True for each seat that the operator's last state names and that hasn't acted since; `None` if the operator
    /// names no seats.
    asked: Option<Vec<bool>>,
}

impl Turns {
    fn of(seats: usize) -> Turns {
        Turns { has_acted: vec![false; seats], asked: None }
    }

    fn act(&mut self, seat: usize) {
        self.has_acted[seat] = true;
        if let Some(asked) = &mut self.asked {
            asked[seat] = false;
        }
    }

    fn hear(&mut self, readable: &[bool], asked: Option<Vec<bool>>) {
        for (has_acted, is_told) in self.has_acted.iter_mut().zip(readable) {
            *has_acted &= !is_told;
        }
        if asked.is_some() {
            self.asked = asked;
        }
    }

    fn awaits(&self, seat: usize) -> bool {
        match &self.asked {
            Some(asked) => asked[seat],
            None => !self.has_acted[seat],
        }
    }
}

/// The players to move, as the states of games name them.
#[derive(Deserialize)]
struct AskedSeats {
    asked: Vec<String>,
}

impl AskedSeats {
    /// Reads a text of the operator. Returns `None` if it isn't the state of a game.
    fn read(content: &str) -> Option<AskedSeats> {
        if is_world_state(content) || is_public_state(content) { serde_json::from_str(content).ok() } else { None }
    }
}

/// Returns true for the state of a game for a player.
pub(crate) fn is_world_state(content: &str) -> bool {
    content.starts_with("{\"world_state\":")
}

/// Returns true for the state of a game for spectators.
pub(crate) fn is_public_state(content: &str) -> bool {
    content.starts_with("{\"public_state\":")
}

/// Derives an id, which is a UUID after a prefix.
fn derive_id<I: std::str::FromStr<Err = arena_model::IdError>>(
    seed: &Seed,
    purpose: &str,
    prefix: &str,
) -> Result<I, TableError> {
    let digits = hex::encode(&seed.derive(purpose).0[..16]);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("{prefix}{}", parts.join("-"))
        .parse()
        .map_err(|error| TableError(format!("an id was derived that is {error}")))
}

/// Calls the rules of a challenge. While slow rules run, the other tasks of this thread continue on another one.
fn calmly<T>(challenge: &dyn ChallengeType, call: impl FnOnce() -> T) -> T {
    let has_threads = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if challenge.is_slow() && has_threads { tokio::task::block_in_place(call) } else { call() }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn table(challenge: &str) -> Table {
        let challenge = arena_games::challenge(challenge, &Map::new()).unwrap().unwrap();
        let options = challenge.resolve(&Map::new()).unwrap();
        Table::open(challenge, &options, 2, &Seed::from_number(7)).unwrap()
    }

    fn awaited(table: &Table) -> Vec<bool> {
        (0..table.names().len()).map(|seat| table.awaits(seat)).collect()
    }

    #[test]
    fn all_ids_follow_from_the_seed() {
        let texts = |table: &Table| -> Vec<(String, String)> {
            let messages = table.messages().iter().map(|posted| &posted.message);
            messages.map(|message| (message.channel.to_string(), message.content.clone())).collect()
        };
        let (one, two) = (table("psi"), table("psi"));
        assert_eq!(one.names(), two.names());
        assert_eq!(texts(&one), texts(&two));
        assert_ne!(one.names()[0], one.names()[1]);
    }

    #[test]
    fn private_messages_reach_their_player_only() {
        let mut table = table("psi");
        let to = table.names()[0].clone();
        let origin = Origin { round: 1, call: Some(3) };
        assert_eq!(table.say(1, "for you", Some(&to), origin), Ok(()));
        assert!(table.say(1, "for no one", Some("inv_nobody"), origin).is_err());
        let last = table.messages().last().unwrap();
        let texts: Vec<(String, bool)> = (0..2)
            .map(|seat| {
                let message = table.message_for(last, seat);
                (message.content, message.redacted)
            })
            .collect();
        assert_eq!(texts, [("for you".to_owned(), false), ("for you".to_owned(), false)]);
        let secret = table.messages().iter().find(|posted| posted.message.to.is_some() && !posted.is_chat()).unwrap();
        let owner = table.seat_of(secret.message.to.as_ref().unwrap()).unwrap();
        assert!(table.message_for(secret, 1 - owner).redacted);
        assert_eq!(table.message_for(secret, 1 - owner).content, "");
        assert!(!table.message_for(secret, owner).content.is_empty());
    }

    #[test]
    fn the_game_awaits_the_players_that_have_not_acted() {
        let origin = Origin { round: 1, call: Some(1) };
        let mut psi = table("psi");
        assert_eq!(awaited(&psi), [true, true]);
        assert_eq!(psi.act(0, "guess", "x", origin), Ok(Err("Invalid guess format. (INVALID_GUESS)".to_owned())));
        assert_eq!(awaited(&psi), [true, true]);
        assert_eq!(psi.act(0, "guess", "1", origin), Ok(Ok(())));
        assert_eq!(awaited(&psi), [false, true]);
        assert_eq!(psi.advance(Origin::none(1)), Ok(false), "psi has no deadline");

        let mut chess = table("chess");
        let mover = awaited(&chess).iter().position(|is_awaited| *is_awaited).unwrap();
        assert!(!chess.awaits(1 - mover));
        let e4 = r#"[{"action": "move", "move": "e2e4"}]"#;
        let moved = chess.act(mover, "actions", e4, origin).unwrap();
        assert_eq!(moved.is_ok(), chess.awaits(1 - mover), "{moved:?}");
        assert_eq!(chess.advance(Origin::none(1)), Ok(true), "a player without an answer is out");
        assert!(chess.is_over());
    }
}
