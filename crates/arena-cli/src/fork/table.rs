//! A session in memory that continues a recorded one, with the transitions of a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_model::{
    ActError, After, ChallengeType, Channel, ChatMessage, InactivityLimits, InviteCode, Party, Phase, Seat, Session,
    SessionPolicy, Timestamp, Transition, Viewer, act, chat, redact, wake,
};
use arena_wire::Message;

use crate::exit::{Exit, Failure};

/// The time after which a fork without actions ends as abandoned: the default of a server.
const IDLE_MS: i64 = 30 * 60 * 1000;

/// The code of a refusal that a fault of the challenge's script caused.
const SCRIPT_FAILED: &str = "CHALLENGE_FAILED";

/// A forked session with all its messages.
pub struct ForkTable {
    challenge: Arc<dyn ChallengeType>,
    session: Session,
    messages: Vec<ChatMessage>,
    last: BTreeMap<Channel, u64>,
    players: Vec<InviteCode>,
    names: Vec<String>,
    now: Timestamp,
    /// True for each seat that has acted since the operator last wrote to it.
    has_acted: Vec<bool>,
}

impl ForkTable {
    /// Creates the table of an active session with its messages so far. All seats are taken.
    pub fn new(challenge: Arc<dyn ChallengeType>, session: Session, messages: Vec<ChatMessage>) -> ForkTable {
        let players: Vec<InviteCode> = session.seats.iter().map(|occupant| occupant.invite).collect();
        let mut last = BTreeMap::new();
        for message in &messages {
            last.insert(message.channel, message.index);
        }
        let now = messages.iter().map(|message| message.at).max().unwrap_or(session.facts.created_at);
        let names: Vec<String> = players.iter().map(ToString::to_string).collect();
        let mut table = ForkTable {
            challenge,
            session,
            messages: Vec::new(),
            last,
            has_acted: vec![false; players.len()],
            players,
            names,
            now,
        };
        for message in messages {
            table.follow(&message);
            table.messages.push(message);
        }
        table
    }

    /// Returns the session and its messages in commit order.
    pub fn into_parts(self) -> (Session, Vec<ChatMessage>) {
        (self.session, self.messages)
    }

    pub fn challenge(&self) -> &dyn ChallengeType {
        &*self.challenge
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Returns the players' public names by seat.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn is_over(&self) -> bool {
        matches!(self.session.phase, Phase::Ended { .. })
    }

    /// Returns true if the rules wait for the player, as far as they or the messages tell.
    pub fn awaits(&self, seat: usize) -> bool {
        let operator = self.challenge.restore(&self.session.facts, &self.session.state).ok();
        match operator.and_then(|operator| operator.awaited()) {
            Some(awaited) => awaited.contains(&Seat(seat)),
            None => !self.has_acted[seat],
        }
    }

    /// Returns true if the player may read the message before the end.
    pub fn is_readable(&self, message: &ChatMessage, seat: usize) -> bool {
        !matches!(message.channel, Channel::Inputs(_))
            && redact(message, Viewer::Player(self.players[seat]), false, false).is_readable()
    }

    pub fn is_own(&self, message: &ChatMessage, seat: usize) -> bool {
        message.from == Party::Player(self.players[seat])
    }

    /// Returns a message as the player receives it: without the content if it is for another player.
    pub fn message_for(&self, message: &ChatMessage, seat: usize) -> Message {
        let is_readable = self.is_readable(message, seat);
        Message {
            channel: message.channel.to_string(),
            from: message.from.to_string(),
            to: message.to.as_ref().map(ToString::to_string),
            content: if is_readable { message.content.clone() } else { String::new() },
            index: message.index,
            timestamp: message.at,
            redacted: !is_readable,
            content_sha256: None,
            method: message.method.clone().filter(|_| is_readable),
        }
    }

    /// Performs an action. The inner error is the refusal for the player.
    ///
    /// # Errors
    /// If the rules fail.
    pub fn act(&mut self, seat: usize, method: &str, content: &str) -> Result<Result<(), String>, Failure> {
        let (session, challenge, player) = (&self.session, &*self.challenge, self.players[seat]);
        match act(session, challenge, &SessionPolicy::UNBOUNDED, player, Some(method), content, self.now) {
            Ok(transition) => {
                self.has_acted[seat] = true;
                self.take(transition);
                Ok(Ok(()))
            }
            Err(ActError::Rejected(rejection)) if rejection.code == SCRIPT_FAILED => {
                Err(failed(&format!("the rules of the challenge failed: {}", rejection.message)))
            }
            Err(ActError::Rejected(rejection)) => Ok(Err(format!("{} ({})", rejection.message, rejection.code))),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    /// Posts a chat message. The error is the refusal for the player.
    pub fn say(&mut self, seat: usize, content: &str, to: Option<&str>) -> Result<(), String> {
        let from = Party::Player(self.players[seat]);
        let said = chat(&self.session, false, from, to.map(Party::from_wire), content);
        self.take(said.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Moves the time on to the deadline of the rules. Returns false if there is none.
    ///
    /// # Errors
    /// If the rules fail.
    pub fn advance(&mut self) -> Result<bool, Failure> {
        let Some(deadline) = self.session.deadline else { return Ok(false) };
        self.now = deadline.max(self.now);
        let woken = wake(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, self.now, self.now);
        self.take(woken.map_err(|error| failed(&error.to_string()))?);
        Ok(true)
    }

    /// Ends the session as abandoned, because no player acts and there is no deadline.
    ///
    /// # Errors
    /// If the state can't be read.
    pub fn abandon(&mut self) -> Result<(), Failure> {
        let inactivity = InactivityLimits { active_ms: Some(IDLE_MS), ..InactivityLimits::ENDLESS };
        let policy = SessionPolicy { inactivity, ..SessionPolicy::UNBOUNDED };
        let last = self.now;
        self.now = last.plus_ms(IDLE_MS);
        let woken = wake(&self.session, &*self.challenge, &policy, last, self.now);
        self.take(woken.map_err(|error| failed(&error.to_string()))?);
        Ok(())
    }

    fn take(&mut self, transition: Transition) {
        if let After::Changed(after) = transition.after {
            self.session = *after;
        }
        for draft in transition.drafts {
            let index = if draft.channel.is_inputs() {
                self.session.version
            } else {
                let last = self.last.entry(draft.channel).or_default();
                *last += 1;
                *last
            };
            let message = draft.at(index, self.now);
            self.follow(&message);
            self.messages.push(message);
        }
    }

    /// Notes the players that a message of the operator asks again.
    fn follow(&mut self, message: &ChatMessage) {
        if !matches!(message.channel, Channel::Operator(_)) || message.from != Party::Operator {
            return;
        }
        for (player, has_acted) in self.players.iter().zip(&mut self.has_acted) {
            *has_acted &= message.to.as_ref().is_some_and(|to| *to != Party::Player(*player));
        }
    }
}

fn failed(why: &str) -> Failure {
    Failure::new(Exit::FaultyChallenge, format_args!("the fork cannot go on: {why}"))
}
