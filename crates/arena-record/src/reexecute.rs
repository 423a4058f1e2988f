//! Re-execution of records: the rules play the game again from the seed and the inputs, and all results are compared.

mod compare;
mod transition;

use std::sync::Arc;

use arena_model::{
    After, ChallengeType, InactivityLimits, ScriptVersion, Seed, Session, SessionFacts, Timestamp, open,
};
use serde_json::{Map, Value};

use crate::forks::reseed;
use crate::{
    End, Event, EventKind, Hash, Header, InputsStored, Lie, Parsed, RecordedChannel, RecordedMessage, RecordedRules,
};

/// The result of a re-execution without a contradiction.
#[derive(Debug, Clone, PartialEq)]
pub struct Reexecuted {
    pub transitions: u64,
    /// The number of messages that were compared, with or without their contents.
    pub messages: u64,
    /// The number of contents that couldn't be compared, because the record withholds them.
    pub withheld: u64,
    /// The number of deadlines at which a script failed, by the record. The script wasn't called for them, because it
    /// may have failed on the arena's machine only.
    pub failed: u64,
    /// The session after the last transition that was played. Users whose ids are withheld are absent.
    pub session: Session,
    /// The reason why the game wasn't played to the record's last event.
    pub unchecked: Option<Unchecked>,
    /// True if the players read the prompt that these rules have. Otherwise its text differs, which isn't a
    /// contradiction: a release may explain the same rules in other words.
    pub has_same_prompt: bool,
}

/// The reason why a record can't be played again, or not to its end. It isn't a contradiction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unchecked {
    #[error("the game cannot be played again: the session was imported, or played before the arena stored its inputs")]
    InputsMissing,
    #[error("the game cannot be played again: the seed is secret until the end")]
    NoSeed,
    #[error("the game cannot be played again: it needs the {needed}, which release {release} has")]
    OtherRules {
        /// The needed rules, such as `rules of psi, version 2`.
        needed: String,
        release: String,
    },
    #[error("the game cannot be played beyond event {event}: the content of its action is withheld")]
    Withheld { event: u64 },
    /// The id of a joining user is withheld, and the rules may depend on it.
    #[error("the game cannot be played beyond event {event}: the user's id is withheld, and the script may use it")]
    UserWithheld { event: u64 },
    /// A script failed, which may be a fault of this machine.
    #[error("the game cannot be played beyond event {event}: {message}")]
    Failed { event: u64, message: String },
}

/// Returns true if a challenge has the rules of a record, as its current or an older version.
pub fn has_rules(header: &Header, challenge: &dyn ChallengeType) -> bool {
    challenge.id() == header.challenge && (is_version(header, challenge) || older_rules(header, challenge).is_some())
}

/// Returns true if a challenge of the record's name has the record's version of the rules.
fn is_version(header: &Header, challenge: &dyn ChallengeType) -> bool {
    match (&header.rules, challenge.script()) {
        (RecordedRules::Script { script }, Some(own)) => own.version().to_string() == script.to_string(),
        (RecordedRules::Builtin { version, .. }, None) => challenge.rules_version() == *version,
        _ => false,
    }
}

/// Returns the challenge with the record's version of the rules, if that is another one and the program has it.
fn older_rules(header: &Header, challenge: &dyn ChallengeType) -> Option<Arc<dyn ChallengeType>> {
    let versions = (1..challenge.rules_version()).filter_map(|version| challenge.with_rules(version));
    versions.filter(|_| !is_version(header, challenge)).find(|older| is_version(header, &**older))
}

/// Returns the reason why `challenge` can't play a record with this header at all, apart from its seed.
pub fn unplayable(header: &Header, challenge: &dyn ChallengeType) -> Option<Unchecked> {
    let release = &header.release;
    let other = |needed| Some(Unchecked::OtherRules { needed, release: release.clone() });
    let name = &header.challenge;
    if !has_rules(header, challenge) {
        return match &header.rules {
            RecordedRules::Script { script } => other(format!("script {name} with the hash {script}")),
            RecordedRules::Builtin { version, .. } => other(format!("rules of {name}, version {version}")),
        };
    }
    (header.inputs == InputsStored::Missing).then_some(Unchecked::InputsMissing)
}

/// Plays all transitions of a record again, and compares messages, versions, scores, attributions, usage and the final
/// state.
///
/// If the game can't be played, or not to its end, the result names the reason in [`Reexecuted::unchecked`].
///
/// # Errors
/// A [`Lie`] with the first event that differs.
pub fn reexecute(parsed: &Parsed, challenge: &dyn ChallengeType) -> Result<Reexecuted, Lie> {
    let older = older_rules(&parsed.header, challenge);
    let challenge = older.as_deref().unwrap_or(challenge);
    let (mut replay, unchecked) = Replay::run(parsed, challenge, u64::MAX)?;
    if unchecked.is_none() {
        replay.restore_seed();
        replay.compare_end()?;
    }
    let Replay { transitions, messages, withheld, failed, session, .. } = replay;
    let has_same_prompt = has_same_prompt(&parsed.header, challenge);
    Ok(Reexecuted { transitions, messages, withheld, failed, session, unchecked, has_same_prompt })
}

/// Returns true if the challenge has the prompt of the record. A script's hash includes its prompt.
fn has_same_prompt(header: &Header, challenge: &dyn ChallengeType) -> bool {
    let RecordedRules::Builtin { prompt, .. } = header.rules else { return true };
    let is_same = |challenge: &dyn ChallengeType| Hash::of(challenge.metadata().prompt.as_bytes()) == prompt;
    // The prompt may contain the options.
    let configured = || arena_games::challenge(challenge.id(), header.options.as_object()?)?.ok();
    is_same(challenge) || configured().is_some_and(|configured| is_same(&*configured))
}

/// Plays a record again up to an event, inclusive. Returns the session after that event, from which a fork can
/// continue. Event 0 is the creation.
///
/// # Errors
/// A [`Lie`] with the first event that differs, or with the reason why the game can't be played to the event.
pub fn reexecute_to(parsed: &Parsed, challenge: &dyn ChallengeType, event: u64) -> Result<Session, Lie> {
    if event > parsed.events.len() as u64 {
        let what = format!("the record has {} events, so there is no event {event}", parsed.events.len());
        return Err(Lie { line: parsed.events.len() + 1, event: None, what });
    }
    let older = older_rules(&parsed.header, challenge);
    let (replay, unchecked) = Replay::run(parsed, older.as_deref().unwrap_or(challenge), event)?;
    match unchecked {
        None => Ok(replay.session),
        Some(unchecked) => {
            let event = match unchecked {
                Unchecked::Withheld { event } | Unchecked::UserWithheld { event } | Unchecked::Failed { event, .. } => {
                    Some(event)
                }
                _ => None,
            };
            Err(Lie { line: event.map_or(1, line_of), event, what: unchecked.to_string() })
        }
    }
}

/// The number of the line of an event: the header is line 1.
fn line_of(event: u64) -> usize {
    usize::try_from(event).map_or(usize::MAX, |event| event + 1)
}

fn lie(event: &Event, what: impl Into<String>) -> Lie {
    Lie { line: line_of(event.event), event: Some(event.event), what: what.into() }
}

/// The failure of a step: a contradiction, or a reason to stop.
enum Stop {
    Lie(Lie),
    Unchecked(Unchecked),
}

impl From<Lie> for Stop {
    fn from(lie: Lie) -> Stop {
        Stop::Lie(lie)
    }
}

struct Replay<'r> {
    parsed: &'r Parsed,
    challenge: &'r dyn ChallengeType,
    session: Session,
    last_activity: Timestamp,
    /// The version of the session after the record's last transition.
    last_version: Option<u64>,
    transitions: u64,
    messages: u64,
    withheld: u64,
    failed: u64,
    /// False if a usage report is withheld, so that the totals can't be compared.
    knows_usage: bool,
}

impl<'r> Replay<'r> {
    /// Plays the events up to number `last`.
    fn run(
        parsed: &'r Parsed,
        challenge: &'r dyn ChallengeType,
        last: u64,
    ) -> Result<(Replay<'r>, Option<Unchecked>), Lie> {
        let header = &parsed.header;
        let facts = facts_of(parsed)?;
        let has_seed = facts.seed.is_some();
        let start = |session| Replay {
            parsed,
            challenge,
            session,
            last_activity: header.created_at,
            last_version: parsed.events.iter().rev().find_map(|event| event.version),
            transitions: 0,
            messages: 0,
            withheld: 0,
            failed: 0,
            knows_usage: true,
        };
        let no_seed = (!has_seed).then_some(Unchecked::NoSeed);
        if let Some(unchecked) = unplayable(header, challenge).or(no_seed) {
            return Ok((start(Session::blank(facts, "{}".to_owned())), Some(unchecked)));
        }
        check_options(header, challenge)?;
        if let Some(fork) = header.fork.as_ref().filter(|fork| fork.at > parsed.events.len() as u64) {
            return Err(in_header(format!("the session is a fork at event {}, but has fewer events", fork.at)));
        }
        let dealt = match open(facts.clone(), challenge, InactivityLimits::ENDLESS) {
            Ok(session) => session,
            Err(rejection) if rejection.is_failure() => {
                let unchecked = Unchecked::Failed { event: 0, message: rejection.message };
                return Ok((start(Session::blank(facts, "{}".to_owned())), Some(unchecked)));
            }
            Err(rejection) => return Err(in_header(format!("the rules refuse to deal this game: {rejection}"))),
        };
        let mut replay = start(dealt);
        let reseeded_at = header.fork.as_ref().filter(|fork| fork.reseeded).map(|fork| fork.at);
        for event in parsed.events.iter().take_while(|event| event.event <= last) {
            match replay.step(event) {
                Ok(()) => {}
                Err(Stop::Lie(lie)) => return Err(lie),
                Err(Stop::Unchecked(unchecked)) => return Ok((replay, Some(unchecked))),
            }
            if reseeded_at == Some(event.event) {
                reseed(&mut replay.session);
            }
        }
        Ok((replay, None))
    }

    fn step(&mut self, event: &Event) -> Result<(), Stop> {
        match event.kind {
            EventKind::Chat => self.check_chat(event)?,
            EventKind::Notice => self.check_notice(event)?,
            _ => {
                let transition = self.transition(event)?;
                let After::Changed(after) = transition.after else {
                    return Err(lie(event, "the rules don't change the session at this event").into());
                };
                if event.version != Some(after.version) {
                    return Err(lie(event, format!("the session gets version {}", after.version)).into());
                }
                self.compare(event, &transition.drafts)?;
                self.count_withheld(event);
                self.failed += u64::from(self.is_trusted_failure(event));
                self.session = *after;
                self.transitions += 1;
            }
        }
        if event.messages.iter().any(|message| message.channel != RecordedChannel::Usage) {
            self.last_activity = self.last_activity.max(event.at);
        }
        Ok(())
    }

    /// Returns the content of a message, or `None` if it is withheld.
    fn content_of(&self, message: &RecordedMessage) -> Option<&'r str> {
        self.parsed.openings.get(&message.opening()).map(|opening| opening.content.as_str())
    }

    /// Restores the seed of the start, which the end has, after a fork with new randomness.
    fn restore_seed(&mut self) {
        if self.parsed.header.fork.as_ref().is_some_and(|fork| fork.reseeded) {
            let seed = self.parsed.end.as_ref().and_then(|end| end.seed).map(|Hash(seed)| Seed(seed));
            self.session.facts = Arc::new(SessionFacts { seed, ..(*self.session.facts).clone() });
        }
    }
}

fn in_header(what: String) -> Lie {
    Lie { line: 1, event: None, what }
}

/// Checks that the game can be dealt with the recorded options. Rules may panic on other options.
fn check_options(header: &Header, challenge: &dyn ChallengeType) -> Result<(), Lie> {
    let Value::Object(options) = &header.options else {
        return Err(in_header("the options aren't an object".to_owned()));
    };
    // Most sessions have the options of the arena, which were checked when the challenge was created.
    let is_usual = challenge.resolve(&Map::new()).is_ok_and(|usual| usual == header.options);
    let seats = match challenge.script() {
        _ if is_usual => Ok(challenge.seats(&header.options)),
        Some(_) => challenge.arrange(options).map(|options| challenge.seats(&options)),
        None => match arena_games::challenge(challenge.id(), options) {
            Some(configured) => configured.map(|challenge| challenge.metadata().players),
            None => Ok(challenge.seats(&header.options)),
        },
    };
    match seats {
        Ok(seats) if seats == header.seats => Ok(()),
        Ok(seats) => Err(in_header(format!("a game with these options has {seats} seats, not {}", header.seats))),
        Err(error) => Err(in_header(format!("the game cannot be played with the recorded options: {error}"))),
    }
}

/// Returns the facts of a session at its creation. The invites of an unfinished session are not known.
fn facts_of(parsed: &Parsed) -> Result<SessionFacts, Lie> {
    let Parsed { header, end, .. } = parsed;
    let script = match &header.rules {
        RecordedRules::Script { script } => Some(
            script
                .to_string()
                .parse::<ScriptVersion>()
                .map_err(|error| in_header(format!("the script's hash is {error}")))?,
        ),
        RecordedRules::Builtin { .. } => None,
    };
    let seed_of = |end: &End| end.seed.map(|Hash(seed)| Seed(seed));
    Ok(SessionFacts {
        script,
        seed: end.as_ref().and_then(seed_of),
        options: header.options.clone(),
        invites: end.as_ref().map_or_else(Vec::new, |end| end.invites.clone()),
        ..SessionFacts::bare(header.session, &header.challenge, header.created_at)
    })
}
