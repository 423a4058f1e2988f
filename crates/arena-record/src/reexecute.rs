//! Re-execution of records: the rules play the game again from the seed and the inputs, and all results are compared.

use std::sync::Arc;

use arena_model::{
    ActError, After, ChallengeType, Channel, Draft, GameCategory, InactivityLimits, InviteCode, JoinError, Party,
    Phase, Rejection, Score, ScriptVersion, Seat, Seed, Session, SessionFacts, SessionPolicy, Timestamp, Transition,
    UsageReport, UserId, act, announce, fail_deadline, join, open, report_usage, wake,
};
use serde_json::{Map, Value};

use crate::forks::reseed;
use crate::write::{NOT_RUNNING, canonical, end_of};
use crate::{
    End, EndKind, Event, EventKind, Hash, Header, InputsStored, Lie, Opening, Parsed, RecordedChannel, RecordedMessage,
    RecordedParty, RecordedRules,
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
                let transition = self.play(event)?;
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

    fn play(&self, event: &Event) -> Result<Transition, Stop> {
        let (session, challenge, at) = (&self.session, self.challenge, event.at);
        let policy = &SessionPolicy::UNBOUNDED;
        match event.kind {
            EventKind::Join => {
                let invite = event.invite.ok_or_else(|| lie(event, "the player's name is missing"))?;
                let user = self.user_of(event)?;
                if user.is_none() && event.user.is_some() && challenge.sees_users() {
                    return Err(Stop::Unchecked(Unchecked::UserWithheld { event: event.event }));
                }
                join(session, challenge, policy, invite, user, at).map_err(|error| match error {
                    JoinError::Rejected(rejection) => refused(event, &rejection),
                    error => lie(event, format!("the join is impossible: {error}")).into(),
                })
            }
            EventKind::Action => {
                let player = self.player_of(event)?;
                let Some(action) = event.messages.first().filter(|message| is_action(event, message)) else {
                    return Err(lie(event, "the first message isn't the player's action").into());
                };
                let Some(content) = self.content_of(action) else {
                    return Err(Stop::Unchecked(Unchecked::Withheld { event: event.event }));
                };
                let (method, text) = self
                    .split_action(content)
                    .ok_or_else(|| lie(event, "the action doesn't begin with a method of the challenge in brackets"))?;
                act(session, challenge, policy, player, Some(method), text, at).map_err(|error| match error {
                    ActError::Rejected(rejection) => refused(event, &rejection),
                    error => lie(event, format!("the action is impossible: {error}")).into(),
                })
            }
            EventKind::Deadline | EventKind::Failed | EventKind::Abandon | EventKind::Wake => {
                let inactivity = self.limits_of(event)?;
                if self.is_trusted_failure(event) {
                    return Ok(fail_deadline(session, inactivity, at));
                }
                let policy = SessionPolicy { inactivity, ..SessionPolicy::UNBOUNDED };
                let woken = wake(session, challenge, &policy, self.last_activity.min(at), at)
                    .map_err(|error| lie(event, format!("the rules fail: {error}")))?;
                let has_failed = |draft: &Draft| draft.channel.is_inputs() && draft.method.as_deref() == Some("failed");
                if challenge.script().is_some() && woken.drafts.iter().any(has_failed) {
                    let message = "the script fails at this deadline, but did not in the arena".to_owned();
                    return Err(Stop::Unchecked(Unchecked::Failed { event: event.event, message }));
                }
                Ok(woken)
            }
            EventKind::Usage => {
                let player = self.player_of(event)?;
                let [report] = &*event.messages else {
                    return Err(lie(event, "a usage report has one message").into());
                };
                if report.channel != RecordedChannel::Usage
                    || Some(report.from) != event.seat.map(RecordedParty::Player)
                {
                    return Err(lie(event, "the message isn't the player's usage report").into());
                }
                if matches!(session.phase, Phase::Ended { .. }) {
                    return Err(lie(event, "the usage report is impossible: the session has ended").into());
                }
                let Some(content) = self.content_of(report) else {
                    return Ok(next_version(session, event));
                };
                let report: UsageReport = serde_json::from_str(content)
                    .map_err(|error| lie(event, format!("the usage report is malformed: {error}")))?;
                // No arena accepts larger numbers, and their sum could overflow.
                report.check().map_err(|error| lie(event, format!("the usage report is impossible: {error}")))?;
                report_usage(session, player, report)
                    .map_err(|error| lie(event, format!("the usage report is impossible: {error}")).into())
            }
            EventKind::Announce => match event.invite {
                Some(invite) => announce(session, invite)
                    .map_err(|error| lie(event, format!("the offer is impossible: {error}")).into()),
                // The invite is secret until a player has joined with it, or the session has ended.
                None if self.parsed.end.is_some() => Err(lie(event, "the offered invite is missing").into()),
                None => Ok(next_version(session, event)),
            },
            EventKind::Chat | EventKind::Notice => Err(lie(event, "the event isn't a transition").into()),
        }
    }

    /// Returns true if the record says that a script failed at this deadline. Built-in rules fail everywhere or nowhere,
    /// so they are called again.
    fn is_trusted_failure(&self, event: &Event) -> bool {
        event.kind == EventKind::Failed && self.challenge.script().is_some()
    }

    fn player_of(&self, event: &Event) -> Result<InviteCode, Lie> {
        let occupant = event.seat.and_then(|Seat(seat)| self.session.seats.get(seat));
        occupant.map(|occupant| occupant.invite).ok_or_else(|| lie(event, "the seat has no player"))
    }

    /// Returns the id of the joining user, or `None` if it is withheld.
    fn user_of(&self, event: &Event) -> Result<Option<UserId>, Lie> {
        let opening = event.seat.and_then(|Seat(seat)| self.parsed.openings.get(&format!("user/{seat}")));
        let parse = |opening: &Opening| opening.content.parse::<UserId>();
        opening.map(parse).transpose().map_err(|error| lie(event, format!("the user is {error}")))
    }

    fn count_withheld(&mut self, event: &Event) {
        let has_opening = |name: String| self.parsed.openings.contains_key(&name);
        let seat = event.seat.map_or(0, |Seat(seat)| seat);
        let is_user_withheld = event.user.is_some() && !has_opening(format!("user/{seat}"));
        let is_usage_withheld =
            event.kind == EventKind::Usage && event.messages.iter().any(|report| !has_opening(report.opening()));
        self.withheld += u64::from(is_user_withheld) + u64::from(is_usage_withheld);
        self.knows_usage &= !is_usage_withheld;
    }

    /// Returns the content of a message, or `None` if it is withheld.
    fn content_of(&self, message: &RecordedMessage) -> Option<&'r str> {
        self.parsed.openings.get(&message.opening()).map(|opening| opening.content.as_str())
    }

    fn split_action<'c>(&self, content: &'c str) -> Option<(&'c str, &'c str)> {
        let rest = content.strip_prefix('(')?;
        let methods = &self.challenge.metadata().methods;
        methods.iter().find_map(|method| {
            let text = rest.strip_prefix(method.name.as_str())?.strip_prefix(") ")?;
            Some((&rest[..method.name.len()], text))
        })
    }

    /// Returns the arena's limits that follow from the message of an abandonment. Other events need no limits.
    fn limits_of(&self, event: &Event) -> Result<InactivityLimits, Lie> {
        // Before the game, a deadline of the rules doesn't pass.
        let is_active = self.session.phase == Phase::Active;
        let is_due = is_active && self.session.deadline.is_some_and(|deadline| deadline <= event.at);
        if matches!(event.kind, EventKind::Deadline | EventKind::Failed) && !is_due {
            return Err(lie(event, "no deadline has passed"));
        }
        let ends_abandoned = self.parsed.end.as_ref().is_some_and(|end| end.end == EndKind::Abandoned)
            && self.last_version == event.version;
        if !ends_abandoned {
            return Ok(InactivityLimits::ENDLESS);
        }
        let content = event.messages.last().and_then(|message| self.content_of(message));
        // Without the message, the smallest limits show that the game could be abandoned at all.
        let number = |before: &str, after: &str| match content {
            None => Some("0"),
            Some(content) => {
                content.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map(|(word, _)| word)
            }
        };
        let unattended = number("the rules wrote more than ", " bytes").and_then(|bytes| bytes.parse::<u64>().ok());
        let idle = number("nothing happened for ", " minutes").and_then(|minutes| minutes.parse::<f64>().ok());
        let idle = idle.filter(|minutes| *minutes >= 0.0);
        Ok(InactivityLimits {
            open_ms: None,
            active_ms: idle.filter(|_| !is_due).map(|minutes| (minutes * 60_000.0).round() as i64),
            unattended_bytes: unattended.filter(|_| is_due),
        })
    }

    /// Compares the messages of an event with those of the rules.
    fn compare(&mut self, event: &Event, drafts: &[Draft]) -> Result<(), Lie> {
        let recorded: Vec<&RecordedMessage> =
            event.messages.iter().filter(|message| message.channel != RecordedChannel::Usage).collect();
        let kind = drafts.iter().find(|draft| draft.channel.is_inputs()).and_then(|input| input.method.as_deref());
        let kind = kind.unwrap_or("action");
        if kind != event.kind.to_string() {
            return Err(lie(event, format!("for the rules, this is an event of kind {kind}")));
        }
        let is_shown = |draft: &&Draft| matches!(draft.channel, Channel::Chat(_) | Channel::Operator(_));
        let drafts: Vec<&Draft> = drafts.iter().filter(is_shown).collect();
        for (message, draft) in recorded.iter().zip(&drafts) {
            let name = message.opening();
            let channel = match draft.channel {
                Channel::Chat(_) => RecordedChannel::Chat,
                _ => RecordedChannel::Operator,
            };
            let to = draft.to.as_ref().map(|to| self.party_of(to));
            if message.channel != channel || message.from != self.party_of(&draft.from) || message.to != to {
                return Err(lie(event, format!("message {name} has another channel, sender or recipient")));
            }
            self.messages += 1;
            match self.content_of(message) {
                Some(content) if content == draft.content => {}
                Some(_) => return Err(lie(event, format!("the rules send another message than {name}"))),
                None => self.withheld += 1,
            }
        }
        if recorded.len() != drafts.len() {
            let what = format!("the rules send {} messages, the record has {}", drafts.len(), recorded.len());
            return Err(lie(event, what));
        }
        Ok(())
    }

    /// Returns a party as a record names it. A joining player has no seat before the transition.
    fn party_of(&self, party: &Party) -> RecordedParty {
        let joining = |invite: &InviteCode| {
            let event =
                self.parsed.events.iter().find(|event| event.kind == EventKind::Join && event.invite == Some(*invite));
            event.and_then(|event| event.seat)
        };
        match party {
            Party::Operator => RecordedParty::Operator,
            Party::Player(invite) => match self.session.seat_of(*invite).or_else(|| joining(invite)) {
                Some(seat) => RecordedParty::Player(seat),
                None => RecordedParty::Other,
            },
            Party::Other(_) => RecordedParty::Other,
        }
    }

    fn check_chat(&mut self, event: &Event) -> Result<(), Lie> {
        let [message] = &*event.messages else {
            return Err(lie(event, "a chat event has one message"));
        };
        let is_sender = match message.from {
            RecordedParty::Player(Seat(seat)) => event.seat == Some(Seat(seat)) && seat < self.session.seats.len(),
            RecordedParty::Other => event.seat.is_none(),
            RecordedParty::Operator => false,
        };
        if message.channel != RecordedChannel::Chat || !is_sender {
            return Err(lie(event, "the chat message has no possible sender"));
        }
        self.messages += 1;
        self.withheld += u64::from(self.content_of(message).is_none());
        Ok(())
    }

    /// Checks the answer to an action outside of the game.
    fn check_notice(&mut self, event: &Event) -> Result<(), Lie> {
        let [message] = &*event.messages else {
            return Err(lie(event, "a notice has one message"));
        };
        let is_answer = message.channel == RecordedChannel::Operator
            && message.from == RecordedParty::Operator
            && matches!(message.to, Some(RecordedParty::Player(Seat(seat))) if seat < self.session.seats.len());
        if !is_answer || self.session.phase == Phase::Active {
            return Err(lie(event, "the operator cannot send this message now"));
        }
        self.messages += 1;
        match self.content_of(message) {
            Some(NOT_RUNNING) => {}
            Some(_) => return Err(lie(event, "the operator sends another message outside of the game")),
            None => self.withheld += 1,
        }
        Ok(())
    }

    /// Restores the seed of the start, which the end has, after a fork with new randomness.
    fn restore_seed(&mut self) {
        if self.parsed.header.fork.as_ref().is_some_and(|fork| fork.reseeded) {
            let seed = self.parsed.end.as_ref().and_then(|end| end.seed).map(|Hash(seed)| Seed(seed));
            self.session.facts = Arc::new(SessionFacts { seed, ..(*self.session.facts).clone() });
        }
    }

    fn compare_end(&mut self) -> Result<(), Lie> {
        let line = self.parsed.events.len() + 2;
        let lie = |what: &str| Err(Lie { line, event: None, what: what.to_owned() });
        let (Some(end), Phase::Ended { at, ending, .. }) = (&self.parsed.end, self.session.phase) else {
            return match &self.parsed.end {
                Some(_) => lie("the game hasn't ended"),
                None => Ok(()),
            };
        };
        // The benchmark models of the arena determine the category, and no record names them. Every one of them has a
        // user id.
        let users = self.parsed.events.iter().filter(|event| event.user.is_some()).count();
        let is_possible = match end.category {
            GameCategory::Train => true,
            GameCategory::Test => users > 0 && users + 1 >= self.session.seats.len(),
            GameCategory::Benchmark => users > 0 && users == self.session.seats.len(),
        };
        if !is_possible {
            return lie("too few players have user ids for the category of the game");
        }
        self.session.phase = Phase::Ended { at, ending, category: end.category };
        let Some(played) = end_of(&self.session, end.previous) else { return lie("the game hasn't ended") };
        let differences = [
            ("kind of the end", end.end != played.end),
            ("time of the end", end.at != played.at),
            ("scores are", scores_text(&end.scores) != scores_text(&played.scores)),
            ("attributions are", end.attributions != played.attributions),
            ("termination causes are", end.causes != played.causes),
            ("state of the rules", end.state != played.state),
            ("usage totals are", self.knows_usage && end.usage != played.usage),
            ("seed or the invites are", end.seed != played.seed || end.invites != played.invites),
        ];
        match differences.iter().find(|(_, differs)| *differs) {
            Some((what, _)) if what.ends_with(" are") => lie(&format!("the {what} not those of the game")),
            Some((what, _)) => lie(&format!("the {what} is not that of the game")),
            None => Ok(()),
        }
    }
}

fn refused(event: &Event, rejection: &Rejection) -> Stop {
    if rejection.is_failure() {
        return Stop::Unchecked(Unchecked::Failed { event: event.event, message: rejection.message.clone() });
    }
    Stop::Lie(lie(event, format!("the rules refuse this: {rejection}")))
}

/// Equal scores have equal texts; 0 and -0 are the same.
fn scores_text(scores: &[Score]) -> String {
    canonical(&scores)
}

fn is_action(event: &Event, message: &RecordedMessage) -> bool {
    message.channel == RecordedChannel::Operator
        && event.seat.is_some()
        && event.seat.map(RecordedParty::Player) == Some(message.from)
}

/// Returns a transition that changes only the version, for an input that isn't public.
fn next_version(session: &Session, event: &Event) -> Transition {
    let after = Session { version: session.version + 1, ..session.clone() };
    let input = Draft {
        channel: Channel::Inputs(session.facts.id),
        from: Party::Operator,
        to: None,
        content: String::new(),
        method: Some(event.kind.to_string()),
    };
    Transition { after: After::Changed(Box::new(after)), drafts: vec![input] }
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
