//! The comparison of a record with the game that is played again.

use arena_model::{Channel, Draft, GameCategory, InviteCode, Party, Phase, Score, Seat};

use super::{Replay, lie};
use crate::write::{NOT_RUNNING, canonical, end_of};
use crate::{Event, EventKind, Lie, RecordedChannel, RecordedMessage, RecordedParty};

impl Replay<'_> {
    /// Compares the messages of an event with those of the rules.
    pub(super) fn compare(&mut self, event: &Event, drafts: &[Draft]) -> Result<(), Lie> {
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

    pub(super) fn check_chat(&mut self, event: &Event) -> Result<(), Lie> {
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
    pub(super) fn check_notice(&mut self, event: &Event) -> Result<(), Lie> {
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

    pub(super) fn count_withheld(&mut self, event: &Event) {
        let has_opening = |name: String| self.parsed.openings.contains_key(&name);
        let seat = event.seat.map_or(0, |Seat(seat)| seat);
        let is_user_withheld = event.user.is_some() && !has_opening(format!("user/{seat}"));
        let is_usage_withheld =
            event.kind == EventKind::Usage && event.messages.iter().any(|report| !has_opening(report.opening()));
        self.withheld += u64::from(is_user_withheld) + u64::from(is_usage_withheld);
        self.knows_usage &= !is_usage_withheld;
    }

    pub(super) fn compare_end(&mut self) -> Result<(), Lie> {
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
        if scores_text(&end.scores) != scores_text(&played.scores) {
            let [found, expected] = [&end.scores, &played.scores].map(|scores| scores_text(scores));
            return lie(&format!("the scores are {found}, but by the rules {expected}"));
        }
        let differences = [
            ("kind of the end", end.end != played.end),
            ("time of the end", end.at != played.at),
            ("attributions are", end.attributions != played.attributions),
            ("termination causes are", end.causes != played.causes),
            ("state of the rules", end.state != played.state),
            ("usage totals are", self.knows_usage && end.usage != played.usage),
        ];
        match differences.iter().find(|(_, differs)| *differs) {
            Some((what, _)) if what.ends_with(" are") => lie(&format!("the {what} not those of the game")),
            Some((what, _)) => lie(&format!("the {what} is not that of the game")),
            None => Ok(()),
        }
    }
}

/// Equal scores have equal texts; 0 and -0 are the same.
fn scores_text(scores: &[Score]) -> String {
    canonical(&scores)
}
