//! The transitions of a game that is played again.

use arena_model::{
    ActError, After, Channel, Draft, InactivityLimits, InviteCode, JoinError, Party, Phase, Rejection, Seat, Session,
    SessionPolicy, Transition, UsageReport, UserId, act, announce, fail_deadline, join, report_usage, wake,
};

use super::{Replay, Stop, Unchecked, lie};
use crate::{EndKind, Event, EventKind, Lie, Opening, RecordedChannel, RecordedMessage, RecordedParty};

impl Replay<'_> {
    /// Returns the transition of an event. Chat messages and notices have none.
    pub(super) fn transition(&self, event: &Event) -> Result<Transition, Stop> {
        match event.kind {
            EventKind::Join => self.join(event),
            EventKind::Action => self.act(event),
            EventKind::Deadline | EventKind::Failed | EventKind::Abandon | EventKind::Wake => self.wake(event),
            EventKind::Usage => self.report_usage(event),
            EventKind::Announce => match event.invite {
                Some(invite) => announce(&self.session, invite)
                    .map_err(|error| lie(event, format!("the offer is impossible: {error}")).into()),
                // The invite is secret until a player has joined with it, or the session has ended.
                None if self.parsed.end.is_some() => Err(lie(event, "the offered invite is missing").into()),
                None => Ok(next_version(&self.session, event)),
            },
            EventKind::Chat | EventKind::Notice => Err(lie(event, "the event isn't a transition").into()),
        }
    }

    fn join(&self, event: &Event) -> Result<Transition, Stop> {
        let invite = event.invite.ok_or_else(|| lie(event, "the player's name is missing"))?;
        let user = self.user_of(event)?;
        if user.is_none() && event.user.is_some() && self.challenge.sees_users() {
            return Err(Stop::Unchecked(Unchecked::UserWithheld { event: event.event }));
        }
        let joined = join(&self.session, self.challenge, &SessionPolicy::UNBOUNDED, invite, user, event.at);
        joined.map_err(|error| match error {
            JoinError::Rejected(rejection) => refused(event, &rejection),
            error => lie(event, format!("the join is impossible: {error}")).into(),
        })
    }

    fn act(&self, event: &Event) -> Result<Transition, Stop> {
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
        let policy = &SessionPolicy::UNBOUNDED;
        let acted = act(&self.session, self.challenge, policy, player, Some(method), text, event.at);
        acted.map_err(|error| match error {
            ActError::Rejected(rejection) => refused(event, &rejection),
            error => lie(event, format!("the action is impossible: {error}")).into(),
        })
    }

    fn wake(&self, event: &Event) -> Result<Transition, Stop> {
        let inactivity = self.limits_of(event)?;
        if self.is_trusted_failure(event) {
            return Ok(fail_deadline(&self.session, inactivity, event.at));
        }
        let policy = SessionPolicy { inactivity, ..SessionPolicy::UNBOUNDED };
        let woken = wake(&self.session, self.challenge, &policy, self.last_activity.min(event.at), event.at)
            .map_err(|error| lie(event, format!("the rules fail: {error}")))?;
        let has_failed = |draft: &Draft| draft.channel.is_inputs() && draft.method.as_deref() == Some("failed");
        if self.challenge.script().is_some() && woken.drafts.iter().any(has_failed) {
            let message = "the script fails at this deadline, but did not in the arena".to_owned();
            return Err(Stop::Unchecked(Unchecked::Failed { event: event.event, message }));
        }
        Ok(woken)
    }

    fn report_usage(&self, event: &Event) -> Result<Transition, Stop> {
        let player = self.player_of(event)?;
        let [report] = &*event.messages else {
            return Err(lie(event, "a usage report has one message").into());
        };
        if report.channel != RecordedChannel::Usage || Some(report.from) != event.seat.map(RecordedParty::Player) {
            return Err(lie(event, "the message isn't the player's usage report").into());
        }
        if matches!(self.session.phase, Phase::Ended { .. }) {
            return Err(lie(event, "the usage report is impossible: the session has ended").into());
        }
        let Some(content) = self.content_of(report) else {
            return Ok(next_version(&self.session, event));
        };
        let report: UsageReport = serde_json::from_str(content)
            .map_err(|error| lie(event, format!("the usage report is malformed: {error}")))?;
        // No arena accepts larger numbers, and their sum could overflow.
        report.check().map_err(|error| lie(event, format!("the usage report is impossible: {error}")))?;
        report_usage(&self.session, player, report)
            .map_err(|error| lie(event, format!("the usage report is impossible: {error}")).into())
    }

    /// Returns true if the record says that a script failed at this deadline. Built-in rules fail everywhere or nowhere,
    /// so they are called again.
    pub(super) fn is_trusted_failure(&self, event: &Event) -> bool {
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
}

fn refused(event: &Event, rejection: &Rejection) -> Stop {
    if rejection.is_failure() {
        return Stop::Unchecked(Unchecked::Failed { event: event.event, message: rejection.message.clone() });
    }
    Stop::Lie(lie(event, format!("the rules refuse this: {rejection}")))
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
