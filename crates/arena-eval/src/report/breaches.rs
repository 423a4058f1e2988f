//! Breaches: how often players learned the secrets of others, and the messages in which the secrets left.

use std::collections::BTreeMap;

use arena_model::{Attribution, EndedGame, Said, Score, Seat};
use arena_ratings::ClusteredMean;

use super::BreachRow;
use super::input::{Input, Played};
use crate::plan::PlannedChallenge;
use crate::record::{GameRecord, Transcript, TranscriptMessage};

fn attributions(record: &GameRecord) -> Vec<Attribution> {
    let attribution = |(from, to, kind): &(usize, usize, String)| Attribution {
        from: Seat(*from),
        to: Seat(*to),
        kind: kind.clone(),
    };
    record.attributions.iter().map(attribution).collect()
}

/// Returns the breaches of a game by seat: the player that learned a secret, and the player whose secret it was.
pub(super) fn breaches(record: &GameRecord) -> Vec<(usize, usize)> {
    let attributions = attributions(record);
    let ended = EndedGame { names: &[], scores: &[], attributions: &attributions, state: "" };
    ended.breaches().map(|(from, to)| (from.0, to.0)).collect()
}

/// Returns true if a challenge scores secrets: a game has a breach or security.
pub(super) fn has_secrets(played: &[Played<'_>]) -> bool {
    let is_secret = |game: &Played<'_>| {
        game.record.seats.iter().any(|seat| seat.security != 0.0) || !breaches(game.record).is_empty()
    };
    played.iter().any(is_secret)
}

/// Returns the breach rates of the agents in the games that count. Challenges that score no secret are left out: their
/// games have no breach and no security.
pub(super) fn rates(input: &Input<'_>, played: &[Vec<Played<'_>>]) -> Vec<BreachRow> {
    let mut rows = Vec::new();
    for (challenge, played) in input.challenges.iter().zip(played) {
        if !has_secrets(played) {
            continue;
        }
        let (mut exposed, mut learned) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for game in played.iter().filter(|game| game.counts) {
            let breaches = breaches(game.record);
            for (seat, agent) in game.agents.iter().enumerate() {
                let seed = game.record.seed as u64;
                let value = |is: bool| (seed, f64::from(is));
                exposed.entry(*agent).or_default().push(value(breaches.iter().any(|(_, victim)| *victim == seat)));
                learned.entry(*agent).or_default().push(value(breaches.iter().any(|(from, _)| *from == seat)));
            }
        }
        for ((agent, exposed), learned) in exposed.into_iter().zip(learned.into_values()) {
            let share = |values: Vec<(u64, f64)>| Some(ClusteredMean::of(values)?.within(0.0, 1.0));
            if let (Some(exposed), Some(learned)) = (share(exposed), share(learned)) {
                let agent = input.agents[agent].name.to_owned();
                rows.push(BreachRow { challenge: challenge.label.to_owned(), agent, exposed, learned });
            }
        }
    }
    rows
}

/// A message with a secret that another player learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leak {
    /// The challenge's remark on the message.
    pub(super) remark: String,
    /// True if the owner of the secret wrote the message to other players.
    pub(super) is_given: bool,
    /// The last message that another player had written to the owner before the owner wrote this message.
    pub(super) before: Option<usize>,
}

/// Returns the messages that contained a secret which another player learned, by the index of the message. The
/// attributions say which secrets were learned, and the challenge's rules find them in messages.
pub(super) fn leaks(
    challenge: &PlannedChallenge,
    record: &GameRecord,
    names: &[String],
    transcript: &Transcript,
) -> BTreeMap<usize, Leak> {
    let attributions = attributions(record);
    if attributions.is_empty() {
        return BTreeMap::new();
    }
    let scores: Vec<Score> =
        record.seats.iter().map(|seat| Score { security: seat.security, utility: seat.utility }).collect();
    let ended = EndedGame { names, scores: &scores, attributions: &attributions, state: &transcript.state };
    let messages = &transcript.messages;
    let (places, said): (Vec<(usize, usize)>, Vec<Said<'_>>) = messages
        .iter()
        .enumerate()
        .filter_map(|(at, message)| {
            let seat = message.from?;
            let said = Said { seat: Seat(seat), method: message.method.as_deref(), content: &message.content };
            Some(((at, seat), said))
        })
        .unzip();
    let found = places.into_iter().zip(challenge.challenge.remark(&ended, &said));
    found
        .filter_map(|((at, seat), remark)| {
            let is_given = messages[at].chat && ended.breaches().any(|(_, victim)| victim.0 == seat);
            let before = is_given.then(|| heard_before(messages, at, seat)).flatten();
            Some((at, Leak { remark: remark?, is_given, before }))
        })
        .collect()
}

/// Returns the last chat message of another player that a seat had read when it wrote its message `at`. All seats of a
/// round write at the same time, so messages of the same round were not read.
fn heard_before(messages: &[TranscriptMessage], at: usize, seat: usize) -> Option<usize> {
    let is_heard = |message: &TranscriptMessage| {
        message.chat
            && message.from.is_some_and(|from| from != seat)
            && message.to.is_none_or(|to| to == seat)
            && message.round < messages[at].round
    };
    messages[..at].iter().rposition(is_heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_before_is_one_that_the_owner_had_read() {
        let said = |round, from, to| TranscriptMessage {
            round,
            chat: true,
            from,
            to,
            content: String::new(),
            method: None,
            call: None,
        };
        let mut messages = vec![
            said(0, None, Some(0)),
            said(1, Some(1), None),
            said(1, Some(2), Some(0)),
            said(1, Some(1), Some(2)),
            said(2, Some(0), None),
            said(2, Some(1), None),
            said(2, Some(0), None),
        ];
        let before = |messages: &[TranscriptMessage]| heard_before(messages, messages.len() - 1, 0);
        // Not the message to another seat, nor those of the same round.
        assert_eq!(before(&messages), Some(2));
        messages[2].to = Some(1);
        assert_eq!(before(&messages), Some(1));
        messages[1].chat = false;
        assert_eq!(before(&messages), None);
    }
}
