//! A session of the challenge under check, and its findings' evidence.

use std::sync::Arc;

use arena_model::{
    ActError, ChallengeType, ChatMessage, MemorySession, Score, Seat, Seed, Session, SessionFacts, Timestamp,
};

use crate::Fault;

/// The challenge under check.
#[derive(Clone, Copy)]
pub struct Subject<'c> {
    pub challenge: &'c Arc<dyn ChallengeType>,
    /// A function that returns the details of the last failed call and forgets them.
    pub last_fault: &'c dyn Fn() -> Option<Fault>,
}

impl Subject<'_> {
    /// Returns the details of a call that just failed with `error`.
    fn fault(&self, error: &dyn std::error::Error) -> Fault {
        (self.last_fault)().unwrap_or_else(|| Fault { what: with_causes(error), place: None, stack: Vec::new() })
    }
}

/// The time between two actions, in milliseconds.
const STEP_MS: i64 = 1000;

/// The maximum length of a line of evidence, in characters.
const MAX_EXCERPT: usize = 160;

/// A message of a session, without the ids that differ between sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMessage<'m> {
    /// The sender's seat; `None` is the operator.
    pub from: Option<Seat>,
    /// The recipient's seat; `None` means everyone. Players' messages are for the operator.
    pub to: Option<Seat>,
    pub content: &'m str,
}

impl SessionMessage<'_> {
    /// Returns the message as a line of a finding's evidence.
    pub fn describe(&self) -> String {
        let name = |seat: Seat| format!("player {}", seat.number());
        match (self.from, self.to) {
            (Some(from), _) => format!("{} sends {}", name(from), self.content),
            (None, Some(to)) => format!("{} gets: {}", name(to), self.content),
            (None, None) => format!("all get: {}", self.content),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionResult {
    Taken,
    Refused {
        code: String,
        message: String,
    },
    /// The rules failed.
    Failed(Fault),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub seat: Seat,
    pub method: String,
    pub content: String,
}

impl Action {
    /// Returns the action as a line of a finding's evidence.
    pub fn describe(&self) -> String {
        format!("player {} sends {} {:?}", self.seat.number(), self.method, excerpt(&self.content))
    }
}

#[derive(Clone)]
pub struct TestSession<'c> {
    pub subject: Subject<'c>,
    memory: MemorySession,
}

impl<'c> TestSession<'c> {
    /// Creates a session without players. Its ids are always the same.
    pub fn opened(subject: Subject<'c>, seed: &Seed) -> Result<TestSession<'c>, Fault> {
        TestSession::opened_at(subject, seed, 0)
    }

    /// Creates a session without players. Its ids and creation time are derived from `first`.
    pub fn opened_at(subject: Subject<'c>, seed: &Seed, first: usize) -> Result<TestSession<'c>, Fault> {
        let Subject { challenge, .. } = subject;
        let facts = SessionFacts::numbered(&**challenge, seed.clone(), first).map_err(|error| subject.fault(&error))?;
        let facts = SessionFacts { created_at: Timestamp(first as i64), ..facts };
        let memory = MemorySession::open(Arc::clone(challenge), facts).map_err(|error| subject.fault(&error))?;
        Ok(TestSession { subject, memory })
    }

    /// Creates a session in which all players have joined.
    pub fn seated(subject: Subject<'c>, seed: &Seed) -> Result<TestSession<'c>, Fault> {
        TestSession::opened(subject, seed)?.filled()
    }

    /// Returns the session with another state.
    pub fn with_state(&self, state: String) -> TestSession<'c> {
        let session = Session { state, ..self.session().clone() };
        let challenge = Arc::clone(self.memory.challenge());
        let memory = MemorySession::resume(challenge, session, self.memory.messages().to_vec());
        TestSession { subject: self.subject, memory }
    }

    pub fn session(&self) -> &Session {
        self.memory.session()
    }

    pub fn state(&self) -> &str {
        &self.session().state
    }

    pub fn now(&self) -> Timestamp {
        self.memory.now()
    }

    /// Returns the session after all players have joined.
    pub fn filled(self) -> Result<TestSession<'c>, Fault> {
        self.filled_with(None)
    }

    /// Returns the session after all players have joined. One of them may be another user than in [`Self::filled`].
    pub fn filled_with(mut self, stranger: Option<Seat>) -> Result<TestSession<'c>, Fault> {
        for (number, invite) in (1..).zip(self.session().facts.invites.clone()) {
            let is_other = stranger.is_some_and(|seat| seat.number() == number);
            let user = if is_other { "stranger".to_owned() } else { format!("user-{number}") };
            let user = Some(user.parse().expect("the text is a user id"));
            self.memory.join(invite, user).map_err(|error| self.subject.fault(&error))?;
        }
        Ok(self)
    }

    pub fn seats(&self) -> usize {
        self.session().facts.invites.len()
    }

    pub fn has_ended(&self) -> bool {
        self.memory.is_over()
    }

    /// Advances the time by a second and performs an action.
    pub fn act(&mut self, action: &Action) -> ActionResult {
        let now = self.now().plus_ms(STEP_MS);
        match self.memory.act_at(now, action.seat, &action.method, &action.content) {
            Ok(()) => ActionResult::Taken,
            Err(ActError::Rejected(rejection)) if rejection.is_failure() => {
                ActionResult::Failed(self.subject.fault(&rejection))
            }
            Err(ActError::Rejected(rejection)) => {
                ActionResult::Refused { code: rejection.code, message: rejection.message }
            }
            Err(error) => ActionResult::Failed(self.subject.fault(&error)),
        }
    }

    /// Advances the time to the deadline. Returns false if there is none.
    pub fn wait(&mut self) -> Result<bool, Fault> {
        if !self.memory.advance().map_err(|error| self.subject.fault(&error))? {
            return Ok(false);
        }
        // If the rules fail at a deadline, the session drops the deadline without an error.
        (self.subject.last_fault)().map_or(Ok(true), Err)
    }

    /// Returns the number of messages so far.
    pub fn count(&self) -> usize {
        self.memory.messages().len()
    }

    /// Returns all messages but the session's inputs.
    pub fn messages(&self) -> impl Iterator<Item = SessionMessage<'_>> {
        let messages = self.memory.messages().iter().filter(|message| !message.channel.is_inputs());
        messages.map(|message| self.without_ids(message))
    }

    /// Returns the messages since the `from`th that the player at a seat may read.
    pub fn messages_for(&self, seat: Seat, from: usize) -> impl Iterator<Item = SessionMessage<'_>> {
        let messages = self.memory.messages()[from..].iter();
        messages.filter(move |message| self.memory.is_readable(message, seat)).map(|message| self.without_ids(message))
    }

    /// Returns all data of a session that equal runs must have in common, as text.
    pub fn bytes(&self) -> String {
        let lines: Vec<String> = self.messages().map(|message| message.describe()).collect();
        let Session { phase, scores, attributions, deadline, state, .. } = self.session();
        format!("{}\n{phase:?} {scores:?} {attributions:?} {deadline:?}\n{state}", lines.join("\n"))
    }

    pub fn scores(&self) -> &[Score] {
        &self.session().scores
    }

    fn without_ids<'m>(&self, message: &'m ChatMessage) -> SessionMessage<'m> {
        SessionMessage {
            from: self.memory.seat_of(&message.from),
            to: message.to.as_ref().and_then(|to| self.memory.seat_of(to)),
            content: &message.content,
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Returns a text in one line, shortened for display.
pub fn excerpt(text: &str) -> String {
    let line = text.replace('\n', " ⏎ ");
    match line.char_indices().nth(MAX_EXCERPT) {
        Some((end, _)) => format!("{}… ({} characters)", &line[..end], line.chars().count()),
        None => line,
    }
}
