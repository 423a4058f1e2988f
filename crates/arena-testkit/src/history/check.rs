//! The checks: one function for each promise of the arena. Each function compares the history with the final state
//! and records faults.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Fault, FaultKind, FinalState, History, Moment, ObservedMessage, RequestOutcome, Subscription, Write, WriteOperation,
};

/// The channel for announcements of invites.
const INVITES: &str = "invites";

/// The code of the operator's message after an action in a session that isn't running. The server accepts such an
/// action, and the message is its only effect.
const NOT_RUNNING: &str = "ERR_GAME_NOT_RUNNING";

/// The tolerance in comparisons of means, because the order of additions may differ.
const ROUNDING: f64 = 1e-9;

/// Returns every fault that the clients could observe.
pub fn check(history: &History, final_state: &FinalState) -> Vec<Fault> {
    let mut faults = Faults::default();
    let traces = Traces::of(history, final_state);
    answers(history, &mut faults);
    happened(&traces, &mut faults);
    invented(&traces, final_state, &mut faults);
    places(history, final_state, &mut faults);
    races(history, &traces, &mut faults);
    seats(history, final_state, &mut faults);
    order(final_state, &mut faults);
    reads(history, final_state, &mut faults);
    for subscription in &history.subscriptions {
        stream(subscription, final_state, &mut faults);
    }
    counts(final_state, &mut faults);
    faults.0
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, kind: FaultKind, what: String) {
        self.0.push(Fault { kind, what });
    }
}

/// The client's knowledge of a write's outcome, from all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Acknowledged: the write happened.
    Done,
    /// Unknown: the write may have happened.
    Open,
    /// Every attempt was refused or never sent: the write didn't happen.
    Never,
}

impl Write {
    fn known(&self) -> Known {
        let any = |is: fn(&RequestOutcome) -> bool| self.attempts.iter().any(|attempt| is(&attempt.outcome));
        if any(|outcome| matches!(outcome, RequestOutcome::Accepted(_))) {
            Known::Done
        } else if any(|outcome| *outcome == RequestOutcome::Unknown) {
            Known::Open
        } else {
            Known::Never
        }
    }

    /// Returns the body and time of the first acknowledgment.
    fn acknowledged(&self) -> Option<(&str, Moment)> {
        self.attempts.iter().find_map(|attempt| match &attempt.outcome {
            RequestOutcome::Accepted(body) => Some((body.as_str(), attempt.done)),
            _ => None,
        })
    }

    /// Returns the acknowledgment as JSON.
    fn answer(&self) -> Option<Value> {
        serde_json::from_str(self.acknowledged()?.0).ok()
    }
}

/// The effects of writes in the final state. Writes with the same operation share their effects.
struct Traces<'h> {
    /// The writes of each operation, and their effects.
    of: BTreeMap<&'h WriteOperation, (Vec<&'h Write>, Vec<Effect>)>,
}

/// An effect of a write: a session, a taken seat (by its invite), or a message (by channel and index).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Session(String),
    Seat(String),
    Message(String, u64),
}

impl<'h> Traces<'h> {
    fn of(history: &'h History, final_state: &FinalState) -> Traces<'h> {
        let index = StateIndex::of(final_state);
        let mut of: BTreeMap<&WriteOperation, (Vec<&Write>, Vec<Effect>)> = BTreeMap::new();
        for write in &history.writes {
            of.entry(&write.operation).or_insert_with(|| (Vec::new(), index.find(&write.operation))).0.push(write);
        }
        Traces { of }
    }
}

/// The final state, indexed by operation.
struct StateIndex<'p> {
    /// Session ids by challenge type, name of an option, and value of that option.
    sessions: BTreeMap<(&'p str, &'p str, &'p str), Vec<&'p str>>,
    final_state: &'p FinalState,
    /// Players: their user name, and the number of their seats.
    players: BTreeMap<&'p str, (Option<&'p str>, usize)>,
    /// Messages by channel, sender and text.
    messages: BTreeMap<(&'p str, &'p str, &'p str), Vec<&'p ObservedMessage>>,
}

impl<'p> StateIndex<'p> {
    fn of(final_state: &'p FinalState) -> StateIndex<'p> {
        let mut index =
            StateIndex { sessions: BTreeMap::new(), final_state, players: BTreeMap::new(), messages: BTreeMap::new() };
        for (id, session) in &final_state.sessions {
            for (key, value) in &session.options {
                let ids = index.sessions.entry((&session.challenge, key, value)).or_default();
                ids.push(id);
            }
            for player in &session.players {
                let user = session.users.get(player).map(String::as_str);
                index.players.entry(player).or_insert((user, 0)).1 += 1;
            }
        }
        for (channel, messages) in &final_state.channels {
            for message in messages {
                if let Some(content) = &message.content {
                    index.messages.entry((channel, &message.from, content)).or_default().push(message);
                }
            }
        }
        index
    }

    fn find(&self, operation: &WriteOperation) -> Vec<Effect> {
        match operation {
            WriteOperation::Create { challenge, options } => {
                let Some((key, value)) = options.first() else { return Vec::new() };
                let ids = self.sessions.get(&(challenge.as_str(), key.as_str(), value.as_str()));
                let has_all = |id: &&&str| {
                    let session = &self.final_state.sessions[**id];
                    options.iter().all(|(key, value)| session.options.get(key) == Some(value))
                };
                ids.into_iter().flatten().filter(has_all).map(|id| Effect::Session((*id).to_owned())).collect()
            }
            WriteOperation::Announce { invite } => self.messages_of(INVITES, "operator", invite, None),
            WriteOperation::Join { invite, user } => match self.players.get(invite.as_str()) {
                Some((who, times)) if *who == user.as_deref() => vec![Effect::Seat(invite.clone()); *times],
                _ => Vec::new(),
            },
            WriteOperation::Say { session, from, to, content } => {
                self.messages_of(session, from, content, to.as_deref())
            }
            WriteOperation::Act { session, from, method, content } => {
                let content = format!("({method}) {content}");
                self.messages_of(&format!("challenge_{session}"), from, &content, Some("operator"))
            }
        }
    }

    fn messages_of(&self, channel: &str, from: &str, content: &str, to: Option<&str>) -> Vec<Effect> {
        let found = self.messages.get(&(channel, from, content)).into_iter().flatten();
        let found = found.filter(|message| message.to.as_deref() == to);
        found.map(|message| Effect::Message(channel.to_owned(), message.index)).collect()
    }
}

/// Checks that all acknowledgments with the same idempotency key are equal, and that no attempt is refused after an
/// acknowledgment.
fn answers(history: &History, faults: &mut Faults) {
    for write in &history.writes {
        let Some((first, at)) = write.acknowledged() else { continue };
        for attempt in &write.attempts {
            let is_other = match &attempt.outcome {
                RequestOutcome::Accepted(again) => again != first,
                RequestOutcome::Refused(_) => attempt.sent >= at,
                RequestOutcome::Unsent | RequestOutcome::Unknown => false,
            };
            if is_other {
                faults.add(
                    FaultKind::AnsweredOtherwise,
                    format!("{:?} was answered {first} and then {attempt:?}", write.operation),
                );
            }
        }
    }
}

/// Checks that an acknowledged write happened once, a write with unknown outcome at most once, and a refused write
/// never.
fn happened(traces: &Traces<'_>, faults: &mut Faults) {
    let with = |writes: &[&Write], known: Known| writes.iter().filter(|write| write.known() == known).count();
    for (operation, (writes, places)) in &traces.of {
        // `acts` checks the actions, because an action in a session that wasn't running is not in the channel.
        let is_act = matches!(operation, WriteOperation::Act { .. });
        let (done, open, times) = (with(writes, Known::Done), with(writes, Known::Open), places.len());
        if times < done && !is_act {
            faults.add(
                FaultKind::Lost,
                format!("{operation:?} was acknowledged {done} times, but happened {times} times"),
            );
        }
        if times > done + open {
            let kind = if done + open > 0 { FaultKind::Doubled } else { FaultKind::RefusedButThere };
            let asked = format!("was acknowledged {done} times, {open} are unknown, and it happened {times} times");
            faults.add(kind, format!("{operation:?} {asked}: {places:?}"));
        }
    }
}

/// Checks that a client requested every session, seat and message. Calls [`acts`] for the counts of actions.
fn invented(traces: &Traces<'_>, final_state: &FinalState, faults: &mut Faults) {
    let known: BTreeSet<&Effect> = traces.of.values().flat_map(|(_, places)| places).collect();
    for id in final_state.sessions.keys().filter(|id| !known.contains(&Effect::Session((*id).clone()))) {
        faults.add(FaultKind::Invented, format!("no client created session {id}"));
    }
    let asked: BTreeSet<&str> = traces.of.keys().filter_map(|operation| joined_by(operation)).collect();
    for player in final_state.sessions.values().flat_map(|session| &session.players) {
        if !asked.contains(player.as_str()) {
            faults.add(FaultKind::Invented, format!("{player} has a seat, but no client joined with it"));
        }
    }
    for (channel, messages) in &final_state.channels {
        let is_operators = channel.starts_with("challenge_");
        for message in messages {
            let is_said = if is_operators { message.from != "operator" } else { true };
            if is_said && !known.contains(&Effect::Message(channel.clone(), message.index)) {
                faults.add(FaultKind::Invented, format!("no client sent this message in {channel}: {message:?}"));
            }
        }
    }
    acts(traces, final_state, faults);
}

fn joined_by(operation: &WriteOperation) -> Option<&str> {
    match operation {
        WriteOperation::Join { invite, .. } => Some(invite),
        _ => None,
    }
}

/// Checks that each acknowledged action is in the operator channel, or that the operator replied to its player with
/// [`NOT_RUNNING`].
fn acts(traces: &Traces<'_>, final_state: &FinalState, faults: &mut Faults) {
    #[derive(Default)]
    struct Acts {
        done: usize,
        open: usize,
        taken: usize,
        lacking: usize,
    }
    let mut players: BTreeMap<(&str, &str), Acts> = BTreeMap::new();
    for (operation, (writes, places)) in &traces.of {
        let WriteOperation::Act { session, from, .. } = operation else { continue };
        let acts = players.entry((session, from)).or_default();
        let done = writes.iter().filter(|write| write.known() == Known::Done).count();
        acts.done += done;
        acts.open += writes.iter().filter(|write| write.known() == Known::Open).count();
        acts.taken += places.len();
        acts.lacking += done.saturating_sub(places.len());
    }
    for ((session, player), Acts { done, open, taken, lacking }) in players {
        let channel = final_state.channels.get(&format!("challenge_{session}"));
        let too_late = channel.into_iter().flatten().filter(|message| {
            let starts = |content: &String| content.starts_with(NOT_RUNNING);
            message.from == "operator"
                && message.to.as_deref() == Some(player)
                && message.content.as_ref().is_some_and(starts)
        });
        let too_late = too_late.count();
        let tally =
            || format!("{player} in {session}: {done} acknowledged, {open} unknown, {taken} accepted, {too_late} late");
        if lacking > too_late {
            faults.add(FaultKind::Lost, tally());
        }
        if too_late > lacking + open {
            faults.add(FaultKind::Doubled, tally());
        }
    }
}

/// Checks that the response to a chat message has the message's index in the channel.
fn places(history: &History, final_state: &FinalState, faults: &mut Faults) {
    for write in &history.writes {
        let (WriteOperation::Say { session, content, .. }, Some(answer)) = (&write.operation, write.answer()) else {
            continue;
        };
        let index = answer["index"].as_u64().unwrap_or_default();
        let there = final_state.channels.get(session).and_then(|messages| find(messages, index));
        if there.is_none_or(|message| message.content.as_ref() != Some(content)) {
            faults.add(
                FaultKind::Misplaced,
                format!("{content:?} should be at {index} of {session}, where the arena shows {there:?}"),
            );
        }
    }
}

/// Returns the message with an index, in a channel without gaps. Another check reports gaps.
fn find(messages: &[ObservedMessage], index: u64) -> Option<&ObservedMessage> {
    let at = usize::try_from(index.checked_sub(1)?).ok()?;
    messages.get(at).filter(|message| message.index == index)
}

/// Checks that exactly one of two concurrent, exclusive writes succeeded.
fn races(history: &History, traces: &Traces<'_>, faults: &mut Faults) {
    let by_key: BTreeMap<&str, &Write> = history.writes.iter().map(|write| (write.key.as_str(), write)).collect();
    let racers = |keys: &[String; 2]| -> Vec<&Write> {
        keys.iter().filter_map(|key| by_key.get(key.as_str()).copied()).collect()
    };
    // The number of races for each operation. A player may repeat a move later in the game, in another race.
    let mut heats: BTreeMap<&WriteOperation, usize> = BTreeMap::new();
    for keys in &history.races {
        let operations: BTreeSet<&WriteOperation> = racers(keys).iter().map(|write| &write.operation).collect();
        for operation in operations {
            *heats.entry(operation).or_default() += 1;
        }
    }
    for keys in &history.races {
        let writes = racers(keys);
        let count = |known: Known| writes.iter().filter(|write| write.known() == known).count();
        let (done, open) = (count(Known::Done), count(Known::Open));
        let operations: BTreeSet<&WriteOperation> = writes.iter().map(|write| &write.operation).collect();
        let taken: usize = operations.iter().map(|operation| traces.of[*operation].1.len()).sum();
        let to_take = operations.iter().map(|operation| heats[*operation]).max().unwrap_or_default();
        // The server also acknowledges an action that came too late, so the number of acknowledgments is the number
        // of successes for joins only.
        let too_many = done > 1 && operations.iter().any(|operation| joined_by(operation).is_some());
        if taken != to_take || done + open == 0 || too_many {
            let evidence = format!("{operations:?} sent twice: {done} acknowledged, {open} unknown, {taken} accepted");
            faults.add(FaultKind::RaceUndecided, evidence);
        }
    }
}

/// Checks that at most one join per invite was acknowledged, and that each session's status matches its seats.
fn seats(history: &History, final_state: &FinalState, faults: &mut Faults) {
    let mut joins: BTreeMap<&str, Vec<&Write>> = BTreeMap::new();
    for write in &history.writes {
        if let Some(invite) = joined_by(&write.operation) {
            joins.entry(invite).or_default().push(write);
        }
    }
    for (invite, writes) in joins {
        let done: Vec<&WriteOperation> =
            writes.iter().filter(|write| write.known() == Known::Done).map(|write| &write.operation).collect();
        if done.len() > 1 {
            faults.add(FaultKind::Seats, format!("several joins with {invite} were acknowledged: {done:?}"));
        }
    }
    for (id, session) in &final_state.sessions {
        let players: BTreeSet<&String> = session.players.iter().collect();
        let is_twice = players.len() < session.players.len();
        let is_foreign = players.iter().any(|player| !session.invites.contains(player));
        let is_full = session.players.len() == session.invites.len();
        if is_twice || is_foreign || (session.status == "open") == is_full {
            faults.add(FaultKind::Seats, format!("{id}: {session:?}"));
        }
    }
}

/// Checks that indexes are 1, 2, 3 … and times never decrease.
fn order(final_state: &FinalState, faults: &mut Faults) {
    for (channel, messages) in &final_state.channels {
        for (place, message) in (1..).zip(messages) {
            if message.index != place {
                faults.add(FaultKind::Gap, format!("{channel}: index {} in place of {place}", message.index));
                break;
            }
        }
        for pair in messages.windows(2) {
            if pair[1].at_ms < pair[0].at_ms {
                let evidence = format!(
                    "{channel}: {} at {}, {} at {}",
                    pair[0].index, pair[0].at_ms, pair[1].index, pair[1].at_ms
                );
                faults.add(FaultKind::TimeWentBack, evidence);
            }
        }
    }
}

/// Checks that a read shows at least everything known when it was sent: all acknowledged writes and all messages shown
/// to any client, on any node.
fn reads(history: &History, final_state: &FinalState, faults: &mut Faults) {
    // For each channel: the times from which a length of the channel is known, the lengths, and the evidence.
    let mut known: BTreeMap<&str, Vec<(Moment, u64, &str)>> = BTreeMap::new();
    for write in &history.writes {
        let Some((_, at)) = write.acknowledged() else { continue };
        if let WriteOperation::Say { session, .. } = &write.operation {
            let index = write.answer().and_then(|answer| answer["index"].as_u64()).unwrap_or_default();
            known.entry(session).or_default().push((at, index, "acknowledged"));
        }
    }
    let operators: BTreeMap<&str, String> =
        final_state.sessions.keys().map(|id| (id.as_str(), format!("challenge_{id}"))).collect();
    for write in &history.writes {
        let (WriteOperation::Act { session, from, method, content }, Some((_, at))) =
            (&write.operation, write.acknowledged())
        else {
            continue;
        };
        let Some(channel) = operators.get(session.as_str()) else { continue };
        let content = format!("({method}) {content}");
        let mut taken = final_state.channels.get(channel).into_iter().flatten();
        // If several messages are equal, the first one is used, because the channel has at least that length.
        if let Some(message) = taken.find(|message| message.from == *from && message.content.as_ref() == Some(&content))
        {
            known.entry(channel).or_default().push((at, message.index, "acted"));
        }
    }
    for read in &history.reads {
        known.entry(&read.channel).or_default().push((read.done, read.last, "read"));
    }
    for subscription in &history.subscriptions {
        let delivered = subscription.deliveries.iter().map(|it| (it.at, it.message.index, "delivered"));
        known.entry(&subscription.channel).or_default().extend(delivered);
    }
    // The lengths become the greatest known length at each moment.
    for facts in known.values_mut() {
        facts.sort_unstable();
        let mut longest = (0, "");
        for (_, length, why) in facts {
            longest = longest.max((*length, *why));
            (*length, *why) = longest;
        }
    }
    for read in &history.reads {
        let facts = &known[read.channel.as_str()];
        let before = facts.partition_point(|(at, ..)| *at < read.sent);
        let Some((_, length, why)) = before.checked_sub(1).map(|last| facts[last]) else { continue };
        if length >= read.from && read.last < length {
            faults.add(FaultKind::ReadWentBack, format!("{length} messages were known ({why}) before {read:?}"));
        }
    }
}

/// Checks that a subscriber received each message once, in order and unchanged, and the end of the session once.
fn stream(subscription: &Subscription, final_state: &FinalState, faults: &mut Faults) {
    let Subscription { channel, deliveries, ends, whole } = subscription;
    let none = Vec::new();
    let messages = final_state.channels.get(channel).unwrap_or(&none);
    for (place, delivery) in (1..).zip(deliveries) {
        let said = &delivery.message;
        if said.index != place {
            faults.add(FaultKind::Stream, format!("{channel}: index {} in place of {place}: {delivery:?}", said.index));
            return;
        }
        let same = find(messages, place).is_some_and(|message| {
            let same_text = said.content.is_none() || said.content == message.content;
            same_text && (&said.from, &said.to, said.at_ms) == (&message.from, &message.to, message.at_ms)
        });
        if !same {
            let there = find(messages, place);
            faults.add(FaultKind::Stream, format!("{channel}: received {delivery:?}, but the arena shows {there:?}"));
            return;
        }
    }
    if *whole && deliveries.len() < messages.len() {
        let (came, there) = (deliveries.len(), messages.len());
        faults.add(FaultKind::Stream, format!("{channel}: received {came} of {there} messages"));
    }
    let id = channel.strip_prefix("challenge_").unwrap_or(channel);
    let over = usize::from(final_state.sessions.get(id).is_some_and(|session| session.status == "ended"));
    if *ends > over || (*whole && *ends < over) {
        faults.add(FaultKind::Stream, format!("{channel}: received {ends} end events"));
    }
}

/// Checks that each game counts once, regardless of the node on which it ended, and that counting all games again
/// changed no standing.
fn counts(final_state: &FinalState, faults: &mut Faults) {
    let right = final_state.right_games();
    if final_state.games != right {
        faults.add(
            FaultKind::Miscounted,
            format!("the arena counts {:?} games, but {right:?} have ended", final_state.games),
        );
    }
    for (what, shown, right) in [
        ("sessions listed", &final_state.listed, final_state.right_lists()),
        ("sessions in histories", &final_state.histories, final_state.right_histories()),
    ] {
        if *shown != right {
            faults.add(FaultKind::Miscounted, format!("{what}: the arena shows {shown:?}, expected {right:?}"));
        }
    }
    let nobody = BTreeMap::new();
    let challenges: BTreeSet<&String> = final_state.boards.keys().chain(right.keys()).collect();
    for challenge in challenges {
        let (shown, right) = (final_state.boards.get(challenge).unwrap_or(&nobody), final_state.right_board(challenge));
        let users: BTreeSet<&String> = shown.keys().chain(right.keys()).collect();
        for user in users {
            let (shown, right) = (shown.get(user), right.get(user));
            let near = |a: f64, b: f64| (a - b).abs() < ROUNDING;
            let same = match (shown, right) {
                (Some(a), Some(b)) => {
                    a.games == b.games && near(a.means[0], b.means[0]) && near(a.means[1], b.means[1])
                }
                _ => false,
            };
            if !same {
                faults.add(
                    FaultKind::Miscounted,
                    format!("{user} in {challenge}: the arena shows {shown:?}, expected {right:?}"),
                );
            }
        }
    }
    if !final_state.mended.is_empty() {
        faults.add(FaultKind::Mended, format!("the counts of {:?} were wrong", final_state.mended));
    }
}
