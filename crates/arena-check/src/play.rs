//! A session of a challenge in memory, moved by the functions by which a server moves it, and what was said in it.

use arena_model::{
    ActError, After, ChallengeType, Draft, House, InviteCode, Party, Phase, Score, Script, Seat, Seed, Session,
    SessionFacts, SessionId, Timestamp, Transition, act, join, open, wake,
};
use serde_json::Map;

use crate::Fault;

/// The code of a refusal that the rules didn't mean: the challenge's script failed.
const FAILED: &str = "CHALLENGE_FAILED";

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Subject<'c> {
    pub challenge: &'c dyn ChallengeType,
    /// What is known of the last call that failed, once.
    pub last_fault: &'c dyn Fn() -> Option<Fault>,
}

impl Subject<'_> {
    /// What is known of a call that has just failed, which was answered so.
    fn fault(&self, error: &dyn std::error::Error) -> Fault {
        (self.last_fault)().unwrap_or_else(|| Fault { what: told(error), place: None, stack: Vec::new() })
    }
}

/// Between two actions, in milliseconds: what people who are quick would take.
const STEP_MS: i64 = 1000;

/// The longest line of evidence that is shown, in characters.
const MAX_EXCERPT: usize = 160;

/// Something that was said on the operator's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The seat that said it; the operator, if `None`.
    pub from: Option<Seat>,
    /// The seat that it is for; everybody, if `None`. What players say is for the operator.
    pub to: Option<Seat>,
    /// The text.
    pub content: String,
}

impl Said {
    /// Whether the player at this seat may read it before the end.
    pub fn is_for(&self, seat: Seat) -> bool {
        match self.from {
            Some(from) => from == seat,
            None => self.to.is_none_or(|to| to == seat),
        }
    }

    /// It as a line of evidence.
    pub fn describe(&self) -> String {
        let name = |seat: Seat| format!("player {}", seat.number());
        match (self.from, self.to) {
            (Some(from), _) => format!("{} sends {}", name(from), self.content),
            (None, Some(to)) => format!("{} is told: {}", name(to), self.content),
            (None, None) => format!("all are told: {}", self.content),
        }
    }
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The rules took it.
    Taken,
    /// They refused it.
    Refused {
        /// Stable name.
        code: String,
        /// Sentence for the player.
        message: String,
    },
    /// They failed.
    Failed(Fault),
}

/// An action that somebody tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Whose.
    pub seat: Seat,
    /// The method.
    pub method: String,
    /// What goes with it.
    pub content: String,
}

impl Action {
    /// It as a line of evidence.
    pub fn describe(&self) -> String {
        format!("player {} sends {} {:?}", self.seat.number(), self.method, excerpt(&self.content))
    }
}

/// A session, and what was said in it.
#[derive(Clone)]
pub struct Table<'c> {
    pub subject: Subject<'c>,
    pub session: Session,
    pub said: Vec<Said>,
    pub now: Timestamp,
}

impl<'c> Table<'c> {
    /// A session in which nobody has joined. Its ids are always the same.
    pub fn opened(subject: Subject<'c>, seed: &Seed) -> Result<Table<'c>, Fault> {
        Table::opened_at(subject, seed, 0)
    }

    /// The same with other ids, and created at another time.
    pub fn opened_at(subject: Subject<'c>, seed: &Seed, first: usize) -> Result<Table<'c>, Fault> {
        let Subject { challenge, .. } = subject;
        let options = challenge.resolve(&Map::new()).map_err(|error| subject.fault(&error))?;
        let id = |n: usize| format!("00000000-0000-7000-8000-{:012}", first + n);
        let now = Timestamp(first as i64);
        let facts = SessionFacts {
            id: id(0).parse::<SessionId>().expect("a UUID"),
            challenge: challenge.id().to_owned(),
            script: challenge.script().map(Script::version),
            rated: None,
            created_at: now,
            seed: Some(seed.clone()),
            invites: (1..=challenge.seats(&options))
                .map(|n| format!("inv_{}", id(n)).parse::<InviteCode>().expect("an invite"))
                .collect(),
            options,
        };
        let session = open(facts, challenge, House::UNBOUNDED.patience).map_err(|error| subject.fault(&error))?;
        Ok(Table { subject, session, said: Vec::new(), now })
    }

    /// A session in which all have joined.
    pub fn seated(subject: Subject<'c>, seed: &Seed) -> Result<Table<'c>, Fault> {
        Table::opened(subject, seed)?.filled()
    }

    /// What the rules remember.
    pub fn state(&self) -> &str {
        &self.session.state
    }

    /// The session, when all have joined.
    pub fn filled(mut self) -> Result<Table<'c>, Fault> {
        for invite in self.session.facts.invites.clone() {
            let joined = join(&self.session, self.subject.challenge, &House::UNBOUNDED, invite, None, self.now)
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

    /// Lets somebody act, a moment later.
    pub fn act(&mut self, action: &Action) -> Outcome {
        let from = self.session.facts.invites[action.seat.0];
        let now = self.now.plus_ms(STEP_MS);
        match act(
            &self.session,
            self.subject.challenge,
            &House::UNBOUNDED,
            from,
            Some(&action.method),
            &action.content,
            now,
        ) {
            Ok(transition) => {
                self.now = now;
                self.take(transition);
                Outcome::Taken
            }
            Err(ActError::Rejected(rejection)) if rejection.code == FAILED => {
                Outcome::Failed(self.subject.fault(&rejection))
            }
            Err(ActError::Rejected(rejection)) => Outcome::Refused { code: rejection.code, message: rejection.message },
            Err(error) => Outcome::Failed(self.subject.fault(&error)),
        }
    }

    /// Lets the time of the deadline come, if there is one. Tells whether there was.
    pub fn wait(&mut self) -> Result<bool, Fault> {
        let Some(deadline) = self.session.deadline else { return Ok(false) };
        self.now = deadline.max(self.now);
        let woken = wake(&self.session, self.subject.challenge, &House::UNBOUNDED, self.now, self.now)
            .map_err(|error| self.subject.fault(&error))?;
        self.take(woken);
        // A deadline on which the rules fail is forgotten, and nobody is told.
        (self.subject.last_fault)().map_or(Ok(true), Err)
    }

    /// What was said since `from` that the player at a seat may read.
    pub fn heard(&self, seat: Seat, from: usize) -> impl Iterator<Item = &Said> {
        self.said[from..].iter().filter(move |said| said.is_for(seat))
    }

    /// Everything that can be compared of a session, as text.
    pub fn bytes(&self) -> String {
        let lines: Vec<String> = self.said.iter().map(Said::describe).collect();
        let Session { phase, scores, attributions, deadline, state, .. } = &self.session;
        format!("{}\n{phase:?} {scores:?} {attributions:?} {deadline:?}\n{state}", lines.join("\n"))
    }

    pub fn scores(&self) -> &[Score] {
        &self.session.scores
    }

    fn take(&mut self, transition: Transition) {
        if let After::Becomes(after) = transition.after {
            self.session = *after;
        }
        for draft in transition.drafts {
            let said = self.said_in(draft);
            self.said.push(said);
        }
    }

    fn said_in(&self, draft: Draft) -> Said {
        let seat = |party: &Party| match party {
            Party::Player(invite) => self.session.facts.invites.iter().position(|code| code == invite).map(Seat),
            Party::Operator | Party::Other(_) => None,
        };
        Said { from: seat(&draft.from), to: draft.to.as_ref().and_then(seat), content: draft.content }
    }
}

/// An error with all that caused it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A text in one line, shortened to what one reads.
pub fn excerpt(text: &str) -> String {
    let line = text.replace('\n', " ⏎ ");
    match line.char_indices().nth(MAX_EXCERPT) {
        Some((end, _)) => format!("{}… ({} characters)", &line[..end], line.chars().count()),
        None => line,
    }
}
