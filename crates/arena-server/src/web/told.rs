//! Names and sentences about a session: the challenge's name, the players' names, and the result.

use std::collections::BTreeMap;

use arena_model::{Attribution, EndedGame, Said, Score, Seat, Status, UserId, UserProfile, printable};
use arena_wire::Message;

use super::seen::RedactedSession;
use crate::arena::Arena;

/// Number of characters after which a name in a sentence is cut.
const LONGEST_NAME: usize = 40;

/// The names and the result of a session, for viewers without identity.
pub(super) struct Told {
    /// The challenge's name, such as `Private Set Intersection`.
    pub(super) challenge: String,
    /// The players' names by seat: `Player 1` until names are public.
    pub(super) names: Vec<String>,
    /// The result as a sentence; `None` until the end.
    pub(super) sentence: Option<String>,
    scores: Vec<Score>,
    attributions: Vec<Attribution>,
}

impl Told {
    pub(super) fn of(arena: &Arena, session: &RedactedSession, profiles: &BTreeMap<UserId, UserProfile>) -> Told {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type);
        let name = |(seat, player): (usize, &String)| match session.name_of(player, profiles) {
            Some((_, name)) => shorten(name),
            None => format!("Player {}", seat + 1),
        };
        let attributions = session.state.attributions.iter().filter_map(|attribution| {
            let [from, to] = [&attribution.from, &attribution.to].map(|player| session.seat_of(player).map(Seat));
            Some(Attribution { from: from?, to: to?, kind: attribution.kind.clone() })
        });
        let mut told = Told {
            challenge: challenge.map_or(&session.challenge_type, |challenge| &challenge.metadata().name).clone(),
            names: session.state.players.iter().enumerate().map(name).collect(),
            sentence: None,
            scores: session.state.scores.clone(),
            attributions: attributions.collect(),
        };
        told.sentence = match (session.status(), challenge) {
            (Status::Open | Status::Active, _) => None,
            _ if session.state.abandoned => Some("The game ended because nobody moved for too long.".to_owned()),
            (Status::Ended, Some(challenge)) => Some(challenge.tell(&told.ended(session))),
            (Status::Ended, None) => Some(told.ended(session).tell_scores()),
        };
        told
    }

    fn ended<'t>(&'t self, session: &'t RedactedSession) -> EndedGame<'t> {
        EndedGame {
            names: &self.names,
            scores: &self.scores,
            attributions: &self.attributions,
            state: session.game_state.get(),
        }
    }

    /// Returns the page's title: the result, or the challenge's name until the end.
    pub(super) fn title(&self) -> &str {
        self.sentence.as_deref().unwrap_or(&self.challenge)
    }

    /// Returns a remark for each message, if it contained a secret that another player learned. There are none until
    /// the end.
    pub(super) fn remarks(
        &self,
        arena: &Arena,
        session: &RedactedSession,
        messages: &[&Message],
    ) -> Vec<Option<String>> {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type).filter(|_| !self.attributions.is_empty());
        let mut remarks = vec![None; messages.len()];
        let Some(challenge) = challenge.filter(|_| session.status() == Status::Ended) else { return remarks };
        let said = |(at, message): (usize, &&Message)| {
            let seat = session.seat_of(&message.from).filter(|_| !message.redacted)?;
            Some((at, seat))
        };
        let places: Vec<(usize, usize)> = messages.iter().enumerate().filter_map(said).collect();
        let said: Vec<Said<'_>> = places
            .iter()
            .map(|(at, seat)| {
                let message = messages[*at];
                Said { seat: Seat(*seat), method: message.method.as_deref(), content: &message.content }
            })
            .collect();
        for ((at, _), remark) in places.iter().zip(challenge.remark(&self.ended(session), &said)) {
            remarks[*at] = remark;
        }
        remarks
    }
}

/// Returns a name for a sentence: on one line, without control characters, and cut.
fn shorten(name: &str) -> String {
    let name = printable(name).replace('\n', " ");
    match name.char_indices().nth(LONGEST_NAME) {
        None => name,
        Some((at, _)) => format!("{}…", &name[..at]),
    }
}
