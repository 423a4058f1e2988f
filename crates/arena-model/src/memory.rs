//! Sessions in memory, with the same transitions as on a server. Their clocks advance only when the caller says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::{
    ActError, After, ChallengeType, Channel, ChatError, ChatMessage, EndedGame, InactivityLimits, InviteCode,
    JoinError, Party, Phase, Rejection, RestoreError, Seat, Session, SessionFacts, SessionPolicy, Timestamp,
    Transition, UserId, Viewer, act, chat, join, open, redact, wake,
};

/// A session with all its messages.
#[derive(Clone)]
pub struct MemorySession {
    challenge: Arc<dyn ChallengeType>,
    session: Session,
    messages: Vec<ChatMessage>,
    /// The players' public names by seat.
    names: Vec<String>,
    turns: Turns,
    now: Timestamp,
}

impl MemorySession {
    /// Opens a session without players.
    ///
    /// # Errors
    /// If the rules fail.
    pub fn open(challenge: Arc<dyn ChallengeType>, facts: SessionFacts) -> Result<MemorySession, Rejection> {
        let session = open(facts, &*challenge, InactivityLimits::ENDLESS)?;
        Ok(MemorySession::resume(challenge, session, Vec::new()))
    }

    /// Opens a session and seats all its players, in the order of their invites.
    ///
    /// # Errors
    /// If the rules fail.
    pub fn seated(challenge: Arc<dyn ChallengeType>, facts: SessionFacts) -> Result<MemorySession, JoinError> {
        let invites = facts.invites.clone();
        let mut session = MemorySession::open(challenge, facts)?;
        for invite in invites {
            session.join(invite, None)?;
        }
        Ok(session)
    }

    /// Continues a session after these messages, which include its inputs and are in commit order.
    pub fn resume(challenge: Arc<dyn ChallengeType>, session: Session, messages: Vec<ChatMessage>) -> MemorySession {
        let now = messages.iter().map(|message| message.at).max().unwrap_or(session.facts.created_at);
        let mut turns = Turns::default();
        // A transition begins with the message of a player or with an input.
        for transition in messages.chunk_by(|_, next| next.from == Party::Operator && !next.channel.is_inputs()) {
            turns.follow(transition, &session);
        }
        let names = names(&session);
        MemorySession { challenge, session, messages, names, turns, now }
    }

    /// Returns the session and its messages in commit order.
    pub fn into_parts(self) -> (Session, Vec<ChatMessage>) {
        (self.session, self.messages)
    }

    pub fn challenge(&self) -> &Arc<dyn ChallengeType> {
        &self.challenge
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns all messages in commit order. They include the inputs, which no player may read.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Returns the players' public names by seat.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn is_over(&self) -> bool {
        matches!(self.session.phase, Phase::Ended { .. })
    }

    pub fn has_method(&self, name: &str) -> bool {
        self.challenge.metadata().methods.iter().any(|method| method.name == name)
    }

    /// Returns the public name of a sender or recipient.
    pub fn name_of<'s>(&'s self, party: &'s Party) -> &'s str {
        match party {
            Party::Operator => "operator",
            Party::Player(_) => self.seat_of(party).map_or("a player", |seat| &self.names[seat.0]),
            Party::Other(name) => name,
        }
    }

    /// Returns the seat of a sender or recipient. The operator has none.
    pub fn seat_of(&self, party: &Party) -> Option<Seat> {
        seat_of(&self.session, party)
    }

    /// Returns true if the player at a seat may read a message before the end.
    pub fn is_readable(&self, message: &ChatMessage, seat: Seat) -> bool {
        is_readable(message, self.session.seats[seat.0].invite)
    }

    /// Returns true if the game waits for an action of the player at a seat, as far as the rules or the messages show
    /// it.
    pub fn awaits(&self, seat: Seat) -> bool {
        if self.is_over() {
            return false;
        }
        if let Some(asked) = &self.turns.asked {
            return asked.contains(&seat);
        }
        let restored = self.challenge.restore(&self.session.facts, &self.session.state).ok();
        match restored.and_then(|operator| operator.awaited()) {
            Some(awaited) => awaited.contains(&seat),
            None => !self.turns.acted.contains(&seat),
        }
    }

    /// Returns true if the rules announce the players to move with each state, and take out players at deadlines.
    pub fn announces_turns(&self) -> bool {
        self.turns.asked.is_some()
    }

    /// Seats a player on the next seat.
    ///
    /// # Errors
    /// If the invite is unknown or used, or the rules fail.
    pub fn join(&mut self, invite: InviteCode, user: Option<UserId>) -> Result<(), JoinError> {
        let joined = join(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, invite, user, self.now)?;
        self.take(joined);
        self.names = names(&self.session);
        Ok(())
    }

    /// Performs an action of the player at a seat.
    ///
    /// # Errors
    /// If the rules refuse the action or fail.
    pub fn act(&mut self, seat: Seat, method: &str, content: &str) -> Result<(), ActError> {
        self.act_at(self.now, seat, method, content)
    }

    /// Performs an action, and advances the clock to its time if the action is accepted.
    ///
    /// # Errors
    /// If the rules refuse the action or fail.
    pub fn act_at(&mut self, now: Timestamp, seat: Seat, method: &str, content: &str) -> Result<(), ActError> {
        let player = self.session.seats[seat.0].invite;
        let policy = &SessionPolicy::UNBOUNDED;
        let acted = act(&self.session, &*self.challenge, policy, player, Some(method), content, now)?;
        self.now = now;
        self.take(acted);
        Ok(())
    }

    /// Posts a chat message of the player at a seat.
    ///
    /// # Errors
    /// If the recipient has no seat.
    pub fn say(&mut self, seat: Seat, content: &str, to: Option<&str>) -> Result<(), ChatError> {
        let from = Party::Player(self.session.seats[seat.0].invite);
        let said = chat(&self.session, false, from, to.map(Party::from_wire), content)?;
        self.take(said);
        Ok(())
    }

    /// Advances the clock to the session's deadline. Returns false if there is none.
    ///
    /// # Errors
    /// If the rules can't read their state.
    pub fn advance(&mut self) -> Result<bool, RestoreError> {
        let Some(deadline) = self.session.deadline else { return Ok(false) };
        self.wake_at(deadline.max(self.now))?;
        Ok(true)
    }

    /// Advances the clock to `now`, which is at or after the session's deadline.
    ///
    /// # Errors
    /// If the rules can't read their state.
    pub fn wake_at(&mut self, now: Timestamp) -> Result<(), RestoreError> {
        self.now = now;
        let woken = wake(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, now, now)?;
        self.take(woken);
        Ok(())
    }

    /// Ends a session without a deadline as abandoned, as a server does after `ms` milliseconds without a message.
    ///
    /// # Errors
    /// If the rules can't read their state.
    pub fn abandon(&mut self, ms: i64) -> Result<(), RestoreError> {
        let inactivity = InactivityLimits { active_ms: Some(ms), ..InactivityLimits::ENDLESS };
        let policy = SessionPolicy { inactivity, ..SessionPolicy::UNBOUNDED };
        let last = self.now;
        self.now = last.plus_ms(ms);
        let woken = wake(&self.session, &*self.challenge, &policy, last, self.now)?;
        self.take(woken);
        Ok(())
    }

    /// Returns the result as a sentence. `names` are the players' names by seat.
    pub fn tell(&self, names: &[String]) -> String {
        let Session { scores, attributions, state, .. } = &self.session;
        self.challenge.tell(&EndedGame { names, scores, attributions, state })
    }

    fn take(&mut self, transition: Transition) {
        if let After::Changed(after) = transition.after {
            self.session = *after;
        }
        let begin = self.messages.len();
        for draft in transition.drafts {
            let index = if draft.channel.is_inputs() {
                self.session.version
            } else {
                let last = self.messages.iter().rev().find(|message| message.channel == draft.channel);
                last.map_or(1, |message| message.index + 1)
            };
            self.messages.push(draft.at(index, self.now));
        }
        self.turns.follow(&self.messages[begin..], &self.session);
    }
}

fn names(session: &Session) -> Vec<String> {
    session.seats.iter().map(|occupant| occupant.invite.to_string()).collect()
}

fn seat_of(session: &Session, party: &Party) -> Option<Seat> {
    match party {
        Party::Player(player) => session.seat_of(*player),
        Party::Operator | Party::Other(_) => None,
    }
}

fn is_readable(message: &ChatMessage, player: InviteCode) -> bool {
    redact(message, Viewer::Player(player), false, false).is_readable()
}

/// The seats that act next, as far as the messages show it.
#[derive(Debug, Clone, Default)]
struct Turns {
    /// The seats that have acted since the operator's last message to them.
    acted: BTreeSet<Seat>,
    /// The seats that the operator's last state names and that haven't acted since; `None` if the operator names no
    /// seats.
    asked: Option<BTreeSet<Seat>>,
}

impl Turns {
    /// Follows the messages of one transition, which has led to `session`.
    fn follow(&mut self, messages: &[ChatMessage], session: &Session) {
        let is_of_operator_channel = |message: &&ChatMessage| matches!(message.channel, Channel::Operator(_));
        let actor = messages.first().filter(is_of_operator_channel).and_then(|first| seat_of(session, &first.from));
        if let Some(actor) = actor {
            self.acted.insert(actor);
            if let Some(asked) = &mut self.asked {
                asked.remove(&actor);
            }
        }
        let news: Vec<&ChatMessage> =
            messages.iter().filter(is_of_operator_channel).filter(|message| message.from == Party::Operator).collect();
        // A private answer to an action, such as its outcome, isn't a request for another action.
        let recipient = |message: &ChatMessage| message.to.as_ref().and_then(|to| seat_of(session, to));
        let is_only_answer = actor.is_some() && news.iter().all(|message| recipient(message) == actor);
        self.acted.retain(|seat| {
            let is_answered = is_only_answer && actor == Some(*seat);
            let player = session.seats[seat.0].invite;
            is_answered || !news.iter().any(|message| is_readable(message, player))
        });
        let Some(AskedSeats { asked }) = news.iter().rev().find_map(|message| AskedSeats::read(&message.content))
        else {
            return;
        };
        let players = session.seats.iter().map(|occupant| occupant.invite.to_string()).enumerate();
        self.asked = Some(players.filter(|(_, name)| asked.contains(name)).map(|(seat, _)| Seat(seat)).collect());
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
pub fn is_world_state(content: &str) -> bool {
    content.starts_with("{\"world_state\":")
}

/// Returns true for the state of a game for spectators.
pub fn is_public_state(content: &str) -> bool {
    content.starts_with("{\"public_state\":")
}
