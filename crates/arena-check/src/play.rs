//! A session of a challenge in memory, driven by the same transitions as on a server, with a log of its messages.

use arena_model::{
    ActError, After, ChallengeType, Draft, InviteCode, Party, Phase, Score, Script, Seat, Seed, Session, SessionFacts,
    SessionId, SessionPolicy, Timestamp, Transition, act, join, open, wake,
};
use serde_json::Map;

use crate::Fault;

/// The error code for a failure of the challenge's script, as distinct from a refusal by the rules.
const FAILED: &str = "CHALLENGE_FAILED";

/// The challenge under check.
#[derive(Clone, Copy)]
pub struct Subject<'c> {
    pub challenge: &'c dyn ChallengeType,
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

/// A message on the operator channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMessage {
    /// The sender's seat; `None` is the operator.
    pub from: Option<Seat>,
    /// The recipient's seat; `None` means everyone. Players' messages are for the operator.
    pub to: Option<Seat>,
    pub content: String,
}

impl SessionMessage {
    /// Returns true if the player at this seat may read the message before the end.
    pub fn is_for(&self, seat: Seat) -> bool {
        match self.from {
            Some(from) => from == seat,
            None => self.to.is_none_or(|to| to == seat),
        }
    }

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
    pub session: Session,
    pub said: Vec<SessionMessage>,
    pub now: Timestamp,
}

impl<'c> TestSession<'c> {
    /// Creates a session without players. Its ids are always the same.
    pub fn opened(subject: Subject<'c>, seed: &Seed) -> Result<TestSession<'c>, Fault> {
        TestSession::opened_at(subject, seed, 0)
    }

    /// Creates a session without players. Its ids and creation time are derived from `first`.
    pub fn opened_at(subject: Subject<'c>, seed: &Seed, first: usize) -> Result<TestSession<'c>, Fault> {
        let Subject { challenge, .. } = subject;
        let options = challenge.resolve(&Map::new()).map_err(|error| subject.fault(&error))?;
        let id = |n: usize| format!("00000000-0000-7000-8000-{:012}", first + n);
        let now = Timestamp(first as i64);
        let facts = SessionFacts {
            id: id(0).parse::<SessionId>().expect("a UUID"),
            challenge: challenge.id().to_owned(),
            script: challenge.script().map(Script::version),
            rated: None,
            is_unlisted: false,
            created_at: now,
            seed: Some(seed.clone()),
            invites: (1..=challenge.seats(&options))
                .map(|n| format!("inv_{}", id(n)).parse::<InviteCode>().expect("an invite"))
                .collect(),
            options,
        };
        let session =
            open(facts, challenge, SessionPolicy::UNBOUNDED.inactivity).map_err(|error| subject.fault(&error))?;
        Ok(TestSession { subject, session, said: Vec::new(), now })
    }

    /// Creates a session in which all players have joined.
    pub fn seated(subject: Subject<'c>, seed: &Seed) -> Result<TestSession<'c>, Fault> {
        TestSession::opened(subject, seed)?.filled()
    }

    pub fn state(&self) -> &str {
        &self.session.state
    }

    /// Returns the session after all players have joined.
    pub fn filled(self) -> Result<TestSession<'c>, Fault> {
        self.filled_with(None)
    }

    /// Returns the session after all players have joined. One of them may be another user than in [`Self::filled`].
    pub fn filled_with(mut self, stranger: Option<Seat>) -> Result<TestSession<'c>, Fault> {
        for (number, invite) in (1..).zip(self.session.facts.invites.clone()) {
            let is_other = stranger.is_some_and(|seat| seat.number() == number);
            let user = if is_other { "stranger".to_owned() } else { format!("user-{number}") };
            let (challenge, policy) = (self.subject.challenge, &SessionPolicy::UNBOUNDED);
            let user = Some(user.parse().expect("the text is a user id"));
            let joined = join(&self.session, challenge, policy, invite, user, self.now)
                .map_err(|error| self.subject.fault(&error))?;
            self.take(joined);
        }
        Ok(self)
    }

    pub fn seats(&self) -> usize {
        self.session.facts.invites.len()
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.session.phase, Phase::Ended { .. })
    }

    /// Advances the time by a second and performs an action.
    pub fn act(&mut self, action: &Action) -> ActionResult {
        let from = self.session.facts.invites[action.seat.0];
        let now = self.now.plus_ms(STEP_MS);
        match act(
            &self.session,
            self.subject.challenge,
            &SessionPolicy::UNBOUNDED,
            from,
            Some(&action.method),
            &action.content,
            now,
        ) {
            Ok(transition) => {
                self.now = now;
                self.take(transition);
                ActionResult::Taken
            }
            Err(ActError::Rejected(rejection)) if rejection.code == FAILED => {
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
        let Some(deadline) = self.session.deadline else { return Ok(false) };
        self.now = deadline.max(self.now);
        let woken = wake(&self.session, self.subject.challenge, &SessionPolicy::UNBOUNDED, self.now, self.now)
            .map_err(|error| self.subject.fault(&error))?;
        self.take(woken);
        // If the rules fail at a deadline, the session drops the deadline without an error.
        (self.subject.last_fault)().map_or(Ok(true), Err)
    }

    /// Returns the messages since `from` that the player at a seat may read.
    pub fn messages_for(&self, seat: Seat, from: usize) -> impl Iterator<Item = &SessionMessage> {
        self.said[from..].iter().filter(move |said| said.is_for(seat))
    }

    /// Returns all data of a session that equal runs must have in common, as text.
    pub fn bytes(&self) -> String {
        let lines: Vec<String> = self.said.iter().map(SessionMessage::describe).collect();
        let Session { phase, scores, attributions, deadline, state, .. } = &self.session;
        format!("{}\n{phase:?} {scores:?} {attributions:?} {deadline:?}\n{state}", lines.join("\n"))
    }

    pub fn scores(&self) -> &[Score] {
        &self.session.scores
    }

    fn take(&mut self, transition: Transition) {
        if let After::Changed(after) = transition.after {
            self.session = *after;
        }
        for draft in transition.drafts.into_iter().filter(|draft| !draft.channel.is_inputs()) {
            let said = self.said_in(draft);
            self.said.push(said);
        }
    }

    fn said_in(&self, draft: Draft) -> SessionMessage {
        let seat = |party: &Party| match party {
            Party::Player(invite) => self.session.facts.invites.iter().position(|code| code == invite).map(Seat),
            Party::Operator | Party::Other(_) => None,
        };
        SessionMessage { from: seat(&draft.from), to: draft.to.as_ref().and_then(seat), content: draft.content }
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
